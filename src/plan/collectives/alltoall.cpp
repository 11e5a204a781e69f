// alltoall: block q of member p -> block p of member q.
//
// Source entangled group a and destination b exchange the 2^k x 2^k blocks between their selected lanes: the 2^k lines that hold word w
// of the blocks for b's members are, transposed, word w of the blocks from a's members. In place, (a, b) and (b, a) swap their tiles.
#include "plan/plan.h"

namespace pidcomm {

void tile_alltoall(const Plan &plan, const LaneSplit &split, TilePlan &tile) {
  const uint64_t tile_bytes = plan.block_bytes << split.k;
  tile.pass = Pass::transpose;
  tile.exchange = plan.src == plan.dst;
  add_loops(tile.outer, "set", split.sets, true, 0, true, 0);
  std::vector<Loop> &pairs = tile.exchange ? tile.ordered : tile.outer;
  add_loops(pairs, "destination", split.members, false, tile_bytes, true, 0);
  add_loops(pairs, "source", split.members, true, 0, false, tile_bytes);
  tile.in.streams = tile.out.streams = {{1u << split.k, 0, plan.block_bytes}};
}

}  // namespace pidcomm
