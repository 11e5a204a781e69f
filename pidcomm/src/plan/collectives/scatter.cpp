// scatter: member q receives part q of its group's host row.
//
// Eight words of each of eight PEs form a tile. Three lane exchanges and one domain transfer for
// each line turn the tile, 64 contiguous bytes per PE, into eight lines.
#include "plan/plan.h"

namespace pidcomm {

void sweep_scatter(const Plan &plan, const Split &split, Sweep &sweep) {
  sweep.pass = Pass::from_host;
  add_loops(sweep.outer, "set", split.sets, false, plan.row_stride_bytes, true, 0);
  add_loops(sweep.outer, "destination", split.members, false, plan.block_bytes, true, 0);
  add_pe_rows(sweep.in, split, plan.block_bytes * split.member_stride, plan.row_stride_bytes);
  add_section(sweep.out, split);
}

}  // namespace pidcomm
