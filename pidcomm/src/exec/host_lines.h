// MRAM lines that a technique keeps in host memory between two sweeps. The owner of the memory is
// the caller; a HostLines only computes addresses.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/geometry.h"

namespace pidcomm {

/// A copy of MRAM lines in host memory, in host order. The copy has `words` lines of every
/// entangled group, at a stride of kLineStride, so that the lines of banks d and d + 4 are adjacent
/// as in a region.
struct HostLines {
  std::byte *base;
  uint64_t words;

  /// Returns the size of a copy of `words` lines of `egs` entangled groups.
  static uint64_t bytes_for(uint64_t egs, uint64_t words) {
    return (egs + 2 * kPairEgs - 1) / (2 * kPairEgs) * uint64_t{kPairEgs} * words * kLineStride;
  }
  std::byte *line(uint32_t eg, uint64_t word) const {
    const uint64_t pair = uint64_t{eg} / (2 * kPairEgs) * kPairEgs + eg % kPairEgs;
    return base + (pair * words + word) * kLineStride + eg / kPairEgs % 2 * kLineBytes;
  }
};

}  // namespace pidcomm
