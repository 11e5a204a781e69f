// A lock on the prepared buffers of a set, and transfers of one row per PE.
#pragma once

#include <array>
#include <functional>
#include <mutex>

#include "exec/device.h"
#include "exec/placement.h"

namespace pidcomm {

/// The SDK keeps one prepared buffer per DPU, so hypercubes on one set must not prepare buffers at
/// the same time. Each hypercube clears the buffers that it prepared before it releases this lock.
/// The lock also covers loading and launching the reorder program.
class PreparedTransfer {
 public:
  explicit PreparedTransfer(struct dpu_set_t set, const Placement &placement)
      : set_(set), lock_(mutex_of(placement.ranks.front())) {
    clear();
  }
  ~PreparedTransfer() { clear(); }
  PreparedTransfer(const PreparedTransfer &) = delete;
  PreparedTransfer &operator=(const PreparedTransfer &) = delete;

 private:
  static std::mutex &mutex_of(const struct dpu_rank_t *rank) {
    static std::array<std::mutex, 64> mutexes;
    return mutexes[std::hash<const void *>()(rank) / 64 % mutexes.size()];
  }
  void clear() { dpu_prepare_xfer(set_, nullptr); }
  struct dpu_set_t set_;
  std::lock_guard<std::mutex> lock_;
};

/// Moves `bytes` bytes at an offset of a variable between every PE and its row. row_of(pe): the
/// address of the row.
template <class RowOf>
void transfer_rows(dpu_xfer_t direction, struct dpu_set_t set, const Placement &placement,
                   struct dpu_symbol_t symbol, uint64_t offset, uint64_t bytes,
                   const RowOf &row_of) {
  const PreparedTransfer prepared(set, placement);
  for (uint32_t pe = 0; pe < placement.dpus.size(); ++pe)
    check_device(dpu_prepare_xfer(dpu_set_from_dpu(placement.dpus[pe]), row_of(pe)),
                 "preparing a transfer");
  check_device(dpu_push_xfer_symbol(set, direction, symbol, static_cast<uint32_t>(offset), bytes,
                                    DPU_XFER_DEFAULT),
               direction == DPU_XFER_FROM_DPU ? "reading from the PEs" : "writing to the PEs");
}

}  // namespace pidcomm
