// A lock that callers get in the order of their calls (first in, first out). The lock is exclusive or shared. Unlike the guard of a mutex,
// the guard of a FifoLock may be destroyed by a different thread than the thread that created the guard.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <utility>

namespace pidcomm {

class FifoLock {
 public:
  enum class Mode { exclusive, shared };

  class Guard {
   public:
    Guard(FifoLock &lock, Mode mode) : lock_(&lock), mode_(mode) {}
    Guard(Guard &&other) noexcept : lock_(std::exchange(other.lock_, nullptr)), mode_(other.mode_) {}
    ~Guard() {
      if (lock_ != nullptr) lock_->unlock(mode_);
    }
    Guard &operator=(Guard &&) = delete;

   private:
    FifoLock *lock_;
    Mode mode_;
  };

  /// Waits until the guards of all earlier calls of lock() are destroyed; in shared mode, only until the exclusive guards are destroyed.
  /// The returned guard holds the lock until it is destroyed; the FifoLock must outlive the guard.
  Guard lock(Mode mode) {
    std::unique_lock<std::mutex> lock(mutex_);
    const uint64_t earlier = calls_++, earlier_exclusive = exclusive_calls_;
    if (mode == Mode::exclusive) {
      ++exclusive_calls_;
      changed_.wait(lock, [&] { return ended_ == earlier; });  // later calls cannot have ended
    } else {
      changed_.wait(lock, [&] { return exclusive_ended_ == earlier_exclusive; });
    }
    return Guard(*this, mode);
  }

  /// Whether a guard exists or a thread waits in lock().
  bool is_in_use() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return calls_ != ended_;
  }

 private:
  void unlock(Mode mode) {
    const std::lock_guard<std::mutex> lock(mutex_);
    ++ended_;
    if (mode == Mode::exclusive) ++exclusive_ended_;
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t calls_ = 0, exclusive_calls_ = 0;  // numbers of calls of lock()
  uint64_t ended_ = 0, exclusive_ended_ = 0;  // numbers of destroyed guards
};

}  // namespace pidcomm
