// gather: part q of a group's host row comes from member q. The pass handles each line inversely to
// scatter.
#include "plan/plan.h"

namespace pidcomm {

void sweep_gather(const Plan &plan, const Split &split, Sweep &sweep) {
  const uint32_t blocks = plan.transposes ? plan.grouping.group_pes : 1;  // of a PE
  const uint64_t block_bytes = plan.block_bytes / blocks;
  sweep.pass = Pass::to_host;
  sweep.words = block_bytes / kWordBytes;
  if (blocks > 1)
    sweep.outer.push_back(
        {"block", blocks, 0, 0, block_bytes, block_bytes * plan.grouping.group_pes});
  add_loops(sweep.outer, "set", split.sets, true, 0, false, plan.row_stride_bytes);
  add_loops(sweep.outer, "source", split.members, true, 0, false, block_bytes);
  add_section(sweep.in, split);
  add_pe_rows(sweep.out, split, block_bytes * split.member_stride, plan.row_stride_bytes);
}

}  // namespace pidcomm
