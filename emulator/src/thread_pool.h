// The threads that share the work of a transfer. They outlive every set, and the process does not wait for them at its end.
#pragma once

#include <cstdint>
#include <functional>

namespace dpuemu {

/// Calls body(0) ... body(count-1), each once, in no particular order, on up to `threads` threads including the caller, and returns when
/// all are done. One such loop has the pool at a time: a second one at the same time runs in its caller alone. After fork() the child has
/// no pool threads and runs everything in the caller.
void parallel_for(uint64_t count, uint32_t threads, const std::function<void(uint64_t)> &body);

}  // namespace dpuemu
