#include "model/price.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>

#include "base/error.h"
#include "pe/reorder.h"

namespace pidcomm {

namespace {

constexpr double kGb = 1e9, kMicro = 1e-6, kNano = 1e-9, kKib = 1024;
constexpr double kLargest = 1e12;  // upper limit of a constant

/// Returns the costs of an instruction set in ns, indexed by LineWork.
std::array<double, kLineWorks> costs_of(const pidcomm_line_costs &costs) {
#define PIDCOMM_ROW(key, ...) costs.key##_ns,
  return {PIDCOMM_LINE_COSTS(PIDCOMM_ROW)};
#undef PIDCOMM_ROW
}

bool has_isa(const pidcomm_machine &machine, int isa) {
  const auto costs = costs_of(machine.isa[isa]);
  return std::any_of(costs.begin(), costs.end(), [](double cost) { return cost != 0; });
}

class ModelledHost : public OptionRules {
 public:
  explicit ModelledHost(const pidcomm_machine &machine) : machine_(machine) {}
  int default_isa() const override { return best_isa_of(machine_); }
  int default_threads() const override { return static_cast<int>(machine_.host_threads); }
  bool is_coherent() const override { return machine_.host_emulated != 0; }
  void check_isa(int isa) const override {
    if (!has_isa(machine_, isa))
      fail(PIDCOMM_ERR_OPTION, "the machine has no costs for ISA ", name_of_isa(isa));
  }

 private:
  const pidcomm_machine &machine_;
};

/// Returns the total of two times that overlap partly; the larger the sharpness, the more the times
/// overlap.
double overlapped(double a, double b, double sharpness) {
  const double longer = std::max(a, b);
  if (longer == 0) return 0;
  return longer *
         std::pow(std::pow(a / longer, sharpness) + std::pow(b / longer, sharpness), 1 / sharpness);
}

class Pricing {
 public:
  Pricing(const Plan &plan, const Work &work, const pidcomm_machine &machine)
      : machine_(machine),
        options_(plan.options),
        work_(work),
        isa_(costs_of(
            machine.isa[has_isa(machine, options_.isa) ? options_.isa : best_isa_of(machine)])) {
    // The channel with the most ranks determines the time.
    const double channels = std::min(
        machine.ranks_channels, std::max(1.0, std::ceil(work.ranks / machine.ranks_per_channel)));
    const double fullest = work.ranks <= machine.ranks_channels * machine.ranks_per_channel
                               ? std::min(ranks_of_first_channel(), machine.ranks_per_channel)
                               : std::ceil(work.ranks / channels);
    channels_ = std::max(1.0, work.ranks / std::max(1.0, fullest));
  }

  pidcomm_prediction run() {
    pidcomm_prediction prediction{};
    prediction.technique = options_.technique;
    prediction.isa = options_.isa;
    prediction.threads = options_.threads;
    prediction.coherence = options_.coherence;
    auto &seconds = prediction.seconds;
    const bool flushes = options_.coherence == PIDCOMM_COHERENCE_HARDWARE;
    // Calls `add`, and adds the increase of `seconds` times its errors to the limits of the
    // interval.
    double before = 0;
    const auto with_errors = [&](double low, double high, const auto &add) {
      add();
      const double after = sum_of(seconds);
      prediction.seconds_low += low * (after - before);
      prediction.seconds_high += high * (after - before);
      before = after;
    };
    const auto add_call = [&] {
      seconds.call = machine_.call_us * kMicro;
      if (work_.phases.empty()) return;
      seconds.call += work_.ranks * machine_.call_rank_us * kMicro;
      // Measured transfers of the SDK take as long after a launch as without one.
      const bool is_sdk = work_.phases.front().kind != Phase::Kind::pass;
      if (machine_.host_emulated == 0 && !is_sdk)
        seconds.mux = work_.ranks * machine_.call_mux_us * kMicro;
      if (flushes)
        seconds.flush =
            work_.flushed_lines * machine_.call_flush_ns * kNano / threads_for(work_.flushed_lines);
    };
    with_errors(machine_.error_pass_low, machine_.error_pass_high, add_call);
    for (const Phase &phase : work_.phases)
      phase.kind == Phase::Kind::pass
          ? with_errors(machine_.error_pass_low, machine_.error_pass_high,
                        [&] { add_pass(phase, seconds); })
      : phase.kind == Phase::Kind::host
          ? with_errors(machine_.error_work_low, machine_.error_work_high,
                        [&] { add_host(phase, seconds); })
          : with_errors(machine_.error_sdk_low, machine_.error_sdk_high,
                        [&] { add_transfer(phase, flushes, seconds); });
    with_errors(machine_.error_kernel_low, machine_.error_kernel_high,
                [&] { add_reorders(seconds); });
    with_errors(machine_.error_launch_low, machine_.error_launch_high,
                [&] { add_launches(seconds); });
    with_errors(machine_.error_load_low, machine_.error_load_high, [&] { add_loads(seconds); });
    prediction.seconds_total = before;
    return prediction;
  }

