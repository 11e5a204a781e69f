// reduce: the group's host row receives the element-wise reduction of all members. As allreduce, but the result leaves through the host.
#include "plan/plan.h"

namespace pidcomm {

void tile_reduce(const Plan &plan, const LaneSplit &split, TilePlan &tile) {
  tile.pass = Pass::fold_to_host;
  add_loops(tile.outer, "set", split.sets, true, 0, false, plan.out_row_bytes << (3 - split.k));
  add_streams(tile.in, split.members);
  tile.out.streams = {{8u >> split.k, 0, plan.out_row_bytes}};
}

}  // namespace pidcomm
