// allreduce: every member receives the element-wise reduction of all vectors.
//
// Accumulate over the entangled groups of a set, combine over the selected lanes so that every lane holds its group's result, store the
// line to every entangled group of the set. All lines of a word are read before one is written, so in place is the same work.
#include "plan/plan.h"

namespace pidcomm {

void tile_allreduce(const Plan &, const LaneSplit &split, TilePlan &tile) {
  tile.pass = Pass::fold_lanes;
  add_loops(tile.outer, "set", split.sets, true, 0, true, 0);
  add_streams(tile.in, split.members);
  add_streams(tile.out, split.members);
}

}  // namespace pidcomm
