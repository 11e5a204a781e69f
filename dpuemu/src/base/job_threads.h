// Threads for work that may block for a long time: queued jobs of ranks and their callbacks.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>

namespace dpuemu {

class JobThreads {
 public:
  /// The threads of this process. They outlive every DPU set; the process does not wait for them
  /// when it exits.
  static JobThreads &instance();

  /// Calls work() in a thread that runs nothing else meanwhile: a thread that has ended its earlier
  /// work and sleeps, or a new one. work must not throw. If the host lacks memory or threads,
  /// throws std::bad_alloc or std::system_error and does not call work().
  void run(std::function<void()> work);

 private:
  void serve();

  std::mutex mutex_;  // guards all members below
  std::condition_variable wake_;
  std::deque<std::function<void()>> work_;
  std::size_t asleep_ = 0;
};

}  // namespace dpuemu
