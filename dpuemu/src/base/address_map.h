// The address map of a rank: the position in the rank's region of MRAM byte m of the DPU at (chip
// c, bank d).
//
// The eight chips of a rank work in parallel: each of the 8 beats of a 64-byte line carries one
// byte per chip. So a DPU's 64-bit word is spread over one line, 8 bytes apart, and a line holds
// one word of each of the 8 DPUs (one per chip) of one bank:
//
//   byte address = line(d, m & ~7) + 8*(m & 7) + c
//
// The line of a word follows from the word's MRAM offset in four steps:
//   1. swizzle   the bits 21:14 of the offset are rotated right by one: bit 14 goes to 21, and bits
//                21:15 go to 20:14;
//   2. spread    each 8-byte word occupies 128 bytes (two lines: banks d and d+4), so the offset is
//                multiplied by 16;
//   3. chunk     after each 128 KiB (8 KiB of MRAM) the address advances by 1 MiB, because the
//                remaining 896 KiB belong to other banks (bits 19:18) and to the control interface
//                (bit 17), which is not memory;
//   4. bank      bits 19:18 are d mod 4; if d >= 4, the word is in the second line of the
//                128 bytes.
//
// Together, MRAM bit -> region bit:
//   3..12 -> 7..16, 13 -> 20, 14 -> 28, 15..21 -> 21..27, 22..25 -> 29..32.
#pragma once

#include <cstdint>

namespace dpuemu {

constexpr uint32_t kChips = 8;
constexpr uint32_t kBanks = 8;
constexpr uint32_t kDpusPerRank = kChips * kBanks;
constexpr uint64_t kMramBytes = UINT64_C(64) << 20;
constexpr uint64_t kRegionBytes = UINT64_C(8) << 30;
constexpr uint64_t kWordBytes = 8;
constexpr uint64_t kLineBytes = 64;
constexpr uint64_t kLineStride = 128;    // between the lines of consecutive words of one bank
constexpr uint64_t kRunBytes = 8 << 10;  // MRAM bytes whose lines lie at kLineStride without a gap
constexpr uint32_t kBankPairs = kBanks / 2;  // banks d and d + kBankPairs share every 128 bytes

/// Returns the region offset of the line that holds the word of bank `bank` at MRAM offset
/// `word_offset` (a multiple of 8 below 64 MiB).
constexpr uint64_t line_offset(uint32_t bank, uint64_t word_offset) {
  const uint64_t swizzled = (word_offset & ~UINT64_C(0x3FC000)) | ((word_offset >> 1) & 0x1FC000) |
                            ((word_offset & 0x4000) << 7);
  const uint64_t spread = swizzled * (kLineStride / kWordBytes);
  const uint64_t chunked = spread % 0x20000 + spread / 0x20000 * 0x100000;
  return chunked + UINT64_C(0x40000) * (bank % kBankPairs) + kLineBytes * (bank / kBankPairs);
}

/// Returns the region offset of one MRAM byte.
constexpr uint64_t byte_offset(uint32_t chip, uint32_t bank, uint64_t mram_offset) {
  return line_offset(bank, mram_offset & ~(kWordBytes - 1)) +
         kChips * (mram_offset & (kWordBytes - 1)) + chip;
}

}  // namespace dpuemu
