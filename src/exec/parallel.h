// Runs a function on n threads and waits. OpenMP's pool, or plain threads where the thread sanitizer must see the joins.
#pragma once

#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#if !defined(__SANITIZE_THREAD__)
#include <omp.h>
#endif

namespace pidcomm {

/// Calls body(thread) for thread = 0 .. threads-1, each exactly once, possibly at the same time. The first exception is thrown again here.
template <class Body>
void run_threads(int threads, const Body &body) {
  std::exception_ptr error;
  std::mutex error_mutex;
  const auto guarded = [&](int thread) {
    try {
      body(thread);
    } catch (...) {
      const std::lock_guard<std::mutex> lock(error_mutex);
      if (!error) error = std::current_exception();
    }
  };
#if defined(__SANITIZE_THREAD__)
  std::vector<std::thread> team;
  for (int thread = 1; thread < threads; ++thread) team.emplace_back(guarded, thread);
  guarded(0);
  for (std::thread &member : team) member.join();
#else
#pragma omp parallel for num_threads(threads) schedule(static, 1)
  for (int thread = 0; thread < threads; ++thread) guarded(thread);
#endif
  if (error) std::rethrow_exception(error);
}

/// The part of [0, count) that is thread's, for an even static split.
struct Range {
  uint64_t first, last;
};
inline Range share_of(uint64_t count, int thread, int threads) {
  const auto at = [&](int t) { return count / static_cast<uint64_t>(threads) * static_cast<uint64_t>(t) +
                                      count % static_cast<uint64_t>(threads) * static_cast<uint64_t>(t) / static_cast<uint64_t>(threads); };
  return {at(thread), at(thread + 1)};
}

}  // namespace pidcomm
