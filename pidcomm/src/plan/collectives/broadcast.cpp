// broadcast: every member receives its group's host row.
//
// Works like scatter, but all lanes of a group read one row. The pass makes each line once and
// stores it to every entangled group of the set. This describes shapes with a lane split. Without a
// lane split, a section (see Split) takes the place of an entangled group.
#include "plan/plan.h"

namespace pidcomm {

void sweep_broadcast(const Plan &plan, const Split &split, Sweep &sweep) {
  sweep.pass = Pass::from_host;
  add_loops(sweep.outer, "set", split.sets, false, plan.row_stride_bytes, true, 0);
  add_pe_rows(sweep.in, split, 0, plan.row_stride_bytes);
  add_members(sweep.out, split);
  add_section(sweep.out, split);
}

}  // namespace pidcomm
