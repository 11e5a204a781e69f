// Moves bytes between host buffers and PE memory.
#pragma once

#include <cstdint>
#include <vector>

#include "machine/rank.h"

namespace dpuemu {

enum class Move { kWrite, kBroadcast, kRead };
enum class Memory { kMram, kWram };

struct RankBuffers {
  Rank *rank;
  PreparedBuffers buffers;
};

struct Transfer {
  Move move;
  Memory memory;
  uint64_t offset, length;  // in MRAM multiples of 8; offset + length is at most the memory's size
  std::vector<RankBuffers> ranks;
  bool is_of_fifo = false;        // a FIFO orders the accesses of host and PE
  bool is_beside_queues = false;  // it waits neither for queued work nor for running PEs
};

/// Moves the bytes. Requires that every region is mapped and owned by the host, and that every WRAM
/// is accessible. For kBroadcast, all DPUs have the same buffer. The transfer skips DPUs without a
/// buffer.
void move_bytes(const Transfer &transfer);

/// Rounds the offset and the length of an MRAM transfer down to multiples of 8, as the SDK does
/// (sources of 2021.3: it moves length / 8 words). If this changes a value, a line on stderr at the
/// end of the process reports the transfer; in strict mode, changes nothing and returns
/// DPU_ERR_INVALID_MRAM_ACCESS.
dpu_error_t round_to_words(uint64_t &offset, uint64_t &length);

}  // namespace dpuemu
