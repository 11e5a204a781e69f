// A lock that callers get in the order of their calls of lock() (first in, first out). Unlike the guard of a mutex, the guard of a FifoLock
// may be destroyed by a different thread than the thread that created the guard.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <utility>

namespace pidcomm {

class FifoLock {
 public:
  class Guard {
   public:
    explicit Guard(FifoLock &lock) : lock_(&lock) {}
    Guard(Guard &&other) noexcept : lock_(std::exchange(other.lock_, nullptr)) {}
    ~Guard() {
      if (lock_ != nullptr) lock_->unlock();
    }
    Guard &operator=(Guard &&) = delete;

   private:
    FifoLock *lock_;
  };

  /// Waits until the guards of all earlier calls of lock() are destroyed. The returned guard holds the lock until it is destroyed; the
  /// FifoLock must outlive the guard.
  Guard lock() {
    std::unique_lock<std::mutex> lock(mutex_);
    const uint64_t own = next_++;
    changed_.wait(lock, [&] { return own == serving_; });
    return Guard(*this);
  }

 private:
  void unlock() {
    const std::lock_guard<std::mutex> lock(mutex_);
    ++serving_;
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t next_ = 0, serving_ = 0;  // tickets
};

}  // namespace pidcomm
