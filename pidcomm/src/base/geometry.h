// The geometry of a rank: the number of PEs in a rank, the size of a PE's MRAM, and the position of
// an MRAM word in the mapped region of the rank.
//
// The region interleaves banks and lines. A run is 8 KiB of MRAM of one bank. Within a run, lines
// follow each other at a stride of 128 bytes, so the library computes only the start of each run.
// For MRAM byte m of bank d (m is a multiple of 8), R = m >> 13 is the number of the run that
// contains byte m:
//   line(d, m) = bank(d) + chunk(R) * 1 MiB + (m mod 8 KiB) * 16
//   bank(d)    = 256 KiB * (d mod 4) + 64 * (d div 4)
//   chunk(R)   = R bit 0 stays, bits 8..2 move down by one, bit 1 moves up to bit 8, the rest stays
// Bit 17 of the region offset of a line is always 0. Offsets with bit 17 set are the control
// interface: never access or prefetch it. Source: the address map of the published host driver for
// xeon_sp machines. Tests compare it with literal addresses.
#pragma once

#include <cstdint>

#include "pidcomm/tables.h"

namespace pidcomm {

inline constexpr uint32_t kLanes = PIDCOMM_CHIPS_PER_RANK;  // PEs of an entangled group
inline constexpr uint32_t kBanks = PIDCOMM_BANKS_PER_CHIP;  // entangled groups of a rank
inline constexpr uint64_t kWordBytes = PIDCOMM_WORD_BYTES;
inline constexpr uint64_t kMramBytes = PIDCOMM_MRAM_BYTES;
inline constexpr uint32_t kMramAddress = PIDCOMM_MRAM_ADDRESS;

inline constexpr uint64_t kLineBytes = PIDCOMM_LINE_BYTES;
inline constexpr uint64_t kLineStride = 2 * kLineBytes;
inline constexpr uint64_t kRunBytes = PIDCOMM_RUN_BYTES;
inline constexpr uint64_t kRunWords = kRunBytes / kWordBytes;

/// The distance in entangled groups between banks d and d + 4. Banks d and d + 4 form a bank pair:
/// their lines are adjacent in the region.
inline constexpr uint32_t kPairEgs = 4;

/// Returns the offset of bank `bank` (0..7) in the region of its rank.
constexpr uint64_t bank_offset(uint32_t bank) {
  return uint64_t{bank % 4} << 18 | uint64_t{bank / 4} << 6;
}

/// Returns the offset of the line of word `word` (MRAM byte 8 * word), relative to bank_offset.
constexpr uint64_t word_offset(uint64_t word) {
  const uint64_t run = word / kRunWords;
  const uint64_t chunk = (run & ~uint64_t{0x1FE}) | (run >> 1 & 0xFE) | (run & 2) << 7;
  return (chunk << 20) + word % kRunWords * kLineStride;
}

}  // namespace pidcomm
