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

/// Whether one thread does all work of a request on `pes` PEs: a PE reads and writes at most
/// request.bytes each. Messages have no such limit.
inline bool needs_one_thread(const pidcomm_request &request, uint64_t pes) {
  return request.collective != PIDCOMM_SENDRECV && request.bytes < kSerialBytes / 2 / pes;
}

/// Does the same as useful_threads for the passes of a plan.
inline int useful_threads_of(const Plan &plan, int threads) {
  return useful_threads((plan.in_pe_bytes + plan.out_pe_bytes) * plan.cube.pes, threads);
}

}  // namespace pidcomm
