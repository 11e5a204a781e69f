// The door to a rank's memory. One of the files beside this header implements it, chosen at build time; nothing else in the library can
// obtain a pointer into a region.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "rank_access/sdk.h"

namespace pidcomm {

/// A rank's region as the host sees it while it owns the rank's MRAM.
struct RankWindow {
  std::byte *base = nullptr;
};

/// Whether the PEs' stores go through the host's caches: true for emulated DIMMs, false for real ones.
bool rank_windows_are_coherent();

/// Whether a job in the queues of ranks holds back all that is asked of them later, by any thread. The queues of the SDK do so for its
/// asynchronous calls only: synchronous ones of other threads pass, or look at what a job that ends takes with it.
bool rank_queues_hold_back();

/// Finds the region of an allocated rank, for windows until the matching close; open calls of a rank nest. No window may be held by the
/// calling thread. On DIMMs it waits for running PEs and earlier asynchronous work, and words of MRAM change for a moment: launch no PE
/// meanwhile.
/// why: a sentence without a full stop if there is more to say than the status, as which words of MRAM are undefined now.
/// Errors: any dpu_error_t; throws std::bad_alloc.
dpu_error_t rank_window_open(struct dpu_rank_t *rank, std::string *why);
/// After an open that succeeded, also when the rank has been freed since.
void rank_window_close(struct dpu_rank_t *rank);

/// Waits for running PEs of the rank and earlier asynchronous work, and makes the host the owner of the rank's MRAM. Requires an open rank.
dpu_error_t rank_window_acquire(struct dpu_rank_t *rank, RankWindow *window);

/// Gives the rank back.
void rank_window_release(struct dpu_rank_t *rank);

}  // namespace pidcomm
