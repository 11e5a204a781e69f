#include "exec/executor.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <new>
#include <optional>
#include <string_view>
#include <system_error>
#include <unordered_set>
#include <utility>

#include "base/geometry.h"
#include "exec/clock.h"
#include "exec/conventional.h"
#include "exec/device.h"
#include "exec/host_pass.h"
#include "exec/parallel.h"
#include "exec/pe_reorder.h"
#include "exec/prepared_sweep.h"
#include "line_kernels/audit.h"
#include "rank_access/rank_access.h"

namespace pidcomm {

namespace {

// "; use one of plain (1) sequential (2)" and the remaining orders.
#define PIDCOMM_ROW(ENUM, code, name, ...) " " name " (" #code ")"
constexpr const char *kCopyOrderChoices = "; use one of" PIDCOMM_COPY_ORDERS(PIDCOMM_ROW);
#undef PIDCOMM_ROW

/// Returns the text before the first comma, without blanks around it.
std::string_view first_item(std::string_view list) {
  constexpr std::string_view kBlanks = " \t\n";
  const std::string_view item = list.substr(0, list.find(','));
  const std::size_t begin = std::min(item.find_first_not_of(kBlanks), item.size());
  return item.substr(begin, item.find_last_not_of(kBlanks) + 1 - begin);
}

/// The option rules of the machine that runs the library.
class Host : public OptionRules {
 public:
  int default_isa() const override { return best_isa(); }
  int default_threads() const override { return pidcomm::default_threads().threads; }
  bool is_coherent() const override { return ranks_are_coherent(); }
  void check_isa(int isa) const override {
    if (!isa_available(isa))
      fail(PIDCOMM_ERR_OPTION, "this machine cannot run ISA ", name_of_isa(isa));
  }
};

}  // namespace

DefaultThreads default_threads() {
  const char *text = std::getenv("OMP_NUM_THREADS");
  const std::string_view first = text == nullptr ? std::string_view() : first_item(text);
  int wanted = 0;
  const auto [end, error] = std::from_chars(first.data(), first.data() + first.size(), wanted);
  const bool is_valid = error == std::errc() && end == first.data() + first.size() && wanted > 0;
  const bool is_empty = text == nullptr || *text == '\0';
  return {std::min(is_valid ? wanted : usable_cpus(), kMaxThreads), !is_valid && !is_empty};
}

Options resolve(const pidcomm_options *options) { return resolve(options, Host()); }

/// Acquires the ranks of a set, and releases them in its destructor.
class Executor::AcquiredRanks {
 public:
  /// mapped: the addresses from an earlier call on the placement; the constructor updates them.
  AcquiredRanks(const Placement &placement, MappedEgs &mapped)
      : placement_(placement), mapped_(mapped) {
    rank_base_.reserve(
        placement.ranks.size());  // so that push_back for an acquired rank cannot throw
    try {
      for (struct dpu_rank_t *rank : placement.ranks) {
        std::byte *base = nullptr;
        const dpu_error_t status = rank_access_acquire(rank, &base);
        if (status != DPU_OK)
          check_device(status, "taking the MRAM of rank " + std::to_string(rank_base_.size()) +
                                   " of the set");
        rank_base_.push_back(base);
      }
      if (rank_base_ != mapped.rank_base) map();
    } catch (...) {
      release();
      throw;
    }
  }
  ~AcquiredRanks() { release(); }
  AcquiredRanks(const AcquiredRanks &) = delete;
  AcquiredRanks &operator=(const AcquiredRanks &) = delete;

  const std::vector<std::byte *> &eg_base() const { return mapped_.eg_base; }
  const std::vector<BankPair> &bank_pairs() const { return mapped_.bank_pairs; }

 private:
  void release() {
    for (std::size_t r = 0; r < rank_base_.size(); ++r) rank_access_release(placement_.ranks[r]);
    rank_base_.clear();
  }
  void map() {
    std::vector<std::byte *> eg_base;
    eg_base.reserve(placement_.egs.size());
    for (const PlacedEg &eg : placement_.egs)
      eg_base.push_back(rank_base_[eg.rank] + bank_offset(eg.bank));
    std::vector<BankPair> bank_pairs = bank_pairs_of(eg_base);
    mapped_ = {rank_base_, std::move(eg_base), std::move(bank_pairs)};
  }

