// broadcast: every member receives its group's host row.
//
// As scatter, but the lanes of a group read the same row, and a line is made once and stored to every entangled group of the set.
#include "plan/plan.h"

namespace pidcomm {

void tile_broadcast(const Plan &plan, const LaneSplit &split, TilePlan &tile) {
  tile.pass = Pass::from_host;
  add_loops(tile.outer, "set", split.sets, false, plan.in_row_bytes << (3 - split.k), true, 0);
  add_lane_streams(tile.in, split, 0, plan.in_row_bytes);
  add_streams(tile.out, split.members);
}

}  // namespace pidcomm
