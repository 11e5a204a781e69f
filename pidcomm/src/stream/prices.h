// The seconds of pieces: measured in earlier runs, else predicted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "stream/graph.h"
#include "stream/schedule.h"

namespace pidcomm {

/// What the machine in use adds to each launch of `ranks` ranks. The cost per rank is time of the
/// host, which starts one rank after another; the fixed cost delays the end of the launch.
PieceSeconds launch_cost(uint32_t ranks);

/// Pieces of one step with equal `work` and equal cuts have one price: the shortest of the means of
/// the runs. Before the first run with these cuts, it is the price of the cuts that were nearest
/// among those that ran, scaled: a collective and a combination by the predicted time, a launch by
/// its share of the step (but the fixed cost of a launch is the same), a write by its ranks.
class StreamPrices {
 public:
  /// Adds the times of a run that has ended.
  void learn(const StreamGraph &graph, const PieceSchedule &schedule);
  /// Returns the price of a piece. Before any run of its step: the predicted time of a collective
  /// or a combination, the cost of a launch, and 0 for others.
  PieceSeconds of(const StreamPiece &piece);
  bool has_measured() const { return has_measured_; }

 private:
  struct Key {
    std::size_t step;
    int work;  // the code of the collective; the other kinds of pieces are negative
    uint32_t ranks, parts;
    auto operator<=>(const Key &) const = default;
  };
  struct Price {
    PieceSeconds scale;     // what the price is proportional to
    PieceSeconds measured;  // valid if runs != 0
    std::size_t runs = 0;
  };
  static Key key_of(const StreamPiece &piece);
  Price &price_of(const Key &key, const StreamPiece &piece);
  const std::pair<const Key, Price> *nearest(const Key &key) const;

  std::map<Key, Price> prices_;
  bool has_measured_ = false;
};

/// Predicts times: prices in the place of work.
class PricedRunner : public ModelledRunner {
 public:
  /// prices: by piece.
  explicit PricedRunner(const std::vector<PieceSeconds> &prices)
      : ModelledRunner(prices.size()), prices_(prices) {}

 protected:
  PieceSeconds launch_s(std::size_t piece) override { return prices_[piece]; }
  double pass_s(std::size_t piece) override { return prices_[piece].host; }

 private:
  const std::vector<PieceSeconds> &prices_;
};

}  // namespace pidcomm
