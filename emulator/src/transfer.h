// Moving bytes between host buffers and the regions of ranks.
#pragma once

#include <cstdint>
#include <vector>

#include "rank.h"

namespace dpuemu {

enum class Move { kWrite, kBroadcast, kRead };

struct RankBuffers {
  Rank *rank;
  PreparedBuffers buffers;
};

struct Transfer {
  Move move;
  uint64_t mram_offset;  // bytes, any
  uint64_t length;       // bytes, any; mram_offset + length <= 64 MiB
  std::vector<RankBuffers> ranks;
};

/// Moves the bytes; every region is mapped and owned by the host. kBroadcast: all buffers are the same. DPUs without a buffer keep every
/// byte of their MRAM.
void move_bytes(const Transfer &transfer);

}  // namespace dpuemu
