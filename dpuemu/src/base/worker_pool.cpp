#include "base/worker_pool.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <thread>

namespace dpuemu {
namespace {

/// Threads take indices one by one until no index is left.
class Loop : public WorkerPool::Job {
 public:
  Loop(uint64_t count, const std::function<void(uint64_t)> &body) : count_(count), body_(body) {}
  void run() override {
    for (uint64_t i; (i = next_.fetch_add(1, std::memory_order_relaxed)) < count_;) body_(i);
  }

 private:
  const uint64_t count_;
  const std::function<void(uint64_t)> &body_;
  std::atomic<uint64_t> next_{0};
};

/// Returns whether this process is a child, by fork(), of the process of the first loop. A child
/// process does not have the threads of the pool, so the caller of a loop makes all calls of the
/// loop.
bool is_forked() {
  static std::atomic<pid_t> first{0};
  const pid_t self = getpid();
  pid_t seen = 0;
  return !first.compare_exchange_strong(seen, self) && seen != self;
}

}  // namespace

void parallel_for(uint64_t count, uint32_t threads, const std::function<void(uint64_t)> &body) {
  if (threads < 2 || count < 2 || is_forked()) {
    for (uint64_t i = 0; i < count; ++i) body(i);
    return;
  }
  WorkerPool &pool = of_this_process<WorkerPool>();
  Loop loop(count, body);
  pool.invite(loop, static_cast<uint32_t>(std::min<uint64_t>(threads, count) - 1), threads);
  loop.run();
  pool.withdraw(loop);
}

bool WorkerPool::invite(Job &job, uint32_t wanted, uint32_t most) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    const uint32_t pending = pending_ - job.wanted_ + wanted, idle = workers_ - busy_;
    if (pending > idle) grow(pending - idle, most);
    if (workers_ == 0) return false;
    if (job.wanted_ == 0 && wanted != 0) {
      (last_ != nullptr ? last_->next_ : first_) = &job;
      last_ = &job;
    } else if (job.wanted_ != 0 && wanted == 0) {
      remove(job);
    }
    job.wanted_ = wanted;
    pending_ = pending;
  }
  for (uint32_t i = 0; i < wanted; ++i) invited_.notify_one();
  return true;
}

void WorkerPool::withdraw(Job &job) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (job.wanted_ != 0) remove(job);
  pending_ -= job.wanted_;
  job.wanted_ = 0;
  job.empty_.wait(lock, [&] { return job.inside_ == 0; });
}

void WorkerPool::grow(uint32_t missing, uint32_t most) {
  try {
    for (; missing != 0 && workers_ < most; --missing, ++workers_)
      std::thread([this] { work(); }).detach();
  } catch (const std::exception &) {
    // Fewer threads than wanted suffice for all the work.
  }
}

void WorkerPool::remove(Job &job) {
  Job *before = nullptr;
  for (Job *other = first_; other != &job; other = other->next_) before = other;
  (before != nullptr ? before->next_ : first_) = job.next_;
  if (last_ == &job) last_ = before;
  job.next_ = nullptr;
}

void WorkerPool::work() {
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    invited_.wait(lock, [this] { return first_ != nullptr; });
    Job &job = *first_;
    if (--job.wanted_ == 0) remove(job);
    --pending_;
    ++job.inside_;
    ++busy_;
    lock.unlock();
    job.run();
    lock.lock();
    --busy_;
    if (--job.inside_ == 0) job.empty_.notify_one();
  }
}

}  // namespace dpuemu
