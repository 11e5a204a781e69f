// A thread for the non-blocking calls of a hypercube.
#pragma once

#include <functional>
#include <memory>

namespace pidcomm {

/// Runs jobs in a thread of its own, in the order of their arrival. The thread sleeps between jobs. The process does not wait for the
/// thread when it exits. A child of fork does not have the thread, so the first job in the child process starts a new one.
class Worker {
 public:
  Worker() = default;
  /// The thread ends after its last job. Does not wait for the thread.
  ~Worker();
  Worker(const Worker &) = delete;
  Worker &operator=(const Worker &) = delete;

  /// Queues a job, which must not throw. If the host lacks memory or threads, throws std::bad_alloc or std::system_error and does not queue
  /// the job. Threads must not call `run` at the same time.
  void run(std::function<void()> job);

 private:
  struct State;
  static void serve(const std::shared_ptr<State> &state);
  std::shared_ptr<State> state_;  // null before the first job
};

}  // namespace pidcomm
