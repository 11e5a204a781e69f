// The chips of calls.h, with their limits.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "pe/calls.h"

namespace dpuemu {

struct Chip {
  const char *name;
  uint32_t id;  // in the host API
  uint32_t clock_mhz, tasklets, wram_bytes, instructions, mutexes;

  double cycles_per_second() const { return clock_mhz * 1e6; }
};

#define DPUEMU_CHIP_ROW(name, ...) Chip{#name, __VA_ARGS__},
inline constexpr auto kChipRows = std::array{PE_CHIP_TABLE(DPUEMU_CHIP_ROW)};
#undef DPUEMU_CHIP_ROW

}  // namespace dpuemu
