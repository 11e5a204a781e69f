// Serialises the calls on all hypercubes of the process that share a rank: a call may load and launch PE programs, and between its steps no
// other call may load another program or access the rank. Blocking calls hold the locks of their ranks exclusively. Calls that run as jobs
// in the queues of their ranks share the locks, because the queues already serialise these jobs.
#pragma once

#include <memory>
#include <vector>

#include "exec/fifo_lock.h"
#include "rank_access/sdk.h"

namespace pidcomm {

class RankLocks {
 public:
  /// ranks: in any order. Throws std::bad_alloc.
  explicit RankLocks(std::vector<struct dpu_rank_t *> ranks);

  using Guard = std::vector<FifoLock::Guard>;
  /// Waits until the guards of all earlier calls on these ranks are destroyed; in shared mode, only until the guards of the earlier
  /// blocking calls are destroyed. Throws std::bad_alloc.
  Guard lock(FifoLock::Mode mode);
  /// Whether a call on one of these ranks holds a guard or waits for a guard.
  bool are_in_use();

 private:
  std::vector<std::shared_ptr<FifoLock>> locks_;  // in the order of the ranks' addresses, so that calls cannot wait for each other
};

}  // namespace pidcomm
