// Functions that get the settings of the machine from the caller, from environment variables, or
// from defaults.
#pragma once

#include <dpuemu.h>

#include <optional>
#include <string>
#include <vector>

namespace dpuemu {

/// Values of the fields of dpuemu_machine_t that turn a behaviour on or off. Only `flush` may be
/// kOnce.
constexpr int kOn = 1, kOff = 2, kOnce = 3;

/// Fills in the fields that are 0, and checks all fields (by the rules of dpuemu_configure) and
/// DPUEMU_ISA and DPUEMU_CHIP. Errors: DPU_ERR_INVALID_PROFILE.
dpu_error_t complete_settings(dpuemu_machine_t &machine);

/// If this machine cannot execute the instruction set in DPUEMU_ISA, or no chip has the name in
/// DPUEMU_CHIP, returns a sentence with the value and the valid values; else returns "".
std::string environment_problem();

/// Returns the list in DPUEMU_DISABLED as rank*64 + chip*8 + bank; returns nullopt if the list is
/// malformed.
std::optional<std::vector<uint32_t>> disabled_from_environment();

}  // namespace dpuemu