  const Placement &placement_;
  MappedEgs &mapped_;
  std::vector<std::byte *> rank_base_;  // of the acquired ranks
};

/// A plan and its key. `prepared` is guarded by planning_.
struct Executor::CachedPlan {
  pidcomm_request request;
  std::string mask;
  Options options;
  uint64_t version;  // the planner's version() when the planner made the plan
  Plan plan;
  std::shared_ptr<const PreparedSweep>
      prepared{};  // of a TileForm; kept between calls unless it is large

  bool is_for(const pidcomm_request &other, const Options &other_options, uint64_t other_base,
              const Planner &planner) const {
    if (options.technique == PIDCOMM_TECHNIQUE_AUTO && version != planner.version()) return false;
    return request.collective == other.collective && mask == other.mask &&
           request.bytes == other.bytes && request.src == other.src && request.dst == other.dst &&
           request.type == other.type && request.op == other.op &&
           request.host_stride == other.host_stride &&
           request.host_transposes == other.host_transposes && options == other_options &&
           plan.heap_base == other_base;
  }
};

namespace {

/// Larger tables do not stay in memory between calls.
constexpr std::size_t kKeptTableBytes = std::size_t{4} << 20;

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

/// Carries out the form of a plan over acquired ranks, and adds the bytes of item buffers to the
/// trace.
class FormPass {
 public:
  /// prepared: the prepared sweep of a TileForm, or null.
  FormPass(const HostPass &pass, const PreparedSweep *prepared, pidcomm_trace &trace)
      : pass_(pass), prepared_(prepared), trace_(trace) {}

  void operator()(const TileForm &) const { trace_.bytes_staged += run_sweep(pass_, *prepared_); }

  void operator()(const PaperForm &form) const {
    const auto timed = [this](const Sweep &sweep) {
      const Stopwatch sweeping;
      trace_.bytes_staged += run_sweep(pass_, PreparedSweep(pass_.plan, sweep));
      return sweeping.seconds();
    };
    if (form.to_host_memory) trace_.seconds_from_pes = timed(*form.to_host_memory);
    const double seconds = timed(form.sweep);
    if (form.to_host_memory) trace_.seconds_to_pes = seconds;
  }

  void operator()(const MemberSteps &) const {
    uint64_t step_bytes = 0;  // sweeps run one after the other
    try {
      each_sweep(pass_.plan, [&](const Sweep &sweep) {
        step_bytes = std::max(step_bytes, run_sweep(pass_, PreparedSweep(pass_.plan, sweep)));
      });
    } catch (const std::bad_alloc &) {
      const PeSteps *pes = pe_steps_of(pass_.plan);
      if (step_bytes == 0 || (pes != nullptr && pes->before))
        throw;  // either no byte has moved, or the caller adds the undefined windows to the error
                // sentence
      fail(PIDCOMM_ERR_MEMORY,
           "the host is out of memory; the destination window is undefined now");
    }
    trace_.bytes_staged += step_bytes;
  }

  void operator()(const SdkForm &) const {}  // run_conventional does not use ranks

