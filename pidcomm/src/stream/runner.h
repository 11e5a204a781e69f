// Runs the pieces of a stream.
#pragma once

#include <cstdint>
#include <vector>

#include "exec/placement.h"
#include "pidcomm/stream.h"
#include "rank_access/sdk.h"
#include "stream/graph.h"

namespace pidcomm {

/// Returns the ranks first .. first + count - 1 of a set of ranks.
inline struct dpu_set_t ranks_of(struct dpu_set_t set, uint32_t first, uint32_t count) {
  set.list.ranks += first;
  set.list.nr_ranks = count;
  return set;
}

/// Runs all pieces, and adds those that have ended to `timeline`. The calling thread runs the host
/// passes, one at a time. It prefers the first host pass in recorded order that is ready; launches
/// start on all other ranks that are idle. On emulated DIMMs, each launch runs to its end before
/// the next work starts, so that host passes are measured without other load; it then takes its
/// modelled time on the clock of the timeline.
/// set: of ranks. placement: of the set. Errors: those of the pieces, thrown after the end of all
/// launches.
void run_pieces(const StreamGraph &graph, struct dpu_set_t set, const Placement &placement,
                std::vector<pidcomm_stream_piece> &timeline);

}  // namespace pidcomm
