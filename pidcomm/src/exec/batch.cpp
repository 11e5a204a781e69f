// Calls of Executor that carry out several requests.
#include <algorithm>
#include <optional>

#include "base/error.h"
#include "exec/acquired_ranks.h"
#include "exec/device.h"
#include "exec/executor.h"
#include "exec/executor_call.h"
#include "exec/trace_sum.h"

namespace pidcomm {

namespace {

/// All requests use the same host buffer.
void add(pidcomm_trace &sum, const pidcomm_trace &trace) {
  const uint64_t bytes_staged = std::max(sum.bytes_staged, trace.bytes_staged);
  add_trace(sum, trace);
  sum.bytes_staged = bytes_staged;
}

/// Calls work(i) for each request, and adds the number of the request to its errors.
template <class Work>
void each_request(std::size_t count, const Work &work) {
  for (std::size_t i = 0; i < count; ++i) {
    try {
      work(i);
    } catch (const Error &error) {
      fail(error.status(), "request ", i, ": ", error.what());
    }
  }
}

/// Whether the host pass is the complete work of a plan.
bool is_host_pass(const Plan &plan) {
  return plan.bytes != 0 && !reorders(plan) && !std::holds_alternative<SdkForm>(plan.form);
}

}  // namespace

void Executor::run_batch(const std::vector<pidcomm_request> &requests,
                         const std::vector<pidcomm_options> &options, pidcomm_trace &trace) {
  trace = {};
  if (requests.empty()) return;
  const Stopwatch total;
  Recording recording(recorder_, requests.front(), requests.size(), total.begin_ns());
  recording.guard([&] { run_batch_recorded(recording, total, requests, options, trace); });
  recording.done(trace);
}

void Executor::run_batch_recorded(Recording &recording, const Stopwatch &total,
                                  const std::vector<pidcomm_request> &requests,
                                  const std::vector<pidcomm_options> &options,
                                  pidcomm_trace &trace) {
  recording.enter(PIDCOMM_CALL_WAITS_FOR_PES);
  const dpu_error_t earlier = dpu_sync(set_);  // without a ticket, as in `run`
  recording.enter(PIDCOMM_CALL_WAITS_FOR_CALLS);
  const RankLocks::Ticket ticket = calls_.lock(RankLocks::Mode::exclusive);
  recording.enter(PIDCOMM_CALL_WAITS_FOR_PES);
  wait_for_set(set_, placement_, earlier);
  recording.enter(PIDCOMM_CALL_RUNS);
  const double waited = total.seconds("acquire");

  std::vector<Call> calls(requests.size());
  std::vector<pidcomm_trace> traces(requests.size());
  uint64_t host_bytes = 0;
  each_request(requests.size(), [&](std::size_t i) {
    recording.begin_request(i, requests.size());
    calls[i].total.lap();
    plan_call(calls[i], requests[i], &options[i], traces[i], true, false);
    for (std::size_t j = 0; j < i && calls[i].prepared == nullptr; ++j)
      if (calls[j].cached == calls[i].cached) calls[i].prepared = calls[j].prepared;
    prepare(calls[i], requests[i], traces[i]);
    host_bytes = std::max(host_bytes, host_buffer_bytes(calls[i].cached->plan, traces[i]));
  });
  host_buffer_.require(host_bytes);

  std::optional<AcquiredRanks> ranks;
  double acquiring = 0;
  each_request(requests.size(), [&](std::size_t i) {
    recording.begin_request(i, requests.size());
    calls[i].total.lap();
    if (is_host_pass(calls[i].cached->plan)) {
      if (!ranks) ranks.emplace(placement_, mapped_);
      acquiring += calls[i].total.lap("acquire");
      audit_ = {};
      run_on_ranks(*ranks, calls[i], traces[i]);
    } else {
      ranks.reset();
      finish(calls[i], traces[i]);
    }
  });
  ranks.reset();
  trace = traces[0];
  for (std::size_t i = 1; i < requests.size(); ++i) add(trace, traces[i]);
  trace.seconds_acquire += waited + acquiring;
  trace.seconds_total = total.seconds();
}

}  // namespace pidcomm
