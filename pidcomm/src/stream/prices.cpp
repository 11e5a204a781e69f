#include "stream/prices.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "exec/default_options.h"
#include "model/machine.h"
#include "model/price.h"
#include "stream/group_executors.h"

namespace pidcomm {

namespace {

double predicted_s(const CollectiveWork &work) {
  const CollectiveStep &step = *work.step;
  const Plan plan = plan_on(machine_in_use, group_cube(step.executor->cube(), work.groups),
                            work.request, resolve(&step.options), step.heap_base);
  return price(plan, machine_in_use()).seconds_total;
}

double predicted_s(const CombineWork &work) {
  const pidcomm_machine machine = machine_in_use();
  const auto bytes = static_cast<double>(work.rows * work.bytes);
  return 1e-9 * bytes * (1 / machine.memory_read_gb_s + 1 / machine.memory_write_gb_s);
}

PieceSeconds scale_of(const StreamPiece &piece) {
  if (const auto *const work = std::get_if<CollectiveWork>(&piece.work))
    return {predicted_s(*work), 0};
  if (const auto *const work = std::get_if<CombineWork>(&piece.work))
    return {predicted_s(*work), 0};
  if (piece.kind() == PIDCOMM_STREAM_CALL) return {1, 0};
  return {double(piece.ranks), 1.0 / piece.parts};
}

/// The price before any run of the step. scale: of the piece.
PieceSeconds predicted(const StreamPiece &piece, const PieceSeconds &scale) {
  if (piece.is_launch()) return launch_cost(piece.ranks);
  const bool is_predicted =
      piece.kind() == PIDCOMM_STREAM_COLLECTIVE || piece.kind() == PIDCOMM_STREAM_COMBINE;
  return is_predicted ? scale : PieceSeconds{};
}

}  // namespace

PieceSeconds launch_cost(uint32_t ranks) {
  const pidcomm_machine machine = machine_in_use();
  return {1e-6 * machine.pe_launch_rank_us * ranks, 1e-6 * machine.pe_launch_us};
}

StreamPrices::Key StreamPrices::key_of(const StreamPiece &piece) {
  const auto *const work = std::get_if<CollectiveWork>(&piece.work);
  return {piece.step, work == nullptr ? -1 - piece.kind() : work->request.collective, piece.ranks,
          piece.parts};
}

StreamPrices::Price &StreamPrices::price_of(const Key &key, const StreamPiece &piece) {
  const auto found = prices_.find(key);
  return found != prices_.end() ? found->second
                                : prices_.emplace(key, Price{scale_of(piece), {}}).first->second;
}

void StreamPrices::learn(const StreamGraph &graph, const PieceSchedule &schedule) {
  has_measured_ = true;
  struct Sum {
    PieceSeconds seconds;
    double pieces = 0;
  };
  std::map<Price *, Sum> sums;
  for (const std::size_t number : schedule.ended()) {
    const StreamPiece &piece = graph.pieces()[number];
    const PieceTimes &times = schedule.times()[number];
    Sum &sum = sums[&price_of(key_of(piece), piece)];
    const double host_s = piece.is_launch() ? times.host_s : times.end_s - times.begin_s;
    sum.seconds.host += host_s;
    sum.seconds.pes += times.end_s - times.begin_s - host_s;
    ++sum.pieces;
  }
  for (const auto &[price, sum] : sums) {
    const PieceSeconds mean{sum.seconds.host / sum.pieces, sum.seconds.pes / sum.pieces};
    const bool is_first = price->runs++ == 0;
    price->measured.host = is_first ? mean.host : std::min(price->measured.host, mean.host);
    price->measured.pes = is_first ? mean.pes : std::min(price->measured.pes, mean.pes);
  }
}

/// The measured price of the step with the nearest cuts, if possible of the same work; null: none.
const std::pair<const StreamPrices::Key, StreamPrices::Price> *StreamPrices::nearest(
    const Key &key) const {
  const std::pair<const Key, Price> *nearest = nullptr;
  double least = 0;
  for (auto each = prices_.lower_bound({key.step, std::numeric_limits<int>::min(), 0, 0});
       each != prices_.end() && each->first.step == key.step; ++each) {
    if (each->second.runs == 0 || (each->first.work < 0 && each->first.work != key.work)) continue;
    const auto ratio = [](double a, double b) { return std::abs(std::log2((a + 1) / (b + 1))); };
    constexpr double kOtherWork = 1000;
    const double distance = ratio(each->first.ranks, key.ranks) +
                            ratio(each->first.parts, key.parts) +
                            (each->first.work == key.work ? 0 : kOtherWork);
    if (nearest == nullptr || distance < least) nearest = &*each, least = distance;
  }
  return nearest;
}

PieceSeconds StreamPrices::of(const StreamPiece &piece) {
  const Key key = key_of(piece);
  const Price &own = price_of(key, piece);
  if (own.runs != 0) return own.measured;
  const auto *const measured = nearest(key);
  if (measured == nullptr) return predicted(piece, own.scale);
  const auto scaled = [](double seconds, double from, double to) {
    return from == 0 ? seconds : seconds * to / from;
  };
  const Price &other = measured->second;
  const double fixed_s =
      piece.is_launch() ? std::min(launch_cost(piece.ranks).pes, other.measured.pes) : 0;
  return {scaled(other.measured.host, other.scale.host, own.scale.host),
          fixed_s + scaled(other.measured.pes - fixed_s, other.scale.pes, own.scale.pes)};
}

}  // namespace pidcomm
