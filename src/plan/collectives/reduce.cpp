// reduce: the group's host row receives the element-wise reduction of all members. Works like allreduce, but the result goes to the host
// row. If the sweep rotates lines, every lane contributes a piece of the row.
#include "plan/plan.h"

namespace pidcomm {

void sweep_reduce(const Plan &plan, const LaneSplit &split, Sweep &sweep) {
  sweep.pass = sweep.rotates ? Pass::reduce_rotated_to_host : Pass::reduce_to_host;
  add_loops(sweep.outer, "set", split.sets, true, 0, false, plan.out_row_bytes << (3 - split.k));
  add_streams(sweep.in, split.members);
  if (sweep.rotates) {
    add_slots(sweep, sweep.in, split, plan.block_bytes);
    add_lane_streams(sweep.out, split, plan.block_bytes >> split.k, plan.out_row_bytes);
  } else {
    sweep.out.streams = {{8u >> split.k, 0, plan.out_row_bytes}};
  }
}

}  // namespace pidcomm
