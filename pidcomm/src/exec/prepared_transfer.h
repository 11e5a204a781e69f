// A lock on the prepared buffers of a set.
#pragma once

#include <array>
#include <functional>
#include <mutex>

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

}  // namespace pidcomm
