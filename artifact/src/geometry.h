// The geometry of a rank as far as the artifact's calls use it.
#pragma once

#include <pidcomm/tables.h>

#include <cstddef>
#include <cstdint>

namespace pidcomm_artifact {

inline constexpr uint32_t kLanes = 8;  // chips of a rank: PEs of an entangled group
inline constexpr uint32_t kBanks = 8;  // entangled groups of a rank
static_assert(kLanes * kBanks == PIDCOMM_PES_PER_RANK);
inline constexpr std::size_t kWordBytes = 8;
inline constexpr uint64_t kMramBytes = PIDCOMM_MRAM_BYTES;
inline constexpr uint32_t kMramAddress = 0x08000000;  // of MRAM byte 0 among the symbols of a program

}  // namespace pidcomm_artifact
