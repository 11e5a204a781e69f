// The host passes: carry out sweeps or the general form of a plan over acquired ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "line_kernels/kernels.h"
#include "plan/plan.h"

namespace pidcomm {

/// Lines of every entangled group in host memory, in host order: `words` of each, at a stride of kLineStride, so that the lines of banks d
/// and d + 4 are neighbours as in a region.
struct HostLines {
  std::byte *base;
  uint64_t words;

  static uint64_t bytes_for(uint64_t egs, uint64_t words);
  std::byte *line(uint32_t eg, uint64_t word) const;
};

/// Everything a pass touches. eg_base[e] is the line of MRAM word 0 of entangled group e.
struct HostPass {
  const Plan &plan;
  const Kernels &kernels;
  const std::vector<std::byte *> &eg_base;
  std::byte *host;       // rows of scatter, gather, reduce, broadcast; only read by scatter and broadcast
  HostLines host_lines;  // if the plan goes via host memory
  int threads;
};

/// The functions for a plan's element type and operator; null if it does not reduce.
const Reducer *reducer_of(const Kernels &kernels, const Plan &plan);

/// Carries out one sweep of the plan. Returns the bytes of host memory used for item buffers, all threads.
uint64_t run_sweep(const HostPass &pass, const Sweep &sweep);

/// Carries out the general path. Returns the same count.
uint64_t run_general(const HostPass &pass, const GeneralForm &form);

/// A bank pair: the entangled groups of banks d and d + 4, whose lines are neighbours. `banks` is 2, or 1 if the first is unpaired.
struct BankPair {
  std::byte *base;
  uint32_t banks;
};
std::vector<BankPair> bank_pairs_of(std::vector<std::byte *> eg_base);

/// Flushes the lines of a window from the caches; later loads read memory.
void flush_window(const Kernels &kernels, const std::vector<BankPair> &bank_pairs, uint64_t offset, uint64_t bytes, int threads);

/// A row of PIDCOMM_COPY_ORDERS.
struct CopyOrder {
  int code;
  uint32_t streams, turn_words, ahead_words, ahead_level;
};

/// Null if the code is unknown.
const CopyOrder *copy_order_of(int copy_order);

/// The streaming limit: bytes_read per entangled group and lane from src, bytes_written to dst.
void run_limit_copy(const Kernels &kernels, const CopyOrder &order, const std::vector<BankPair> &bank_pairs, uint64_t src,
                    uint64_t bytes_read, uint64_t dst, uint64_t bytes_written, int threads);

/// Whether the host rows that a plan writes are too large for the caches.
bool stores_rows_non_temporally(const Plan &plan);

/// Words (1 to 8) from `row` to the next multiple of a line, or 8 if `row` is not aligned to a word.
uint32_t words_to_line(const void *row);

/// A stream of lines of one entangled group at a word: where its next line is and how many words the run still has.
struct LinePosition {
  std::byte *line;
  uint32_t run_words;
};
LinePosition position_of(std::byte *eg_base, uint64_t word);

}  // namespace pidcomm
