// Calls of dpu.h other than transfers.
#pragma once

#include <cstdint>
#include <string>

#include "rank_access/sdk.h"

namespace pidcomm {

struct Placement;

/// Unless status is DPU_OK, throws ERR_SET or ERR_DEVICE with `doing` and the SDK's sentence.
void check_device(dpu_error_t status, const std::string &doing);

/// The same for a status that is an error. The sentence also names rank, chip, bank and PE of the first faults, and says if the reorder
/// program is loaded.
void check_pes(dpu_error_t status, std::string doing, struct dpu_set_t set, const Placement &placement);

/// Waits for earlier asynchronous work of the set. Errors: ERR_SET; ERR_DEVICE as check_pes, also if a PE was in fault before.
void wait_for_set(struct dpu_set_t set, const Placement &placement);

/// MRAM byte of the heap base: __sys_used_mram_end of the loaded program, 0 if none. Errors: ERR_DEVICE if PEs disagree.
uint64_t heap_base_of(const Placement &placement);

}  // namespace pidcomm
