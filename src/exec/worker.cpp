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
  std::mutex mutex;  // guards the members below
  std::condition_variable changed;
  std::deque<std::function<void()>> jobs;
  bool is_ended = false;
};

Worker::~Worker() {
  if (state_ == nullptr || state_->process != getpid()) return;
  const std::lock_guard<std::mutex> lock(state_->mutex);
  state_->is_ended = true;
  state_->changed.notify_one();
}

void Worker::run(std::function<void()> job) {
  if (state_ == nullptr || state_->process != getpid()) {
    auto state = std::make_shared<State>();
    std::thread([state] { serve(state); }).detach();
    state_ = std::move(state);
  }
  {
    const std::lock_guard<std::mutex> lock(state_->mutex);
    state_->jobs.push_back(std::move(job));
  }
  state_->changed.notify_one();
}

void Worker::serve(const std::shared_ptr<State> &state) {
  std::unique_lock<std::mutex> lock(state->mutex);
  for (;;) {
    state->changed.wait(lock, [&] { return state->is_ended || !state->jobs.empty(); });
    if (state->jobs.empty()) return;
    const std::function<void()> job = std::move(state->jobs.front());
    state->jobs.pop_front();
    lock.unlock();
    job();
    lock.lock();
  }
}

}  // namespace pidcomm
