// Implements dpu.h: waiting, status and callbacks.
#include <dpu.h>
#include <dpu_management.h>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "guard.h"
#include "job_queue.h"
#include "machine.h"

using namespace dpuemu;

namespace {

constexpr uint32_t kNoRankIndex = UINT32_MAX;

/// One call of a callback: the arguments of the call, and the ranks to which the call belongs.
struct CallbackCall {
  dpu_error_t (*function)(dpu_set_t, uint32_t, void *);
  void *args;
  dpu_set_t set;
  uint32_t index;
  std::vector<Rank *> ranks;

  dpu_error_t operator()() const {
    CallbackScope scope(ranks);
    return function(set, index, args);
  }
};

/// Makes the call in a new thread. Only dpu_sync and dpu_free of the ranks wait for the call.
void call_detached(const std::shared_ptr<const CallbackCall> &call) {
  for (Rank *rank : call->ranks) rank->begin_detached();
  const auto end = [](const CallbackCall &ended, dpu_error_t status) {
    for (Rank *rank : ended.ranks) rank->end_detached(std::exchange(status, DPU_OK));  // the first rank reports the status for all ranks
  };
  try {
    std::thread([call, end] { end(*call, guarded(*call)); }).detach();
  } catch (const std::exception &) {  // the host lacks memory or threads
    end(*call, DPU_ERR_SYSTEM);
  }
}

/// A barrier for the jobs of several ranks: the last job to arrive makes the call of the callback. If the call blocks, all other jobs wait
/// for the end of the call.
class Meeting {
 public:
  Meeting(std::shared_ptr<const CallbackCall> call, bool blocks) : call_(std::move(call)), missing_(call_->ranks.size()), blocks_(blocks) {}

  dpu_error_t arrive() {
    std::unique_lock<std::mutex> lock(mutex_);
    const bool is_last = --missing_ == 0 && !is_over_;
    if (!blocks_) {
      if (is_last) call_detached(call_);
      return DPU_OK;
    }
    if (!is_last) {
      over_.wait(lock, [this] { return is_over_; });
      return DPU_OK;
    }
    lock.unlock();
    const dpu_error_t status = guarded(*call_);
    end();
    return status;
  }

  /// Releases the waiting jobs, and cancels the call of the callback if no job has made it yet.
  void end() {
    std::lock_guard<std::mutex> lock(mutex_);
    is_over_ = true;
    over_.notify_all();
  }

 private:
  std::shared_ptr<const CallbackCall> call_;
  std::mutex mutex_;
  std::condition_variable over_;
  size_t missing_;
  bool blocks_;
  bool is_over_ = false;
};

void queue_calls(const std::vector<CallbackCall> &calls, bool blocks, bool beside_running_pes) {
  std::vector<QueuedWork> work;
  for (const CallbackCall &call : calls) {
    auto shared = std::make_shared<const CallbackCall>(call);
    work.push_back({call.ranks[0], [shared, blocks] {
                      if (blocks) return (*shared)();
                      call_detached(shared);
                      return DPU_OK;
                    }});
  }
  enqueue_all(std::move(work), beside_running_pes);
}

void queue_meeting(const CallbackCall &call, bool blocks, bool beside_running_pes) {
  auto meeting = std::make_shared<Meeting>(std::make_shared<const CallbackCall>(call), blocks);
  std::vector<QueuedWork> work;
  for (Rank *rank : call.ranks) work.push_back({rank, [meeting] { return meeting->arrive(); }});
  try {
    enqueue_all(std::move(work), beside_running_pes);
  } catch (...) {
    meeting->end();
    throw;
  }
}

}  // namespace

dpu_error_t dpu_sync(struct dpu_set_t dpu_set) {
  return guarded([&] {
    PinnedSet set;
    dpu_error_t first_error = set.pin(dpu_set);
    if (first_error != DPU_OK) return first_error;
    for (Rank *rank : set.ranks())
      if (!CallbackScope::contains(rank)) rank->wait_until_idle();
    bool any_fault = false;
    for (Rank *rank : set.ranks()) {
      const dpu_error_t status = rank->take_async_error();
      if (first_error == DPU_OK) first_error = status;
      any_fault = any_fault || rank->is_faulted();
    }
    return first_error == DPU_OK && any_fault ? DPU_ERR_DPU_FAULT : first_error;
  });
}

dpu_error_t dpu_status(struct dpu_set_t dpu_set, bool *done, bool *fault) {
  return guarded([&] {
    if (done == nullptr || fault == nullptr) return DPU_ERR_INTERNAL;
    PinnedSet set;
    const dpu_error_t status = set.pin(dpu_set);
    if (status != DPU_OK) return status;
    *done = true;
    *fault = false;
    for (size_t i = 0; i < set.ranks().size(); ++i) {
      *done = *done && set.ranks()[i]->is_idle();
      *fault = *fault || set.ranks()[i]->is_faulted(set.members(i));
    }
    return DPU_OK;
  });
}

dpu_error_t dpu_callback(struct dpu_set_t dpu_set, dpu_error_t (*callback)(struct dpu_set_t, uint32_t, void *), void *args,
                         dpu_callback_flags_t flags) {
  return guarded([&] {
    PinnedSet set;
    dpu_error_t status = set.pin(dpu_set);
    if (status != DPU_OK) return status;
    if (callback == nullptr) return DPU_ERR_INTERNAL;
    const bool is_async = flags & DPU_CALLBACK_ASYNC, blocks = !(flags & DPU_CALLBACK_NONBLOCKING);
    const bool beside_running_pes = flags & DPU_CALLBACK_PARALLEL;
    if (!is_async && !blocks) return DPU_ERR_NONBLOCKING_SYNC_CALLBACK;

    std::vector<CallbackCall> calls;
    if (set.is_single_dpu() || (flags & DPU_CALLBACK_SINGLE_CALL)) {
      calls.push_back({callback, args, dpu_set, kNoRankIndex, {set.ranks().begin(), set.ranks().end()}});
    } else {
      for (uint32_t i = 0; i < set.ranks().size(); ++i)
        calls.push_back({callback, args, dpu_set_from_rank(dpu_set.list.ranks + i), i, {set.ranks()[i]}});
    }

    if (is_async) {
      const bool is_meeting = calls[0].ranks.size() > 1;
      is_meeting ? queue_meeting(calls[0], blocks, beside_running_pes) : queue_calls(calls, blocks, beside_running_pes);
      return DPU_OK;
    }
    for (Rank *rank : set.ranks()) rank->wait_for_jobs(beside_running_pes);
    for (const CallbackCall &call : calls) {
      const dpu_error_t own = call();
      if (status == DPU_OK) status = own;
    }
    return status;
  });
}
