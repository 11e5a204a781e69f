// Blocks of host code, for x86-64, that execute instructions of a DPU.
//
// A block begins at one instruction of the DPU. It ends after an instruction that always jumps or
// after a fixed number of instructions, and before an instruction that is for the caller or does
// not exist. The other jumps inside it leave the block.
//
// Registers of the processor while a block runs:
//   rbx  the Tasklet         r12  the bytes of WRAM     r13  the rest of the budget, signed
//   r14  the table of entries, by the number of the instruction     r15  the size of WRAM
//   eax, ecx, edx, esi: temporary. The others have copies of registers of the tasklet.
// A block jumps to the next one with the number of its first instruction in eax.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "isa/core.h"

namespace dpuemu::isa {

/// Why blocks return to C++. kBudget: see Stop. kInterpret: interpret() has to continue, because
/// the instruction at pc is for the caller, faults or does not exist. kTranslate: the instruction
/// at pc has no block yet.
enum class Leave : uint64_t { kBudget, kInterpret, kTranslate };

/// The part of the host code that all blocks share.
struct Frame {
  std::vector<uint8_t> bytes;  // they begin with the function Enter
  uint32_t leave[3];           // places by Leave
};

struct Left {
  Leave why;
  int64_t budget;  // the rest
};
/// Runs the block at `place`.
using Enter = Left (*)(Tasklet *, uint8_t *wram, uint64_t wram_bytes, int64_t budget,
                       const void *entries, const void *place);

Frame make_frame();

/// Returns the block of the instructions from pc on. place: of the block, relative to the frame.
/// place_of: the place of the block of an instruction, or nothing if it is not translated yet.
std::vector<uint8_t> make_block(const Code &code, uint32_t pc, const Frame &frame, uint32_t place,
                                const std::function<std::optional<uint32_t>(uint32_t)> &place_of);

}  // namespace dpuemu::isa
