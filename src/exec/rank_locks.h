// Serialises the calls on all hypercubes of the process that share a rank: a call may load and launch PE programs, and between its steps no
// other call may load another program or access the rank.
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
  /// Waits until the guards of all earlier calls on these ranks are destroyed. Throws std::bad_alloc.
  Guard lock();

 private:
  std::vector<std::shared_ptr<FifoLock>> locks_;  // in the order of the ranks' addresses, so that calls cannot wait for each other
};

}  // namespace pidcomm
