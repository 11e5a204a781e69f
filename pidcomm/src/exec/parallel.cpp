#include "exec/parallel.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <new>
#include <thread>

#include "line_kernels/audit.h"

namespace pidcomm {

namespace {

using Clock = std::chrono::steady_clock;
constexpr Clock::duration kSpin = std::chrono::microseconds(kSpinMicroseconds);

/// Spins until is_true() returns true or the deadline passes.
template <class IsTrue>
void spin_until(const IsTrue &is_true, Clock::time_point deadline) {
  constexpr int kLooksPerClockRead = 16;
  do {
    for (int i = 0; i < kLooksPerClockRead; ++i) {
      if (is_true()) return;
      __builtin_ia32_pause();
    }
  } while (Clock::now() < deadline);
}

/// The job of one call of run_on_pool: threads claim task numbers until all task numbers are
/// claimed.
struct Job {
  const std::function<void(int)> &task;
  const int count;
  AuditRecord *const audit = current_audit();
  std::atomic<int> next{0};
  std::atomic<int> helpers{0};  // pooled threads that work on the job

  // The pool's mutex guards these fields.
  int wanted = 0;  // pooled threads that may still join
  std::condition_variable helpers_left{};
  Job *next_open = nullptr;

  void work() {
    const AuditScope scope(audit);
    for (int i = next.fetch_add(1); i < count; i = next.fetch_add(1)) task(i);
  }
};

/// The pool of threads. A thread without a job spins for a while, then sleeps until a job comes.
/// The pool is never destroyed, because its threads may outlive every static object.
class Pool {
 public:
  static Pool &instance() {
    if (Pool *const pool = current().load(std::memory_order_acquire); pool != nullptr) return *pool;
    const std::lock_guard<std::mutex> lock(creation());
    if (current() == nullptr) {
      auto pool = std::make_unique<Pool>();
      static bool is_registered = false;
      if (!is_registered &&
          pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child) != 0)
        throw std::bad_alloc();
      is_registered = true;
      current() = pool.release();
    }
    return *current();
  }

  /// Lets threads join the job. Starts more threads if the job can use them and the system can
  /// start them.
  void open(Job &job) {
    cpus_ = usable_cpus();
    ++callers_;
    std::unique_lock<std::mutex> lock = hold();
    job.next_open = open_;
    open_ = &job;
    while (job.wanted < job.count - 1 && (wanted_ < idle_ || start_thread())) {
      ++job.wanted;
      ++wanted_;
    }
    const int to_wake = std::min<int>(wanted_ - (idle_ - asleep_), asleep_);
    lock.unlock();
    for (int i = 0; i < to_wake; ++i) wake_.notify_one();
  }

  /// Closes the job for further threads, and waits until all threads that joined have left.
  void close(Job &job) {
    std::unique_lock<std::mutex> lock = hold();
    Job **link = &open_;
    while (*link != &job) link = &(*link)->next_open;
    *link = job.next_open;
    wanted_ -= job.wanted;
    last_work_ = Clock::now();
    const auto is_left = [&job] { return job.helpers == 0; };
    if (!is_left()) {
      const Clock::time_point deadline = last_work_ + kSpin;
      lock.unlock();
      spin_until([&] { return is_left() || is_crowded(); }, deadline);
      lock = hold();
    }
    --callers_;
    job.helpers_left.wait(lock, is_left);
  }

 private:
  static std::atomic<Pool *> &current() {
    static std::atomic<Pool *> pool = nullptr;
    return pool;
  }

  /// Guards the creation of a pool.
  static std::mutex &creation() {
    static std::mutex mutex;
    return mutex;
  }

  /// fork copies the pool while no thread creates or changes it.
  static void before_fork() {
    creation().lock();
    if (Pool *const pool = current(); pool != nullptr) pool->mutex_.lock();
  }
  static void after_fork_in_parent() {
    if (Pool *const pool = current(); pool != nullptr) pool->mutex_.unlock();
    creation().unlock();
  }
  /// The child process does not have the threads, so it creates a new pool later and leaves the old
  /// pool unused.
  static void after_fork_in_child() {
    current() = nullptr;
    creation().unlock();
  }

  /// Threads hold the mutex only briefly (except to start a thread), so this function tries to lock
  /// it a few times before it sleeps.
  std::unique_lock<std::mutex> hold() {
    constexpr int kLooks = 100;
    std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock);
    for (int i = 0; i < kLooks && !lock.owns_lock(); ++i) {
      __builtin_ia32_pause();
      lock.try_lock();
    }
    if (!lock.owns_lock()) lock.lock();
    return lock;
  }

  /// Whether the threads that do not sleep need every CPU. If so, no thread should spin. The number
  /// of these threads includes one thread of the program even if no job runs.
  bool is_crowded() const { return std::max<int>(callers_, 1) + threads_ - asleep_ > cpus_; }

  bool start_thread() {
    try {
      std::thread([this] { serve(); }).detach();
    } catch (...) {
      return false;
    }
    ++threads_;
    ++idle_;
    return true;
  }

  void serve() {
    std::unique_lock<std::mutex> lock = hold();
    for (;;) {
      Job *const job = join_open();
      if (job == nullptr) {
        rest(lock);
        continue;
      }
      lock.unlock();
      job->work();
      lock = hold();
      ++idle_;
      last_work_ = Clock::now();
      if (--job->helpers == 0)
        job->helpers_left.notify_one();  // the caller takes the mutex before it destroys the job
    }
  }

  /// Joins an open job that wants a thread. Returns null if no job wants a thread.
  Job *join_open() {
    if (wanted_ == 0) return nullptr;
    Job *job = open_;
    while (job->wanted == 0) job = job->next_open;
    --job->wanted;
    --wanted_;
    --idle_;
    ++job->helpers;
    return job;
  }

  /// Waits until a job may want a thread. The function may return before a job wants a thread, so
  /// callers must check.
  void rest(std::unique_lock<std::mutex> &lock) {
    const Clock::time_point deadline =
        last_work_ +
        kSpin;  // one deadline for all threads, so that the threads do not spin one after another
    if (!is_crowded() && Clock::now() < deadline) {
      lock.unlock();
      spin_until([this] { return wanted_ != 0 || is_crowded(); }, deadline);
      lock = hold();
    }
    if (wanted_ != 0) return;
    ++asleep_;
    wake_.wait(lock);
    --asleep_;
  }

  std::mutex mutex_;
  std::condition_variable wake_;
  Job *open_ = nullptr;
  int idle_ = 0;  // threads without a job: just started, spinning or asleep
  Clock::time_point last_work_{};
  // Spinning threads read these counters.
  std::atomic<int> wanted_{0};  // sum over the open jobs, at most idle_
  std::atomic<int> callers_{0}, threads_{0}, asleep_{0};
  std::atomic<int> cpus_{1};  // number of CPUs that the last caller of run_on_pool may use
};

}  // namespace

int usable_cpus() {
  cpu_set_t cpus;
  const int count = sched_getaffinity(0, sizeof cpus, &cpus) == 0
                        ? CPU_COUNT(&cpus)
                        : static_cast<int>(std::thread::hardware_concurrency());
  return std::max(count, 1);
}

void run_on_pool(int count, const std::function<void(int)> &task) {
  Job job{task, count};
  if (count <= 1) return job.work();
  Pool &pool = Pool::instance();
  pool.open(job);
  job.work();
  pool.close(job);
}

}  // namespace pidcomm
