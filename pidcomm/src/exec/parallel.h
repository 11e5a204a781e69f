// Functions that run a task on several threads and wait for the end of the task.
//
// The library does not use OpenMP, because the OpenMP runtime ends the process when it cannot start
// a thread, and hangs in a child process after fork.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <vector>

namespace pidcomm {

/// Returns the number of CPUs that the calling thread may use, at least 1.
int usable_cpus();

/// Calls task(0) .. task(count-1), each exactly once, on the calling thread and up to count-1
/// pooled threads, and returns when all tasks are done. If the system starts fewer than count-1
/// pooled threads, a thread runs several tasks in sequence. Concurrent callers do not wait for each
/// other. run_on_pool never throws, and task must not throw. Between tasks, pooled threads spin for
/// kSpinMicroseconds before they sleep; a caller that waits for its last tasks also spins before it
/// sleeps. No thread spins while working threads need all CPUs.
inline constexpr int kSpinMicroseconds = 50;
void run_on_pool(int count, const std::function<void(int)> &task);

/// Calls body(0) .. body(threads-1) like run_on_pool. If a call of body throws, run_threads throws
/// the first of these exceptions again.
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

/// Gives each of the numbers 0 .. count-1 to one thread. Each thread has a share of consecutive
/// numbers and takes these first, in ascending order. Therefore each thread works on few ranks, and
/// all threads together use all memory channels. A thread whose share is empty takes numbers from
/// other shares, so that a slow thread does not delay the others.
class WorkQueue {
 public:
  /// threads: the number of threads; a value below 1 means 1 thread. Throws std::bad_alloc.
  WorkQueue(uint64_t count, int threads) : shares_(static_cast<std::size_t>(std::max(threads, 1))) {
    const uint64_t shares = shares_.size(), whole = count / shares, rest = count % shares;
    for (uint64_t t = 0; t < shares; ++t) {
      shares_[t].next = whole * t + rest * t / shares;
      shares_[t].end = whole * (t + 1) + rest * (t + 1) / shares;
    }
  }

  template <class Visit>
  void each(int thread, const Visit &visit) {
    each(thread, visit, [] {});
  }
  /// Calls own_done() before the first number that the thread steals, for callers that collect the
  /// numbers of a share and process these numbers together.
  template <class Visit, class OwnDone>
  void each(int thread, const Visit &visit, const OwnDone &own_done) {
    for (std::size_t i = 0; i < shares_.size(); ++i) {
      Share &share = shares_[(static_cast<std::size_t>(thread) + i) % shares_.size()];
      while (share.next.load() < share.end)  // does not write to an empty share
        if (const uint64_t number = share.next.fetch_add(1); number < share.end) visit(number);
      if (i == 0) own_done();
    }
  }

 private:
  struct alignas(64) Share {
    std::atomic<uint64_t> next{0};
    uint64_t end = 0;
  };
  std::vector<Share> shares_;
};

}  // namespace pidcomm
