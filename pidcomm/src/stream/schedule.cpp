#include "stream/schedule.h"

#include <algorithm>
#include <limits>

#include "base/error.h"

namespace pidcomm {

void ModelledRunner::start(std::size_t piece) {
  const PieceSeconds seconds = launch_s(piece);
  now_s_ += seconds.host;
  end_s_[piece] = now_s_ + seconds.pes;
}

std::optional<double> ModelledRunner::end_s(std::size_t launch) {
  return end_s_[launch] <= now_s_ ? std::optional(end_s_[launch]) : std::nullopt;
}

void ModelledRunner::wait(const std::vector<std::size_t> &launches) {
  double first_s = end_s_[launches.front()];
  for (const std::size_t launch : launches) first_s = std::min(first_s, end_s_[launch]);
  now_s_ = std::max(now_s_, first_s);
}

PieceSchedule::PieceSchedule(const StreamGraph &graph)
    : graph_(graph), times_(graph.pieces().size()) {
  policy_.urgencies.resize(times_.size());
  uint32_t ranks = 0;
  for (const StreamPiece &piece : graph.pieces())
    ranks = std::max(ranks, piece.first_rank + piece.ranks);
  is_busy_.resize(ranks);
  is_kept_.resize(ranks);
  for (auto *pieces : {&before_, &ready_, &passes_, &running_, &ended_})
    pieces->reserve(times_.size());
  find_launches();
}

void PieceSchedule::find_launches() {
  launches_before_.resize(times_.size());
  launches_after_.resize(times_.size());
  std::vector<std::vector<std::size_t>> latest(times_.size());  // launches before a piece
  for (std::size_t piece = 0; piece < times_.size(); ++piece) {
    std::vector<std::size_t> &own = latest[piece];
    std::sort(own.begin(), own.end());
    own.erase(std::unique(own.begin(), own.end()), own.end());
    if (graph_.pieces()[piece].is_launch()) {
      launches_before_[piece] = own.size();
      for (const std::size_t launch : own) launches_after_[launch].push_back(piece);
      own = {piece};
    }
    for (const std::size_t next : graph_.after(piece))
      latest[next].insert(latest[next].end(), own.begin(), own.end());
  }
}

void PieceSchedule::reset() {
  for (auto *pieces : {&before_, &ready_, &running_, &ended_}) pieces->clear();
  std::fill(is_busy_.begin(), is_busy_.end(), false);
  std::fill(is_kept_.begin(), is_kept_.end(), false);
  launches_left_ = launches_before_;
  for (std::size_t piece = 0; piece < times_.size(); ++piece) {
    before_.push_back(graph_.before(piece));
    if (before_.back() == 0) add_ready(piece);
  }
}

void PieceSchedule::add_ready(std::size_t piece) {
  const auto is_first = [this](std::size_t a, std::size_t b) {
    const double of_a = policy_.urgencies[a], of_b = policy_.urgencies[b];
    return of_a != of_b ? of_a > of_b : a < b;
  };
  ready_.insert(std::upper_bound(ready_.begin(), ready_.end(), piece, is_first), piece);
}

double PieceSchedule::total_s() const {
  double total_s = 0;
  for (const std::size_t piece : ended_) total_s = std::max(total_s, times_[piece].end_s);
  return total_s;
}

bool PieceSchedule::are_ranks_idle(std::size_t piece) const {
  const StreamPiece &own = graph_.pieces()[piece];
  const auto first = is_busy_.begin() + own.first_rank;
  return std::find(first, first + own.ranks, true) == first + own.ranks;
}

void PieceSchedule::set_busy(std::size_t piece, bool is_busy) {
  const StreamPiece &own = graph_.pieces()[piece];
  std::fill_n(is_busy_.begin() + own.first_rank, own.ranks, is_busy);
}

void PieceSchedule::run(PieceRunner &runner) {
  reset();
  try {
    while (ended_.size() < times_.size()) step(runner);
  } catch (...) {
    runner.abandon(running_);  // the first error is the one to report
    throw;
  }
}

void PieceSchedule::find_passes() {
  passes_.clear();
  for (const std::size_t piece : ready_)
    if (!graph_.pieces()[piece].is_launch() && are_ranks_idle(piece)) passes_.push_back(piece);
  if (policy_.next_launches.empty()) return;
  const auto others = std::stable_partition(passes_.begin(), passes_.end(), [this](std::size_t p) {
    const std::size_t launch = policy_.next_launches[p];
    return launch != kNoLaunch && launches_left_[launch] == 0;
  });
  std::sort(others, passes_.end());
}

void PieceSchedule::step(PieceRunner &runner) {
  find_passes();
  if (!passes_.empty()) {
    const std::size_t piece = passes_.front();
    ready_.erase(std::find(ready_.begin(), ready_.end(), piece));
    set_busy(piece, true);
    if (policy_.keeps_host_busy) keep_ranks(runner.now_s(), policy_.seconds[piece].host);
    start_launches(runner);
    times_[piece].begin_s = runner.now_s();
    runner.run(piece);
    end(piece, runner.now_s());
    collect(runner);
    return;
  }
  start_launches(runner);
  if (running_.empty()) fail(PIDCOMM_ERR_INTERNAL, "no piece of the stream can start");
  const std::size_t before = ended_.size();
  for (collect(runner); ended_.size() == before; collect(runner)) runner.wait(running_);
}

/// Keeps ranks for the passes that the host reaches before another launch ends. host_s: of the pass
/// that runs next.
void PieceSchedule::keep_ranks(double now_s, double host_s) {
  constexpr double kRounding = 0.999;
  const auto seconds_of = [this](std::size_t launch) {
    return policy_.seconds[launch].host + policy_.seconds[launch].pes;
  };
  double until_s = std::numeric_limits<double>::max();
  for (const std::size_t launch : running_)
    until_s = std::min(until_s, times_[launch].begin_s + seconds_of(launch) - now_s);
  if (running_.empty())
    for (const std::size_t piece : ready_)
      if (graph_.pieces()[piece].is_launch()) until_s = std::min(until_s, seconds_of(piece));
  for (const std::size_t piece : passes_) {
    if (host_s > until_s * kRounding) return;
    const StreamPiece &own = graph_.pieces()[piece];
    if (!are_ranks_idle(piece)) continue;
    std::fill_n(is_kept_.begin() + own.first_rank, own.ranks, true);
    host_s += policy_.seconds[piece].host;
  }
}

void PieceSchedule::start_launches(PieceRunner &runner) {
  std::erase_if(ready_, [&](std::size_t piece) {
    if (!graph_.pieces()[piece].is_launch() || !are_ranks_idle(piece)) return false;
    const auto kept = is_kept_.begin() + graph_.pieces()[piece].first_rank;
    const auto kept_end = kept + graph_.pieces()[piece].ranks;
    if (std::find(kept, kept_end, true) != kept_end) return false;
    set_busy(piece, true);
    running_.push_back(piece);  // also if it fails: it may have started on some ranks
    times_[piece].begin_s = runner.now_s();
    runner.start(piece);
    times_[piece].host_s = runner.now_s() - times_[piece].begin_s;
    return true;
  });
  std::fill(is_kept_.begin(), is_kept_.end(), false);
}

void PieceSchedule::end(std::size_t piece, double end_s) {
  times_[piece].end_s = end_s;
  set_busy(piece, false);
  ended_.push_back(piece);
  for (const std::size_t next : graph_.after(piece))
    if (--before_[next] == 0) add_ready(next);
  for (const std::size_t next : launches_after_[piece]) --launches_left_[next];
}

void PieceSchedule::collect(PieceRunner &runner) {
  for (std::size_t i = 0; i < running_.size();) {
    const std::size_t piece = running_[i];
    const std::optional<double> end_s = runner.end_s(piece);
    if (!end_s) {
      ++i;
      continue;
    }
    running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(i));
    end(piece, *end_s);
  }
}

}  // namespace pidcomm
