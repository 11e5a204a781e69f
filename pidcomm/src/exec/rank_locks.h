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

/// Returns whether lists of ranks, each in the order of the addresses, have a rank in common.
bool share_a_rank(const std::vector<struct dpu_rank_t *> &a,
                  const std::vector<struct dpu_rank_t *> &b);

class RankLocks {
 public:
  enum class Mode { exclusive, shared };

 private:
  struct Entry {
    const std::vector<struct dpu_rank_t *> &ranks;
    Mode mode;
  };

 public:
  /// ranks: in any order. Throws std::bad_alloc.
  explicit RankLocks(std::vector<struct dpu_rank_t *> ranks);
  RankLocks(const RankLocks &) = delete;
  RankLocks &operator=(const RankLocks &) = delete;

  /// The place of a call in the FIFO queue of the calls on its ranks. The destructor lets later
  /// calls begin. Any thread may destroy a ticket, also a ticket for which no thread has waited.
  /// The RankLocks must outlive the ticket.
  class Ticket {
   public:
    explicit Ticket(std::list<Entry>::iterator entry) : entry_(entry) {}
    Ticket(Ticket &&other) noexcept : entry_(std::exchange(other.entry_, std::nullopt)) {}
    Ticket &operator=(Ticket &&) = delete;
    ~Ticket();

    /// Waits until the tickets of all earlier calls on these ranks are destroyed; in shared mode,
    /// only until the tickets of the earlier calls in exclusive mode are destroyed.
    void wait() const;
    /// Whether wait() would return at once.
    bool is_first() const;

   private:
    bool is_first_locked() const;
    std::optional<std::list<Entry>::iterator> entry_;
  };

  /// Returns the ticket of a call, at once. Throws std::bad_alloc.
  Ticket queue(Mode mode);
  /// Returns the ticket of a call, after Ticket::wait.
  Ticket lock(Mode mode);
  /// Whether another ticket on one of these ranks exists.
  bool are_in_use();

 private:
  struct Queue;
  static Queue &all_calls();

  std::vector<struct dpu_rank_t *> ranks_;  // in the order of the addresses
};

}  // namespace pidcomm