 private:
  const HostPass &pass_;
  const PreparedSweep *prepared_;
  pidcomm_trace &trace_;
};

}  // namespace

/// Opens the ranks. If the ranks' queues do not make this wait for the calls on the ranks, waits
/// for their turns to end, because opening changes words of MRAM for a moment.
OpenedRanks Executor::opened(struct dpu_set_t set, const Placement &placement, RankLocks &calls) {
  std::optional<RankLocks::Turn> turn;
  if (!rank_queues_block_later_work()) turn.emplace(calls.lock(RankLocks::Mode::exclusive));
  return OpenedRanks(set, placement);
}

Executor::Executor(struct dpu_set_t set, const std::vector<uint32_t> &lengths,
                   const Planner &planner)
    : set_(set),
      planner_(planner),
      cube_(Hypercube::of(lengths)),
      placement_(Placement::of(set, cube_)),
      calls_(placement_.ranks),
      opened_(opened(set_, placement_, calls_)) {
  if (program_changes()) return;
  const RankLocks::Turn turn = calls_.lock(RankLocks::Mode::exclusive);
  try {
    heap_base_.of(placement_);  // so that the first non-blocking call need not wait for calls that
                                // may load programs
  } catch (const Error &) {     // the PEs disagree; the first call reports this
  }
}
Executor::~Executor() = default;

std::shared_ptr<Executor::CachedPlan> Executor::plan_for(const pidcomm_request &request,
                                                         const Options &options,
                                                         uint64_t heap_base) {
  constexpr std::size_t kCachedPlans = 16;
  if (request.mask != nullptr) {
    const auto found = std::find_if(plans_.begin(), plans_.end(), [&](const auto &cached) {
      return cached->is_for(request, options, heap_base, planner_);
    });
    if (found != plans_.end()) {
      std::rotate(plans_.begin(), found, found + 1);
      return plans_.front();
    }
  }
  const uint64_t version = planner_.version();  // read first: if the version changes meanwhile, the
                                                // plan is only made once more
  Plan plan = planner_.plan(cube_, request, options, heap_base);
  if (plans_.size() == kCachedPlans) plans_.pop_back();
  plans_.insert(plans_.begin(), std::shared_ptr<CachedPlan>(new CachedPlan{
                                    request, request.mask, options, version, std::move(plan)}));
  return plans_.front();
}

/// A call. After plan_call, it has a plan.
struct Executor::Call {
  std::optional<RankLocks::Turn> turn{};
  Stopwatch total{};
  std::shared_ptr<CachedPlan> cached{};
  std::shared_ptr<const PreparedSweep> prepared{};  // of a TileForm
  std::byte *host = nullptr;
};

/// reads_programs: whether no other call can load a program now, or the SDK reports program
/// changes.
void Executor::plan_call(Call &call, const pidcomm_request &request, const pidcomm_options *options,
                         pidcomm_trace &trace, bool reads_programs) {
  const Stopwatch planning;
  const Options resolved = resolve(options);
  const std::lock_guard<std::mutex> lock(planning_);
  call.cached = plan_for(request, resolved,
                         reads_programs ? heap_base_.of(placement_) : heap_base_.last().value());
  call.host = static_cast<std::byte *>(request.host);
  trace.technique = call.cached->plan.options.technique;
  trace.threads = resolved.threads;
  trace.coherence = resolved.coherence;
  trace.isa = kernels_of(resolved.isa).isa;
  trace.seconds_plan = planning.seconds();
}

/// The checks and preparations after planning.
void Executor::prepare(Call &call, const pidcomm_request &request, pidcomm_trace &trace) {
  const Plan &plan = call.cached->plan;
  check_host(plan, request);
  if (plan.bytes == 0) return;
  if (const auto *form = std::get_if<TileForm>(&plan.form)) {
    const Stopwatch preparing;
    const std::lock_guard<std::mutex> lock(planning_);
    if (call.cached->prepared == nullptr)
      call.cached->prepared = std::make_shared<const PreparedSweep>(plan, form->sweep);
    call.prepared = call.cached->prepared;
    if (call.prepared->tables().bytes() > kKeptTableBytes) call.cached->prepared = nullptr;
    trace.seconds_plan += preparing.seconds();
  }

  const uint64_t line_bytes = kLanes * placement_.egs.size();
  const MemberSteps *steps = member_steps_of(plan);
  trace.mram_bytes_read = steps != nullptr ? steps->bytes_read() : plan.in_pe_bytes * line_bytes;
  trace.mram_bytes_written =
      steps != nullptr ? steps->bytes_written() : plan.out_pe_bytes * line_bytes;
  if (keeps_lanes(plan))
    trace.mram_bytes_read +=
        plan.out_pe_bytes * kLanes;  // lanes that keep their bytes are read first
  trace.host_bytes_read = plan.in_row_bytes * plan.grouping.groups;
  trace.host_bytes_written = plan.out_row_bytes * plan.grouping.groups;
  if (const auto *form = std::get_if<PaperForm>(&plan.form);
      form != nullptr && form->to_host_memory) {
    trace.bytes_staged = HostLines::bytes_for(placement_.egs.size(), plan.in_pe_bytes / kWordBytes);
    trace.host_bytes_written += plan.in_pe_bytes * line_bytes;
    trace.host_bytes_read += plan.in_pe_bytes * line_bytes;
  }
}

/// Moves the bytes. No other call may move bytes of the ranks meanwhile.
void Executor::finish(const Call &call, pidcomm_trace &trace) {
  const Plan &plan = call.cached->plan;
  audit_ = {};
  if (plan.bytes == 0) {
    // there is nothing to move
  } else if (const auto *form = std::get_if<SdkForm>(&plan.form)) {
    const Stopwatch pass;
    run_conventional(plan, *form, set_, placement_, kernels_of(plan.options.isa), call.host,
                     host_buffer_, trace);
    trace.seconds_pass = pass.seconds();
  } else {
    if (const auto *paper = std::get_if<PaperForm>(&plan.form);
        paper != nullptr && paper->to_host_memory)
      host_buffer_.require(trace.bytes_staged);
    reorders(plan) ? run_with_reordering(call, trace) : run_on_ranks(call, trace);
  }
  trace.seconds_total = call.total.seconds();
}

void Executor::run(const pidcomm_request &request, const pidcomm_options *options,
                   pidcomm_trace &trace) {
  Call call;
  const dpu_error_t earlier =
      dpu_sync(set_);  // without a turn, so that callbacks of the set can call its other hypercubes
  call.turn.emplace(calls_.lock(RankLocks::Mode::exclusive));
  trace = {};
  wait_for_set(set_, placement_, earlier);
  trace.seconds_acquire = call.total.seconds();
  plan_call(call, request, options, trace, true);
  prepare(call, request, trace);
  finish(call, trace);
}

/// A non-blocking call, which another thread carries out. At its end, this thread ends the turn of
/// the call, and then makes the future ready.
struct Executor::Underway {
  Executor &executor;
  std::promise<pidcomm_trace> end{};
  pidcomm_trace trace{};
  Call call{};

