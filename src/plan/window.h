// The rule that every window in MRAM keeps.
#pragma once

#include <cstdint>

namespace pidcomm {

/// Errors: ERR_WINDOW unless offset is a multiple of 8 and the window ends within MRAM. name, side: whose and which window, for the
/// sentence. heap_base: MRAM byte that offset 0 stands for.
void check_window(const char *name, const char *side, uint64_t offset, uint64_t size_bytes, uint64_t heap_base);

}  // namespace pidcomm
