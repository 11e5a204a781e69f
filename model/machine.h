// The built-in machines, and the one that PIDCOMM_TECHNIQUE_AUTO asks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "pidcomm/model.h"

namespace pidcomm {

/// Number `index` of the files in model/machines, by name. Errors: ERR_ARGUMENT (there is none; the sentence names all).
std::pair<const char *, pidcomm_machine> builtin_machine(std::size_t index);

/// The machine in use, and a number that changes whenever another one is.
struct MachineInUse {
  pidcomm_machine machine;
  uint64_t generation;
};
MachineInUse machine_in_use();
uint64_t machine_generation();

/// Null: the built-in one for this SDK's DIMMs. Errors: those of check_machine.
void use_machine(const pidcomm_machine *machine);

}  // namespace pidcomm
