// The host threads of the emulator: parallel loops and launches of PEs (pe_scheduler.h) run on them.
//
// They outlive every set, and the process does not wait for them at its end. Three kinds of threads are not in the pool, because they
// may block for any time: a rank's thread that runs its queued jobs one after the other (Rank::enqueue), the thread of a callback that
// blocks nothing (api_async.cpp), and the watch over tasklets that compute too long (pe_scheduler.cpp).
#pragma once

#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>

namespace dpuemu {

/// Calls body(0) ... body(count-1), each once, in no particular order, on up to `threads` threads including the caller, and returns when
/// all are done. body must not throw. The caller needs no other thread: if all threads of the pool are busy or none can be started, it does
/// all the work.
void parallel_for(uint64_t count, uint32_t threads, const std::function<void(uint64_t)> &body);

class WorkerPool {
 public:
  /// Work that threads of the pool may join.
  class Job {
   public:
    Job() = default;
    Job(const Job &) = delete;
    Job &operator=(const Job &) = delete;
    virtual ~Job() = default;
    /// What each thread that joins does, at the same time as the others. The thread leaves when it returns. Must not throw.
    virtual void run() = 0;

   private:
    friend class WorkerPool;
    uint32_t wanted_ = 0;  // threads that shall still join; guarded by the pool's mutex, as are the others
    uint32_t inside_ = 0;  // threads that have joined and not left
    Job *next_ = nullptr;  // in the pool's list of the jobs with wanted_ > 0
    std::condition_variable empty_;
  };

  /// Lets `wanted` threads join the job; replaces the number of pending joins. Jobs get threads in the order of their invitations.
  /// Starts threads for it if too few are free and the pool has less than `most` in all. Returns false, and then changes nothing, if the
  /// pool has no thread at all.
  bool invite(Job &job, uint32_t wanted, uint32_t most);

  /// Cancels the joins that are pending and waits until no thread is inside. Then the job may be destroyed.
  void withdraw(Job &job);

 private:
  void grow(uint32_t missing, uint32_t most);
  void remove(Job &job);
  void work();

  std::mutex mutex_;  // guards everything below
  std::condition_variable invited_;
  Job *first_ = nullptr, *last_ = nullptr;  // jobs with wanted_ > 0
  uint32_t pending_ = 0;                    // sum of their wanted_
  uint32_t workers_ = 0, busy_ = 0;
};

/// The T of this process, made when first asked for and never destroyed, since threads may use it until the process ends. A child made by
/// fork() has none of its parent's threads and gets its own T. T's constructor must start no thread.
template <class T>
T &of_this_process() {
  struct Owned {
    pid_t owner = getpid();
    T object;
  };
  static std::atomic<Owned *> current{nullptr};  // no lock: fork() could copy it while it is held
  Owned *seen = current.load();
  if (seen != nullptr && seen->owner == getpid()) return seen->object;
  auto *const made = new Owned;
  if (current.compare_exchange_strong(seen, made)) return made->object;
  delete made;  // another thread was faster
  return seen->object;
}

}  // namespace dpuemu
