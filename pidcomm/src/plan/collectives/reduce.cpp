// reduce: the group's host row receives the element-wise reduction of all members. Works like
// allreduce, but the result goes to the host row. If the sweep rotates lines, every lane
// contributes a piece of the row. This describes shapes with a lane split. Without a lane split, a
// section (see Split) takes the place of an entangled group.
#include "plan/plan.h"

namespace pidcomm {

void sweep_reduce(const Plan &plan, const Split &split, Sweep &sweep) {
  sweep.pass = sweep.rotates            ? Pass::reduce_rotated_to_host
               : split.has_lane_split() ? Pass::reduce_to_host
                                        : Pass::reduce_rows_to_host;
  add_loops(sweep.outer, "set", split.sets, true, 0, false, plan.row_stride_bytes);
  add_members(sweep.in, split);
  if (sweep.rotates) {
    add_slots(sweep, sweep.in, split, plan.block_bytes);
    add_pe_rows(sweep.out, split, plan.block_bytes >> split.k, plan.row_stride_bytes);
  } else {
    add_section(sweep.in, split);
    sweep.out.streams = {{split.section.groups, 0, plan.row_stride_bytes * split.group_stride}};
  }
}

}  // namespace pidcomm