 private:
  using Seconds = decltype(pidcomm_prediction::seconds);

  /// Returns the number of ranks on the first channel if DIMMs alternate between channels without
  /// end.
  double ranks_of_first_channel() const {
    constexpr double kDimmRanks = 2;
    const double turn = kDimmRanks * std::min(machine_.ranks_alternating, machine_.ranks_channels),
                 turns = std::floor(work_.ranks / turn);
    return turns * kDimmRanks + std::min(kDimmRanks, work_.ranks - turns * turn);
  }

  static double sum_of(const Seconds &seconds) {
    double sum = 0;
#define PIDCOMM_ROW(name, ...) sum += seconds.name;
    PIDCOMM_MODEL_PHASES(PIDCOMM_ROW)
#undef PIDCOMM_ROW
    return sum;
  }

  void add_reorders(Seconds &seconds) const {
    for (const Reorder &reorder : work_.reorders)
      seconds.pe += cycles_of(reorder) / machine_.pe_clock_mhz * kMicro;
  }

  void add_launches(Seconds &seconds) const {
    const auto launches = static_cast<double>(work_.reorders.size());
    seconds.launch +=
        launches * (machine_.pe_launch_us + work_.ranks * machine_.pe_launch_rank_us) * kMicro;
    seconds.call += launches * (machine_.pe_jobs_us + work_.pes * machine_.pe_job_us) * kMicro;
  }

  void add_loads(Seconds &seconds) const {
    if (work_.reorders.empty()) return;
    const double words = machine_.pe_load_words,
                 fixed = machine_.pe_load_us + words * machine_.pe_load_word_us,
                 per_rank = machine_.pe_load_rank_us + words * machine_.pe_load_rank_word_us;
    seconds.load = 2 * (fixed + work_.ranks * per_rank) * kMicro;
  }

  /// Returns the effective number of threads for `units` units of equal size.
  double threads_for(double units) const {
    const double threads = std::clamp(std::min<double>(options_.threads, machine_.host_threads),
                                      1.0, std::max(1.0, units));
    const double rounds = std::ceil(units / threads);
    return rounds > 0 ? std::max(1.0, units / rounds) : 1;
  }

  double bus_seconds(const Phase &phase) const {
    return (phase.mram_read / machine_.bus_read_gb_s +
            phase.mram_written / machine_.bus_write_gb_s) /
           kGb / channels_;
  }
  double memory_seconds(const Phase &phase) const {
    return (phase.host_read / machine_.memory_read_gb_s +
            phase.host_written / machine_.memory_write_gb_s) /
           kGb;
  }
  double starting(double threads) const {
    return (machine_.call_part_us + (threads - 1) * machine_.call_start_us) * kMicro;
  }

  /// Splits the time `total` into phases: first the memory phase, then the work of the threads,
  /// which is divided into work on lines and other work.
  void share(double total, double bus, double memory,
             const std::array<double, kLineWorks> &line_seconds, double others,
             Seconds &seconds) const {
    const double both = bus + memory, first = std::min(total, both);
    if (both > 0) {
      seconds.bus += first * bus / both;
      seconds.memory += first * memory / both;
    }
    double all = others;
    for (double line : line_seconds) all += line;
    const double rest = all > 0 ? (total - first) / all : 0;
    const auto of = [&](LineWork what) {
      return rest * line_seconds[static_cast<std::size_t>(what)];
    };
    seconds.transpose += of(LineWork::transpose);
    seconds.shuffle += of(LineWork::shuffle) + of(LineWork::buffer);
    seconds.combine += of(LineWork::combine) + of(LineWork::slow_combine);
    seconds.lines += of(LineWork::load) + of(LineWork::store) + of(LineWork::row_load) +
                     of(LineWork::row_store) + of(LineWork::unpaired) + of(LineWork::keep) +
                     rest * others;
    if (all == 0) seconds.lines += total - first;
  }

