// Addresses below 2 GiB: pointers of PE programs have 32 bits, and the code of PE programs encodes
// addresses as signed 32-bit words.
#pragma once

#include <cstdint>

namespace dpuemu {

/// Bytes of a page of the host.
inline constexpr uint32_t kPageBytes = 4096;

/// Reserves inaccessible addresses below 2 GiB, aligned to 64 KiB. Returns nullptr if the process
/// has no free gap of this size below 2 GiB. bytes: a multiple of 64 KiB.
uint8_t *reserve_low(uint64_t bytes);
/// Frees addresses that reserve_low has reserved.
void release_low(uint8_t *begin, uint64_t bytes);

}  // namespace dpuemu
