// The ranks of a placement, which stay open while the hypercube exists.
#pragma once

#include <vector>

#include "rank_access/sdk.h"

namespace pidcomm {

struct Placement;

class OpenedRanks {
 public:
  /// placement: contains only PEs of the set. Errors: ERR_SET, ERR_DEVICE. The error sentence of
  /// ERR_DEVICE names the rank and its PEs in fault; if the region of the rank cannot be found, the
  /// sentence gives the reason and a remedy.
  OpenedRanks(struct dpu_set_t set, const Placement &placement);
  ~OpenedRanks();
  OpenedRanks(const OpenedRanks &) = delete;
  OpenedRanks &operator=(const OpenedRanks &) = delete;

 private:
  void close();
  std::vector<struct dpu_rank_t *> opened_;
};

}  // namespace pidcomm
