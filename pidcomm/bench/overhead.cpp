// Measures the costs of a collective besides moving bytes: the work around the host pass, the
// wake-up of the threads, planning.
//
//   make -C .. test-native-pidcomm
//   ../build/pidcomm/release/bench/bench_overhead [calls = 2000] [KiB per PE = 8]
//
// Times are medians in microseconds. `outside` is the call without its host pass. `smallest` is the
// pass with blocks of one word: mostly its set-up and the threads. `after 1 ms` is a call whose
// threads are asleep. The table `steps of a call` times the steps of a small call by themselves.
// `find the plan` and `pass` are times of the trace without the steps that they contain; `other` is
// the remainder of the call: argument checks, the trace, clocks.
#include <dpu.h>
#include <pidcomm/batch.h>
#include <pidcomm/pidcomm.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/recorder.h"
#include "exec/clock.h"
#include "exec/default_options.h"
#include "exec/device.h"
#include "exec/parallel.h"
#include "exec/placement.h"
#include "exec/rank_locks.h"
#include "exec/useful_threads.h"
#include "plan/options.h"
#include "plan/plan.h"
#include "rank_access/rank_access.h"

namespace {

constexpr double kMicro = 1e6;

double median_us(std::vector<double> seconds) {
  const auto middle = seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2);
  std::nth_element(seconds.begin(), middle, seconds.end());
  return *middle * kMicro;
}

[[noreturn]] void end(const char *what, const char *why) {
  std::fprintf(stderr, "%s: %s\n", what, why);
  std::exit(EXIT_FAILURE);
}

struct DpuSet {
  struct dpu_set_t set = {};
  explicit DpuSet(uint32_t pes) {
    if (dpu_alloc(pes, nullptr, &set) != DPU_OK) end("dpu_alloc", "the machine has too few PEs");
  }
  DpuSet(const DpuSet &) = delete;
  DpuSet &operator=(const DpuSet &) = delete;
  ~DpuSet() { dpu_free(set); }
};

pidcomm_hypercube *hypercube_on(const DpuSet &pes, const std::vector<uint32_t> &shape) {
  pidcomm_hypercube *cube = nullptr;
  if (pidcomm_hypercube_create(pes.set, static_cast<uint32_t>(shape.size()), shape.data(), &cube) !=
      PIDCOMM_OK)
    end("pidcomm_hypercube_create", pidcomm_last_error());
  return cube;
}

/// Options of make_plan, which makes the plan of one technique.
pidcomm::Options tile_options() {
  pidcomm::Options options = pidcomm::resolve(nullptr);
  options.technique = PIDCOMM_TECHNIQUE_TILE;
  return options;
}

struct Medians {
  double total_us, pass_us, outside_us;
};

Medians medians_of(pidcomm_hypercube *cube, const pidcomm_request &request, int calls,
                   std::chrono::microseconds pause) {
  std::vector<double> total, pass, outside;
  for (int call = -calls / 10; call < calls; ++call) {
    if (pause.count() != 0) std::this_thread::sleep_for(pause);
    pidcomm_trace trace{};
    if (pidcomm_run(cube, &request, nullptr, &trace) != PIDCOMM_OK)
      end("pidcomm_run", pidcomm_last_error());
    if (call < 0) continue;
    total.push_back(trace.seconds_total);
    pass.push_back(trace.seconds_pass);
    outside.push_back(trace.seconds_total - trace.seconds_pass);
  }
  return {median_us(total), median_us(pass), median_us(outside)};
}

