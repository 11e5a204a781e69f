// The address space of a DPU as symbols see it, and the symbols of sets.
#pragma once

#include <dpu.h>

#include <cstdint>

#include "machine.h"
#include "program.h"

namespace dpuemu {

constexpr uint32_t kMramAddress = 0x08000000;  // MRAM starts here
constexpr uint32_t kIramAddress = 0x80000000;  // IRAM starts here; WRAM at 0

/// A symbol of a program; with no program (nullptr) only the heap pointer, as the whole of MRAM.
/// Errors: DPU_ERR_UNKNOWN_SYMBOL, DPU_ERR_NO_PROGRAM_LOADED.
dpu_error_t find_symbol(const Program *program, const char *name, dpu_symbol_t &symbol);

/// The symbol that all members of the set have at the same address. Errors: as find_symbol, and DPU_ERR_DIFFERENT_DPU_PROGRAMS.
dpu_error_t find_common_symbol(const PinnedSet &set, const char *name, dpu_symbol_t &symbol);

}  // namespace dpuemu
