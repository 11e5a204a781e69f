// allreduce: every member receives the element-wise reduction of all vectors.
//
// The pass accumulates lines over the entangled groups of a set, combines them over the selected lanes so that every lane holds its group's
// result, and stores the line to every entangled group of the set. It reads all lines of a word before it writes one, so a call in place
// does the same work. If the sweep rotates, every vector has 2^k slots: each lane reduces one slot, which goes back to all lanes.
#include "plan/plan.h"

namespace pidcomm {

void sweep_allreduce(const Plan &plan, const LaneSplit &split, Sweep &sweep) {
  sweep.pass = sweep.rotates ? Pass::reduce_rotated_replicate : Pass::reduce_lanes;
  add_loops(sweep.outer, "set", split.sets, true, 0, true, 0);
  for (Side *side : {&sweep.in, &sweep.out}) {
    add_streams(*side, split.members);
    if (sweep.rotates) add_slots(sweep, *side, split, plan.block_bytes);
  }
}

}  // namespace pidcomm
