// Measures how much of a stream's work is hidden: kernel, allreduce, kernel, on 32 ranks. The
// kernels together take about as long as the allreduce.
//
//   make -C .. test-native-pidcomm
//   ../build/pidcomm/release/bench/bench_streams [ranks = 32] [KiB per PE = 64] [mask = 11]
//
// Mask 10 reduces inside a rank, mask 11 over all ranks. The operator is max, because sums of equal
// words soon are 0, and hosts may write zeros faster than other words.
//
// Each row has the times of the fastest of 5 executes, in milliseconds. Before the last of them,
// the words of all PEs become distinct; afterwards, each PE must have the bytes that the same calls
// make without a stream, or the program fails. `speedup` is relative to 1 rank group and 1 part.
// `hidden` is (H + P - total) / min(H, P), with the times H of the host and P of the PEs in the
// first row. In row `planned`, the stream has chosen the cuts. Row `again` shows how much the speed
// of the host has changed. On emulated DIMMs the clock is `mixed` (stream.h). The last lines
// compare a call with a stream of this call, by medians.
#include <pidcomm/stream.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

using Words = std::vector<std::uint32_t>;

constexpr int kRuns = 5, kTrialRuns = 15;  // src/stream/cuts.h: at most
constexpr std::uint32_t kMostCuts = 16, kPlanned = 0, kPesOfRank = 64;
constexpr int kLeastKib = 8;  // 16 parts of the 512 bytes that the kernel takes at a time

[[noreturn]] void stop(const std::string &sentence) {
  std::fprintf(stderr, "bench_streams: %s\n", sentence.c_str());
  std::exit(EXIT_FAILURE);
}

