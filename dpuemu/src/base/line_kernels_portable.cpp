// The loops in plain C++, one line at a time. Vector instruction sets use these loops for words
// that do not fill a step.
#include <bit>
#include <cstring>

#include "base/address_map.h"
#include "base/line_kernels.h"

namespace dpuemu {
namespace {

static_assert(std::endian::native == std::endian::little,
              "byte r of a word is its r-th byte in memory");

using Word = uint64_t;

/// Byte j of word i <-> byte i of word j, by exchanging halves of words, then quarters of words,
/// then bytes.
void transpose_bytes(Word (&x)[8]) {
  constexpr struct {
    int distance;
    Word mask;
  } kStages[] = {{4, 0x00000000FFFFFFFF}, {2, 0x0000FFFF0000FFFF}, {1, 0x00FF00FF00FF00FF}};
  for (const auto &stage : kStages)
    for (int i = 0; i < 8; ++i) {
      if (i & stage.distance) continue;
      const int shift = 8 * stage.distance;
      const Word exchanged = ((x[i] >> shift) ^ x[i + stage.distance]) & stage.mask;
      x[i + stage.distance] ^= exchanged;
      x[i] ^= exchanged << shift;
    }
}

Word bytes_of_lanes(uint8_t lanes) {
  Word mask = 0;
  for (int chip = 0; chip < 8; ++chip)
    if (lanes >> chip & 1) mask |= Word{0xFF} << (8 * chip);
  return mask;
}

void store_line(uint8_t *line, const Word (&beats)[8], Word keep_mask) {
  for (int r = 0; r < 8; ++r) {
    Word old = 0;
    if (keep_mask != 0) std::memcpy(&old, line + 8 * r, sizeof old);
    const Word merged = (old & keep_mask) | (beats[r] & ~keep_mask);
    std::memcpy(line + 8 * r, &merged, sizeof merged);
  }
}

void write(const RunSlice &slice) {
  for (int bank = 0; bank < 2; ++bank) {
    if (slice.lanes[bank] == 0) continue;
    const Word keep_mask = ~bytes_of_lanes(slice.lanes[bank]);
    for (uint64_t w = 0; w < slice.words; ++w) {
      Word x[8];
      for (int chip = 0; chip < 8; ++chip)
        std::memcpy(&x[chip], slice.host[bank][chip] + kWordBytes * w, sizeof x[chip]);
      transpose_bytes(x);
      store_line(slice.lines + kLineBytes * static_cast<uint64_t>(bank) + kLineStride * w, x,
                 keep_mask);
    }
  }
}

void broadcast(const RunSlice &slice) {
  for (int bank = 0; bank < 2; ++bank) {
    if (slice.lanes[bank] == 0) continue;
    const Word keep_mask = ~bytes_of_lanes(slice.lanes[bank]);
    for (uint64_t w = 0; w < slice.words; ++w) {
      Word beats[8];
      for (uint64_t r = 0; r < 8; ++r)
        beats[r] = slice.host[0][0][kWordBytes * w + r] * Word{0x0101010101010101};
      store_line(slice.lines + kLineBytes * static_cast<uint64_t>(bank) + kLineStride * w, beats,
                 keep_mask);
    }
  }
}

void read(const RunSlice &slice, bool) {
  for (int bank = 0; bank < 2; ++bank) {
    if (slice.lanes[bank] == 0) continue;
    for (uint64_t w = 0; w < slice.words; ++w) {
      Word x[8];
      std::memcpy(x, slice.lines + kLineBytes * static_cast<uint64_t>(bank) + kLineStride * w,
                  sizeof x);
      transpose_bytes(x);
      for (int chip = 0; chip < 8; ++chip)
        std::memcpy(slice.host[bank][chip] + kWordBytes * w, &x[chip], sizeof x[chip]);
    }
  }
}

}  // namespace

void portable_read_lane(const uint8_t *lines, uint32_t chip, uint32_t words, uint8_t *to) {
  const uint8_t *byte = lines + chip;
  for (uint32_t w = 0; w < words; ++w, byte += kLineStride, to += kWordBytes)
    for (uint32_t r = 0; r < kWordBytes; ++r) to[r] = byte[kChips * r];
}

void portable_write_lane(uint8_t *lines, uint32_t chip, uint32_t words, const uint8_t *from) {
  uint8_t *byte = lines + chip;
  for (uint32_t w = 0; w < words; ++w, byte += kLineStride, from += kWordBytes)
    for (uint32_t r = 0; r < kWordBytes; ++r) byte[kChips * r] = from[r];
}

const LineKernels kPortableKernels = {
    "portable", 1, write, broadcast, read, portable_read_lane, portable_write_lane};

}  // namespace dpuemu
