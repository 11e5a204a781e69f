// Addresses below 2 GiB: pointers of PE programs have 32 bits, and their code encodes addresses as signed 32-bit words.
#pragma once

#include <cstdint>

namespace dpuemu {

/// Reserves inaccessible addresses below 2 GiB, aligned to 64 KiB. Returns nullptr if the process has no such gap.
/// bytes: a multiple of 64 KiB.
uint8_t *reserve_low(uint64_t bytes);
/// Frees a reservation.
void release_low(uint8_t *begin, uint64_t bytes);

}  // namespace dpuemu
