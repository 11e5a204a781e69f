// Rank access: the only way to a rank's memory. No other part of the library can obtain a pointer into a region. The build chooses one of
// the source files in this folder as the implementation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "rank_access/sdk.h"

namespace pidcomm {

/// Whether the host's caches see the stores of PEs: true for emulated DIMMs, false for real DIMMs.
bool ranks_are_coherent();

/// Whether a job in the queues of ranks blocks all later work of all threads on these ranks. The queues of the SDK block only asynchronous
/// calls: synchronous calls of other threads overtake the job, or read memory that the job frees at its end.
bool rank_queues_block_later_work();

/// Finds the region of an allocated rank. The rank may then be acquired until the matching close; opens of a rank may nest. The calling
/// thread must not have acquired the rank. On real DIMMs the call waits for running PEs and earlier asynchronous work, and changes words of
/// MRAM for a moment: do not launch PEs during the call. *why receives a sentence without a full stop if there is more to report than the
/// status, such as words of MRAM that are undefined now. Errors: any dpu_error_t; throws std::bad_alloc.
dpu_error_t rank_access_open(struct dpu_rank_t *rank, std::string *why);
/// Closes a rank after an open that succeeded. The rank may have been freed since.
void rank_access_close(struct dpu_rank_t *rank);

/// Waits for running PEs of the rank and earlier asynchronous work, and makes the host the owner of the rank's MRAM. *base receives the
/// start of the rank's region, which is valid until the release. Requires an open rank.
dpu_error_t rank_access_acquire(struct dpu_rank_t *rank, std::byte **base);

/// Releases the rank.
void rank_access_release(struct dpu_rank_t *rank);

}  // namespace pidcomm
