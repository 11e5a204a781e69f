// The check of a window in MRAM.
#pragma once

#include <cstdint>

namespace pidcomm {

/// Errors: ERR_WINDOW unless offset is a multiple of 8 and the window ends within MRAM. The error
/// sentence contains `name` (name of the collective) and `side` (source or destination). heap_base:
/// MRAM byte address of offset 0.
void check_window(const char *name, const char *side, uint64_t offset, uint64_t size_bytes,
                  uint64_t heap_base);

}  // namespace pidcomm