  void add_pass(const Phase &phase, Seconds &seconds) const {
    const double threads = threads_for(phase.units);
    std::array<double, kLineWorks> line_seconds;
    double core = 0;
    for (std::size_t i = 0; i < line_seconds.size(); ++i)
      core += line_seconds[i] = phase.lines[i] * isa_[i] * kNano / threads;
    const double others = phase.streams * machine_.call_stream_ns * kNano / threads;
    double bus = bus_seconds(phase), memory = memory_seconds(phase);
    const double moved =
        phase.mram_read + phase.mram_written + phase.host_read + phase.host_written;
    // DIMMs with PEs have separate channels; emulated DIMMs share the channels of the host.
    double both = machine_.host_emulated != 0 ? bus + memory : std::max(bus, memory);
    both = std::max(both, moved / kGb / (threads * machine_.memory_thread_gb_s));
    if (bus + memory > 0) {
      const double scale = both / (bus + memory);
      bus *= scale;
      memory *= scale;
    }
    share(overlapped(core + others, both, machine_.host_overlap), bus, memory, line_seconds, others,
          seconds);
    seconds.call += starting(threads);
  }

  /// A transfer to or from DIMMs uses the threads of the SDK, which are those of the machine.
  /// thread_start_gb_s limits the first start_kib from each PE.
  void add_transfer(const Phase &phase, bool flushes, Seconds &seconds) const {
    const bool is_from = phase.kind == Phase::Kind::from_pes;
    const double needed = is_from ? phase.mram_read : phase.mram_written,
                 pes = std::max(work_.pes, machine_.sdk_least_pes),
                 bytes = needed / work_.pes * pes;
    const double threads = machine_.host_emulated == 0              ? machine_.host_threads
                           : bytes < machine_.sdk_serial_kib * kKib ? 1
                                                                    : threads_for(work_.pes);
    const double start = is_from ? std::min(bytes, machine_.sdk_start_kib * kKib * pes) : 0;
    const double broadcast_share = phase.is_broadcast ? machine_.sdk_broadcast_share : 1;
    const auto rate = [&](double from, double to) {
      return kGb * (is_from ? from : to / broadcast_share);
    };
    const double shared = bytes / channels_ / rate(machine_.sdk_from_gb_s, machine_.sdk_to_gb_s);
    const double alone =
        (start / kGb / machine_.sdk_thread_start_gb_s +
         (bytes - start) / rate(machine_.sdk_thread_from_gb_s, machine_.sdk_thread_to_gb_s)) /
            threads +
        (is_from ? 0 : phase.host_read / kGb / machine_.sdk_host_gb_s);
    const double written = is_from ? phase.host_written / kGb / machine_.memory_write_gb_s : 0,
                 total = std::max(overlapped(shared, alone, machine_.host_overlap), written);
    std::array<double, kLineWorks> line_seconds{};
    line_seconds[static_cast<std::size_t>(LineWork::transpose)] =
        1;  // the time that memory accesses do not hide
    const double bus = std::min(total, bus_seconds(phase)),
                 memory = std::min(total - bus, memory_seconds(phase));
    share(total, bus, memory, line_seconds, 0, seconds);
    seconds.call += ((is_from ? machine_.sdk_from_call_us : machine_.sdk_to_call_us) +
                     work_.pes * machine_.sdk_pe_us) *
                    kMicro;
    if (flushes && is_from)
      seconds.flush += needed / kLineBytes * machine_.sdk_flush_ns * kNano / threads;
  }

  void add_host(const Phase &phase, Seconds &seconds) const {
    const double threads = threads_for(phase.units);
    const double rate = !phase.combines   ? machine_.work_copy_gb_s
                        : phase.is_scalar ? machine_.work_scalar_combine_gb_s
                        : phase.is_slow   ? machine_.work_slow_combine_gb_s
                                          : machine_.work_combine_gb_s;
    const double core = phase.host_read / kGb / (threads * rate),
                 pieces = phase.pieces * machine_.work_piece_ns * kNano / threads;
    const double memory = memory_seconds(phase);
    std::array<double, kLineWorks> line_seconds{};
    line_seconds[static_cast<std::size_t>(phase.combines ? LineWork::combine : LineWork::shuffle)] =
        core + pieces;
    share(overlapped(core + pieces, memory, machine_.host_overlap), 0, memory, line_seconds, 0,
          seconds);
    seconds.call += starting(threads);
  }

