#include "exec/executor.h"

#include <new>
#include <optional>
#include <unordered_set>

#include "base/call_events.h"
#include "base/geometry.h"
#include "exec/clock.h"
#include "exec/default_options.h"
#include "exec/device.h"
#include "exec/executor_call.h"
#include "exec/flush.h"
#include "exec/fold_pass.h"
#include "exec/form_pass.h"
#include "exec/message_pass.h"
#include "exec/pe_reorder.h"
#include "exec/pe_variables.h"
#include "exec/prepared_sweep.h"
#include "exec/sdk_rows.h"
#include "exec/sweep_pass.h"
#include "exec/useful_threads.h"
#include "line_kernels/audit.h"
#include "rank_access/rank_access.h"

namespace pidcomm {

namespace {

/// Whether the last entangled group has fewer than 8 PEs. If so, the pass reads the bytes of the
/// lanes without a PE before it stores complete lines.
bool keeps_lanes(const Plan &plan) {
  return !std::holds_alternative<SdkForm>(plan.form) && plan.cube.pes % kLanes != 0 &&
         plan.out_pe_bytes != 0;
}

/// Returns the number of recorded lines outside the source window and the destination window of the
/// plan.
uint64_t lines_outside(const AuditRecord &record, const Plan &plan,
                       const std::vector<std::byte *> &eg_base) {
  std::unordered_set<const std::byte *> inside;
  const auto add = [&](uint64_t offset, uint64_t bytes) {
    for (std::byte *base : eg_base)
      for (uint64_t word = offset / kWordBytes; word < (offset + bytes) / kWordBytes; ++word)
        inside.insert(base + word_offset(word));
  };
  add(pass_src_of(plan), plan.in_pe_bytes);
  add(plan.dst, plan.out_pe_bytes);
  uint64_t outside = 0;
  record.each_line([&](const std::byte *line) { outside += !inside.contains(line); });
  return outside;
}

}  // namespace

/// Opens the ranks after the calls on the ranks, because opening changes words of MRAM for a
/// moment. If the queues of the ranks do not ensure this order, waits until the tickets of the
/// calls are destroyed.
OpenedRanks Executor::opened(struct dpu_set_t set, const Placement &placement, RankLocks &calls) {
  std::optional<RankLocks::Ticket> ticket;
  if (!rank_queues_block_later_work()) ticket.emplace(calls.lock(RankLocks::Mode::exclusive));
  return OpenedRanks(set, placement);
}

Executor::Executor(struct dpu_set_t set, uint32_t first, const Hypercube &cube,
                   const Planner &planner)
    : set_(set),
      cube_(cube),
      placement_(Placement::of(set, cube_, first)),
      calls_(placement_.ranks),
      opened_(opened(set_, placement_, calls_)),
      recorder_(cube_.to_string()),
      plans_(planner, cube_, is_whole(set_, placement_)) {
  if (program_changes()) return;
  const RankLocks::Ticket ticket = calls_.lock(RankLocks::Mode::exclusive);
  try {
    heap_base_.of(placement_);  // so that the first non-blocking call need not wait for calls that
                                // may load programs
  } catch (const Error &) {     // the PEs disagree; the first call reports this
  }
}
Executor::~Executor() = default;

/// reads_programs: whether no other call can load a program now, or the SDK reports program
/// changes. is_timed: false for calls that share work with others. Calls of traced programs take
/// more time, so no trial times them.
void Executor::plan_call(Call &call, const pidcomm_request &request, const pidcomm_options *options,
                         pidcomm_trace &trace, bool reads_programs, bool is_timed) {
  pidcomm_options own = options == nullptr ? pidcomm_options{} : *options;
  // Finding the default takes system calls, which are slow for a small call.
  if (own.threads == 0 && request.collective != PIDCOMM_SENDRECV &&
      is_small(request.collective, request.bytes, cube_.pes))
    own.threads = 1;
  const Options resolved = resolve(&own);
  const std::lock_guard<std::mutex> lock(planning_);
  PlannedCall planned = plans_.plan_for(
      request, resolved, reads_programs ? heap_base_.of(placement_) : heap_base_.last().value(),
      is_timed && call_events.load(std::memory_order_relaxed) == nullptr);
  call.cached = std::move(planned.cached);
  call.trial = std::move(planned.trial);
  call.host = static_cast<std::byte *>(request.host);
  trace.technique = call.cached->plan.options.technique;
  trace.threads = resolved.threads;
  trace.coherence = resolved.coherence;
  trace.isa = kernels_of(resolved.isa).isa;
}

/// The checks and preparations after planning. Sets seconds_plan: the time since the last lap,
/// which the caller ends before planning.
void Executor::prepare(Call &call, const pidcomm_request &request, pidcomm_trace &trace) {
  const Plan &plan = call.cached->plan;
  check_host(plan, request);
  const auto *const tile = std::get_if<TileForm>(&plan.form);
  if (tile != nullptr && plan.bytes != 0) {
    const std::lock_guard<std::mutex> lock(planning_);
    if (call.prepared == nullptr) call.prepared = call.cached->prepared;
    if (call.prepared == nullptr)
      call.prepared = std::make_shared<const PreparedSweep>(plan, tile->sweep);
    plans_.keep_prepared(*call.cached, call.prepared);
  }
  trace.seconds_plan = call.total.lap("plan");
  if (plan.bytes == 0) return;

  const uint64_t line_bytes = kLanes * placement_.egs.size();
  const MemberSteps *steps = member_steps_of(plan);
  trace.mram_bytes_read = steps != nullptr ? steps->bytes_read() : plan.in_pe_bytes * line_bytes;
  trace.mram_bytes_written =
      steps != nullptr ? steps->bytes_written() : plan.out_pe_bytes * line_bytes;
  if (const auto *form = std::get_if<FoldForm>(&plan.form)) {
    trace.mram_bytes_read = 0;  // run_fold counts
    trace.bytes_staged =
        fold_buffer_bytes(plan, *form, useful_threads_of(plan, plan.options.threads));
  } else if (std::holds_alternative<MessageForm>(plan.form)) {
    trace.mram_bytes_read = 0;  // run_messages counts
    trace.bytes_staged =
        message_buffer_bytes(*plan.messages, useful_threads_of(plan, plan.options.threads));
    trace.mram_bytes_written = plan.messages->lines().stored * kLineBytes;
  } else if (keeps_lanes(plan)) {
    trace.mram_bytes_read +=
        plan.out_pe_bytes * kLanes;  // lanes that keep their bytes are read first
  }
  trace.host_bytes_read = plan.in_row_bytes * plan.grouping.groups;
  trace.host_bytes_written = plan.out_row_bytes * plan.grouping.groups;
}

/// Moves the bytes. No other call may move bytes of the ranks meanwhile.
void Executor::finish(Call &call, pidcomm_trace &trace) {
  const Plan &plan = call.cached->plan;
  const int technique = plan.options.technique;
  const double begin_s = call.trial == nullptr ? 0 : call.total.seconds();
  audit_ = {};
  try {
    if (plan.bytes != 0) {
      host_buffer_.require(host_buffer_bytes(plan, trace));
      reorders(plan) ? run_with_reordering(call, trace) : run_pass(call, trace);
    }
  } catch (const std::bad_alloc &) {
    if (call.trial != nullptr) choices().drop(*call.trial, technique);
    throw;
  }
  trace.seconds_total = call.total.seconds();
  // Some techniques prepare tables in each call, which seconds_plan contains.
  if (call.trial != nullptr)
    choices().record(*call.trial, technique, trace.seconds_plan + trace.seconds_total - begin_s);
}

void Executor::run(const pidcomm_request &request, const pidcomm_options *options,
                   pidcomm_trace &trace) {
  Call call;
  Recording recording(recorder_, request, 1, call.total.begin_ns());
  run_recorded(call, recording, request, options, trace);
}

void Executor::run_recorded(Call &call, Recording &recording, const pidcomm_request &request,
                            const pidcomm_options *options, pidcomm_trace &trace) {
  recording.guard([&] {
    recording.enter(PIDCOMM_CALL_WAITS_FOR_PES);
    const dpu_error_t earlier = dpu_sync(
        set_);  // without a ticket, so that callbacks of the set can call its other hypercubes
    recording.enter(PIDCOMM_CALL_WAITS_FOR_CALLS);
    call.ticket.emplace(calls_.lock(RankLocks::Mode::exclusive));
    recording.enter(PIDCOMM_CALL_WAITS_FOR_PES);
    trace = {};
    wait_for_set(set_, placement_, earlier);
    recording.enter(PIDCOMM_CALL_RUNS);
    trace.seconds_acquire = call.total.lap("acquire");
    plan_call(call, request, options, trace, true, true);
    prepare(call, request, trace);
    finish(call, trace);
  });
  recording.done(trace);
}

void Executor::run_with_reordering(Call &call, pidcomm_trace &trace) {
  const Plan &plan = call.cached->plan;
  const PeSteps &steps = *pe_steps_of(plan);
  const PeReorder pes(set_, placement_, plan.heap_base, trace);
  const auto fail_midway = [](pidcomm_status status, const std::string &sentence) {
    fail(status, sentence,
         "; PE scratch and the destination window are undefined now, and the program of the PEs "
         "has been replaced");
  };
  try {
    if (steps.before) pes.run(*steps.before, trace);
    call.total.lap();
    run_pass(call, trace);
    if (steps.after) pes.run(*steps.after, trace);
  } catch (const Error &error) {
    fail_midway(error.status(), error.what());
  } catch (const std::bad_alloc &) {
    fail_midway(PIDCOMM_ERR_MEMORY, "the host is out of memory");
  }
}

void Executor::run_pass(Call &call, pidcomm_trace &trace) {
  const Plan &plan = call.cached->plan;
  if (const auto *form = std::get_if<SdkForm>(&plan.form)) {
    call.total.lap();
    run_sdk_rows(plan, *form, set_, placement_, kernels_of(plan.options.isa), call.host,
                 host_buffer_, trace);
    trace.seconds_pass = call.total.lap("pass");
    return;
  }
  const AcquiredRanks ranks(placement_, mapped_);
  trace.seconds_acquire += call.total.lap("acquire");
  run_on_ranks(ranks, call, trace);
}

/// Requires: a lap ended just before. Sets seconds_pass.
void Executor::run_on_ranks(const AcquiredRanks &ranks, Call &call, pidcomm_trace &trace) {
  const Plan &plan = call.cached->plan;
  const HostPass pass{
      plan,      kernels_of(plan.options.isa), ranks.eg_base(),
      call.host, host_buffer_.data(),          useful_threads_of(plan, plan.options.threads)};
  constexpr uint64_t kKeptChunks = 16;
  const bool is_small = useful_threads_of(plan, 2) == 1;
  std::unique_ptr<SweepRun> &kept = call.cached->run;
  std::optional<SweepRun> own;
  if (call.prepared != nullptr && !is_small) {
    own.emplace(pass, *call.prepared);
  } else if (call.cached->run_prepared != call.prepared) {
    kept = std::make_unique<SweepRun>(pass, *call.prepared, kKeptChunks);
    call.cached->run_prepared = call.prepared;
  }
  struct Audit {
    AuditRecord record{};
    AuditScope scope{&record};
  };
  std::optional<Audit> audit;
  if (plan.options.isa == PIDCOMM_ISA_AUDIT) {
    audit.emplace();
    audit->record.ignore(host_buffer_.data(), host_buffer_.data() + host_buffer_.size());
  }
  if (plan.options.coherence == PIDCOMM_COHERENCE_HARDWARE) {
    if (plan.messages != nullptr)
      flush_messages(pass, ranks.bank_pairs());
    else
      flush_window(pass.kernels, ranks.bank_pairs(), pass_src_of(plan), plan.in_pe_bytes,
                   pass.threads);
    if (plan.messages == nullptr && keeps_lanes(plan))
      flush_window(pass.kernels, {{ranks.eg_base().back(), 1}}, plan.dst, plan.out_pe_bytes, 1);
  }
  run_form(pass, own ? &*own : kept.get(), trace);
  if (audit) {
    audit_ = audit->record.counts();
    audit_.lines_outside = lines_outside(audit->record, plan, ranks.eg_base());
  }
  trace.seconds_pass = call.total.lap("pass");
}

void Executor::keep_plans(std::size_t plans) {
  const std::lock_guard<std::mutex> lock(planning_);
  plans_.keep(plans);
}

uint64_t Executor::heap_base() {
  const RankLocks::Ticket ticket = calls_.lock(RankLocks::Mode::exclusive);
  wait_for_set(set_, placement_);
  return heap_base_of(placement_);
}

uint64_t Executor::heap_base_now() {
  if (!program_changes()) return heap_base();
  const std::lock_guard<std::mutex> lock(planning_);
  return heap_base_.of(placement_);
}

struct dpu_symbol_t Executor::mram_variable(const char *name) {
  const RankLocks::Ticket ticket = calls_.lock(RankLocks::Mode::exclusive);
  wait_for_set(set_, placement_);
  const struct dpu_symbol_t symbol = symbol_of(placement_, name);
  if (symbol.address < kMramAddress || symbol.address - kMramAddress >= kMramBytes)
    fail(PIDCOMM_ERR_ARGUMENT, "variable ", name, " is not in MRAM");
  return symbol;
}

void Executor::fill_variables(const std::vector<std::string> &axis_names) {
  const RankLocks::Ticket ticket = calls_.lock(RankLocks::Mode::exclusive);
  wait_for_set(set_, placement_);
  pidcomm::fill_variables(set_, placement_, cube_, axis_names);
}

void Executor::wait_for_calls() { calls_.lock(RankLocks::Mode::exclusive); }

pidcomm_audit Executor::audit() {
  const RankLocks::Ticket ticket = calls_.lock(RankLocks::Mode::exclusive);
  return audit_;
}

}  // namespace pidcomm
