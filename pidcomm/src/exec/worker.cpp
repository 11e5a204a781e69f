#include "exec/worker.h"

#include <unistd.h>

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

namespace pidcomm {

struct Worker::State {
  const pid_t process = getpid();
  std::thread thread{};
  std::mutex mutex{};  // guards the members below
  std::condition_variable changed{};
  std::deque<std::function<void()>> jobs{};
  bool is_ended = false;
};

/// In a child of fork, forgets the thread of the parent process.
void Worker::leave_to_parent() {
  if (state_ != nullptr && state_->process != getpid()) static_cast<void>(state_.release());
}

Worker::Worker() = default;

Worker::~Worker() {
  leave_to_parent();
  if (state_ == nullptr) return;
  {
    const std::lock_guard<std::mutex> lock(state_->mutex);
    state_->is_ended = true;
  }
  state_->changed.notify_one();
  state_->thread.join();
}

void Worker::run(std::function<void()> job) {
  leave_to_parent();
  if (state_ == nullptr) {
    auto state = std::make_unique<State>();
    state->thread = std::thread(serve, std::ref(*state));
    state_ = std::move(state);
  }
  {
    const std::lock_guard<std::mutex> lock(state_->mutex);
    state_->jobs.push_back(std::move(job));
  }
  state_->changed.notify_one();
}

void Worker::serve(State &state) {
  std::unique_lock<std::mutex> lock(state.mutex);
  for (;;) {
    state.changed.wait(lock, [&] { return state.is_ended || !state.jobs.empty(); });
    if (state.jobs.empty()) return;
    const std::function<void()> job = std::move(state.jobs.front());
    state.jobs.pop_front();
    lock.unlock();
    job();
    lock.lock();
  }
}

}  // namespace pidcomm
