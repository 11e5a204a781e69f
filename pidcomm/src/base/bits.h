// Functions that extract and deposit bits under a mask. Each file that includes this header gets
// its own local copies of these functions, because files compiled for different instruction sets
// must not share code.
#pragma once

#include <cstdint>

namespace pidcomm {
namespace {

/// Moves the bits of `index`, lowest bit first, to the positions of the bits that are set in
/// `mask`.
static constexpr uint32_t deposit_bits(uint32_t index, uint32_t mask) {
  uint32_t result = 0;
  for (uint32_t bit = 1; mask != 0; bit <<= 1) {
    const uint32_t lowest = mask & -mask;
    if (index & bit) result |= lowest;
    mask ^= lowest;
  }
  return result;
}

/// The inverse of deposit_bits: takes the bits of `value` at the positions that are set in `mask`,
/// lowest bit first, and returns them as adjacent bits from bit 0.
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
