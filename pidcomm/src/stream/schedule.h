// The order in which the pieces of a stream run.
#pragma once

#include <cstddef>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "stream/graph.h"

namespace pidcomm {

/// Seconds of the host, then, of a launch, of the PEs.
struct PieceSeconds {
  double host = 0, pes = 0;
  bool operator==(const PieceSeconds &) const = default;
};

/// Carries out pieces, or only computes their times.
class PieceRunner {
 public:
  virtual ~PieceRunner() = default;
  /// Seconds since the construction.
  virtual double now_s() const = 0;
  /// Starts a launch.
  virtual void start(std::size_t piece) = 0;
  /// Carries out a host pass.
  virtual void run(std::size_t piece) = 0;
  /// When the launch ended, or nothing if it still runs.
  virtual std::optional<double> end_s(std::size_t launch) = 0;
  /// Waits until at least one of the launches may have ended.
  virtual void wait(const std::vector<std::size_t> &launches) = 0;
  /// Waits for the ends of the launches, whatever they return.
  virtual void abandon(const std::vector<std::size_t> &launches) = 0;
};

/// The clock of emulated and predicted launches: a launch takes its seconds, whenever it starts.
class ModelledRunner : public PieceRunner {
 public:
  explicit ModelledRunner(std::size_t pieces) : end_s_(pieces) {}
  double now_s() const final { return now_s_; }
  void start(std::size_t piece) final;
  void run(std::size_t piece) final { now_s_ += pass_s(piece); }
  std::optional<double> end_s(std::size_t launch) final;
  void wait(const std::vector<std::size_t> &launches) final;
  void abandon(const std::vector<std::size_t> &) final {}

 protected:
  virtual PieceSeconds launch_s(std::size_t piece) = 0;
  virtual double pass_s(std::size_t piece) = 0;

 private:
  double now_s_ = 0;
  std::vector<double> end_s_;  // of launches
};

/// When a piece ran. host_s: until the host had started it, if it is a launch.
struct PieceTimes {
  double begin_s = 0, host_s = 0, end_s = 0;
};

/// How a schedule decides; the vectors are by piece. Of several pieces that are ready, the most
/// urgent runs first, and of equal ones the first that was recorded.
struct SchedulePolicy {
  std::vector<double> urgencies;
  std::vector<PieceSeconds> seconds;
  /// Whether a launch waits if its ranks have a pass that the host reaches before another launch
  /// ends, by `seconds`. Otherwise all rank groups compute at the same time while the host idles.
  bool keeps_host_busy = false;
  /// The launch to which a pass leads, or kNoLaunch. If given, passes whose launch waits for other
  /// launches, or that lead to none, run after all others, in recorded order.
  std::vector<std::size_t> next_launches{};
};

inline constexpr std::size_t kNoLaunch = std::numeric_limits<std::size_t>::max();

/// Runs the pieces of a graph. One host pass runs at a time; before it, the launches begin that are
/// ready and whose ranks are idle.
class PieceSchedule {
 public:
  explicit PieceSchedule(const StreamGraph &graph);
  void set_policy(SchedulePolicy policy) { policy_ = std::move(policy); }

  /// Errors: those of the runner, thrown after the end of all launches.
  void run(PieceRunner &runner);
  /// The pieces of the last run in the order of their ends, and their times by piece.
  const std::vector<std::size_t> &ended() const { return ended_; }
  const std::vector<PieceTimes> &times() const { return times_; }
  /// The end of the last piece of the last run.
  double total_s() const;

 private:
  void reset();
  void step(PieceRunner &runner);
  void find_launches();
  void find_passes();
  bool are_ranks_idle(std::size_t piece) const;
  void add_ready(std::size_t piece);
  void set_busy(std::size_t piece, bool is_busy);
  void keep_ranks(double now_s, double host_s);
  void start_launches(PieceRunner &runner);
  void end(std::size_t piece, double end_s);
  void collect(PieceRunner &runner);

  const StreamGraph &graph_;
  std::vector<std::size_t> before_;   // the earlier pieces that have not ended
  std::vector<std::size_t> ready_;    // the most urgent first; their ranks may be busy
  std::vector<std::size_t> passes_;   // the ready passes on idle ranks, in the order of their runs
  std::vector<std::size_t> running_;  // launches
  std::vector<std::size_t> ended_;
  std::vector<bool> is_busy_, is_kept_;  // by rank
  /// Of a launch: the launches that must end before it without a launch between them, how many of
  /// them have not ended, and the launches for which it counts.
  std::vector<std::size_t> launches_before_, launches_left_;
  std::vector<std::vector<std::size_t>> launches_after_;
  std::vector<PieceTimes> times_;
  SchedulePolicy policy_;
};

}  // namespace pidcomm
