// The calls of Executor that do not wait for earlier calls: start and validate.
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "base/error.h"
#include "exec/device.h"
#include "exec/executor.h"
#include "exec/executor_call.h"
#include "rank_access/rank_access.h"

namespace pidcomm {

/// A non-blocking call, which another thread carries out. At its end, this thread destroys the
/// ticket of the call, and then makes the future ready.
struct Executor::Underway {
  Executor &executor;
  std::promise<pidcomm_trace> end{};
  pidcomm_trace trace{};
  Call call{};
  std::optional<Recording> recording{};  // of `start`; `validate` has none

  /// Plans the call. Reports only faults of earlier work that has ended, and no faults while other
  /// calls run on the ranks. Without reports of program changes, reads the programs only if no
  /// earlier call can load one; waits for such calls only if the heap base is unknown.
  void plan(const pidcomm_request &request, const pidcomm_options *options) {
    bool is_first = !executor.calls_.are_in_use();
    if (!program_changes()) {
      call.ticket.emplace(executor.calls_.queue(RankLocks::Mode::exclusive));
      if (!executor.knows_heap_base()) call.ticket->wait();
      is_first = call.ticket->is_first();
    }
    if (is_first) check_faults(executor.set_, executor.placement_);
    trace.seconds_acquire = call.total.lap(recording ? "acquire" : nullptr);
    executor.plan_call(call, request, options, trace, is_first || program_changes().has_value(),
                       true);
  }

  void run() {
    call.ticket->wait();
    recording->enter(PIDCOMM_CALL_WAITS_FOR_PES);
    // Inside a job of the ranks' queues, only reports faults.
    wait_for_set(executor.set_, executor.placement_);
    recording->enter(PIDCOMM_CALL_RUNS);
    trace.seconds_acquire += call.total.lap();
    executor.require_heap_base(call);
    executor.finish(call, trace);
  }

  /// Carries out the call. Later work on the ranks waits until this function returns.
  static dpu_error_t run_job(struct dpu_set_t, uint32_t, void *self) {
    const std::unique_ptr<Underway> own(static_cast<Underway *>(self));
    std::exception_ptr error;
    own->recording->take_over();
    try {
      own->recording->guard([&own] { own->run(); });
      own->recording->done(own->trace);
    } catch (...) {
      error = std::current_exception();
    }
    own->call.ticket.reset();
    error == nullptr ? own->end.set_value(own->trace) : own->end.set_exception(error);
    return DPU_OK;
  }
};

std::future<pidcomm_trace> Executor::start(const pidcomm_request &request,
                                           const pidcomm_options *options) {
  pidcomm_options own = options == nullptr ? pidcomm_options{} : *options;
  // The program may prepare buffers for transfers of the SDK while the call runs, and
  // `conventional` would discard them.
  if (own.technique == PIDCOMM_TECHNIQUE_DEFAULT || own.technique == PIDCOMM_TECHNIQUE_AUTO)
    own.technique = PIDCOMM_TECHNIQUE_TILE;
  options = &own;
  auto underway = std::unique_ptr<Underway>(new Underway{*this});
  std::future<pidcomm_trace> end = underway->end.get_future();
  std::unique_lock<std::mutex> queueing(queueing_, std::defer_lock);
  if (!rank_queues_block_later_work())
    queueing.lock();  // the worker gets calls in the order of their tickets
  Recording &recording =
      underway->recording.emplace(recorder_, request, 1, underway->call.total.begin_ns());
  recording.guard([&] {
    underway->plan(request, options);
    prepare(underway->call, request, underway->trace);
  });
  if (rank_queues_block_later_work()) recording.enter(PIDCOMM_CALL_WAITS_FOR_PES);
  const std::optional<Recording::Part> start_part = recording.start_part();
  const bool is_queued = queue(*underway);
  if (is_queued) underway.release();  // the other thread owns the object now
  if (start_part) start_part->report();
  if (is_queued) return end;
  underway->call.ticket.reset();
  if (queueing) queueing.unlock();
  Call call;
  run_recorded(call, recording, request, options, underway->trace);
  underway->end.set_value(underway->trace);
  return end;
}

/// Lets another thread carry out the call. Returns false if the host lacks memory or threads.
bool Executor::queue(Underway &underway) {
  if (rank_queues_block_later_work()) {
    underway.call.ticket.emplace(calls_.lock(RankLocks::Mode::shared));
    constexpr auto kOnceForAllRanks =
        static_cast<dpu_callback_flags_t>(DPU_CALLBACK_ASYNC | DPU_CALLBACK_SINGLE_CALL);
    return dpu_callback(set_, Underway::run_job, &underway, kOnceForAllRanks) == DPU_OK;
  }
  try {
    worker_.run([&underway] { Underway::run_job({}, 0, &underway); });
  } catch (const std::exception &) {
    return false;
  }
  return true;
}

bool Executor::knows_heap_base() {
  const std::lock_guard<std::mutex> lock(planning_);
  return heap_base_.last().has_value();
}

/// Earlier jobs of the set may have loaded another program after the call was planned.
void Executor::require_heap_base(const Call &call) {
  const std::lock_guard<std::mutex> lock(planning_);
  const uint64_t planned = call.cached->plan.heap_base, base = heap_base_.of(placement_);
  if (base != planned)
    fail(PIDCOMM_ERR_DEVICE, "the MRAM heap base was ", planned,
         " when the call was checked and is ", base,
         " now, because earlier work of the set has loaded another program");
}

void Executor::validate(const pidcomm_request &request, const pidcomm_options *options) {
  Underway underway{*this};
  underway.plan(request, options);
  if (request.host != nullptr || request.host_bytes != 0)
    check_host(underway.call.cached->plan, request);
}

}  // namespace pidcomm
