// Measures how much of a stream's work is hidden: kernel, allreduce, kernel, on 32 ranks. The
// kernels together take about as long as the allreduce.
//
//   make -C .. test-native-pidcomm
//   ../build/pidcomm/release/bench/bench_streams [ranks = 32] [KiB per PE = 64]
//
// Times are those of the fastest of 5 executes, in milliseconds. `hidden` is the time that the
// stream saves, as a share of the shorter of kernels P and allreduce H, both one after another (1
// rank group, 1 part). `bound` is its limit for g rank groups and p parts. The host waits for the
// first part of the first kernel, and the last part of the second kernel waits for the host, so the
// total is at least H + P / p. The PEs of a rank group compute for P, and the host has their MRAM
// for H / g, so the total is at least P + H / g. In row `planned`, the stream has chosen the cuts.
// On emulated DIMMs the clock is `mixed` (stream.h). The last lines compare a call with a stream of
// this call, by medians.
#include <pidcomm/stream.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

constexpr int kRuns = 5, kTrialRuns = 15;
constexpr std::uint32_t kMostCuts = 16, kPlanned = 0;

void dpu_ok(dpu_error_t status) {
  if (status == DPU_OK) return;
  std::fprintf(stderr, "an SDK call ended with status %d\n", static_cast<int>(status));
  std::exit(EXIT_FAILURE);
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

struct Problem {
  struct dpu_set_t set;
  pidcomm_hypercube *cube;
  pidcomm_request allreduce;
};

/// The trace of the fastest execute of a stream of kernel, allreduce, kernel.
pidcomm_stream_trace measure(const Problem &problem, std::uint32_t rank_groups,
                             std::uint32_t parts) {
  pidcomm_stream *stream = nullptr;
  PIDCOMM_CHECK(pidcomm_stream_create(problem.set, rank_groups, &stream));
  const pidcomm_access window{0, problem.allreduce.bytes, 1, 1};
  PIDCOMM_CHECK(pidcomm_stream_launch(stream, &window, 1, parts, "part"));
  PIDCOMM_CHECK(pidcomm_stream_run(stream, problem.cube, &problem.allreduce, nullptr, parts));
  PIDCOMM_CHECK(pidcomm_stream_launch(stream, &window, 1, parts, "part"));
  const int first_run = rank_groups == kPlanned ? kTrialRuns : 1;  // later than the first touches
  pidcomm_stream_trace fastest{}, trace{};
  for (int run = 0; run < first_run + kRuns; ++run) {
    PIDCOMM_CHECK(pidcomm_stream_execute(stream, &trace));
    if (run == first_run || (run > first_run && trace.seconds_total < fastest.seconds_total))
      fastest = trace;
  }
  pidcomm_stream_destroy(stream);
  return fastest;
}

void set_job(const Problem &problem, std::uint32_t repeats) {
  const std::uint32_t job[2] = {static_cast<std::uint32_t>(problem.allreduce.bytes), repeats};
  dpu_ok(dpu_broadcast_to(problem.set, "job", 0, job, sizeof job, DPU_XFER_DEFAULT));
}

}  // namespace

