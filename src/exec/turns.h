// One call after the other. Unlike a mutex's lock a turn may end on another thread than the one that took it.
#pragma once

#include <condition_variable>
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
    free_.wait(lock, [this] { return !is_taken_; });
    is_taken_ = true;
    return Turn(*this);
  }

 private:
  void give_back() {
    const std::lock_guard<std::mutex> lock(mutex_);
    is_taken_ = false;
    free_.notify_one();  // with the mutex held: whoever destroys the Turns next takes it first
  }

  std::mutex mutex_;
  std::condition_variable free_;
  bool is_taken_ = false;
};

}  // namespace pidcomm
