// Ranks on which everything waits: a job in the queue of each that ends when the gate opens. Launches, transfers and whatever else is asked
// of a rank meanwhile comes after it.
#pragma once

#include <memory>
#include <vector>

#include "door/sdk.h"

namespace pidcomm {

class Gate {
 public:
  /// Closes it, behind earlier jobs. Errors: ERR_DEVICE, ERR_SET; then nothing waits.
  explicit Gate(const std::vector<struct dpu_rank_t *> &ranks);
  /// Opens it.
  ~Gate();
  Gate(const Gate &) = delete;
  Gate &operator=(const Gate &) = delete;

 private:
  struct Latch;
  std::shared_ptr<Latch> latch_;  // shared with the jobs: the last of them may end after the gate
};

}  // namespace pidcomm