void dpu_ok(dpu_error_t status) {
  if (status != DPU_OK) stop("an SDK call ended with status " + std::to_string(status));
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

/// Calls body(rank, words) for each rank; `words` has space for the windows of its PEs.
template <class Body>
void each_rank(const Problem &problem, const Body &body) {
  Words words(kPesOfRank * problem.allreduce.bytes / sizeof(std::uint32_t));
  struct dpu_set_t set = problem.set, rank;
  DPU_RANK_FOREACH(set, rank) body(rank, words);
}

void transfer(struct dpu_set_t rank, dpu_xfer_t direction, std::size_t bytes, Words &words) {
  struct dpu_set_t dpu;
  std::size_t pe = 0;
  DPU_FOREACH(rank, dpu) {
    dpu_ok(dpu_prepare_xfer(dpu, words.data() + pe++ * bytes / sizeof(std::uint32_t)));
  }
  dpu_ok(dpu_push_xfer(rank, direction, DPU_MRAM_HEAP_POINTER_NAME, 0, bytes, DPU_XFER_DEFAULT));
}

void fill(const Problem &problem) {
  std::uint32_t number = 0;
  each_rank(problem, [&](struct dpu_set_t rank, Words &words) {
    for (std::uint32_t &word : words) word = ++number * 2654435761u;
    transfer(rank, DPU_XFER_TO_DPU, problem.allreduce.bytes, words);
  });
}

/// The windows of the first PE of each group of the allreduce. Stops the program if a PE has other
/// bytes than `want` has for its group, or than the first PE of its group if `want` is empty. row:
/// named in the error.
Words checked_windows(const Problem &problem, const Words &want, const std::string &row) {
  const std::size_t count = problem.allreduce.bytes / sizeof(std::uint32_t);
  Words windows = want;
  std::size_t rank_begin = 0;
  each_rank(problem, [&](struct dpu_set_t rank, Words &words) {
    transfer(rank, DPU_XFER_FROM_DPU, problem.allreduce.bytes, words);
    const std::size_t begin = problem.allreduce.mask[1] == '0' ? rank_begin : 0;
    if (begin == windows.size()) windows.insert(windows.end(), words.data(), words.data() + count);
    for (std::size_t word = 0; word < words.size(); ++word)
      if (const std::uint32_t wanted = windows[begin + word % count]; words[word] != wanted)
        stop(row + ": word " + std::to_string(word % count) + " of PE " +
             std::to_string(rank_begin / count * kPesOfRank + word / count) + " is " +
             std::to_string(words[word]) + ", not " + std::to_string(wanted));
    rank_begin += count;
  });
  return windows;
}

/// The windows after kernel, allreduce, kernel, without a stream.
Words want_of(const Problem &problem) {
  const std::uint32_t whole[2] = {0, 1};
  dpu_ok(dpu_broadcast_to(problem.set, "part", 0, whole, sizeof whole, DPU_XFER_DEFAULT));
  fill(problem);
  dpu_ok(dpu_launch(problem.set, DPU_SYNCHRONOUS));
  PIDCOMM_CHECK(pidcomm_run(problem.cube, &problem.allreduce, nullptr, nullptr));
  dpu_ok(dpu_launch(problem.set, DPU_SYNCHRONOUS));
  return checked_windows(problem, {}, "the calls without a stream");
}

/// The fastest execute of a stream of kernel, allreduce, kernel. want: the windows after the last
/// execute; empty: not checked.
pidcomm_stream_trace measure(const Problem &problem, std::uint32_t rank_groups, std::uint32_t parts,
                             const Words &want) {
  pidcomm_stream *stream = nullptr;
  PIDCOMM_CHECK(pidcomm_stream_create(problem.set, rank_groups, &stream));
  const pidcomm_access window{0, problem.allreduce.bytes, 1, 1};
  PIDCOMM_CHECK(pidcomm_stream_launch(stream, &window, 1, parts, "part"));
  PIDCOMM_CHECK(pidcomm_stream_run(stream, problem.cube, &problem.allreduce, nullptr, parts));
  PIDCOMM_CHECK(pidcomm_stream_launch(stream, &window, 1, parts, "part"));
  const int first_run = rank_groups == kPlanned ? kTrialRuns : 1;  // later than the first touches
  pidcomm_stream_trace fastest{};
  for (int run = 0; run < first_run + kRuns; ++run) {
    if (run == first_run + kRuns - 1 && !want.empty()) fill(problem);
    pidcomm_stream_trace trace{};
    PIDCOMM_CHECK(pidcomm_stream_execute(stream, &trace));
    if (run == first_run || (run > first_run && trace.seconds_total < fastest.seconds_total))
      fastest = trace;
  }
  if (!want.empty())
    checked_windows(
        problem, want,
        std::to_string(rank_groups) + " rank groups, " + std::to_string(parts) + " parts");
  pidcomm_stream_destroy(stream);
  return fastest;
}

void set_job(const Problem &problem, std::uint32_t repeats) {
  const std::uint32_t job[2] = {static_cast<std::uint32_t>(problem.allreduce.bytes), repeats};
  dpu_ok(dpu_broadcast_to(problem.set, "job", 0, job, sizeof job, DPU_XFER_DEFAULT));
}

void compare_call_and_stream(const Problem &problem) {
  fill(problem);
  PIDCOMM_CHECK(pidcomm_run(problem.cube, &problem.allreduce, nullptr, nullptr));
  const Words want = checked_windows(problem, {}, "the allreduce");
  pidcomm_stream *stream = nullptr;
  PIDCOMM_CHECK(pidcomm_stream_create(problem.set, 1, &stream));
  PIDCOMM_CHECK(pidcomm_stream_run(stream, problem.cube, &problem.allreduce, nullptr, 1));
  fill(problem);
  PIDCOMM_CHECK(pidcomm_stream_execute(stream, nullptr));
  checked_windows(problem, want, "the stream of an allreduce");
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
  std::printf("allreduce of %zu bytes: call %.3f ms, stream %.3f ms\n", problem.allreduce.bytes,
              median(call_s) * 1e3, median(stream_s) * 1e3);
  pidcomm_stream_destroy(stream);
}

}  // namespace