  /// Returns the cycles of the slowest PE, which moves all blocks of its window. The DMA engine
  /// between MRAM and WRAM carries out one transfer after another. Tasklets permute small blocks in
  /// WRAM during the transfers; the addresses of the transfers permute large blocks (pe/reorder.c).
  double cycles_of(const Reorder &reorder) const {
    constexpr double kTransferBytes = PIDCOMM_REORDER_DMA_BYTES,
                     kTasklets = PIDCOMM_REORDER_TASKLETS;
    constexpr double kIssueCycles = 11;  // cycles between two instructions of a tasklet
    const double part_bytes = static_cast<double>(reorder.block_bytes << reorder.k),
                 bytes = static_cast<double>(reorder.bytes());
    const bool is_small = reorder.block_bytes < PIDCOMM_REORDER_LEAST_LARGE;
    const double parts_at_once = std::min(std::floor(kTransferBytes / part_bytes),
                                          std::ceil(bytes / part_bytes / kTasklets));
    const double piece = is_small
                             ? parts_at_once * part_bytes
                             : std::min(kTransferBytes, static_cast<double>(reorder.block_bytes));
    const double pieces = std::ceil(bytes / piece);
    const double engine =
        2 * pieces * machine_.pe_dma_cycles + 2 * bytes * machine_.pe_dma_cycles_per_byte;
    const double tasklets = std::min(kTasklets, pieces);
    const double own_bytes = std::min(bytes, std::ceil(pieces / tasklets) * piece);  // of a tasklet
    const double blocks = own_bytes / std::min(piece, static_cast<double>(reorder.block_bytes));
    const double instructions =
        blocks * machine_.pe_block_instructions +
        (is_small ? own_bytes / kWordBytes : 0) * machine_.pe_word_instructions;
    const double pipeline = instructions * std::max(kIssueCycles, tasklets);
    return machine_.pe_run_cycles + std::max(engine, pipeline);
  }

