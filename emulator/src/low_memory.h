// Addresses below 2 GiB: the pointers of PE programs have 32 bits, and their code holds addresses as signed 32-bit words.
#pragma once

#include <cstdint>

namespace dpuemu {

/// Inaccessible addresses below 2 GiB, aligned to 64 KiB. nullptr if there is no such gap in the process. bytes: a multiple of 64 KiB.
uint8_t *reserve_low(uint64_t bytes);
/// Gives them back.
void release_low(uint8_t *begin, uint64_t bytes);

}  // namespace dpuemu