int main(int argc, char **argv) {
  const int ranks = argc > 1 ? std::atoi(argv[1]) : 32, kib = argc > 2 ? std::atoi(argv[2]) : 64;
  if (ranks < 1 || kib < 1 || argc > 3) {
    std::fprintf(stderr, "usage: %s [ranks] [KiB per PE], both at least 1\n", argv[0]);
    return EXIT_FAILURE;
  }
  Problem problem{};
  dpu_ok(dpu_alloc_ranks(static_cast<std::uint32_t>(ranks), nullptr, &problem.set));
  dpu_ok(dpu_load(problem.set, PIDCOMM_STREAM_KERNEL, nullptr));
  const std::uint32_t lengths[2] = {64, static_cast<std::uint32_t>(ranks)};
  PIDCOMM_CHECK(pidcomm_hypercube_create(problem.set, 2, lengths, &problem.cube));
  problem.allreduce.collective = PIDCOMM_ALLREDUCE;
  problem.allreduce.mask = "11";
  problem.allreduce.bytes = static_cast<std::size_t>(kib) << 10;
  problem.allreduce.type = PIDCOMM_INT32;
  problem.allreduce.op = PIDCOMM_SUM;

  set_job(problem, 1);
  const double one_s = measure(problem, 1, 1).seconds_pes;
  set_job(problem, 2);
  const pidcomm_stream_trace two = measure(problem, 1, 1);
  const double repeats = 1 + (two.seconds_host - one_s) / (two.seconds_pes - one_s);
  set_job(problem, static_cast<std::uint32_t>(std::clamp(repeats + 0.5, 1.0, 1e6)));

  const pidcomm_stream_trace sequential = measure(problem, 1, 1);
  const double host_s = sequential.seconds_host, pes_s = sequential.seconds_pes;
  std::printf("%d ranks, %d KiB per PE, clock: %s\n", ranks, kib,
              sequential.is_mixed ? "mixed" : "measured");
  std::printf("%11s %5s %9s %9s %9s %7s %7s\n", "rank groups", "parts", "total ms", "host ms",
              "PEs ms", "hidden", "bound");
  const auto print = [&](const pidcomm_stream_trace &trace, const char *planned) {
    const double saved_s = host_s + pes_s - trace.seconds_total,
                 shorter_s = std::min(host_s, pes_s);
    const double bound_s = std::min(pes_s * (1 - 1 / static_cast<double>(trace.parts)),
                                    host_s * (1 - 1 / static_cast<double>(trace.rank_groups)));
    std::printf("%11zu %5zu %9.3f %9.3f %9.3f %6.1f%% %6.1f%%%s\n", trace.rank_groups, trace.parts,
                trace.seconds_total * 1e3, trace.seconds_host * 1e3, trace.seconds_pes * 1e3,
                100 * saved_s / shorter_s, std::min(100.0, 100 * bound_s / shorter_s), planned);
  };
  for (std::uint32_t groups = 1; groups <= kMostCuts && ranks % static_cast<int>(groups) == 0;
       groups *= 2)
    for (std::uint32_t parts = std::max(groups / 2, 1u); parts <= std::min(2 * groups, kMostCuts);
         parts *= 2)
      print(measure(problem, groups, parts), "");
  print(measure(problem, kPlanned, kMostCuts), " planned");

  for (const std::size_t bytes : {std::size_t{64}, problem.allreduce.bytes}) {
    problem.allreduce.bytes = bytes;
    pidcomm_stream *stream = nullptr;
    PIDCOMM_CHECK(pidcomm_stream_create(problem.set, 1, &stream));
    PIDCOMM_CHECK(pidcomm_stream_run(stream, problem.cube, &problem.allreduce, nullptr, 1));
    std::vector<double> call_s, stream_s;
    for (int run = 0; run < 200; ++run) {
      const auto begin = std::chrono::steady_clock::now();
      PIDCOMM_CHECK(pidcomm_run(problem.cube, &problem.allreduce, nullptr, nullptr));
      const auto middle = std::chrono::steady_clock::now();
      PIDCOMM_CHECK(pidcomm_stream_execute(stream, nullptr));
      const auto end = std::chrono::steady_clock::now();
      call_s.push_back(std::chrono::duration<double>(middle - begin).count());
      stream_s.push_back(std::chrono::duration<double>(end - middle).count());
    }
    std::printf("allreduce of %zu bytes: call %.3f ms, stream %.3f ms\n", bytes,
                median(call_s) * 1e3, median(stream_s) * 1e3);
    pidcomm_stream_destroy(stream);
  }
  PIDCOMM_CHECK(pidcomm_hypercube_destroy(problem.cube));
  dpu_ok(dpu_free(problem.set));
}
