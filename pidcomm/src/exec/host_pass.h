// The host passes: functions that carry out the sweeps of a plan on acquired ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "line_kernels/kernels.h"
#include "plan/plan.h"

namespace pidcomm {

class PreparedSweep;

/// A copy of MRAM lines in host memory, in host order. The copy has `words` lines of every
/// entangled group, at a stride of kLineStride, so that the lines of banks d and d + 4 are adjacent
/// as in a region.
struct HostLines {
  std::byte *base;
  uint64_t words;

  static uint64_t bytes_for(uint64_t egs, uint64_t words);
  std::byte *line(uint32_t eg, uint64_t word) const;
};

/// The arguments of a pass. eg_base[e] is the line of MRAM word 0 of entangled group e.
struct HostPass {
  const Plan &plan;
  const Kernels &kernels;
  const std::vector<std::byte *> &eg_base;
  std::byte *host;  // host rows of scatter, gather, reduce, broadcast; scatter and broadcast only
                    // read the rows
  HostLines host_lines;  // used if the plan first copies the input to host memory
  int threads;
};

/// Returns the functions for a plan's element type and operator, or null if the plan does not
/// reduce.
const Reducer *reducer_of(const Kernels &kernels, const Plan &plan);

/// Carries out one sweep of the plan. Returns the number of bytes of host memory that all threads
/// together use for buffers.
uint64_t run_sweep(const HostPass &pass, const PreparedSweep &prepared);

/// A bank pair: the entangled groups of banks d and d + 4, whose lines are adjacent. `banks` is 2;
/// if the hypercube does not use the second entangled group of the pair, `banks` is 1.
struct BankPair {
  std::byte *base;
  uint32_t banks;
};
std::vector<BankPair> bank_pairs_of(std::vector<std::byte *> eg_base);

/// Flushes the lines of a window from the caches, so that later loads read memory.
void flush_window(const Kernels &kernels, const std::vector<BankPair> &bank_pairs, uint64_t offset,
                  uint64_t bytes, int threads);

/// Policy `hardware` for memory that hosts share: removes the lines of `bytes` bytes from the
/// caches, and writes their changes to memory. Call it after writes, and before reads.
void flush_bytes(const Kernels &kernels, const void *begin, uint64_t bytes);

/// A row of PIDCOMM_COPY_ORDERS.
struct CopyOrder {
  int code;
  uint32_t streams, turn_words, ahead_words, ahead_level;
};

/// Returns the row of PIDCOMM_COPY_ORDERS with this code, or null if the code is unknown.
const CopyOrder *copy_order_of(int copy_order);

/// Runs the pass of the streaming limit: for each PE, it loads bytes_read bytes at src and stores
/// bytes_written bytes at dst.
void run_limit_copy(const Kernels &kernels, const CopyOrder &order,
                    const std::vector<BankPair> &bank_pairs, uint64_t src, uint64_t bytes_read,
                    uint64_t dst, uint64_t bytes_written, int threads);

/// Whether the host rows that a plan writes are too large for the caches.
bool stores_rows_non_temporally(const Plan &plan);

/// Returns `threads`, or 1 if a pass moves so few bytes of lines that waking other threads takes
/// more time than it saves.
int useful_threads(uint64_t bytes, int threads);
/// Does the same for the passes of a plan.
int useful_threads_of(const Plan &plan, int threads);

/// Returns the number of words (1 to 8) from `row` to the next line boundary, or 8 if `row` is not
/// aligned to a word.
uint32_t words_to_line(const void *row);

/// A position in a stream of lines of one entangled group: the next line of the stream, and the
/// number of words until the end of the run that contains this line.
struct LinePosition {
  std::byte *line;
  uint32_t run_words;
};
LinePosition position_of(std::byte *eg_base, uint64_t word);

}  // namespace pidcomm
