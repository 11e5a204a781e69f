// gather: part q of a group's host row comes from member q. The pass handles each line inversely to scatter.
#include "plan/plan.h"

namespace pidcomm {

void sweep_gather(const Plan &plan, const Split &split, Sweep &sweep) {
  sweep.pass = Pass::to_host;
  add_loops(sweep.outer, "set", split.sets, true, 0, false, plan.row_stride_bytes * split.section.groups);
  add_loops(sweep.outer, "source", split.members, true, 0, false, plan.block_bytes * split.section.group_pes);
  add_section(sweep.in, split);
  add_pe_rows(sweep.out, split, plan.block_bytes, plan.row_stride_bytes);
}

}  // namespace pidcomm
