// Chooses the cuts of a stream.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "stream/lower.h"
#include "stream/orders.h"
#include "stream/prices.h"
#include "stream/schedule.h"

namespace pidcomm {

/// The pieces of all steps for some cuts.
struct CutStream {
  CutStream(const StreamSteps &steps, StreamCuts own_cuts, uint32_t ranks)
      : cuts(own_cuts), graph(lower(steps, own_cuts, ranks)), schedule(graph) {}
  /// Chooses the policy of the schedule with the shortest predicted total, and leaves the predicted
  /// times in the schedule. Returns the total.
  double predict(StreamPrices &prices);
  /// Returns the same total; does not predict again if the prices are the same.
  double predicted_s(StreamPrices &prices);

  StreamCuts cuts;
  StreamGraph graph;
  PieceSchedule schedule;

 private:
  std::vector<PieceSeconds> seconds_;  // of the last prediction
  double predicted_s_ = 0;
};

/// Chooses the cuts of each run. The first two runs are uncut. Then it tries at most 6 cuts: each
/// time those with the shortest predicted total of all that have not run, if this is at least 3%
/// below the shortest measured total. Each runs twice, because its first run may be the first to
/// touch memory. If cuts are the fastest, the uncut steps run once more, because calls may have
/// tried slow techniques in the first runs. Then the fastest cuts stay.
class StreamCutter {
 public:
  /// The only choice: cuts. The steps and prices must outlive the cutter.
  StreamCutter(const StreamSteps &steps, StreamPrices &prices, uint32_t ranks, StreamCuts cuts);
  /// All choices. can_cut_ranks: whether more than one rank group is possible.
  StreamCutter(const StreamSteps &steps, StreamPrices &prices, uint32_t ranks, bool can_cut_ranks);

  /// Returns the pieces for the next run; the same until `ran`.
  CutStream &next();
  /// Learns from the run of the pieces that `next` returned.
  void ran();
  /// Predicts the times of the next run, and leaves them in its schedule.
  CutStream &predict();

 private:
  struct Candidate {
    StreamCuts cuts;
    std::unique_ptr<CutStream> stream{};  // null: not needed now
    int runs = 0;
    double least_s = 0;  // of the runs
  };
  CutStream &stream_of(Candidate &candidate);
  Candidate &choose();
  Candidate &fastest();

  const StreamSteps &steps_;
  uint32_t ranks_;
  StreamPrices &prices_;
  std::vector<Candidate> candidates_;  // the first is uncut
  Candidate *next_ = nullptr, *trial_ = nullptr;
  int trials_ = 0;
};

}  // namespace pidcomm
