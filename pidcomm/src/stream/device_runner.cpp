#include "stream/device_runner.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <utility>

#include "base/error.h"
#include "exec/clock.h"
#include "exec/device.h"
#include "exec/parallel.h"
#include "exec/useful_threads.h"
#include "rank_access/rank_access.h"
#include "stream/prices.h"

namespace pidcomm {

namespace {

constexpr std::size_t kCombinedBytes = std::size_t{4} << 10;  // of a row: stay in the first cache

void combine(const CombineWork &work) {
  std::byte *const rows = work.memory.get();
  const uint64_t chunks = (work.bytes + kCombinedBytes - 1) / kCombinedBytes;
  const auto combine_chunk = [&](uint64_t chunk) {
    const std::size_t begin = chunk * kCombinedBytes,
                      bytes = std::min(kCombinedBytes, work.bytes - begin);
    for (std::size_t row = 1; row < work.rows; ++row)
      work.reducer->combine(rows + begin, rows + row * work.bytes + begin, bytes);
  };
  const int threads = useful_threads(work.rows * work.bytes, work.threads);
  WorkQueue queue(chunks, threads);
  run_threads(threads, [&](int thread) { queue.each(thread, combine_chunk); });
}

/// What both runners do with a piece.
class Device {
 public:
  Device(const StreamGraph &graph, struct dpu_set_t set, const Placement &placement,
         const std::atomic<bool> &is_cancelled)
      : graph_(graph), set_(set), placement_(placement), is_cancelled_(is_cancelled) {}

  const StreamPiece &piece(std::size_t piece) const { return graph_.pieces()[piece]; }
  struct dpu_set_t set_of(std::size_t number) const {
    return ranks_of(set_, piece(number).first_rank, piece(number).ranks);
  }

  template <class Work>
  void named(std::size_t number, const Work &work) const {
    with_step(piece(number), work);
  }

  void check(std::size_t number, dpu_error_t status) const {
    if (status != DPU_OK) check_pes(status, "launching", set_of(number), placement_);
  }

  void write_part(std::size_t number) const {
    require_not_cancelled(number);
    const StreamPiece &own = piece(number);
    const LaunchStep &step = *std::get<LaunchWork>(own.work).step;
    if (!step.part_variable) return;
    const uint32_t value[2] = {own.part, own.parts};
    named(number, [&] { write(number, *step.part_variable, value, sizeof value); });
  }

  void launch(std::size_t number, dpu_launch_policy_t policy) const {
    named(number, [&] { check(number, dpu_launch(set_of(number), policy)); });
  }

  void pass(std::size_t number) const {
    require_not_cancelled(number);
    named(number,
          [&] { std::visit([&](const auto &work) { pass(number, work); }, piece(number).work); });
  }

 private:
  void require_not_cancelled(std::size_t number) const {
    if (is_cancelled_)
      fail(PIDCOMM_ERR_FUNCTION,
           "pidcomm_stream_cancel has ended the stream before a piece of step ",
           piece(number).step);
  }

  void write(std::size_t number, const PeVariable &variable, const void *data,
             std::size_t bytes) const {
    const dpu_error_t status =
        dpu_broadcast_to_symbol(set_of(number), variable.symbol, 0, data, bytes, DPU_XFER_DEFAULT);
    if (status != DPU_OK) check_device(status, "writing variable " + variable.name);
  }

  void pass(std::size_t, const LaunchWork &) const {
    fail(PIDCOMM_ERR_INTERNAL, "a launch is not a host pass");
  }
  void pass(std::size_t, const CollectiveWork &work) const {
    pidcomm_trace trace{};
    work.executor->run(work.request, &work.step->options, trace);
  }
  void pass(std::size_t, const CombineWork &work) const { combine(work); }
  void pass(std::size_t number, const WriteWork &work) const {
    const WriteStep &step = *work.step;
    if (!step.data.empty()) write(number, step.variable, step.data.data(), step.data.size());
  }
  void pass(std::size_t, const CallWork &work) const {
    if (const int status = work.step->function(work.step->context); status != 0)
      fail(PIDCOMM_ERR_FUNCTION, "the function returned ", status);
  }

  const StreamGraph &graph_;
  struct dpu_set_t set_;
  const Placement &placement_;
  const std::atomic<bool> &is_cancelled_;
};

/// Wakes the threads of the pool. Waits at most 1 ms for them, because the system may be busy.
void wake_threads() {
  const Stopwatch watch;
  const int threads = usable_cpus();
  std::atomic<int> awake{0};
  run_on_pool(threads, [&](int) {
    ++awake;
    while (awake < threads && watch.seconds() < 1e-3) continue;
  });
}

class MixedRunner : public ModelledRunner {
 public:
  explicit MixedRunner(const StreamGraph &graph, const Device &device)
      : ModelledRunner(graph.pieces().size()), device_(device) {}

 protected:
  PieceSeconds launch_s(std::size_t piece) override {
    const Stopwatch watch;
    device_.write_part(piece);
    const double host_s = watch.seconds();
    device_.launch(piece, DPU_SYNCHRONOUS);
    has_emulated_ = true;
    const PieceSeconds cost = launch_cost(device_.piece(piece).ranks);
    return {host_s + cost.host, modelled_launch_seconds(device_.set_of(piece)) + cost.pes};
  }
  double pass_s(std::size_t piece) override {
    // While DIMMs compute, the threads of the pool still spin after a pass that has just ended.
    if (std::exchange(has_emulated_, false) && now_s() < pass_end_s_ + 1e-6 * kSpinMicroseconds)
      wake_threads();
    const Stopwatch watch;
    device_.pass(piece);
    const double seconds = watch.seconds();
    pass_end_s_ = now_s() + seconds;
    return seconds;
  }

 private:
  const Device device_;
  bool has_emulated_ = false;  // a launch, since the last pass
  double pass_end_s_ = -1;     // of the last pass
};

class MeasuredRunner : public PieceRunner {
 public:
  explicit MeasuredRunner(const Device &device) : device_(device) {}
  double now_s() const override { return watch_.seconds(); }
  void start(std::size_t piece) override {
    device_.write_part(piece);
    device_.launch(piece, DPU_ASYNCHRONOUS);
  }
  void run(std::size_t piece) override { device_.pass(piece); }

  std::optional<double> end_s(std::size_t launch) override {
    bool is_done = false, is_faulted = false;
    device_.named(launch, [&] {
      device_.check(launch, dpu_status(device_.set_of(launch), &is_done, &is_faulted));
      if (is_done || is_faulted) device_.check(launch, dpu_sync(device_.set_of(launch)));
    });
    return is_done || is_faulted ? std::optional(now_s()) : std::nullopt;
  }
  void wait(const std::vector<std::size_t> &) override {
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
  void abandon(const std::vector<std::size_t> &launches) override {
    for (const std::size_t launch : launches) dpu_sync(device_.set_of(launch));
  }

 private:
  const Device device_;
  const Stopwatch watch_{};
};

}  // namespace

std::unique_ptr<PieceRunner> device_runner(const StreamGraph &graph, struct dpu_set_t set,
                                           const Placement &placement,
                                           const std::atomic<bool> &is_cancelled) {
  const Device device(graph, set, placement, is_cancelled);
  if (launches_are_modelled()) return std::make_unique<MixedRunner>(graph, device);
  return std::make_unique<MeasuredRunner>(device);
}

}  // namespace pidcomm
