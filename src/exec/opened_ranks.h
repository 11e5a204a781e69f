// The ranks of a placement, with their regions found, for as long as a hypercube lives.
#pragma once

#include <vector>

#include "door/sdk.h"

namespace pidcomm {

class OpenedRanks {
 public:
  /// Errors: ERR_SET, ERR_DEVICE naming the rank and, if its region cannot be found, why and what to do.
  explicit OpenedRanks(const std::vector<struct dpu_rank_t *> &ranks);
  ~OpenedRanks();
  OpenedRanks(const OpenedRanks &) = delete;
  OpenedRanks &operator=(const OpenedRanks &) = delete;

 private:
  void close();
  std::vector<struct dpu_rank_t *> opened_;
};

}  // namespace pidcomm
