// broadcast: every member receives its group's host row.
//
// A line holds a word of the rows of the 2^(3-k) groups that share an entangled group, each repeated in the lanes of its group; it is
// made once and stored to every entangled group of the set.
#include "plan/plan.h"

namespace pidcomm {

const CollectiveRule kBroadcast = {
    PIDCOMM_BROADCAST, false, {Space::host, false}, {Space::mram, false}, false, [](const Plan &plan, const LaneSplit &split, TilePlan &tile) {
      tile.pass = Pass::replicate;
      add_loops(tile.outer, "set", split.sets, false, plan.in_row_bytes << (3 - split.k), true, 0);
      tile.in.streams = {{8u >> split.k, 0, plan.in_row_bytes}};
      add_streams(tile.out, split.members);
    }};

}  // namespace pidcomm
