#include "stream/stream.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "exec/clock.h"
#include "exec/device.h"
#include "rank_access/rank_access.h"
#include "stream/device_runner.h"

namespace pidcomm {

namespace {

constexpr std::size_t kMostPlans = 256;  // of an executor

/// numbers: of the pieces, in the order of their begins.
pidcomm_stream_trace trace_of(const CutStream &stream, const std::vector<std::size_t> &numbers) {
  pidcomm_stream_trace trace{};
  trace.pieces = numbers.size();
  trace.is_mixed = launches_are_modelled() ? 1 : 0;
  double pes_until_s = 0;
  for (const std::size_t number : numbers) {
    const PieceTimes &times = stream.schedule.times()[number];
    trace.seconds_total = std::max(trace.seconds_total, times.end_s);
    if (!stream.graph.pieces()[number].is_launch()) {
      trace.seconds_host += times.end_s - times.begin_s;
      continue;
    }
    trace.seconds_host += times.host_s;
    const double pes_from_s = std::max(times.begin_s + times.host_s, pes_until_s);
    trace.seconds_pes += std::max(0.0, times.end_s - pes_from_s);
    pes_until_s = std::max(pes_until_s, times.end_s);
  }
  trace.rank_groups = stream.cuts.rank_groups;
  trace.parts = 1;
  for (const StreamPiece &piece : stream.graph.pieces())
    trace.parts = std::max<std::size_t>(trace.parts, piece.parts);
  return trace;
}

}  // namespace

StreamCutter &Stream::cutter() {
  const uint32_t ranks = set_.list.nr_ranks;
  if (!cutter_ && rank_groups_ == 0)
    cutter_.emplace(steps_, prices_, ranks, has_all_pes_);
  else if (!cutter_)
    cutter_.emplace(steps_, prices_, ranks, StreamCuts{rank_groups_, 0});
  return *cutter_;
}

/// Lists the pieces of the last run or prediction in the order of their begins. setup_s: before
/// the first.
pidcomm_stream_trace Stream::fill_timeline(const CutStream &stream, double setup_s) {
  std::vector<std::size_t> numbers = stream.schedule.ended();
  const auto key = [&](std::size_t number) {
    const StreamPiece &piece = stream.graph.pieces()[number];
    return std::tuple(stream.schedule.times()[number].begin_s, piece.step, piece.part,
                      piece.first_rank, piece.kind());
  };
  std::sort(numbers.begin(), numbers.end(),
            [&](std::size_t a, std::size_t b) { return key(a) < key(b); });
  timeline_.clear();
  for (const std::size_t number : numbers) {
    const StreamPiece &piece = stream.graph.pieces()[number];
    const PieceTimes &times = stream.schedule.times()[number];
    timeline_.push_back({piece.step, piece.part, piece.first_rank, piece.ranks,
                         setup_s + times.begin_s, setup_s + times.end_s, piece.kind()});
  }
  pidcomm_stream_trace trace = trace_of(stream, numbers);
  trace.seconds_setup = setup_s;
  trace.seconds_total += setup_s;
  return trace;
}

/// Finds the executors of a graph before its first run.
void Stream::find_executors(StreamGraph &graph) {
  std::map<Executor *, std::size_t> calls;
  for (StreamPiece &piece : graph.pieces()) {
    auto *const work = std::get_if<CollectiveWork>(&piece.work);
    if (work == nullptr || work->executor != nullptr) continue;
    with_step(piece, [&] {
      work->executor = &executors_.of(*work->step->executor, work->group, work->groups);
    });
    ++calls[work->executor];
  }
  for (const auto &[executor, count] : calls) executor->keep_plans(std::min(count, kMostPlans));
}

pidcomm_stream_trace Stream::plan() { return fill_timeline(cutter().predict(), 0); }

pidcomm_stream_trace Stream::execute() {
  const Stopwatch watch;
  timeline_.clear();
  is_cancelled_ = false;
  calls_.lock(RankLocks::Mode::exclusive);  // waits for earlier calls
  wait_for_set(set_, placement_);
  if (!programs_.empty()) require_program();
  update_heap_base();
  CutStream &stream = cutter().next();
  find_executors(stream.graph);
  if (before_run_) before_run_(stream);
  const std::unique_ptr<PieceRunner> runner =
      device_runner(stream.graph, set_, placement_, is_cancelled_);
  const double setup_s = watch.seconds();
  try {
    stream.schedule.run(*runner);
  } catch (...) {
    fill_timeline(stream, setup_s);
    throw;
  }
  cutter_->ran();
  return fill_timeline(stream, setup_s);
}

}  // namespace pidcomm
