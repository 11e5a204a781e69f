// The host threads of the emulator: parallel loops and launches of PEs (pe_scheduler.h) run on
// these threads.
//
// The threads of the pool outlive every DPU set, and the process does not wait for these threads
// when it exits. Threads that may block for a long time are not in the pool: those of queued jobs
// and callbacks (job_threads.h), and the watch, which ends tasklets that compute too long
// (pe_scheduler.cpp).
#pragma once

#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>

namespace dpuemu {

/// Calls each of body(0) ... body(count-1) once, in any order, on up to `threads` threads including
/// the caller. Returns when all calls are done. body must not throw. If all threads of the pool are
/// busy and no further thread can be started, the caller makes all calls of body.
void parallel_for(uint64_t count, uint32_t threads, const std::function<void(uint64_t)> &body);

class WorkerPool {
 public:
  /// A job that threads of the pool may join.
  class Job {
   public:
    Job() = default;
    Job(const Job &) = delete;
    Job &operator=(const Job &) = delete;
    virtual ~Job() = default;
    /// All threads that join the job call run() in parallel. A thread leaves the job when its run()
    /// returns. run() must not throw.
    virtual void run() = 0;

   private:
    friend class WorkerPool;
    uint32_t wanted_ = 0;  // pending joins; guarded by the pool's mutex, like the other members
    uint32_t inside_ = 0;  // number of threads that have joined and not left
    Job *next_ = nullptr;  // the next job in the pool's list of the jobs with wanted_ > 0
    std::condition_variable empty_;
  };

  /// Lets `wanted` threads join the job; replaces the number of pending joins. Jobs get threads in
  /// the order of their invitations. If fewer than `wanted` threads are free, starts new threads
  /// until the pool has `most` threads. If the pool has no thread, returns false and changes
  /// nothing.
  bool invite(Job &job, uint32_t wanted, uint32_t most);

  /// Cancels pending joins of the job and waits until no thread is in the job. Then the job may be
  /// destroyed.
  void withdraw(Job &job);

 private:
  void grow(uint32_t missing, uint32_t most);
  void remove(Job &job);
  void work();

  std::mutex mutex_;  // guards all members below
  std::condition_variable invited_;
  Job *first_ = nullptr, *last_ = nullptr;  // ends of the list of jobs with wanted_ > 0
  uint32_t pending_ = 0;                    // sum of wanted_ of the jobs in the list
  uint32_t workers_ = 0, busy_ = 0;
};

/// Returns the T of this process. The first call creates this T. The T is never destroyed, because
/// threads may use it until the process ends. A child of fork() does not have the threads of its
/// parent, so the child process gets its own T. T's constructor must not start threads.
template <class T>
T &of_this_process() {
  struct Owned {
    pid_t owner = getpid();
    T object;
  };
  static std::atomic<Owned *> current{
      nullptr};  // atomic: fork() could copy a lock while a thread holds it
  Owned *seen = current.load();
  if (seen != nullptr && seen->owner == getpid()) return seen->object;
  auto *const made = new Owned;
  if (current.compare_exchange_strong(seen, made)) return made->object;
  delete made;  // another thread has already created the T
  return seen->object;
}

}  // namespace dpuemu
