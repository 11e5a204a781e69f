// broadcast: every member receives its group's host row.
//
// Works like scatter, but all lanes of a group read one row. The pass makes each line once and stores it to every entangled group of the
// set.
#include "plan/plan.h"

namespace pidcomm {

void sweep_broadcast(const Plan &plan, const LaneSplit &split, Sweep &sweep) {
  sweep.pass = Pass::from_host;
  add_loops(sweep.outer, "set", split.sets, false, plan.in_row_bytes << (3 - split.k), true, 0);
  add_lane_streams(sweep.in, split, 0, plan.in_row_bytes);
  add_streams(sweep.out, split.members);
}

}  // namespace pidcomm
