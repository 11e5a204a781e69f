#include "stream/runner.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <thread>

#include "base/error.h"
#include "exec/clock.h"
#include "exec/device.h"
#include "rank_access/rank_access.h"

namespace pidcomm {

namespace {

class Run {
 public:
  Run(const StreamGraph &graph, struct dpu_set_t set, const Placement &placement,
      std::vector<pidcomm_stream_piece> &timeline)
      : graph_(graph),
        set_(set),
        placement_(placement),
        timeline_(timeline),
        states_(graph.pieces().size()),
        is_busy_(set.list.nr_ranks) {}

  void go() {
    try {
      while (first_ < states_.size()) step();
    } catch (...) {
      for (const std::size_t piece : running_) {
        if (!is_mixed_) dpu_sync(set_of(piece));  // the first error is the one to report
      }
      throw;
    }
  }

 private:
  enum class State { waits, runs, ended };

  struct dpu_set_t set_of(std::size_t piece) const {
    return ranks_of(set_, graph_.pieces()[piece].first_rank, graph_.pieces()[piece].ranks);
  }

  double now_s() const { return is_mixed_ ? mixed_s_ : watch_.seconds(); }

  bool is_ready(std::size_t piece) const {
    const StreamPiece &own = graph_.pieces()[piece];
    const auto busy = is_busy_.begin() + own.first_rank;
    const auto &before = graph_.before(piece);
    return states_[piece] == State::waits &&
           std::find(busy, busy + own.ranks, true) == busy + own.ranks &&
           std::all_of(before.begin(), before.end(),
                       [&](std::size_t earlier) { return states_[earlier] == State::ended; });
  }

  void begin(std::size_t piece) {
    const StreamPiece &own = graph_.pieces()[piece];
    states_[piece] = State::runs;
    std::fill_n(is_busy_.begin() + own.first_rank, own.ranks, true);
    begin_s_[piece] = now_s();
  }

  void end(std::size_t piece, double end_s) {
    const StreamPiece &own = graph_.pieces()[piece];
    states_[piece] = State::ended;
    std::fill_n(is_busy_.begin() + own.first_rank, own.ranks, false);
    timeline_.push_back({own.step, own.part, own.first_rank, own.ranks, begin_s_[piece], end_s,
                         own.is_launch ? 1 : 0});
    while (first_ < states_.size() && states_[first_] == State::ended) ++first_;
  }

  void step() {
    std::optional<std::size_t> pass;
    for (std::size_t piece = first_; piece < states_.size() && !pass; ++piece)
      if (!graph_.pieces()[piece].is_launch && is_ready(piece)) pass = piece;
    if (pass) begin(*pass);
    for (std::size_t piece = first_; piece < states_.size(); ++piece)
      if (graph_.pieces()[piece].is_launch && is_ready(piece)) launch(piece);
    if (pass) {
      const Stopwatch watch;
      named(*pass, graph_.pieces()[*pass].work);
      mixed_s_ += watch.seconds();
      end(*pass, now_s());
      collect();
    } else {
      wait_for_launch();
    }
  }

  /// Adds the number of the step and the ranks to errors.
  template <class Work>
  void named(std::size_t piece, const Work &work) const {
    const StreamPiece &own = graph_.pieces()[piece];
    try {
      work();
    } catch (const Error &error) {
      fail(error.status(), "step ", own.step, ", ranks ", own.first_rank, " to ",
           own.first_rank + own.ranks - 1, " of the set: ", error.what());
    }
  }

  void launch(std::size_t piece) {
    const StreamPiece &own = graph_.pieces()[piece];
    begin(piece);
    running_.push_back(piece);  // also if the launch fails: it may have started on some ranks
    named(piece, [&] {
      if (own.work) own.work();
      check(piece, dpu_launch(set_of(piece), is_mixed_ ? DPU_SYNCHRONOUS : DPU_ASYNCHRONOUS));
    });
    if (is_mixed_) end_s_[piece] = mixed_s_ + modelled_launch_seconds(set_of(piece));
  }

  void check(std::size_t piece, dpu_error_t status) const {
    if (status != DPU_OK) check_pes(status, "launching", set_of(piece), placement_);
  }

  /// Ends the launches that have ended by now.
  void collect() {
    for (std::size_t i = 0; i < running_.size();) {
      const std::size_t piece = running_[i];
      bool is_done = is_mixed_ && end_s_[piece] <= mixed_s_, is_faulted = false;
      if (!is_mixed_)
        named(piece, [&] { check(piece, dpu_status(set_of(piece), &is_done, &is_faulted)); });
      if (!is_done && !is_faulted) {
        ++i;
        continue;
      }
      running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(i));
      if (!is_mixed_) named(piece, [&] { check(piece, dpu_sync(set_of(piece))); });
      end(piece, is_mixed_ ? end_s_[piece] : now_s());
    }
  }

  void wait_for_launch() {
    if (running_.empty()) fail(PIDCOMM_ERR_INTERNAL, "no piece of the stream can start");
    const std::size_t count = running_.size();
    if (is_mixed_) {
      double first_s = end_s_[running_[0]];
      for (const std::size_t piece : running_) first_s = std::min(first_s, end_s_[piece]);
      mixed_s_ = std::max(mixed_s_, first_s);
    }
    for (collect(); running_.size() == count; collect())
      std::this_thread::sleep_for(std::chrono::microseconds(20));
  }

  const StreamGraph &graph_;
  struct dpu_set_t set_;
  const Placement &placement_;
  std::vector<pidcomm_stream_piece> &timeline_;
  const bool is_mixed_ = launches_are_modelled();
  const Stopwatch watch_{};
  double mixed_s_ = 0;
  std::vector<State> states_;
  std::vector<bool> is_busy_;           // by rank
  std::vector<std::size_t> running_{};  // launches
  std::vector<double> begin_s_ = std::vector<double>(states_.size());
  std::vector<double> end_s_ = std::vector<double>(states_.size());  // of launches, if is_mixed_
  std::size_t first_ = 0;  // all earlier pieces have ended
};

}  // namespace

void run_pieces(const StreamGraph &graph, struct dpu_set_t set, const Placement &placement,
                std::vector<pidcomm_stream_piece> &timeline) {
  Run(graph, set, placement, timeline).go();
}

}  // namespace pidcomm
