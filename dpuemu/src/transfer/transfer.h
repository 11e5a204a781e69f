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
  uint64_t offset;  // any byte offset in the MRAM or WRAM
  uint64_t length;  // any number of bytes; offset + length is at most the size of the MRAM or WRAM
  std::vector<RankBuffers> ranks;
};

/// Moves the bytes. Requires that every region is mapped and owned by the host, and that every WRAM
/// is accessible. For kBroadcast, all DPUs have the same buffer. The transfer skips DPUs without a
/// buffer.
void move_bytes(const Transfer &transfer);

}  // namespace dpuemu
