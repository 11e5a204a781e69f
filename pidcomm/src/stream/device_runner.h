// Carries out the pieces of a stream on a set.
#pragma once

#include <atomic>
#include <memory>
#include <new>

#include "base/error.h"
#include "exec/placement.h"
#include "stream/schedule.h"

namespace pidcomm {

/// Returns the ranks first .. first + count - 1 of a set of ranks.
inline struct dpu_set_t ranks_of(struct dpu_set_t set, uint32_t first, uint32_t count) {
  set.list.ranks += first;
  set.list.nr_ranks = count;
  return set;
}

/// Runs `work`. Its errors then begin with the step of the piece, and its ranks if it has any.
template <class Work>
void with_step(const StreamPiece &piece, const Work &work) {
  const auto fail_with = [&](pidcomm_status status, const char *sentence) {
    if (piece.ranks == 0) fail(status, "step ", piece.step, ": ", sentence);
    fail(status, "step ", piece.step, ", ranks ", piece.first_rank, " to ",
         piece.first_rank + piece.ranks - 1, " of the set: ", sentence);
  };
  try {
    work();
  } catch (const Error &error) {
    fail_with(error.status(), error.what());
  } catch (const std::bad_alloc &) {
    fail_with(PIDCOMM_ERR_MEMORY, "the host is out of memory");
  }
}

/// Returns a runner of the pieces on a set of ranks, which all must outlive it. The calling thread
/// runs the host passes. On emulated DIMMs, each launch runs to its end before the next work
/// starts, so that host passes are measured without other load; it then takes its modelled time
/// and launch_cost on the clock. Before a pass that follows another at once, the threads of the
/// pool are awake, as on DIMMs. Errors of the runner name the step and the ranks.
/// placement: of the set. is_cancelled: if it is true, starts no piece, but throws ERR_FUNCTION.
std::unique_ptr<PieceRunner> device_runner(const StreamGraph &graph, struct dpu_set_t set,
                                           const Placement &placement,
                                           const std::atomic<bool> &is_cancelled);

}  // namespace pidcomm