void print_calls(int calls, std::size_t bytes) {
  constexpr uint32_t kPes = 1024, kGroupPes = 32;
  const DpuSet pes(kPes);
  pidcomm_hypercube *const cube = hypercube_on(pes, {kGroupPes, kPes / kGroupPes});
  std::vector<std::byte> rows(kPes * std::max<std::size_t>(bytes, 8 * kGroupPes));
  const auto request_of = [&](int collective, std::size_t request_bytes) {
    pidcomm_request request{sizeof(pidcomm_request), collective,  "10", request_bytes, 0,
                            std::size_t{1} << 20,    rows.data(), 0,    PIDCOMM_INT32, PIDCOMM_SUM};
    const bool is_row_of_members = collective == PIDCOMM_SCATTER || collective == PIDCOMM_GATHER;
    request.host_bytes = request_bytes * (is_row_of_members ? kPes : kPes / kGroupPes);
    return request;
  };
  std::printf("%zu bytes per PE, 32x32, mask 10, %d calls\n", bytes, calls);
  std::printf("%-15s %9s %9s %9s %9s   after 1 ms: %9s %9s\n", "collective", "total", "pass",
              "outside", "smallest", "total", "outside");
  for (int collective = PIDCOMM_ALLTOALL; collective <= PIDCOMM_BROADCAST; ++collective) {
    const pidcomm_request request = request_of(collective, bytes);
    const bool has_blocks = collective == PIDCOMM_ALLTOALL ||
                            collective == PIDCOMM_REDUCE_SCATTER || collective == PIDCOMM_ALLGATHER;
    const Medians warm = medians_of(cube, request, calls, std::chrono::microseconds(0));
    const Medians small = medians_of(cube, request_of(collective, has_blocks ? 8 * kGroupPes : 8),
                                     calls, std::chrono::microseconds(0));
    const Medians cold = medians_of(cube, request, calls / 10, std::chrono::milliseconds(1));
    std::printf("%-15s %9.1f %9.1f %9.1f %9.1f               %9.1f %9.1f\n",
                pidcomm_name(PIDCOMM_TABLE_COLLECTIVE, collective), warm.total_us, warm.pass_us,
                warm.outside_us, small.pass_us, cold.total_us, cold.outside_us);
  }
  pidcomm_hypercube_destroy(cube);
}

void print_pool(int calls) {
  std::printf("\n%-15s %9s %9s\n", "pool, threads", "at once", "after 1 ms");
  for (int threads : {1, 2, 4, 16}) {
    const auto once_us = [&](int count, std::chrono::microseconds pause) {
      std::vector<double> seconds;
      for (int call = 0; call < count; ++call) {
        if (pause.count() != 0) std::this_thread::sleep_for(pause);
        const pidcomm::Stopwatch watch;
        pidcomm::run_threads(threads, [](int) {});
        seconds.push_back(watch.seconds());
      }
      return median_us(seconds);
    };
    std::printf("%-15d %9.1f %9.1f\n", threads, once_us(calls, std::chrono::microseconds(0)),
                once_us(calls / 10, std::chrono::milliseconds(1)));
  }
}

void print_shapes(int calls) {
  const DpuSet pes(2560);
  std::printf(
      "\n%-15s %9s %9s %9s %9s   (create: pidcomm_hypercube_create, plan: make_plan of an "
      "alltoall, first: its first call)\n",
      "shape, 2560 PEs", "create", "plan", "together", "first");
  for (const std::vector<uint32_t> &shape : std::vector<std::vector<uint32_t>>{{64, 40},
                                                                               {32, 80},
                                                                               {16, 16, 10},
                                                                               {2560},
                                                                               {4, 8, 2, 4, 2, 5},
                                                                               {5, 512},
                                                                               {12, 16, 13},
                                                                               {10, 256},
                                                                               {3, 853},
                                                                               {2559}}) {
    std::string mask(shape.size(), '0');
    mask[0] = '1';
    const pidcomm_request request{sizeof(pidcomm_request),
                                  PIDCOMM_ALLTOALL,
                                  mask.c_str(),
                                  8 * shape[0],
                                  0,
                                  std::size_t{1} << 20,
                                  nullptr,
                                  0,
                                  PIDCOMM_INT32,
                                  0};
    std::vector<double> create, plan, together, first;
    std::string name;
    for (int call = 0; call < calls; ++call) {
      const pidcomm::Stopwatch creating;
      pidcomm_hypercube *const cube = hypercube_on(pes, shape);
      create.push_back(creating.seconds());
      const pidcomm::Hypercube cube_of = pidcomm::Hypercube::of(shape);
      const pidcomm::Options options = tile_options();
      const pidcomm::Stopwatch planning;
      pidcomm::make_plan(cube_of, request, options, 0);
      plan.push_back(planning.seconds());
      together.push_back(create.back() + plan.back());
      pidcomm_trace trace{};
      if (pidcomm_run(cube, &request, nullptr, &trace) != PIDCOMM_OK)
        end("pidcomm_run", pidcomm_last_error());
      first.push_back(trace.seconds_total);
      pidcomm_hypercube_destroy(cube);
      name = cube_of.to_string();
    }
    std::printf("%-15s %9.1f %9.1f %9.1f %9.1f\n", name.c_str(), median_us(create), median_us(plan),
                median_us(together), median_us(first));
  }
}