  const pidcomm_machine &machine_;
  const Options &options_;
  const Work &work_;
  const std::array<double, kLineWorks> isa_;
  double channels_;
};

}  // namespace

void check_machine(const pidcomm_machine &machine) {
  const auto check = [](const std::string &name, double value, const std::string &unit) {
    const auto require = [&](bool holds, const char *rule) {
      if (!holds)
        fail(PIDCOMM_ERR_ARGUMENT, "machine constant ", name, " is ", value, "; it must be ", rule);
    };
    require(value >= 0 && value <= kLargest, "0 to 1e12");
    if (unit == "1 or 0") require(value == 0 || value == 1, "1 or 0");
    if (unit == "1 or more") require(value >= 1 && value <= 1000, "1 to 1000");
    if (unit == "threads" || unit == "channels" || unit == "ranks")
      require(value >= 1 && value <= kMaxThreads && value == std::floor(value),
              "a whole number from 1 to 1024");
    if (unit.find("GB/s") == 0 || unit == "MHz" || unit == "factor")
      require(value >= 1e-6, "1e-6 or more");
  };
#define PIDCOMM_ROW(section, key, unit, ...) \
  check(#section "." #key, machine.section##_##key, unit);
  PIDCOMM_MACHINE_CONSTANTS(PIDCOMM_ROW)
#undef PIDCOMM_ROW
#define PIDCOMM_ROW(ENUM, code, name, ...) \
  for (double cost : costs_of(machine.isa[PIDCOMM_ISA_##ENUM])) check("isa." name, cost, "ns");
  PIDCOMM_ISAS(PIDCOMM_ROW)
#undef PIDCOMM_ROW
  const auto check_order = [](const std::string &name, double low, double high) {
    if (low > high)
      fail(PIDCOMM_ERR_ARGUMENT, "machine constant error.", name, "_low is ", low,
           "; it must be at most error.", name, "_high, which is ", high);
  };
  check_order("pass", machine.error_pass_low, machine.error_pass_high);
  check_order("sdk", machine.error_sdk_low, machine.error_sdk_high);
  check_order("work", machine.error_work_low, machine.error_work_high);
  check_order("kernel", machine.error_kernel_low, machine.error_kernel_high);
  check_order("launch", machine.error_launch_low, machine.error_launch_high);
  check_order("load", machine.error_load_low, machine.error_load_high);
  best_isa_of(machine);
}

int best_isa_of(const pidcomm_machine &machine) {
  int best = 0, best_level = -1;
  const auto consider = [&](int code, int level) {
    if (level > best_level && has_isa(machine, code)) best = code, best_level = level;
  };
#define PIDCOMM_ROW(ENUM, code, name, level) consider(code, level);
  PIDCOMM_ISAS(PIDCOMM_ROW)
#undef PIDCOMM_ROW
  if (best == 0)
    fail(PIDCOMM_ERR_ARGUMENT,
         "the machine has no instruction set: the isa.* costs of at least one must not be 0");
  return best;
}

Options resolve_for(const pidcomm_machine &machine, const pidcomm_options *options) {
  return resolve(options, ModelledHost(machine));
}

pidcomm_prediction price(const Plan &plan, const pidcomm_machine &machine) {
  const Work work = work_of(plan, plan.options.isa);
  return Pricing(plan, work, machine).run();
}

std::vector<PricedPlan> priced_plans(const Hypercube &cube, const pidcomm_request &request,
                                     const Options &options, uint64_t heap_base,
                                     const pidcomm_machine &machine) {
  constexpr uint64_t kMostStagedBytes = uint64_t{64} << 20;
  Options variant = options;
  variant.technique = PIDCOMM_TECHNIQUE_TILE;
  std::vector<PricedPlan> plans;
  plans.push_back({make_plan(cube, request, variant, heap_base), {}});  // throws the errors
  const Plan &tile = plans[0].plan;
  const bool rounds = tile.reduces && tile.type.kind == ElementType::Kind::floating;
  if (tile.bytes == 0 || rounds || request.operation != nullptr ||
      request.collective == PIDCOMM_SENDRECV || options.isa == PIDCOMM_ISA_AUDIT)
    return plans;
  const auto consider = [&](int technique) {
    variant.technique = technique;
    try {
      Plan plan = make_plan(cube, request, variant, heap_base);
      const auto *const form = std::get_if<SdkForm>(&plan.form);
      const bool stages_much = form != nullptr && form->staged_bytes > kMostStagedBytes;
      if (stages_much || (reorders(plan) && options.scratch_offset == 0)) return;
      plans.push_back({std::move(plan), {}});
    } catch (const Error &) {
      // the technique cannot carry out this request, or needs another scratch offset
    }
  };
#define PIDCOMM_ROW(ENUM, code, name, path, steps, collectives, needs_lane_split, is_for_auto, \
                    ...)                                                                       \
  if (is_for_auto && code != PIDCOMM_TECHNIQUE_TILE) consider(code);
  PIDCOMM_TECHNIQUES(PIDCOMM_ROW)
#undef PIDCOMM_ROW
  for (PricedPlan &priced : plans) priced.prediction = price(priced.plan, machine);
  std::stable_sort(plans.begin(), plans.end(), [](const PricedPlan &a, const PricedPlan &b) {
    return a.prediction.seconds_total < b.prediction.seconds_total;
  });
  return plans;
}

std::vector<int> rival_techniques(const std::vector<PricedPlan> &plans) {
  std::vector<int> techniques = {plans[0].plan.options.technique};
  if (reorders(plans[0].plan)) return techniques;
  for (std::size_t i = 1; i < plans.size(); ++i) {
    const int technique = plans[i].plan.options.technique;
    const bool is_timed =
        technique == PIDCOMM_TECHNIQUE_TILE || technique == PIDCOMM_TECHNIQUE_CONVENTIONAL;
    if (is_timed && plans[i].prediction.seconds_low < plans[0].prediction.seconds_high)
      techniques.push_back(technique);
  }
  return techniques;
}

Plan plan_on(const std::function<pidcomm_machine()> &machine, const Hypercube &cube,
             const pidcomm_request &request, const Options &options, uint64_t heap_base) {
  if (options.technique == PIDCOMM_TECHNIQUE_AUTO)
    return std::move(priced_plans(cube, request, options, heap_base, machine())[0].plan);
  return make_plan(cube, request, options, heap_base);
}

}  // namespace pidcomm
