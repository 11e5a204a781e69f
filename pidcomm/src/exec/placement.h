// Maps the PEs of a hypercube to DPUs of a set.
#pragma once

#include <cstdint>
#include <vector>

#include "rank_access/sdk.h"
#include "topology/hypercube.h"

namespace pidcomm {

/// An entangled group of the set: a bank of one of its ranks.
struct PlacedEg {
  uint32_t rank, bank;  // rank: index into Placement::ranks; bank: 0..7
};

/// The PE at place 8 * e + lane (see Hypercube::place_of) is the DPU of chip `lane` in bank
/// egs[e].bank of ranks[egs[e].rank]. Only the last entangled group may have fewer than 8 PEs; a
/// smaller last group has lanes 0 .. pes % 8 - 1. The order of DPUs is the same for all hypercubes
/// of a set: place p of a hypercube that begins at `first` is place first + p of a hypercube that
/// begins at 0.
struct Placement {
  std::vector<struct dpu_rank_t *> ranks;
  std::vector<PlacedEg> egs;
  std::vector<struct dpu_t *> dpus;  // by PE
  std::vector<uint32_t> places;      // by PE

  /// Places the hypercube on PEs first .. first + cube.pes - 1 in the order of the set: those of
  /// the complete entangled groups of ranks without a missing PE, then those of other ranks, in the
  /// order of the set's ranks, then banks. Then come the first lanes of the incomplete group that
  /// has most of them. Errors: ERR_SET (the set is not allocated), ERR_ARGUMENT (8, or 64
  /// in PeOrder::foreach, does not divide first), ERR_SHAPE (the set has too few PEs, or a PE
  /// before the end of the hypercube is missing in PeOrder::foreach; the error message names the
  /// missing chips by rank and bank).
  static Placement of(struct dpu_set_t set, const Hypercube &cube, uint32_t first);

  /// Places the largest hypercube of the set; the placement is empty if no hypercube is possible.
  /// Errors: ERR_SET.
  static Placement largest(struct dpu_set_t set);

  PlacedEg eg_of(uint32_t pe) const { return egs[places[pe] / kLanes]; }
  uint32_t lane_of(uint32_t pe) const { return places[pe] % kLanes; }
};

}  // namespace pidcomm
