#include "base/job_threads.h"

#include <thread>
#include <utility>

#include "base/worker_pool.h"

namespace dpuemu {

JobThreads &JobThreads::instance() { return of_this_process<JobThreads>(); }

void JobThreads::run(std::function<void()> work) {
  std::unique_lock<std::mutex> lock(mutex_);
  work_.push_back(std::move(work));
  if (work_.size() <= asleep_) {
    lock.unlock();
    wake_.notify_one();
    return;
  }
  try {
    std::thread([this] { serve(); }).detach();
  } catch (...) {
    work_.pop_back();
    throw;
  }
}

void JobThreads::serve() {
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    ++asleep_;
    wake_.wait(lock, [this] { return !work_.empty(); });
    --asleep_;
    const std::function<void()> work = std::move(work_.front());
    work_.pop_front();
    lock.unlock();
    work();
    lock.lock();
  }
}

}  // namespace dpuemu