  /// Plans the call. Reports only faults of earlier work that has ended, and no faults while other
  /// calls run on the ranks. Without reports of program changes, reads the programs only if no
  /// earlier call can load one; waits for such calls only if the heap base is unknown.
  void plan(const pidcomm_request &request, const pidcomm_options *options) {
    bool is_first = !executor.calls_.are_in_use();
    if (!program_changes()) {
      call.turn.emplace(executor.calls_.queue(RankLocks::Mode::exclusive));
      if (!executor.knows_heap_base()) call.turn->wait();
      is_first = call.turn->is_first();
    }
    if (is_first) check_faults(executor.set_, executor.placement_);
    executor.plan_call(call, request, options, trace, is_first || program_changes().has_value());
  }

  /// Carries out the call. Later work on the ranks waits until this function returns.
  static dpu_error_t run(struct dpu_set_t, uint32_t, void *self) {
    const std::unique_ptr<Underway> own(static_cast<Underway *>(self));
    std::exception_ptr error;
    try {
      own->call.turn->wait();
      wait_for_set(
          own->executor.set_,
          own->executor.placement_);  // inside a job of the ranks' queues, only reports faults
      own->trace.seconds_acquire = own->call.total.seconds() - own->trace.seconds_plan;
      own->executor.require_heap_base(own->call);
      own->executor.finish(own->call, own->trace);
    } catch (...) {
      error = std::current_exception();
    }
    own->call.turn.reset();
    error == nullptr ? own->end.set_value(own->trace) : own->end.set_exception(error);
    return DPU_OK;
  }
};

std::future<pidcomm_trace> Executor::start(const pidcomm_request &request,
                                           const pidcomm_options *options) {
  auto underway = std::unique_ptr<Underway>(new Underway{*this});
  std::future<pidcomm_trace> end = underway->end.get_future();
  std::unique_lock<std::mutex> queueing(queueing_, std::defer_lock);
  if (!rank_queues_block_later_work())
    queueing.lock();  // the worker gets calls in the order of their turns
  underway->plan(request, options);
  prepare(underway->call, request, underway->trace);
  if (queue(*underway)) {
    underway.release();  // the other thread owns the object now
    return end;
  }
  underway->call.turn.reset();
  if (queueing) queueing.unlock();
  run(request, options, underway->trace);
  underway->end.set_value(underway->trace);
  return end;
}

/// Lets another thread carry out the call. Returns false if the host lacks memory or threads.
bool Executor::queue(Underway &underway) {
  if (rank_queues_block_later_work()) {
    underway.call.turn.emplace(calls_.lock(RankLocks::Mode::shared));
    constexpr auto kOnceForAllRanks =
        static_cast<dpu_callback_flags_t>(DPU_CALLBACK_ASYNC | DPU_CALLBACK_SINGLE_CALL);
    return dpu_callback(set_, Underway::run, &underway, kOnceForAllRanks) == DPU_OK;
  }
  try {
    worker_.run([&underway] { Underway::run({}, 0, &underway); });
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

void Executor::run_with_reordering(const Call &call, pidcomm_trace &trace) {
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
    run_on_ranks(call, trace);
    if (steps.after) pes.run(*steps.after, trace);
  } catch (const Error &error) {
    fail_midway(error.status(), error.what());
  } catch (const std::bad_alloc &) {
    fail_midway(PIDCOMM_ERR_MEMORY, "the host is out of memory");
  }
}

void Executor::run_on_ranks(const Call &call, pidcomm_trace &trace) {
  const Stopwatch acquiring;
  const AcquiredRanks ranks(placement_, mapped_);
  trace.seconds_acquire += acquiring.seconds();

  const Plan &plan = call.cached->plan;
  const Stopwatch passing;
  const HostLines host_lines = {host_buffer_.data(), plan.in_pe_bytes / kWordBytes};
  const HostPass pass{plan,
                      kernels_of(plan.options.isa),
                      ranks.eg_base(),
                      call.host,
                      host_lines,
                      useful_threads_of(plan, plan.options.threads)};
  AuditRecord record;
  std::optional<AuditScope> scope;
  record.ignore(host_buffer_.data(), host_buffer_.data() + host_buffer_.size());
  if (plan.options.isa == PIDCOMM_ISA_AUDIT) scope.emplace(record);
  if (plan.options.coherence == PIDCOMM_COHERENCE_HARDWARE) {
    flush_window(pass.kernels, ranks.bank_pairs(), pass_src_of(plan), plan.in_pe_bytes,
                 pass.threads);
    if (keeps_lanes(plan))
      flush_window(pass.kernels, {{ranks.eg_base().back(), 1}}, plan.dst, plan.out_pe_bytes, 1);
  }
  std::visit(FormPass(pass, call.prepared.get(), trace), plan.form);
  if (scope) {
    audit_ = record.counts();
    audit_.lines_outside = lines_outside(record, plan, ranks.eg_base());
  }
  trace.seconds_pass = passing.seconds();
}

uint64_t Executor::heap_base() {
  const RankLocks::Turn turn = calls_.lock(RankLocks::Mode::exclusive);
  wait_for_set(set_, placement_);
  return heap_base_of(placement_);
}

void Executor::wait_for_calls() { calls_.lock(RankLocks::Mode::exclusive); }

pidcomm_audit Executor::audit() {
  const RankLocks::Turn turn = calls_.lock(RankLocks::Mode::exclusive);
  return audit_;
}

void Executor::validate(const pidcomm_request &request, const pidcomm_options *options) {
  Underway underway{*this};
  underway.plan(request, options);
  if (request.host != nullptr || request.host_bytes != 0)
    check_host(underway.call.cached->plan, request);
}

double Executor::stream_limit(int copy_order, uint64_t bytes_read, uint64_t bytes_written,
                              uint64_t src, uint64_t dst, const pidcomm_options *options) {
  const RankLocks::Turn turn = calls_.lock(RankLocks::Mode::exclusive);
  wait_for_set(set_, placement_);
  const Options resolved = resolve(options);
  const CopyOrder *const order = copy_order_of(copy_order);
  if (order == nullptr)
    fail(PIDCOMM_ERR_OPTION, "stream limit: copy order code ", copy_order, " is unknown",
         kCopyOrderChoices);
  const uint64_t base = heap_base_of(placement_);
  for (const auto &[offset, bytes] : {std::pair{src, bytes_read}, std::pair{dst, bytes_written}})
    if (bytes % kWordBytes != 0 || offset % kWordBytes != 0 || bytes > kMramBytes ||
        offset > kMramBytes || base + offset + bytes > kMramBytes)
      fail(PIDCOMM_ERR_WINDOW, "stream limit: window of ", bytes, " bytes at offset ", offset,
           " must be multiples of ", kWordBytes, " and end within the ", kMramBytes,
           " bytes of MRAM");
  const AcquiredRanks ranks(placement_, mapped_);
  std::vector<std::byte *> whole_egs = ranks.eg_base();
  whole_egs.resize(
      cube_.pes /
      kLanes);  // without a last group of fewer than 8 PEs, which has lanes outside the hypercube
  AuditRecord record;
  std::optional<AuditScope> scope;
  if (resolved.isa == PIDCOMM_ISA_AUDIT) scope.emplace(record);
  const std::vector<BankPair> bank_pairs = bank_pairs_of(std::move(whole_egs));
  const Kernels &kernels = kernels_of(resolved.isa);
  const int threads = useful_threads((bytes_read + bytes_written) * cube_.pes, resolved.threads);
  const Stopwatch pass;
  if (resolved.coherence == PIDCOMM_COHERENCE_HARDWARE)
    flush_window(kernels, bank_pairs, base + src, bytes_read, threads);
  run_limit_copy(kernels, *order, bank_pairs, base + src, bytes_read, base + dst, bytes_written,
                 threads);
  return pass.seconds();
}

}  // namespace pidcomm
