// The built-in machines, and the machine for which PIDCOMM_TECHNIQUE_AUTO compares predicted times.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "pidcomm/model.h"

namespace pidcomm {

/// Returns the name and the machine of file number `index` in machines/, where files are sorted by
/// name. Errors: ERR_ARGUMENT (index is not below the number of files; the error sentence lists all
/// machines).
std::pair<const char *, pidcomm_machine> builtin_machine(std::size_t index);

/// Returns the machine for which calls are priced: the machine that use_machine has set, or, if it
/// has set none, the built-in machine for the DIMMs of this SDK.
pidcomm_machine machine_in_use();

/// Whether use_machine has set a machine.
bool is_machine_set();

/// Returns a number that every call of use_machine changes.
uint64_t machine_version();

/// Sets the machine that machine_in_use returns; null restores the built-in machine. Errors: those
/// of check_machine.
void use_machine(const pidcomm_machine *machine);

}  // namespace pidcomm
