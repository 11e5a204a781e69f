// Rank access: the only part of the library that can obtain a pointer into the memory region of a
// rank. The build chooses one of the source files in this folder as the implementation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "rank_access/sdk.h"

namespace pidcomm {

/// Whether the host's caches see the stores of PEs: true for emulated DIMMs, false for real DIMMs.
bool ranks_are_coherent();

/// Whether a job in the queues of ranks blocks all later work of all threads on these ranks. The
/// queues of the SDK block only asynchronous calls. Synchronous calls of other threads overtake the
/// job, or read memory that the job frees at its end.
bool rank_queues_block_later_work();

/// Returns a number that changes whenever the loaded program of any PE changes, or nothing if the
/// SDK does not report such changes. If the SDK reports changes, programs exist until the process
/// ends; otherwise a load frees the earlier program.
std::optional<uint64_t> program_changes();

/// Whether launches take modelled time: true for emulated DIMMs, false for real DIMMs.
bool launches_are_modelled();
/// Returns the modelled seconds of the last launch of a set. Requires launches_are_modelled().
/// Errors: ERR_DEVICE.
double modelled_launch_seconds(struct dpu_set_t set);

/// Finds the region of an allocated rank. After this call, the rank may be acquired until the
/// matching rank_access_close. Several opens of one rank may nest. The calling thread must not have
/// acquired the rank before. On real DIMMs the call waits for running PEs and earlier asynchronous
/// work, and changes words of MRAM for a moment: do not launch PEs during the call. If there are
/// facts to report beyond the status, such as words of MRAM that are undefined now, the call stores
/// them in *why as a sentence without a full stop. Errors: any dpu_error_t; throws std::bad_alloc.
dpu_error_t rank_access_open(struct dpu_rank_t *rank, std::string *why);
/// Closes a rank after an open that succeeded. The program may have freed the rank after the open.
void rank_access_close(struct dpu_rank_t *rank);

/// Waits for running PEs of the rank and earlier asynchronous work, and makes the host the owner of
/// the rank's MRAM. Stores the start address of the rank's region in *base. The address is valid
/// until rank_access_release. Requires an open rank.
dpu_error_t rank_access_acquire(struct dpu_rank_t *rank, std::byte **base);

/// Ends the access that rank_access_acquire began.
void rank_access_release(struct dpu_rank_t *rank);

}  // namespace pidcomm
