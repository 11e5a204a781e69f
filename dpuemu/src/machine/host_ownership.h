// Makes the host the owner of the MRAM of ranks during a transfer.
#pragma once

#include <vector>

#include "machine/rank.h"

namespace dpuemu {

class HostOwnership {
 public:
  HostOwnership() = default;
  ~HostOwnership() {
    for (Rank *rank : owned_) rank->close_transfer();
  }
  HostOwnership(const HostOwnership &) = delete;
  HostOwnership &operator=(const HostOwnership &) = delete;

  /// The host owns the rank until this object is destroyed. Errors: those of Rank::open_transfer.
  dpu_error_t take(Rank &rank) {
    owned_.reserve(owned_.size() + 1);
    const dpu_error_t status = rank.open_transfer();
    if (status == DPU_OK) owned_.push_back(&rank);
    return status;
  }

 private:
  std::vector<Rank *> owned_;
};

}  // namespace dpuemu
