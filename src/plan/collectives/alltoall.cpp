// alltoall: block q of member p -> block p of member q.
//
// Source entangled group a and destination b exchange the 2^k x 2^k blocks between their selected lanes: the 2^k lines that hold word w
// of the blocks for b's members are, transposed, word w of the blocks from a's members. In place, (a, b) and (b, a) swap their tiles.
// Rotated, the PEs have put the blocks for each b into slots such that slot s of every lane is for the lane s indices further.
#include "plan/plan.h"

namespace pidcomm {

void sweep_alltoall(const Plan &plan, const LaneSplit &split, Sweep &sweep) {
  const uint64_t tile_bytes = plan.block_bytes << split.k;
  sweep.pass = sweep.rotates ? Pass::rotate : Pass::transpose;
  sweep.exchange = sweep.is_in_place();
  add_loops(sweep.outer, "set", split.sets, true, 0, true, 0);
  std::vector<Loop> &pairs = sweep.exchange ? sweep.ordered : sweep.outer;
  add_loops(pairs, "destination", split.members, false, tile_bytes, true, 0);
  add_loops(pairs, "source", split.members, true, 0, false, tile_bytes);
  sweep.in.streams = sweep.out.streams = {{1u << split.k, 0, plan.block_bytes}};
}

}  // namespace pidcomm
