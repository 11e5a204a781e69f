// The sizes of a rank that the artifact's calls use.
#pragma once

#include <pidcomm/tables.h>

#include <cstddef>
#include <cstdint>

namespace pidcomm_artifact {

inline constexpr uint32_t kLanes = PIDCOMM_CHIPS_PER_RANK;  // PEs of an entangled group
inline constexpr uint32_t kBanks = PIDCOMM_BANKS_PER_CHIP;  // entangled groups of a rank
inline constexpr std::size_t kWordBytes = PIDCOMM_WORD_BYTES;
inline constexpr uint64_t kMramBytes = PIDCOMM_MRAM_BYTES;
inline constexpr uint32_t kMramAddress =
    0x08000000;  // address of MRAM byte 0 in the symbols of a program

}  // namespace pidcomm_artifact
