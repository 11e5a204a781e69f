// The built-in machines, and the one whose prices PIDCOMM_TECHNIQUE_AUTO compares.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "pidcomm/model.h"

namespace pidcomm {

/// Number `index` of the files in machines/, by name. Errors: ERR_ARGUMENT (no such number; the sentence names all machines).
std::pair<const char *, pidcomm_machine> builtin_machine(std::size_t index);

/// The machine that use_machine has set, else the built-in one of that name.
pidcomm_machine machine_in_use(const char *builtin);

/// Changes whenever use_machine is called.
uint64_t machine_version();

/// Null restores the built-in one. Errors: those of check_machine.
void use_machine(const pidcomm_machine *machine);

}  // namespace pidcomm
