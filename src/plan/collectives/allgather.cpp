// allgather: every member receives all contributions in member order.
//
// A line of source entangled group a holds a word of 2^k members of 2^(3-k) groups. For each of the 2^k: the line in which every lane has
// its own group's word, stored to every entangled group of the set. In place the contribution is block 0 of the window, so a = 0, whose
// stores replace it, goes last.
#include "plan/plan.h"

namespace pidcomm {

void tile_allgather(const Plan &plan, const LaneSplit &split, TilePlan &tile) {
  tile.pass = Pass::spread;
  tile.ordered_downwards = plan.src == plan.dst;
  add_loops(tile.outer, "set", split.sets, true, 0, true, 0);
  add_loops(tile.ordered_downwards ? tile.ordered : tile.outer, "source", split.members, true, 0, false, plan.block_bytes << split.k);
  add_streams(tile.out, split.members);
  tile.out.streams.push_back({1u << split.k, 0, plan.block_bytes});
}

}  // namespace pidcomm
