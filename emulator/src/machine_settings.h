// Gets the settings of the machine from the caller, the environment, or defaults.
#pragma once

#include <dpuemu.h>

#include <optional>
#include <string>
#include <vector>

namespace dpuemu {

/// Values of dpuemu_machine_t's switches; only `flush` may be kOnce.
constexpr int kOn = 1, kOff = 2, kOnce = 3;

/// Fills in the fields that are 0, and checks all fields (by the rules of dpuemu_configure) and DPUEMU_ISA. Errors:
/// DPU_ERR_INVALID_PROFILE.
dpu_error_t complete_settings(dpuemu_machine_t &machine);

/// If this machine cannot execute the instruction set in DPUEMU_ISA, returns a sentence with its value and the valid values; else "".
std::string isa_problem();

/// Returns the list in DPUEMU_DISABLED as rank*64 + chip*8 + bank; nullopt if it is malformed.
std::optional<std::vector<uint32_t>> disabled_from_environment();

}  // namespace dpuemu
