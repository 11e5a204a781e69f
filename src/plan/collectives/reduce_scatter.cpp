// reduce_scatter: member q receives block q, reduced over all members.
//
// For destination entangled group b: accumulate, over the set's entangled groups, the 2^k lines that hold word w of the blocks of b's
// members; transpose the accumulators so that line i holds what lane i contributes; combine them. In place the result replaces block 0,
// which only b = 0 reads, so b = 0 goes first.
#include "plan/plan.h"

namespace pidcomm {

void tile_reduce_scatter(const Plan &plan, const LaneSplit &split, TilePlan &tile) {
  tile.pass = Pass::fold_blocks;
  add_loops(tile.outer, "set", split.sets, true, 0, true, 0);
  add_loops(plan.src == plan.dst ? tile.ordered : tile.outer, "destination", split.members, false, plan.block_bytes << split.k, true, 0);
  add_streams(tile.in, split.members);
  tile.in.streams.push_back({1u << split.k, 0, plan.block_bytes});
}

}  // namespace pidcomm
