// Where the lines of a rank are in memory: the line of a word in an entangled group, and the
// entangled groups whose lines are adjacent. Computes addresses; reads and writes no line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/geometry.h"

namespace pidcomm {

/// A bank pair: the entangled groups of banks d and d + 4, whose lines are adjacent. `banks` is 2;
/// if the hypercube does not use the second entangled group of the pair, `banks` is 1.
struct BankPair {
  std::byte *base;
  uint32_t banks;
};
std::vector<BankPair> bank_pairs_of(std::vector<std::byte *> eg_base);

/// A position in a stream of lines of one entangled group: the next line of the stream, and the
/// number of words until the end of the run that contains this line.
struct LinePosition {
  std::byte *line;
  uint32_t run_words;
};
inline LinePosition position_of(std::byte *eg_base, uint64_t word) {
  return {eg_base + word_offset(word), static_cast<uint32_t>(kRunWords - word % kRunWords)};
}

}  // namespace pidcomm
