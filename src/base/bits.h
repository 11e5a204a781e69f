// Functions that extract and deposit bits under a mask. Each file that includes this header gets local functions, because the linker must
// not share code between instruction sets.
#pragma once

#include <cstdint>

namespace pidcomm {
namespace {

/// Moves the bits of `index` to the bit positions that are set in `mask`, lowest first.
static inline uint32_t deposit_bits(uint32_t index, uint32_t mask) {
  uint32_t result = 0;
  for (uint32_t bit = 1; mask != 0; bit <<= 1) {
    const uint32_t lowest = mask & -mask;
    if (index & bit) result |= lowest;
    mask ^= lowest;
  }
  return result;
}

/// The inverse of deposit_bits: moves the bits of `value` that are set in `mask` next to each other, lowest first.
static inline uint32_t extract_bits(uint32_t value, uint32_t mask) {
  uint32_t result = 0;
  for (uint32_t bit = 1; mask != 0; bit <<= 1) {
    const uint32_t lowest = mask & -mask;
    if (value & lowest) result |= bit;
    mask ^= lowest;
  }
  return result;
}

}  // namespace
}  // namespace pidcomm
