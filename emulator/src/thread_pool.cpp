#include "thread_pool.h"

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>

namespace dpuemu {
namespace {

// Workers pick the loop up from `current_`, enter it (inside_), take indices until none is left, and leave. The caller closes the loop and
// waits until nobody is inside, so the loop may live on the caller's stack.
class Pool {
 public:
  void run(uint64_t count, uint32_t threads, const std::function<void(uint64_t)> &body) {
    std::unique_lock<std::mutex> only_one(busy_, std::try_to_lock);
    if (!only_one.owns_lock() || threads < 2 || count < 2) {
      for (uint64_t i = 0; i < count; ++i) body(i);
      return;
    }
    Loop loop{count, &body, {0}};
    {
      std::lock_guard<std::mutex> lock(mutex_);
      grow(threads - 1);
      current_ = &loop;
      ++generation_;
      seats_ = threads - 1;
    }
    work_.notify_all();
    loop.take_all();
    std::unique_lock<std::mutex> lock(mutex_);
    current_ = nullptr;
    left_.wait(lock, [this] { return inside_ == 0; });
  }

 private:
  struct Loop {
    uint64_t count;
    const std::function<void(uint64_t)> *body;
    std::atomic<uint64_t> next;
    void take_all() {
      for (uint64_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < count;) (*body)(i);
    }
  };

  void grow(uint32_t workers) {
    try {
      for (; workers_ < workers; ++workers_) std::thread([this] { work(); }).detach();
    } catch (const std::system_error &) {
      // Fewer threads do the same work.
    }
  }

  void work() {
    std::unique_lock<std::mutex> lock(mutex_);
    for (uint64_t done = 0;;) {
      work_.wait(lock, [&] { return current_ != nullptr && generation_ != done && seats_ > 0; });
      Loop *loop = current_;
      done = generation_;
      --seats_;
      ++inside_;
      lock.unlock();
      loop->take_all();
      lock.lock();
      if (--inside_ == 0) left_.notify_one();
    }
  }

  std::mutex busy_;   // held by the caller whose loop has the pool
  std::mutex mutex_;  // guards everything below
  std::condition_variable work_, left_;
  Loop *current_ = nullptr;
  uint64_t generation_ = 0;  // of the current loop: nobody enters one twice
  uint32_t seats_ = 0;       // workers that may still enter the current loop
  uint32_t inside_ = 0;
  uint32_t workers_ = 0;
};

Pool &pool() {
  static Pool *const forever = new Pool;  // never destroyed: its threads may outlive static objects
  return *forever;
}

}  // namespace

void parallel_for(uint64_t count, uint32_t threads, const std::function<void(uint64_t)> &body) { pool().run(count, threads, body); }

}  // namespace dpuemu
