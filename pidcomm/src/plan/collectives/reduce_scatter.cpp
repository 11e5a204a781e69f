// reduce_scatter: member q receives block q, reduced over all members.
//
// For destination entangled group b, the pass accumulates the 2^k lines with word w of the blocks
// of b's members, over all entangled groups of the set. The pass transposes the accumulators, so
// that line i holds the contributions of lane i, and combines these lines. In place, the result
// replaces block 0. Block 0 is input only for b = 0, so the sweep handles b = 0 first. If the sweep
// rotates lines, slot s of the lane with index c is for the lane with index c + s (mod 2^k), and
// the pass rotates lines instead of transposing them. This describes shapes with a lane split.
// Without a lane split, a section (see Split) takes the place of an entangled group.
#include "plan/plan.h"

namespace pidcomm {

void sweep_reduce_scatter(const Plan &plan, const Split &split, Sweep &sweep) {
  sweep.pass = sweep.rotates            ? Pass::reduce_rotated
               : split.has_lane_split() ? Pass::reduce_blocks
                                        : Pass::reduce_rows;
  add_loops(sweep.outer, "set", split.sets, true, 0, true, 0);
  add_loops(sweep.is_in_place() ? sweep.ordered : sweep.outer, "destination", split.members, false,
            plan.block_bytes, true, 0);
  add_members(sweep.in, split);
  add_blocks(sweep.in, split, plan.block_bytes);
  add_section(sweep.in, split);
  add_section(sweep.out, split);
}

}  // namespace pidcomm
