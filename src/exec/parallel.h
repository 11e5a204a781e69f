// Runs a function on n threads and waits.
//
// Not OpenMP: its runtime ends the process when it cannot start a thread, and hangs in a child after fork.
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

/// CPUs that the calling thread may run on, at least 1.
int usable_cpus();

/// Calls task(0) .. task(count-1), each exactly once, on the calling thread and up to count-1 pooled ones, and returns when all are done.
/// If the system starts fewer threads, tasks run one after another. Callers do not wait for each other. Never throws; task must not throw.
/// Between jobs, pooled threads spin for kSpinMicroseconds before they sleep; so does a caller that waits for its last tasks. No thread
/// spins while working threads need all CPUs.
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

/// Numbers 0 .. count-1 for a few threads, each once. A thread takes the numbers of its own even share in order (it stays with its ranks,
/// and all channels are busy), then steals work from the other threads' shares: a slow thread does not delay the others.
class WorkQueue {
 public:
  /// threads: at least 1 is assumed. Throws std::bad_alloc.
  WorkQueue(uint64_t count, int threads) : shares_(static_cast<std::size_t>(std::max(threads, 1))) {
    const uint64_t parts = shares_.size(), whole = count / parts, rest = count % parts;
    for (uint64_t t = 0; t < parts; ++t) {
      shares_[t].next = whole * t + rest * t / parts;
      shares_[t].end = whole * (t + 1) + rest * (t + 1) / parts;
    }
  }

  template <class Visit>
  void each(int thread, const Visit &visit) {
    each(thread, visit, [] {});
  }
  /// own_done() runs before the first stolen number, for callers that collect numbers and do them at once.
  template <class Visit, class OwnDone>
  void each(int thread, const Visit &visit, const OwnDone &own_done) {
    for (std::size_t turn = 0; turn < shares_.size(); ++turn) {
      Share &share = shares_[(static_cast<std::size_t>(thread) + turn) % shares_.size()];
      while (share.next.load() < share.end)  // does not write to an empty share
        if (const uint64_t number = share.next.fetch_add(1); number < share.end) visit(number);
      if (turn == 0) own_done();
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
