// Removes lines from the caches, for coherence policy `hardware`. After each function, later loads
// read memory, and memory has all earlier stores to the lines.
#pragma once

#include <cstdint>
#include <vector>

#include "exec/lines.h"
#include "line_kernels/kernels.h"

namespace pidcomm {

/// Flushes the lines of a window from the caches, so that later loads read memory.
void flush_window(const Kernels &kernels, const std::vector<BankPair> &bank_pairs, uint64_t offset,
                  uint64_t bytes, int threads);

/// Policy `hardware` for memory that hosts share: removes the lines of `bytes` bytes from the
/// caches, and writes their changes to memory. Call it after writes, and before reads.
void flush_bytes(const Kernels &kernels, const void *begin, uint64_t bytes);

}  // namespace pidcomm
