#include "stream/stream.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "exec/device.h"
#include "rank_access/rank_access.h"
#include "stream/device_runner.h"

namespace pidcomm {

namespace {

constexpr std::size_t kMostPlans = 256;  // of an executor

pidcomm_stream_trace trace_of(const std::vector<pidcomm_stream_piece> &timeline) {
  pidcomm_stream_trace trace{};
  trace.pieces = timeline.size();
  trace.is_mixed = launches_are_modelled() ? 1 : 0;
  double pes_until_s = 0;
  for (const pidcomm_stream_piece &piece : timeline) {
    trace.seconds_total = std::max(trace.seconds_total, piece.end_s);
    if (piece.kind != PIDCOMM_STREAM_LAUNCH) {
      trace.seconds_host += piece.end_s - piece.begin_s;
    } else {
      trace.seconds_pes += std::max(0.0, piece.end_s - std::max(piece.begin_s, pes_until_s));
      pes_until_s = std::max(pes_until_s, piece.end_s);
    }
  }
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

/// Lists the pieces of the last run or prediction in the order of their begins.
pidcomm_stream_trace Stream::fill_timeline(const CutStream &stream) {
  timeline_.clear();
  for (const std::size_t number : stream.schedule.ended()) {
    const StreamPiece &piece = stream.graph.pieces()[number];
    const PieceTimes &times = stream.schedule.times()[number];
    timeline_.push_back({piece.step, piece.part, piece.first_rank, piece.ranks, times.begin_s,
                         times.end_s, piece.kind()});
  }
  std::sort(timeline_.begin(), timeline_.end(),
            [](const pidcomm_stream_piece &a, const pidcomm_stream_piece &b) {
              return std::tie(a.begin_s, a.step, a.part, a.first_rank, a.kind) <
                     std::tie(b.begin_s, b.step, b.part, b.first_rank, b.kind);
            });
  pidcomm_stream_trace trace = trace_of(timeline_);
  trace.rank_groups = stream.cuts.rank_groups;
  trace.parts = 1;
  for (const StreamPiece &piece : stream.graph.pieces())
    trace.parts = std::max<std::size_t>(trace.parts, piece.parts);
  return trace;
}

/// Finds the executors of a graph before its first run.
void Stream::find_executors(StreamGraph &graph) {
  std::map<Executor *, std::size_t> calls;
  for (StreamPiece &piece : graph.pieces()) {
    auto *const work = std::get_if<CollectiveWork>(&piece.work);
    if (work == nullptr || work->executor != nullptr) continue;
    work->executor = &executors_.of(*work->step->executor, work->group, work->groups);
    ++calls[work->executor];
  }
  for (const auto &[executor, count] : calls) executor->keep_plans(std::min(count, kMostPlans));
}

pidcomm_stream_trace Stream::plan() { return fill_timeline(cutter().predict()); }

pidcomm_stream_trace Stream::execute() {
  timeline_.clear();
  is_cancelled_ = false;
  wait_for_set(set_, placement_);
  CutStream &stream = cutter().next();
  find_executors(stream.graph);
  const std::unique_ptr<PieceRunner> runner =
      device_runner(stream.graph, set_, placement_, is_cancelled_);
  try {
    stream.schedule.run(*runner);
  } catch (...) {
    fill_timeline(stream);
    throw;
  }
  cutter_->ran();
  return fill_timeline(stream);
}

}  // namespace pidcomm
