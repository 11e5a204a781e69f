// allgather: every member receives all contributions in member order.
//
// A line of source entangled group a holds words of 2^(3-k) groups: one word of each of 2^k members
// per group. For each of these 2^k members, the pass makes a line in which every lane has the word
// of its group, and stores the line to every entangled group of the set. In place, the contribution
// of a member is block 0 of its window. The stores for a = 0 replace block 0, so the sweep handles
// a = 0 last. If the sweep rotates, line s goes to slot s of every member, and the PEs then put the
// slots in order. This describes shapes with a lane split. Without a lane split, a section (see
// Split) takes the place of an entangled group.
#include "plan/plan.h"

namespace pidcomm {

/* [collective] */
void sweep_allgather(const Plan &plan, const Split &split, Sweep &sweep) {
  sweep.pass = sweep.rotates            ? Pass::replicate_rotated
               : split.has_lane_split() ? Pass::replicate
                                        : Pass::merge;
  sweep.ordered_downwards = sweep.is_in_place();
  add_loops(sweep.outer, "set", split.sets, true, 0, true, 0);
  add_loops(sweep.ordered_downwards ? sweep.ordered : sweep.outer, "source", split.members, true, 0,
            false, plan.block_bytes);
  add_section(sweep.in, split);
  add_members(sweep.out, split);
  add_blocks(sweep.out, split, plan.block_bytes);
  add_section(sweep.out, split);
}
/* [end] */

}  // namespace pidcomm