/// Returns the median time of one call of step().
template <class Step>
double time_us(int calls, const Step &step) {
  std::vector<double> seconds;
  for (int call = -calls / 10; call < calls; ++call) {
    const pidcomm::Stopwatch watch;
    step();
    if (call >= 0) seconds.push_back(watch.seconds());
  }
  return median_us(std::move(seconds));
}

void print_waiting(int calls) {
  std::printf(
      "\n%-15s %9s %9s %9s %9s   (an alltoall of 64 bytes per PE, as the caller sees it: "
      "pidcomm_run, a pidcomm_batch of one request, pidcomm_irun and pidcomm_wait)\n",
      "ranks", "run", "batch", "irun", "irun+wait");
  for (const uint32_t ranks : {1u, 4u, 16u, 40u}) {
    const DpuSet pes(PIDCOMM_PES_PER_RANK * ranks);
    pidcomm_hypercube *const cube =
        hypercube_on(pes, {PIDCOMM_CHIPS_PER_RANK, PIDCOMM_BANKS_PER_CHIP * ranks});
    const pidcomm_request request{
        sizeof(pidcomm_request), PIDCOMM_ALLTOALL, "10", 64, 0, 4096, nullptr, 0, PIDCOMM_INT32, 0};
    std::vector<double> returned, waited;
    for (int call = 0; call < calls; ++call) {
      const pidcomm::Stopwatch watch;
      pidcomm_pending *pending = nullptr;
      if (pidcomm_irun(cube, &request, nullptr, &pending) != PIDCOMM_OK)
        end("pidcomm_irun", pidcomm_last_error());
      returned.push_back(watch.seconds());
      if (pidcomm_wait(&pending, nullptr) != PIDCOMM_OK) end("pidcomm_wait", pidcomm_last_error());
      waited.push_back(watch.seconds());
    }
    const double run = time_us(calls, [&] {
      if (pidcomm_run(cube, &request, nullptr, nullptr) != PIDCOMM_OK)
        end("pidcomm_run", pidcomm_last_error());
    });
    const double batch = time_us(calls, [&] {
      if (pidcomm_batch(cube, &request, 1, nullptr, nullptr) != PIDCOMM_OK)
        end("pidcomm_batch", pidcomm_last_error());
    });
    std::printf("%-15u %9.2f %9.2f %9.2f %9.2f\n", ranks, run, batch, median_us(returned),
                median_us(waited));
    pidcomm_hypercube_destroy(cube);
  }
}

