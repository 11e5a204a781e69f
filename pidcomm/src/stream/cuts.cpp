#include "stream/cuts.h"

#include <algorithm>
#include <new>

namespace pidcomm {

namespace {

constexpr int kRuns = 2, kMostTrials = 6;
constexpr double kWorthATrial = 0.97, kFaster = 0.98, kFewerSeconds = 0.999;
constexpr uint32_t kMostRankGroups = 16;
constexpr uint32_t kMostPlannedPieces = 4096;

/// Returns the divisors that are at most `largest`.
std::vector<uint32_t> divisors_of(uint32_t number, uint32_t largest) {
  std::vector<uint32_t> divisors;
  for (uint32_t divisor = 1; divisor <= std::min(number, largest); ++divisor)
    if (number % divisor == 0) divisors.push_back(divisor);
  return divisors;
}

std::vector<PieceSeconds> prices_of(const StreamGraph &graph, StreamPrices &prices) {
  std::vector<PieceSeconds> seconds;
  for (const StreamPiece &piece : graph.pieces()) seconds.push_back(prices.of(piece));
  return seconds;
}

}  // namespace

double CutStream::predicted_s(StreamPrices &prices) {
  return prices_of(graph, prices) == seconds_ ? predicted_s_ : predict(prices);
}

double CutStream::predict(StreamPrices &prices) {
  seconds_ = prices_of(graph, prices);
  const std::vector<PieceSeconds> &seconds = seconds_;
  const auto run = [&](PassOrder order, bool keeps_host_busy) {
    schedule.set_policy(policy_of(order, graph, seconds, keeps_host_busy));
    PricedRunner runner(seconds);
    schedule.run(runner);
    return schedule.total_s();
  };
  PassOrder best = PassOrder::recorded;
  bool best_keeps = false;
  double best_s = run(best, best_keeps);
  // Before a run, launches have no time, and a part of the times orders worse than none.
  if (prices.has_measured())
    for (const PassOrder order :
         {PassOrder::recorded, PassOrder::longest_path, PassOrder::most_released})
      for (const bool keeps : {false, true})
        if (const double total_s = run(order, keeps); total_s < best_s * kFewerSeconds)
          best = order, best_keeps = keeps, best_s = total_s;
  predicted_s_ = run(best, best_keeps);
  return predicted_s_;
}

StreamCutter::StreamCutter(const StreamSteps &steps, StreamPrices &prices, uint32_t ranks,
                           StreamCuts cuts)
    : steps_(steps), ranks_(ranks), prices_(prices) {
  candidates_.push_back({cuts});
}

StreamCutter::StreamCutter(const StreamSteps &steps, StreamPrices &prices, uint32_t ranks,
                           bool can_cut_ranks)
    : StreamCutter(steps, prices, ranks, StreamCuts{1, 1}) {
  const bool has_launch = std::any_of(steps.begin(), steps.end(), [](const StreamStep &step) {
    return std::holds_alternative<LaunchStep>(step);
  });
  if (!has_launch) return;  // nothing can run beside the host passes
  uint32_t most_parts = 1;
  for (const StreamStep &step : steps) most_parts = std::max(most_parts, parts_of(step));
  for (const uint32_t rank_groups : divisors_of(ranks, can_cut_ranks ? kMostRankGroups : 1))
    for (const uint32_t parts : divisors_of(most_parts, kMostPlannedPieces))
      if (rank_groups * parts != 1 && 2 * steps.size() * rank_groups * parts <= kMostPlannedPieces)
        candidates_.push_back({{rank_groups, parts}});
}

CutStream &StreamCutter::stream_of(Candidate &candidate) {
  if (candidate.stream == nullptr)
    candidate.stream = std::make_unique<CutStream>(steps_, candidate.cuts, ranks_);
  return *candidate.stream;
}

CutStream &StreamCutter::next() {
  if (next_ == nullptr) {
    Candidate &candidate = choose();
    if (candidate.runs <= kRuns) stream_of(candidate).predict(prices_);
    next_ = &candidate;
  }
  return stream_of(*next_);
}

void StreamCutter::ran() {
  const CutStream &stream = *next_->stream;
  const double total_s = stream.schedule.total_s();
  if (next_->runs < kRuns) prices_.learn(stream.graph, stream.schedule);
  next_->least_s = next_->runs++ == 0 ? total_s : std::min(next_->least_s, total_s);
  next_ = nullptr;
}

CutStream &StreamCutter::predict() {
  next().predict(prices_);
  return next();
}

StreamCutter::Candidate &StreamCutter::fastest() {
  Candidate *fastest = &candidates_.front();
  for (Candidate &each : candidates_)
    if (each.runs >= kRuns &&
        each.least_s < fastest->least_s * (fastest == &candidates_.front() ? kFaster : 1))
      fastest = &each;
  return *fastest;
}

StreamCutter::Candidate &StreamCutter::choose() {
  Candidate &uncut = candidates_.front();
  if (candidates_.size() == 1 || uncut.runs < kRuns) return uncut;
  if (trial_ != nullptr && trial_->runs < kRuns) return *trial_;
  Candidate &best = fastest();
  double shortest_s = best.least_s * kWorthATrial;
  trial_ = nullptr;
  if (trials_ < kMostTrials)
    for (Candidate &each : candidates_) {
      if (each.runs != 0) continue;
      double predicted_s = 0;
      try {
        predicted_s = stream_of(each).predicted_s(prices_);
      } catch (const std::bad_alloc &) {
        continue;  // the host lacks memory for these cuts
      }
      if (predicted_s >= shortest_s) continue;
      shortest_s = predicted_s;
      trial_ = &each;
    }
  if (trial_ != nullptr) {
    ++trials_;
    return *trial_;
  }
  trials_ = kMostTrials;
  if (&best != &uncut && uncut.runs == kRuns) return uncut;
  for (Candidate &each : candidates_)
    if (&each != &best) each.stream = nullptr;
  return best;
}

}  // namespace pidcomm
