// Implements dpu.h: waiting, status and callbacks.
#include <dpu.h>
#include <dpu_management.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "base/guard.h"
#include "base/job_threads.h"
#include "machine/job_queue.h"
#include "machine/machine.h"

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

/// Calls the callback in another thread. Of the operations on its ranks, only dpu_sync and dpu_free
/// wait until it returns.
void call_detached(const std::shared_ptr<const CallbackCall> &call) {
  for (Rank *rank : call->ranks) rank->begin_detached();
  const auto end = [](const CallbackCall &ended, dpu_error_t status) {
    for (Rank *rank : ended.ranks)
      rank->end_detached(
          std::exchange(status, DPU_OK));  // the first rank reports the status for all ranks
  };
  try {
    JobThreads::instance().run([call, end] { end(*call, guarded(*call)); });
  } catch (const std::exception &) {  // the host lacks memory or threads
    end(*call, DPU_ERR_SYSTEM);
  }
}

/// A callback call for several ranks: when all ranks have ended their earlier jobs, a thread makes
/// the call. If the call blocks, the ranks are held from their arrival until the call has ended.
class Meeting : public RankHold, public std::enable_shared_from_this<Meeting> {
 public:
  Meeting(CallbackCall call, bool blocks)
      : call_(std::make_shared<const CallbackCall>(std::move(call))), blocks_(blocks) {
    arrived_.reserve(call_->ranks.size());
  }

  void queue(bool beside_running_pes) {
    std::vector<Rank *> held;
    held.reserve(call_->ranks.size());
    try {
      enqueue_holds(call_->ranks, shared_from_this(), beside_running_pes, held);
    } catch (...) {
      for (Rank *rank : held) rank->release(DPU_OK);
      cancel();
      throw;
    }
    if (const auto status = add(held))
      for (dpu_error_t own = *status; Rank *rank : held) rank->release(std::exchange(own, DPU_OK));
  }

  std::optional<dpu_error_t> arrive(Rank *rank) override { return add({&rank, 1}); }

 private:
  /// The ranks have ended their earlier jobs, and are held. Returns nullopt if they stay held, else
  /// the result for the first of them.
  std::optional<dpu_error_t> add(std::span<Rank *const> ranks) {
    bool is_complete, is_held = blocks_;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (is_cancelled_) is_held = false;
      arrived_.insert(arrived_.end(), ranks.begin(), ranks.end());
      is_complete = !is_cancelled_ && arrived_.size() == call_->ranks.size() && !ranks.empty();
    }
    if (is_complete && !blocks_) call_detached(call_);
    if (is_complete && blocks_) return start(ranks);
    return is_held ? std::nullopt : std::optional(DPU_OK);
  }

  /// Not all ranks have the hold in their queues.
  void cancel() {
    std::vector<Rank *> arrived;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      is_cancelled_ = true;
      arrived = arrived_;
    }
    if (blocks_)
      for (Rank *rank : arrived) rank->release(DPU_OK);
  }

  /// Makes the blocking call in another thread, which then releases all ranks, and returns nullopt.
  /// If the host lacks memory or threads, makes the call here, releases the ranks except `last`,
  /// and returns the result of the call.
  std::optional<dpu_error_t> start(std::span<Rank *const> last) {
    try {
      JobThreads::instance().run([self = shared_from_this()] { self->make_call({}); });
      return std::nullopt;
    } catch (const std::exception &) {
      return make_call(last);
    }
  }

  /// Returns the result of the call. If a rank was released, it has the result already, and the
  /// function returns DPU_OK.
  dpu_error_t make_call(std::span<Rank *const> held) const {
    dpu_error_t status = guarded(*call_);
    for (Rank *rank : call_->ranks)  // the first rank reports the status for all ranks
      if (std::find(held.begin(), held.end(), rank) == held.end())
        rank->release(std::exchange(status, DPU_OK));
    return status;
  }

  const std::shared_ptr<const CallbackCall> call_;
  const bool blocks_;
  std::mutex mutex_;
  std::vector<Rank *> arrived_;
  bool is_cancelled_ = false;
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

dpu_error_t dpu_callback(struct dpu_set_t dpu_set,
                         dpu_error_t (*callback)(struct dpu_set_t, uint32_t, void *), void *args,
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
      calls.push_back(
          {callback, args, dpu_set, kNoRankIndex, {set.ranks().begin(), set.ranks().end()}});
    } else {
      for (uint32_t i = 0; i < set.ranks().size(); ++i)
        calls.push_back(
            {callback, args, dpu_set_from_rank(dpu_set.list.ranks + i), i, {set.ranks()[i]}});
    }

    if (is_async) {
      const bool is_meeting = calls[0].ranks.size() > 1;
      is_meeting ? std::make_shared<Meeting>(std::move(calls[0]), blocks)->queue(beside_running_pes)
                 : queue_calls(calls, blocks, beside_running_pes);
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