/// Prints the steps of a call that moves 64 bytes per PE. The steps add up to the call, because
/// `other` is the difference.
void print_steps(int calls) {
  std::vector<std::pair<const char *, std::vector<double>>> rows = {{"wait for earlier work", {}},
                                                                    {"lock the ranks", {}},
                                                                    {"record the call", {}},
                                                                    {"resolve the options", {}},
                                                                    {"read the heap bases", {}},
                                                                    {"find the plan", {}},
                                                                    {"take the ranks", {}},
                                                                    {"wake the threads", {}},
                                                                    {"pass", {}},
                                                                    {"other", {}},
                                                                    {"call", {}}};
  const std::vector<uint32_t> rank_counts = {1, 4, 16, 40};
  for (const uint32_t ranks : rank_counts) {
    const DpuSet pes(PIDCOMM_PES_PER_RANK * ranks);
    const std::vector<uint32_t> shape = {PIDCOMM_CHIPS_PER_RANK, PIDCOMM_BANKS_PER_CHIP * ranks};
    pidcomm_hypercube *const cube = hypercube_on(pes, shape);
    const pidcomm_request request{
        sizeof(pidcomm_request), PIDCOMM_ALLTOALL, "10", 64, 0, 4096, nullptr, 0, PIDCOMM_INT32, 0};
    const pidcomm::Placement placement =
        pidcomm::Placement::of(pes.set, pidcomm::Hypercube::of(shape), 0);
    pidcomm::RankLocks locks(placement.ranks);
    const pidcomm::Options options = tile_options();
    const pidcomm::Plan made =
        pidcomm::make_plan(pidcomm::Hypercube::of(shape), request, options, 0);
    const int threads = pidcomm::useful_threads_of(made, options.threads);
    std::vector<double> plan, pass;
    const double call = time_us(calls, [&] {
      pidcomm_trace trace{};
      if (pidcomm_run(cube, &request, nullptr, &trace) != PIDCOMM_OK)
        end("pidcomm_run", pidcomm_last_error());
      plan.push_back(trace.seconds_plan);
      pass.push_back(trace.seconds_pass);
    });
    const double waits = 2 * time_us(calls, [&] { pidcomm::wait_for_set(pes.set, placement); });
    const double locking = time_us(calls, [&] { locks.lock(pidcomm::RankLocks::Mode::exclusive); });
    pidcomm::Recorder recorder("");
    const double clock = time_us(calls, [] { pidcomm::Stopwatch().begin_ns(); });
    const double recording = time_us(calls, [&] {
      pidcomm::Recording record(recorder, request, 1, pidcomm::Stopwatch().begin_ns());
      for (const pidcomm_call_state state :
           {PIDCOMM_CALL_WAITS_FOR_PES, PIDCOMM_CALL_WAITS_FOR_CALLS, PIDCOMM_CALL_WAITS_FOR_PES,
            PIDCOMM_CALL_RUNS})
        record.enter(state);
      record.done(pidcomm_trace{});
    });
    pidcomm_options given{};
    if (threads == 1) given.threads = 1;  // as in a small call
    const double resolving = time_us(calls, [&] { pidcomm::resolve(&given); });
    pidcomm::KeptHeapBase kept;
    const double heap = time_us(calls, [&] { kept.of(placement); });
    const double taking = time_us(calls, [&] {
      for (struct dpu_rank_t *rank : placement.ranks) {
        std::byte *base = nullptr;
        if (pidcomm::rank_access_acquire(rank, &base) != DPU_OK)
          end("rank_access_acquire", "the rank is busy");
      }
      for (struct dpu_rank_t *rank : placement.ranks) pidcomm::rank_access_release(rank);
    });
    const double waking = time_us(calls, [&] { pidcomm::run_threads(threads, [](int) {}); });
    std::vector<double> column = {waits,     locking, recording - clock,
                                  resolving, heap,    median_us(plan) - resolving - heap,
                                  taking,    waking,  median_us(pass) - waking};
    double other = call;
    for (const double us : column) other -= us;
    column.push_back(other);
    column.push_back(call);
    for (std::size_t row = 0; row < rows.size(); ++row) rows[row].second.push_back(column[row]);
    pidcomm_hypercube_destroy(cube);
  }
  std::printf("\n%-22s", "steps of a call, ranks");
  for (const uint32_t ranks : rank_counts) std::printf(" %9u", ranks);
  std::printf("   (an alltoall of 64 bytes per PE with a cached plan)\n");
  for (const auto &[name, column] : rows) {
    std::printf("%-22s", name);
    for (const double us : column) std::printf(" %9.2f", us);
    std::printf("\n");
  }
}

}  // namespace

int main(int argc, char **argv) {
  const int calls = std::max(argc > 1 ? std::atoi(argv[1]) : 2000, 10);
  const std::size_t bytes =
      std::size_t{1024} * static_cast<std::size_t>(std::max(argc > 2 ? std::atoi(argv[2]) : 8, 1));
  print_calls(calls, bytes);
  print_pool(calls);
  print_steps(calls);
  print_waiting(calls);
  print_shapes(std::max(calls / 20, 1));
}
