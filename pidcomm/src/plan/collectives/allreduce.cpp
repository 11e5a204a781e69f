// allreduce: every member receives the element-wise reduction of all vectors.
//
// The pass accumulates lines over the entangled groups of a set. Then it combines the lanes that
// the mask selects, so that every lane holds its group's result, and stores the line to every
// entangled group of the set. The pass reads all lines of a word before it writes a line of this
// word, so a call in place needs no other work. If the sweep rotates lines, every vector has 2^k
// slots: each lane reduces one slot, and the pass sends the reduced slot to all lanes. This
// describes shapes with a lane split. Without a lane split, a section (see Split) takes the place
// of an entangled group.
#include "plan/plan.h"

namespace pidcomm {

void sweep_allreduce(const Plan &plan, const Split &split, Sweep &sweep) {
  sweep.pass = sweep.rotates            ? Pass::reduce_rotated_replicate
               : split.has_lane_split() ? Pass::reduce_lanes
                                        : Pass::reduce_rows;
  add_loops(sweep.outer, "set", split.sets, true, 0, true, 0);
  for (Side *side : {&sweep.in, &sweep.out}) {
    add_members(*side, split);
    if (sweep.rotates) add_slots(sweep, *side, split, plan.block_bytes);
    add_section(*side, split);
  }
}

}  // namespace pidcomm
