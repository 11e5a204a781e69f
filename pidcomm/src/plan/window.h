// Windows in MRAM: their MRAM bytes, and their check.
#pragma once

#include <cstdint>

#include "plan/plan.h"

namespace pidcomm {

/// Returns the MRAM byte at which a window begins. window: an offset from heap_base, or
/// PIDCOMM_MRAM_WINDOW plus an MRAM byte. Errors: ERR_WINDOW unless the window begins at a multiple
/// of 8 and ends within MRAM. The error sentence contains `name` (name of the collective) and
/// `side` (source or destination).
uint64_t checked_window(const char *name, const char *side, uint64_t window, uint64_t size_bytes,
                        uint64_t heap_base);

/// Returns the offset of an MRAM byte from the heap base; it is negative before the heap.
int64_t heap_offset(const Plan &plan, uint64_t mram_byte);

}  // namespace pidcomm
