#include "exec/parallel.h"

#include <pthread.h>

#include <atomic>
#include <condition_variable>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

namespace pidcomm {

namespace {

/// One call of run_on_pool: threads claim numbers until none is left.
struct Job {
  const std::function<void(int)> &task;
  const int count;
  std::atomic<int> next{0};
  std::mutex mutex;
  std::condition_variable helpers_left;
  int helpers = 0;  // pooled threads still inside, under mutex

  void work() {
    for (int i = next.fetch_add(1); i < count; i = next.fetch_add(1)) task(i);
  }
};

/// Threads that sleep until a job needs them. Never destroyed: its threads may outlive every static object.
class Pool {
 public:
  static Pool &instance() {
    static std::once_flag once;
    std::call_once(once, [] {
      current() = new Pool;
      // A child of fork has none of the threads, so it starts with a new pool; the old one is left alone.
      pthread_atfork([] { current()->mutex_.lock(); }, [] { current()->mutex_.unlock(); }, [] { current() = new Pool; });
    });
    return *current();
  }

  /// Puts up to `wanted` threads to work on the job; fewer if no more can be started.
  void help(Job &job, int wanted) {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (int i = 0; i < wanted; ++i) {
      Worker *worker = idle_or_new();
      if (worker == nullptr) return;
      {
        const std::lock_guard<std::mutex> job_lock(job.mutex);
        ++job.helpers;
      }
      const std::lock_guard<std::mutex> worker_lock(worker->mutex);
      worker->job = &job;
      worker->wake.notify_one();
    }
  }

 private:
  struct Worker {
    std::mutex mutex;
    std::condition_variable wake;
    Job *job = nullptr;  // under mutex
  };

  static Pool *&current() {
    static Pool *pool = nullptr;
    return pool;
  }

  Worker *idle_or_new() {
    if (!idle_.empty()) {
      Worker *worker = idle_.back();
      idle_.pop_back();
      return worker;
    }
    try {
      auto worker = std::make_unique<Worker>();
      idle_.reserve(++workers_);
      std::thread([this, raw = worker.get()] { serve(*raw); }).detach();
      return worker.release();
    } catch (...) {
      return nullptr;
    }
  }

  void serve(Worker &worker) {
    for (;;) {
      Job *job = nullptr;
      {
        std::unique_lock<std::mutex> lock(worker.mutex);
        worker.wake.wait(lock, [&] { return worker.job != nullptr; });
        job = std::exchange(worker.job, nullptr);
      }
      job->work();
      {
        const std::lock_guard<std::mutex> lock(mutex_);
        idle_.push_back(&worker);  // reserved when the worker was made
      }
      const std::lock_guard<std::mutex> lock(job->mutex);
      if (--job->helpers == 0) job->helpers_left.notify_one();
    }
  }

  std::mutex mutex_;
  std::vector<Worker *> idle_;
  std::size_t workers_ = 0;
};

}  // namespace

void run_on_pool(int count, const std::function<void(int)> &task) {
  Job job{task, count, {}, {}, {}, 0};
  if (count > 1) Pool::instance().help(job, count - 1);
  job.work();
  std::unique_lock<std::mutex> lock(job.mutex);
  job.helpers_left.wait(lock, [&] { return job.helpers == 0; });
}

}  // namespace pidcomm