int main(int argc, char **argv) {
  const int ranks = argc > 1 ? std::atoi(argv[1]) : 32, kib = argc > 2 ? std::atoi(argv[2]) : 64;
  const std::string mask = argc > 3 ? argv[3] : "11";
  if (ranks < 1 || kib < 1 || kib % kLeastKib != 0 || (mask != "10" && mask != "11") || argc > 4)
    stop("usage: bench_streams [ranks, at least 1] [KiB per PE, a multiple of " +
         std::to_string(kLeastKib) + "] [mask: 10 or 11]");
  Problem problem{};
  dpu_ok(dpu_alloc_ranks(static_cast<std::uint32_t>(ranks), nullptr, &problem.set));
  dpu_ok(dpu_load(problem.set, PIDCOMM_STREAM_KERNEL, nullptr));
  const std::uint32_t lengths[2] = {kPesOfRank, static_cast<std::uint32_t>(ranks)};
  PIDCOMM_CHECK(pidcomm_hypercube_create(problem.set, 2, lengths, &problem.cube));
  problem.allreduce.collective = PIDCOMM_ALLREDUCE;
  problem.allreduce.mask = mask.c_str();
  problem.allreduce.bytes = static_cast<std::size_t>(kib) << 10;
  problem.allreduce.type = PIDCOMM_INT32;
  problem.allreduce.op = PIDCOMM_MAX;

  fill(problem);  // the host reads MRAM faster that is still empty
  set_job(problem, 1);
  const double one_s = measure(problem, 1, 1, {}).seconds_pes;
  set_job(problem, 2);
  const pidcomm_stream_trace two = measure(problem, 1, 1, {});
  const double repeats = 1 + (two.seconds_host - one_s) / (two.seconds_pes - one_s);
  set_job(problem, static_cast<std::uint32_t>(std::clamp(repeats + 0.5, 1.0, 1e6)));

  const Words want = want_of(problem);
  const pidcomm_stream_trace uncut = measure(problem, 1, 1, want);
  std::printf("%d ranks, %d KiB per PE, mask %s, clock: %s\n", ranks, kib, mask.c_str(),
              uncut.is_mixed ? "mixed" : "measured");
  std::printf("%11s %5s %9s %9s %9s %8s %7s\n", "rank groups", "parts", "total ms", "host ms",
              "PEs ms", "speedup", "hidden");
  const auto print = [&](const pidcomm_stream_trace &trace, const char *note) {
    const double hidden_s = uncut.seconds_host + uncut.seconds_pes - trace.seconds_total;
    std::printf("%11zu %5zu %9.3f %9.3f %9.3f %8.3f %6.1f%%%s\n", trace.rank_groups, trace.parts,
                trace.seconds_total * 1e3, trace.seconds_host * 1e3, trace.seconds_pes * 1e3,
                uncut.seconds_total / trace.seconds_total,
                100 * hidden_s / std::min(uncut.seconds_host, uncut.seconds_pes), note);
    std::fflush(stdout);
  };
  print(uncut, "");
  for (std::uint32_t groups = 1; groups <= kMostCuts && ranks % static_cast<int>(groups) == 0;
       groups *= 2)
    for (std::uint32_t parts = std::max(groups / 2, 1u); parts <= std::min(2 * groups, kMostCuts);
         parts *= 2)
      if (groups * parts != 1) print(measure(problem, groups, parts, want), "");
  print(measure(problem, kPlanned, kMostCuts, want), " planned");
  print(measure(problem, 1, 1, want), " again");

  for (const std::size_t bytes : {std::size_t{64}, problem.allreduce.bytes}) {
    problem.allreduce.bytes = bytes;
    compare_call_and_stream(problem);
  }
  PIDCOMM_CHECK(pidcomm_hypercube_destroy(problem.cube));
  dpu_ok(dpu_free(problem.set));
}
