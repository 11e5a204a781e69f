// The settings of the machine: from the caller, the environment, or their defaults.
#pragma once

#include <dpuemu.h>

#include <optional>
#include <vector>

namespace dpuemu {

/// Values of dpuemu_machine_t's switches; kOnce is for `flush` alone.
constexpr int kOn = 1, kOff = 2, kOnce = 3;

/// Fills the fields that are 0 and checks all of them (rules at dpuemu_configure). Errors: DPU_ERR_INVALID_PROFILE.
dpu_error_t complete_settings(dpuemu_machine_t &machine);

/// The list in DPUEMU_DISABLED as rank*64 + chip*8 + bank; nullopt if it is malformed.
std::optional<std::vector<uint32_t>> disabled_from_environment();

}  // namespace dpuemu
