// How many threads a pass uses. Small passes use one, because waking other threads takes time.
#pragma once

#include <cstdint>

#include "plan/plan.h"

namespace pidcomm {

/// Returns `threads`, or 1 if a pass moves so few bytes of lines that waking other threads takes
/// more time than it saves.
inline int useful_threads(uint64_t bytes, int threads) {
  constexpr uint64_t kSerialBytes = uint64_t{64} << 10;
  return bytes < kSerialBytes ? 1 : threads;
}

/// Does the same for the passes of a plan.
inline int useful_threads_of(const Plan &plan, int threads) {
  return useful_threads((plan.in_pe_bytes + plan.out_pe_bytes) * plan.cube.pes, threads);
}

}  // namespace pidcomm
