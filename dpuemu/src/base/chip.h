// The chips of calls.h, with their limits.
#pragma once

#include <dpu_hw_description.h>
#include <dpuemu.h>

#include <array>
#include <cstdint>
#include <string_view>

#include "runtime/calls.h"

namespace dpuemu {

/// Cycles between two instructions of a tasklet, so as many computing tasklets fill the pipeline
/// (source: pe/clock.h).
constexpr double kIssueCycles = 11;

struct Chip {
  const char *name;
  uint32_t id;  // in the host API
  uint32_t clock_mhz, tasklets, wram_bytes, instructions, mutexes;

  double cycles_per_second() const { return clock_mhz * 1e6; }
};

#define DPUEMU_CHIP_ROW(name, ...) Chip{#name, __VA_ARGS__},
inline constexpr auto kChipRows = std::array{PE_CHIP_TABLE(DPUEMU_CHIP_ROW)};
#undef DPUEMU_CHIP_ROW

/// Returns whether the chip with this number in dpuemu_chip_t has this name, and this number in
/// dpu_chip_id_e.
constexpr bool is_row(dpuemu_chip_t chip, std::string_view name, dpu_chip_id_e id) {
  const Chip &row = kChipRows[static_cast<size_t>(chip - DPUEMU_CHIP_GENERIC)];
  return row.name == name && row.id == static_cast<uint32_t>(id);
}
static_assert(kChipRows.size() == DPUEMU_CHIP_V1B,
              "dpuemu_chip_t has one value per row of PE_CHIP_TABLE");
static_assert(is_row(DPUEMU_CHIP_GENERIC, "generic", vD_asic8) &&
                  is_row(DPUEMU_CHIP_V1A, "v1A", vD_asic8) &&
                  is_row(DPUEMU_CHIP_V1B, "v1B", vD_asic8_v1_4),
              "dpuemu_chip_t has the order of PE_CHIP_TABLE");

}  // namespace dpuemu
