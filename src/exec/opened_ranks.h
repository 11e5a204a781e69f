// The ranks of a placement, opened for the life of a hypercube.
#pragma once

#include <vector>

#include "rank_access/sdk.h"

namespace pidcomm {

struct Placement;

class OpenedRanks {
 public:
  /// placement: of PEs of the set. Errors: ERR_SET, ERR_DEVICE naming the rank and the PEs in fault or, if its region cannot be found, why
  /// and how to solve it.
  OpenedRanks(struct dpu_set_t set, const Placement &placement);
  ~OpenedRanks();
  OpenedRanks(const OpenedRanks &) = delete;
  OpenedRanks &operator=(const OpenedRanks &) = delete;

 private:
  void close();
  std::vector<struct dpu_rank_t *> opened_;
};

}  // namespace pidcomm
