#include "exec/acquired_ranks.h"

#include <string>
#include <utility>

#include "base/geometry.h"
#include "exec/device.h"
#include "rank_access/rank_access.h"

namespace pidcomm {

AcquiredRanks::AcquiredRanks(const Placement &placement, MappedEgs &mapped)
    : placement_(placement), mapped_(mapped) {
  rank_base_.reserve(
      placement.ranks.size());  // so that push_back for an acquired rank cannot throw
  try {
    for (struct dpu_rank_t *rank : placement.ranks) {
      std::byte *base = nullptr;
      const dpu_error_t status = rank_access_acquire(rank, &base);
      if (status != DPU_OK)
        check_device(
            status, "taking the MRAM of rank " + std::to_string(rank_base_.size()) + " of the set");
      rank_base_.push_back(base);
    }
    if (rank_base_ != mapped.rank_base) map();
  } catch (...) {
    release();
    throw;
  }
}

void AcquiredRanks::release() {
  for (std::size_t r = 0; r < rank_base_.size(); ++r) rank_access_release(placement_.ranks[r]);
  rank_base_.clear();
}

void AcquiredRanks::map() {
  std::vector<std::byte *> eg_base;
  eg_base.reserve(placement_.egs.size());
  for (const PlacedEg &eg : placement_.egs)
    eg_base.push_back(rank_base_[eg.rank] + bank_offset(eg.bank));
  std::vector<BankPair> bank_pairs = bank_pairs_of(eg_base);
  mapped_ = {rank_base_, std::move(eg_base), std::move(bank_pairs)};
}

}  // namespace pidcomm
