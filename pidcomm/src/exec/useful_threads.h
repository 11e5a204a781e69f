// How many threads a pass uses. Small passes use one, because waking other threads takes time.
#pragma once

#include <cstdint>

#include "plan/plan.h"

namespace pidcomm {

inline constexpr uint64_t kSerialBytes = uint64_t{64} << 10;

/// Returns `threads`, or 1 if a pass moves so few bytes of lines that waking other threads takes
/// more time than it saves.
inline int useful_threads(uint64_t bytes, int threads) {
  return bytes < kSerialBytes ? 1 : threads;
}

/// Whether one thread does all work of a collective, but not of messages, on `pes` PEs. A PE reads
/// and writes at most `bytes` each, and nothing on the side whose data are in host memory. Errors:
/// those of rule_of.
inline bool is_small(int collective, uint64_t bytes, uint64_t pes) {
  const CollectiveRule &rule = rule_of(collective);
  const uint64_t sides = uint64_t{rule.in.space == Space::mram} + (rule.out.space == Space::mram);
  return bytes <= (kSerialBytes - 1) / (sides * pes);
}

/// Does the same as useful_threads for the passes of a plan.
inline int useful_threads_of(const Plan &plan, int threads) {
  if (plan.messages != nullptr)
    return useful_threads((plan.in_pe_bytes + plan.out_pe_bytes) * plan.cube.pes, threads);
  return is_small(plan.collective, plan.bytes, plan.cube.pes) ? 1 : threads;
}

}  // namespace pidcomm
