// The address space of a DPU as symbols see it.
#pragma once

#include <cstdint>

namespace dpuemu {

constexpr uint32_t kMramAddress = 0x08000000;  // MRAM starts here
constexpr uint32_t kIramAddress = 0x80000000;  // IRAM starts here; WRAM at 0

}  // namespace dpuemu
