// One call after the other, in the order in which they came. Unlike a mutex's lock a turn may end on another thread than the one that took
// it.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <utility>

namespace pidcomm {

class Turns {
 public:
  class Turn {
   public:
    explicit Turn(Turns &turns) : turns_(&turns) {}
    Turn(Turn &&other) noexcept : turns_(std::exchange(other.turns_, nullptr)) {}
    ~Turn() {
      if (turns_ != nullptr) turns_->give_back();
    }
    Turn &operator=(Turn &&) = delete;

   private:
    Turns *turns_;
  };

  /// Waits for all who were earlier. The turn lasts until the end of the result, which the Turns must outlive.
  Turn take() {
    std::unique_lock<std::mutex> lock(mutex_);
    const uint64_t own = next_++;
    changed_.wait(lock, [&] { return own == serving_; });
    return Turn(*this);
  }

 private:
  void give_back() {
    const std::lock_guard<std::mutex> lock(mutex_);
    ++serving_;
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t next_ = 0, serving_ = 0;  // tickets
};

}  // namespace pidcomm
