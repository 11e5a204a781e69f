// Tells an attached debugger about the code of PE programs, so that it finds their functions,
// source lines and variables.
#pragma once

#include <cstdint>
#include <span>

#include "machine/program.h"

namespace dpuemu {

/// Returns whether a debugger traces this process.
bool is_debugger_attached();

/// Announces the program of one PE, after the code of the PE is complete. Does nothing for more
/// than 64 PEs, because debuggers need long for many programs. file: the program file.
void announce_code(std::span<const uint8_t> file, const PePlace &place);

/// Withdraws the announcement for a PE, if any, before the code of the PE changes.
void withdraw_code(const PePlace &place);

}  // namespace dpuemu
