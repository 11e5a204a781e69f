// alltoall: block q of member p -> block p of member q.
//
// The selected lanes of source entangled group a send 2^k x 2^k blocks to the selected lanes of
// destination entangled group b. The 2^k lines of a with word w of these blocks form a tile; the
// pass transposes the tile and stores its lines at b. In place, the pass swaps the tiles of (a, b)
// and (b, a). If the sweep rotates lines, the PEs have put the blocks for each b into slots: slot s
// of the lane with index c is for the lane with index c + s (mod 2^k). This describes shapes with a
// lane split. Without a lane split, a section (see Split) takes the place of an entangled group.
#include "plan/plan.h"

namespace pidcomm {

void sweep_alltoall(const Plan &plan, const Split &split, Sweep &sweep) {
  sweep.pass = sweep.rotates            ? Pass::rotate
               : split.has_lane_split() ? Pass::transpose
                                        : Pass::merge;
  sweep.exchange = sweep.is_in_place();
  add_loops(sweep.outer, "set", split.sets, true, 0, true, 0);
  std::vector<Loop> &pairs = sweep.exchange ? sweep.ordered : sweep.outer;
  add_loops(pairs, "destination", split.members, false, plan.block_bytes, true, 0);
  add_loops(pairs, "source", split.members, true, 0, false, plan.block_bytes);
  for (Side *side : {&sweep.in, &sweep.out}) {
    add_blocks(*side, split, plan.block_bytes);
    add_section(*side, split);
  }
}

}  // namespace pidcomm
