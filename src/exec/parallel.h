// Runs a function on n threads and waits.
//
// Not OpenMP: its runtime ends the process when it cannot start a thread, and hangs in a child after fork.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>

namespace pidcomm {

/// CPUs that the calling thread may run on, at least 1.
int usable_cpus();

/// Calls task(0) .. task(count-1), each exactly once, on the calling thread and up to count-1 pooled ones, and returns when all are done.
/// Tasks may run one after another on fewer threads if the system has no more to give. Callers do not wait for each other. Never throws;
/// task must not throw. Between jobs, pooled threads watch for the next one for kSpinMicroseconds before they sleep, as does a
/// caller for its last tasks, unless threads at work need all CPUs.
inline constexpr int kSpinMicroseconds = 50;
void run_on_pool(int count, const std::function<void(int)> &task);

/// The same for any body; the first exception that a call throws is thrown again here.
template <class Body>
void run_threads(int threads, const Body &body) {
  std::exception_ptr error;
  std::mutex error_mutex;
  run_on_pool(threads, [&](int thread) {
    try {
      body(thread);
    } catch (...) {
      const std::lock_guard<std::mutex> lock(error_mutex);
      if (!error) error = std::current_exception();
    }
  });
  if (error) std::rethrow_exception(error);
}

/// The part of [0, count) that is thread's, for an even static split.
struct Range {
  uint64_t first, last;
};
inline Range share_of(uint64_t count, int thread, int threads) {
  const uint64_t parts = static_cast<uint64_t>(threads);
  const auto at = [&](int t) { return count / parts * static_cast<uint64_t>(t) + count % parts * static_cast<uint64_t>(t) / parts; };
  return {at(thread), at(thread + 1)};
}

}  // namespace pidcomm
