#include "stream/stream.h"

#include <algorithm>

#include "exec/device.h"
#include "rank_access/rank_access.h"
#include "stream/device_runner.h"

namespace pidcomm {

namespace {

pidcomm_stream_trace trace_of(const std::vector<pidcomm_stream_piece> &timeline) {
  pidcomm_stream_trace trace{};
  trace.pieces = timeline.size();
  trace.is_mixed = launches_are_modelled() ? 1 : 0;
  double pes_until_s = 0;
  for (const pidcomm_stream_piece &piece : timeline) {
    trace.seconds_total = std::max(trace.seconds_total, piece.end_s);
    if (piece.is_launch == 0) {
      trace.seconds_host += piece.end_s - piece.begin_s;
    } else {
      trace.seconds_pes += std::max(0.0, piece.end_s - std::max(piece.begin_s, pes_until_s));
      pes_until_s = std::max(pes_until_s, piece.end_s);
    }
  }
  return trace;
}

}  // namespace

Stream::Lowered &Stream::lowered(StreamCuts cuts) {
  if (lowered_ == nullptr || lowered_->cuts != cuts)
    lowered_ = std::make_unique<Lowered>(steps_, cuts, set_.list.nr_ranks);
  for (StreamPiece &piece : lowered_->graph.pieces())
    if (auto *const work = std::get_if<CollectiveWork>(&piece.work))
      if (work->executor == nullptr)
        work->executor = &executors_.of(*work->step->executor, work->group, work->groups);
  return *lowered_;
}

/// Lists the pieces that have ended, in the order of their begins.
void Stream::fill_timeline(const Lowered &lowered) {
  timeline_.clear();
  for (const std::size_t number : lowered.schedule.ended()) {
    const StreamPiece &piece = lowered.graph.pieces()[number];
    const PieceTimes &times = lowered.schedule.times()[number];
    timeline_.push_back({piece.step, piece.part, piece.first_rank, piece.ranks, times.begin_s,
                         times.end_s, piece.is_launch() ? 1 : 0});
  }
  std::stable_sort(timeline_.begin(), timeline_.end(),
                   [](const pidcomm_stream_piece &a, const pidcomm_stream_piece &b) {
                     return a.begin_s < b.begin_s;
                   });
}

pidcomm_stream_trace Stream::execute() {
  timeline_.clear();
  wait_for_set(set_, placement_);
  Lowered &now = lowered(cuts_);
  const std::unique_ptr<PieceRunner> runner = device_runner(now.graph, set_, placement_);
  try {
    now.schedule.run(*runner);
  } catch (...) {
    fill_timeline(now);
    throw;
  }
  fill_timeline(now);
  return trace_of(timeline_);
}

}  // namespace pidcomm
