// What the library asks of dpu.h besides transfers.
#pragma once

#include <cstdint>
#include <string>

#include "door/sdk.h"

namespace pidcomm {

struct Placement;

/// Where MRAM starts in the address space of symbols.
inline constexpr uint32_t kMramAddress = 0x08000000;

/// Throws ERR_SET or ERR_DEVICE with the SDK's sentence and what was being done, unless status is DPU_OK.
void check_device(dpu_error_t status, const std::string &doing);

/// Waits for earlier asynchronous work of the set. Errors: ERR_SET; ERR_DEVICE naming rank and PE of every fault.
void wait_for_set(struct dpu_set_t set, const Placement &placement);

/// MRAM byte of the heap base: __sys_used_mram_end of the loaded program, 0 if none. Errors: ERR_DEVICE if PEs disagree.
uint64_t heap_base_of(const Placement &placement);

}  // namespace pidcomm
