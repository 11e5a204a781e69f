// Serialises the calls on all hypercubes of the process that share a rank: a call may load and
// launch PE programs, and between its steps no other call may load another program or access the
// rank. Most calls use their ranks exclusively. Calls that run as jobs in the queues of their ranks
// share the ranks, because the queues already serialise these jobs.
#pragma once

#include <list>
#include <optional>
#include <utility>
#include <vector>

#include "rank_access/sdk.h"

namespace pidcomm {

class RankLocks {
 public:
  enum class Mode { exclusive, shared };

 private:
  struct Call {
    const std::vector<struct dpu_rank_t *> &ranks;
    Mode mode;
  };

 public:
  /// ranks: in any order. Throws std::bad_alloc.
  explicit RankLocks(std::vector<struct dpu_rank_t *> ranks);
  RankLocks(const RankLocks &) = delete;
  RankLocks &operator=(const RankLocks &) = delete;

  /// The place of a call in the order of the calls on its ranks. The destructor lets later calls
  /// begin. Any thread may destroy a turn, also a turn for which no thread has waited. The
  /// RankLocks must outlive the turn.
  class Turn {
   public:
    explicit Turn(std::list<Call>::iterator call) : call_(call) {}
    Turn(Turn &&other) noexcept : call_(std::exchange(other.call_, std::nullopt)) {}
    Turn &operator=(Turn &&) = delete;
    ~Turn();

    /// Waits until the turns of all earlier calls on these ranks are destroyed; in shared mode,
    /// only until the turns of the earlier calls in exclusive mode are destroyed.
    void wait() const;
    /// Whether wait() would return at once.
    bool is_first() const;

   private:
    bool is_first_locked() const;
    std::optional<std::list<Call>::iterator> call_;
  };

  /// Returns the turn of a call, at once. Throws std::bad_alloc.
  Turn queue(Mode mode);
  /// Returns the turn of a call, after Turn::wait.
  Turn lock(Mode mode);
  /// Whether another turn on one of these ranks exists.
  bool are_in_use();

 private:
  struct Calls;
  static Calls &calls();

  std::vector<struct dpu_rank_t *> ranks_;  // in the order of the addresses
};

}  // namespace pidcomm
