// Maps the PEs of a hypercube to DPUs of a set.
#pragma once

#include <cstdint>
#include <vector>

#include "rank_access/sdk.h"
#include "topology/hypercube.h"

namespace pidcomm {

/// The ways in which a hypercube uses an entangled group.
enum class EgUse : uint32_t {
  whole,  // all 8 PEs, in the order of the set's ranks, then banks
  last,   // the first such group becomes the partial last group if there are not enough complete groups
  unused,
  count,
};

/// Returns the use of an entangled group. lanes: bit l is set if the set has lane l of the group. A partial last group needs lanes 0 .. pes
/// % 8 - 1.
EgUse use_of_eg(uint32_t lanes, uint32_t pes);

/// An entangled group of the set: a bank of one of its ranks.
struct PlacedEg {
  uint32_t rank, bank;  // index into Placement::ranks; 0..7
};

/// PE p = 8 * e + lane is the DPU of chip `lane` in bank egs[e].bank of ranks[egs[e].rank]. Only the last entangled group may have fewer
/// than 8 PEs; it then has lanes 0 .. pes % 8 - 1.
struct Placement {
  std::vector<struct dpu_rank_t *> ranks;
  std::vector<PlacedEg> egs;
  std::vector<struct dpu_t *> dpus;  // by PE

  /// Places the first cube.pes PEs of the set: its complete entangled groups, in the order of its ranks, then banks. Errors: ERR_SET (the
  /// set is not allocated), ERR_SHAPE (the error message names the missing chips by rank and bank).
  static Placement of(struct dpu_set_t set, const Hypercube &cube);
};

}  // namespace pidcomm
