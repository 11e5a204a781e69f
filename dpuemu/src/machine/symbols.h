// The address space of symbols of PE programs, and functions that find symbols.
#pragma once

#include <dpu.h>

#include <cstdint>

#include "machine/machine.h"
#include "machine/program.h"

namespace dpuemu {

constexpr uint32_t kMramAddress = 0x08000000;   // MRAM starts here
constexpr uint32_t kIramAddress = 0x80000000;   // IRAM starts here; WRAM starts at 0
constexpr uint32_t kMutexAddress = 0xF0000000;  // of the mutexes, in programs of machine code
constexpr uint32_t kInstructionBytes = 8;       // in IRAM

/// Finds a symbol of a program. If program is nullptr, only the symbol of the heap pointer exists,
/// and it covers all of MRAM. Errors: DPU_ERR_UNKNOWN_SYMBOL, DPU_ERR_NO_PROGRAM_LOADED.
dpu_error_t find_symbol(const Program *program, const char *name, dpu_symbol_t &symbol);

/// Finds a symbol that has the same address and size in all members of the set. Errors: those of
/// find_symbol, and DPU_ERR_DIFFERENT_DPU_PROGRAMS.
dpu_error_t find_common_symbol(const PinnedSet &set, const char *name, dpu_symbol_t &symbol);

}  // namespace dpuemu
