// Maps the PEs of a hypercube to DPUs of a set.
#pragma once

#include <cstdint>
#include <vector>

#include "rank_access/sdk.h"
#include "topology/hypercube.h"

namespace pidcomm {

/// The ways in which a hypercube uses an entangled group.
enum class EgUse : uint32_t {
  whole,  // the hypercube may use all 8 PEs
  last,   // the first group with this use becomes the last entangled group of the hypercube, if the
          // set has too few complete groups
  unused,
  count,
};

/// Returns the use of an entangled group. lanes: bit l is set if the set has lane l of the group. A
/// last group with fewer than 8 PEs needs lanes 0 .. pes % 8 - 1.
EgUse use_of_eg(uint32_t lanes, uint32_t pes);

/// An entangled group of the set: a bank of one of its ranks.
struct PlacedEg {
  uint32_t rank, bank;  // rank: index into Placement::ranks; bank: 0..7
};

/// PE p = 8 * e + lane is the DPU of chip `lane` in bank egs[e].bank of ranks[egs[e].rank]. Only
/// the last entangled group may have fewer than 8 PEs; a smaller last group has lanes 0 .. pes % 8
/// - 1.
struct Placement {
  std::vector<struct dpu_rank_t *> ranks;
  std::vector<PlacedEg> egs;
  std::vector<struct dpu_t *> dpus;  // by PE

  /// Places the hypercube on the first cube.pes PEs of the set's complete entangled groups: those
  /// of ranks without a missing PE, then those of other ranks, in the order of the set's ranks,
  /// then banks. Errors: ERR_SET (the set is not allocated), ERR_SHAPE (the error message names the
  /// missing chips by rank and bank).
  static Placement of(struct dpu_set_t set, const Hypercube &cube);

  /// Places the largest hypercube of the set; the placement is empty if no hypercube is possible.
  /// Errors: ERR_SET.
  static Placement largest(struct dpu_set_t set);

  PlacedEg eg_of(uint32_t pe) const { return egs[pe / kLanes]; }
};

}  // namespace pidcomm
