// A thread for the non-blocking calls of a hypercube.
#pragma once

#include <functional>
#include <memory>

namespace pidcomm {

/// Runs jobs in a separate thread, in the order of their arrival. The thread sleeps between jobs.
/// The process does not wait for the thread when it exits. A child of fork does not have the
/// thread, so the first job in the child process starts a new one.
class Worker {
 public:
  Worker();
  /// Waits until the thread has run all jobs and has ended.
  ~Worker();
  Worker(const Worker &) = delete;
  Worker &operator=(const Worker &) = delete;

  /// Queues a job, which must not throw. If the host lacks memory or threads, throws std::bad_alloc
  /// or std::system_error and does not queue the job. Threads must not call `run` at the same time.
  void run(std::function<void()> job);

 private:
  struct State;
  static void serve(State &state);
  void leave_to_parent();
  std::unique_ptr<State> state_;  // null before the first job
};

}  // namespace pidcomm
