// The streaming limit of a machine: copies as many bytes as a collective, in the order of a row of
// PIDCOMM_COPY_ORDERS.
#pragma once

#include <cstdint>
#include <vector>

#include "exec/lines.h"
#include "line_kernels/kernels.h"

namespace pidcomm {

/// A row of PIDCOMM_COPY_ORDERS.
struct CopyOrder {
  int code;
  uint32_t streams, strip_words, ahead_words, ahead_level;
};

/// Returns the row of PIDCOMM_COPY_ORDERS with this code, or null if the code is unknown.
const CopyOrder *copy_order_of(int copy_order);

/// Runs the pass of the streaming limit: for each PE, it loads bytes_read bytes at src and stores
/// bytes_written bytes at dst.
void run_limit_copy(const Kernels &kernels, const CopyOrder &order,
                    const std::vector<BankPair> &bank_pairs, uint64_t src, uint64_t bytes_read,
                    uint64_t dst, uint64_t bytes_written, int threads);

}  // namespace pidcomm
