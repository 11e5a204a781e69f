// The built-in machines, and the machine for which PIDCOMM_TECHNIQUE_AUTO compares predicted times.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "pidcomm/model.h"

namespace pidcomm {

/// Returns the name and the machine of file number `index` in machines/, in the order of names. Errors: ERR_ARGUMENT (the number is too
/// large; the error message names all machines).
std::pair<const char *, pidcomm_machine> builtin_machine(std::size_t index);

/// Returns the machine that use_machine has set, or else the built-in machine of that name.
pidcomm_machine machine_in_use(const char *builtin);

/// Returns a number that every call of use_machine changes.
uint64_t machine_version();

/// Sets the machine in use; null restores the built-in machine. Errors: those of check_machine.
void use_machine(const pidcomm_machine *machine);

}  // namespace pidcomm
