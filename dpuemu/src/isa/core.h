// Executes the instructions of one tasklet. The instructions that concern other tasklets, MRAM or
// time are left to the caller.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "isa/instruction.h"
#include "isa/semantics.h"

namespace dpuemu::isa {

/// The state of a tasklet. registers: with the values of the fixed registers.
struct Tasklet {
  uint32_t registers[kRegisters] = {};
  uint32_t pc = 0;  // the number of the next instruction
  Flags flags;

  /// Sets the fixed registers.
  explicit Tasklet(uint32_t number = 0);
};

struct Wram {
  uint8_t *bytes;
  uint32_t size;  // a multiple of 8, at most 64 KiB
};

/// The instructions of a program, in the order of their numbers. An element without a value is a
/// word that is not an instruction.
class Code {
 public:
  explicit Code(std::span<const uint64_t> words) { write(0, words); }
  /// Replaces the instructions from `pc` on, and adds those beyond the end.
  void write(uint32_t pc, std::span<const uint64_t> words);
  uint32_t size() const { return static_cast<uint32_t>(words_.size()); }
  uint64_t word(uint32_t pc) const { return words_[pc]; }
  /// Returns the instruction, or nullptr if the program has none there.
  const Instruction *at(uint32_t pc) const {
    return pc < instructions_.size() && instructions_[pc] ? &*instructions_[pc] : nullptr;
  }

 private:
  std::vector<uint64_t> words_;
  std::vector<std::optional<Instruction>> instructions_;
};

/// Why interpret() returned. kCall: the instruction at pc is for the caller, and has not begun.
enum class Stop : uint8_t { kCall, kBudget, kIllegal, kAddress };

struct Outcome {
  Stop stop;
  uint64_t instructions;  // that have ended
  uint32_t address = 0;   // kAddress: of WRAM, that no load or store of its size may use
  uint32_t bytes = 0;     // kAddress
};

/// Executes instructions until one is for the caller (calls_scheduler) or faults; then pc is its
/// number, and it has had no effect. After `budget` instructions, the next jump that is taken ends
/// the run (kBudget).
Outcome interpret(const Code &code, Tasklet &tasklet, Wram wram, uint64_t budget);

/// Writes the result of an instruction, and jumps or goes on to the next instruction.
void finish(Tasklet &tasklet, const Instruction &instruction, const Result &result);
/// Tests `value`, which updates the zero flag, for the condition of an instruction that writes no
/// register, and jumps or goes on to the next instruction.
void finish(Tasklet &tasklet, const Instruction &instruction, uint32_t value);

}  // namespace dpuemu::isa
