#include "isa/block.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "isa/x86_code.h"
#include "isa/x86_rows.h"

namespace dpuemu::isa {
namespace {

constexpr uint32_t kMostInstructions = 96;  // of a block; a signed byte has room for it
constexpr size_t kPcOffset = offsetof(Tasklet, pc), kZeroOffset = offsetof(Tasklet, flags.zero),
                 kCarryOffset = offsetof(Tasklet, flags.carry);

const ConditionRow &condition_row_of(const Instruction &instruction) {
  return kConditionRows[static_cast<size_t>(instruction.condition)];
}
bool has_value(const Instruction &instruction) {
  return row_of(instruction.operation).kind == Kind::VALUE;
}
CarryRule carry_rule_of(const Instruction &instruction) {
  return has_value(instruction) ? kValueRows[static_cast<size_t>(instruction.operation)].carry
                                : CarryRule::kUnchanged;
}
bool reads_carry(const Instruction &instruction) {
  return instruction.operation == Operation::addc || instruction.operation == Operation::subc ||
         instruction.operation == Operation::rsubc;
}

/// Whether the condition needs the flags of the processor for the value.
bool reads_flags(const Instruction &instruction) {
  const Check check = condition_row_of(instruction).check;
  return check == Check::kTwoWords ||
         (check == Check::kFlags && instruction.condition > Condition::true_);
}

/// Returns the flags that have to be in memory after each instruction of a block: a later one reads
/// them, or the block may end before they change.
std::vector<Flags> live_flags(const std::vector<const Instruction *> &instructions) {
  std::vector<Flags> live(instructions.size());
  Flags before{true, true};
  for (size_t i = instructions.size(); i-- > 0;) {
    const Instruction &instruction = *instructions[i];
    Flags after = before;
    if (instruction.jumps()) after = {true, true};
    live[i] = before = after;
    if (has_value(instruction) || instruction.operation == Operation::mul_step) before.zero = false;
    if (carry_rule_of(instruction) != CarryRule::kUnchanged) before.carry = false;
    if (condition_row_of(instruction).check == Check::kTwoWords) before.zero = true;
    if (reads_carry(instruction)) before.carry = true;
    if (row_of(instruction.operation).bytes != 0) before = {true, true};
  }
  return live;
}

class BlockWriter {
 public:
  BlockWriter(const Code &program, const Frame &frame, uint32_t place,
              const std::function<std::optional<uint32_t>(uint32_t)> &place_of)
      : program_(program), frame_(frame), place_(place), place_of_(place_of) {}

  std::vector<uint8_t> write(uint32_t pc) {
    first_ = pc;
    std::vector<const Instruction *> instructions;
    for (uint32_t at = pc; instructions.size() < kMostInstructions; ++at) {
      const Instruction *const next = program_.at(at);
      if (next == nullptr || calls_scheduler(next->operation)) break;
      instructions.push_back(next);
      if (always_jumps(*next, at)) break;
    }
    const std::vector<Flags> live = live_flags(instructions);
    for (size_t i = 0; i < instructions.size(); ++i, ++pc) {
      pc_ = pc;
      write(*instructions[i], live[i]);
    }
    if (instructions.empty() || !always_jumps(*instructions.back(), pc - 1)) {
      count(pc - first_);
      if (instructions.size() == kMostInstructions)
        go_to(pc);
      else
        leave(Leave::kInterpret, pc);
    }
    for (const Exit &exit : exits_) {
      for (const uint32_t jump : exit.jumps)
        if (jump != 0) code_.bind(jump);
      count(exit.instructions);
      if (exit.is_jump)
        jump_to_block(exit.pc);
      else
        leave(Leave::kInterpret, exit.pc);
    }
    return code_.bytes();
  }

 private:
  struct Exit {
    std::array<uint32_t, 2> jumps;  // to it; 0: none
    uint32_t instructions;          // of the block that have ended
    uint32_t pc;                    // of the next one
    bool is_jump;                   // not a fault
  };
  /// A register of the processor with the value of a register of the tasklet.
  struct Copy {
    uint8_t host;
    uint8_t of = kRegisters;  // nothing
    uint32_t last_use = 0;
  };

  static bool jumps_away(const Instruction &instruction, uint32_t pc) {
    return instruction.jumps() && instruction.target != pc + 1;
  }
  static bool always_jumps(const Instruction &instruction, uint32_t pc) {
    return instruction.operation == Operation::call ||
           (jumps_away(instruction, pc) && instruction.condition == Condition::true_);
  }

  /// Returns the copy of a register. It stays valid while the code uses the next four registers.
  Copy &copy_of(uint8_t reg, bool has_value) {
    Copy *found = &copies_[0];
    for (Copy &copy : copies_) {
      if (copy.of == reg) {
        found = &copy;
        break;
      }
      if (copy.last_use < found->last_use) found = &copy;
    }
    found->last_use = ++uses_;
    if (found->of != reg && has_value) code_.with_state(0x8B, found->host, 4u * reg);
    found->of = reg;
    return *found;
  }
  uint32_t held(uint32_t reg) { return copy_of(static_cast<uint8_t>(reg), true).host; }
  void get(HostRegister to, uint32_t reg) { code_.move(to, held(reg)); }
  void put(uint32_t reg, HostRegister from) {
    code_.move(copy_of(static_cast<uint8_t>(reg), false).host, from);
    code_.with_state(0x89, from, 4 * reg);
  }
  /// Writes eax as the result. Changes edx, but no flag.
  void put_result(const Instruction &instruction) {
    if (instruction.destination == Destination::kNowhere) return;
    if (instruction.destination == Destination::kRegister) return put(instruction.c, kAx);
    if (instruction.destination == Destination::kSignedPair)
      code_.hex("99");  // cdq
    else
      code_.move_number(kDx, 0);
    put(instruction.c, kDx);
    put(instruction.c + 1u, kAx);
  }

  // The ends of a block.
  void count(uint32_t instructions) {
    if (instructions == 0) return;
    code_.with_registers(0x83, 5, 13, Width::k64);  // sub r13, instructions
    code_.byte(static_cast<int>(instructions));
  }
  void leave(Leave why, uint32_t pc) {
    code_.move_number(kAx, pc);
    code_.jump_to(leave_place(why));
  }
  uint32_t leave_place(Leave why) const { return frame_.leave[static_cast<size_t>(why)] - place_; }
  /// Goes on at pc. The flags of the processor are those of count().
  void go_to(uint32_t pc) {
    if (pc >= program_.size()) return leave(Leave::kInterpret, pc);
    code_.move_number(kAx, pc);
    const std::optional<uint32_t> place = pc == first_ ? place_ : place_of_(pc);
    if (place) return code_.jump_to(*place - place_);
    code_.hex("41 FF A6");  // jmp [r14 + 8 * pc]
    code_.number(8 * pc);
  }
  void jump_to_block(uint32_t pc) {
    code_.move_number(kAx, pc);
    code_.jump_to(leave_place(Leave::kBudget), kLessEqual);
    go_to(pc);
  }

  /// Keeps in esi the operands that the condition of an instruction needs after it. The operands
  /// are in eax and ecx.
  void keep_operands(const Instruction &instruction) {
    const Check check = condition_row_of(instruction).check;
    if (check == Check::kBitsOfA || check == Check::kBitsOfBoth || check == Check::kCarriesInto)
      code_.move(kSi, kAx);
    if (check == Check::kBitsOfB) code_.move(kSi, kCx);
    if (check == Check::kBitsOfBoth) code_.with_registers(0x0B, kSi, kCx);   // or
    if (check == Check::kCarriesInto) code_.with_registers(0x33, kSi, kCx);  // xor
  }

  /// Evaluates the condition of an instruction whose value is in eax, and whose flags are those of
  /// the processor. Writes the zero flag if `writes_zero`. Returns the condition of the processor.
  uint32_t check(const Instruction &instruction, bool writes_zero) {
    const ConditionRow &row = condition_row_of(instruction);
    if (row.check == Check::kTwoWords) {
      const bool has_other = row.bits != kNoOther;
      code_.with_registers(0x0F94, 0, kCx);  // setz cl
      if (has_other) code_.with_registers(0x0F90 | row.bits, 0, kAx);
      code_.with_state(0x8A, kDx, kZeroOffset);
      code_.with_state(0x88, kCx, kZeroOffset);
      code_.hex("20 CA");                 // and dl, cl
      if (has_other) code_.hex("08 C2");  // or dl, al
      return row.holds;
    }
    if (writes_zero) code_.set(kEqual, kZeroOffset);
    switch (row.check) {
      case Check::kFlags:
      case Check::kTwoWords:
        break;
      case Check::kCarriesInto:
        code_.with_registers(0x33, kSi, kAx);  // xor
        [[fallthrough]];
      case Check::kBitsOfA:
      case Check::kBitsOfB:
      case Check::kBitsOfBoth:
        code_.with_registers(0xF7, 0, kSi);  // test esi, bits
        code_.number(row.bits);
        break;
      case Check::kBitsOfValue:
        code_.hex("A9");  // test eax, bits
        code_.number(row.bits);
        break;
      case Check::kValue:
        code_.hex("3D");  // cmp eax, number
        code_.number(row.bits);
        break;
    }
    return row.holds;
  }

  void finish(const Instruction &instruction, bool writes_zero) {
    const uint32_t holds = check(instruction, writes_zero);
    const bool is_always = instruction.condition == Condition::true_;
    if (instruction.sets) {
      code_.move_number(kAx, 1);
      if (!is_always) code_.with_registers(0x0F90 | holds, 0, kAx);  // setcc al
      put_result(instruction);
    }
    if (!jumps_away(instruction, pc_)) return;
    const uint32_t ended = pc_ - first_ + 1;
    if (is_always) {
      count(ended);
      jump_to_block(instruction.target);
    } else {
      exits_.push_back({{code_.jump(holds), 0}, ended, instruction.target, true});
    }
  }

  void write_value(const Instruction &instruction, Flags live) {
    const ValueRow &row = kValueRows[static_cast<size_t>(instruction.operation)];
    const bool adds = !row.addition[0].empty(),
               has_shift = adds || (instruction.is_immediate && is_shift(instruction.operation));
    get(kAx, instruction.a);
    if (has_shift || instruction.is_immediate)
      code_.move_number(kCx, has_shift ? instruction.shift : instruction.immediate);
    else
      get(kCx, instruction.b);
    keep_operands(instruction);
    if (reads_carry(instruction)) {
      code_.with_state(0x80, 7, kCarryOffset);  // cmp carry, 1: the inverted flag
      code_.hex("01");
      if (row.carry == CarryRule::kEqual) code_.hex("F5");  // cmc
    }
    for (const Hex part : row.code) code_.hex(part);
    if ((live.zero || reads_flags(instruction)) && !row.sets_flags)
      code_.hex("85 C0");  // test eax, eax
    if (adds) {
      if (live.zero) code_.set(kEqual, kZeroOffset);
      get(kCx, instruction.b);
      for (const Hex part : row.addition) code_.hex(part);
    }
    if (!instruction.sets) put_result(instruction);
    if (live.carry && row.carry != CarryRule::kUnchanged)
      code_.set(row.carry == CarryRule::kEqual ? kBelow : kAboveEqual, kCarryOffset);
    finish(instruction, live.zero && !adds);
  }

  void shift_a(const Instruction &instruction) {
    get(kAx, instruction.a);
    keep_operands(instruction);
    code_.hex("C1 E0");  // shl eax, shift
    code_.byte(instruction.shift);
  }
  void write_mul_step(const Instruction &instruction, Flags live) {
    shift_a(instruction);
    get(kCx, instruction.b);
    code_.with_registers(0x03, kAx, held(instruction.b + 1u));    // add
    code_.hex("F6 C1 01");                                        // test cl, 1
    code_.with_registers(0x0F44, kAx, held(instruction.c + 1u));  // cmovz
    put(instruction.c + 1u, kAx);
    code_.hex("D1 E9");  // shr ecx, 1
    put(instruction.c, kCx);
    finish(instruction, live.zero);
  }
  void write_div_step(const Instruction &instruction) {
    shift_a(instruction);
    const uint32_t old = held(instruction.c + 1u);
    get(kCx, instruction.b + 1u);
    get(kDx, instruction.b);
    code_.hex("29 C1");                      // sub ecx, eax
    code_.with_registers(0x0F42, kCx, old);  // cmovb
    code_.hex("F5 11 D2");                   // cmc; adc edx, edx
    put(instruction.c + 1u, kCx);
    put(instruction.c, kDx);
    finish(instruction, false);
  }
  void write_pair(const Instruction &instruction) {
    const uint32_t swaps = instruction.operation == Operation::swapd;
    get(kAx, instruction.b + swaps);
    get(kCx, instruction.b + 1u - swaps);
    put(instruction.c, kAx);
    put(instruction.c + 1u, kCx);
    finish(instruction, false);
  }
  void write_call(const Instruction &instruction) {
    get(kSi, instruction.a);
    if (instruction.is_immediate) {
      code_.with_registers(0x81, 0, kSi);  // add esi, immediate
      code_.number(instruction.immediate);
    } else {
      code_.with_registers(0x03, kSi, held(instruction.b));
    }
    code_.with_registers(0x81, 4, kSi);  // and esi, the bits of a number of an instruction
    code_.number(kReachableInstructions - 1);
    code_.move_number(kAx, pc_ + 1);
    put_result(instruction);
    code_.move(kAx, kSi);
    count(pc_ - first_ + 1);
    code_.jump_to(leave_place(Leave::kBudget), kLessEqual);
    code_.hex("3D");  // cmp eax, size
    code_.number(program_.size());
    code_.jump_to(leave_place(Leave::kInterpret), kAboveEqual);
    code_.hex("41 FF 24 C6");  // jmp [r14 + 8 * rax]
  }

  /// Computes the address of a load or store in eax, and leaves the block if it is wrong.
  void write_address(const Instruction &instruction, uint32_t bytes) {
    Exit fault{{}, pc_ - first_, pc_, false};
    get(kAx, instruction.a);
    if (instruction.offset != 0) {
      code_.hex("05");  // add eax, offset
      code_.number(instruction.offset);
    }
    // The size of WRAM is a multiple of 8: if a multiple of `bytes` is below it, so is the last
    // byte.
    if (bytes > 1) {
      code_.hex("A8");  // test al, bytes - 1
      code_.byte(static_cast<int>(bytes - 1));
      fault.jumps[0] = code_.jump(kNotEqual);
    }
    code_.hex("44 39 F8");  // cmp eax, r15d
    fault.jumps[1] = code_.jump(kAboveEqual);
    exits_.push_back(fault);
  }
  void swap(const Instruction &instruction, HostRegister reg, uint32_t bytes) {
    if (!instruction.is_big_endian || bytes == 1) return;
    if (bytes == 2) {
      code_.with_registers(0xC1, 1, reg, Width::k16);  // ror reg, 8
      code_.byte(8);
    } else {
      code_.hex(bytes == 8 ? "48 0F" : "0F");  // bswap
      code_.byte(0xC8 | reg);
    }
  }
  void write_load(const Instruction &instruction, uint32_t bytes) {
    write_address(instruction, bytes);
    code_.with_wram(bytes == 1   ? 0x0FB6
                    : bytes == 2 ? 0x0FB7
                                 : 0x8B,
                    kAx, bytes == 8 ? Width::k64 : Width::k32);
    swap(instruction, kAx, bytes);
    if (row_of(instruction.operation).pair == Pair::SIGNED)
      code_.hex(bytes == 1 ? "0F BE C0" : "0F BF C0");  // movsx eax, al or ax
    if (bytes != 8) return put_result(instruction);
    put(instruction.c + 1u, kAx);
    code_.hex("48 C1 E8 20");  // shr rax, 32
    put(instruction.c, kAx);
  }
  void write_store(const Instruction &instruction, uint32_t bytes) {
    write_address(instruction, bytes);
    if (instruction.is_immediate) {
      code_.with_registers(0xC7, 0, kCx, Width::k64);  // mov rcx, immediate
      code_.number(instruction.immediate);
      if (row_of(instruction.operation).kind == Kind::STORE_ID)
        code_.with_registers(0x0B, kCx, held(kId), Width::k64);  // or
    } else {
      get(kCx, instruction.b);
      if (bytes == 8) {
        code_.hex("48 C1 E1 20");  // shl rcx, 32
        code_.with_registers(0x0B, kCx, held(instruction.b + 1u), Width::k64);
      }
    }
    swap(instruction, kCx, bytes);
    code_.with_wram(bytes == 1 ? 0x88 : 0x89, kCx,
                    bytes == 8   ? Width::k64
                    : bytes == 2 ? Width::k16
                                 : Width::k32);
  }

  void write(const Instruction &instruction, Flags live) {
    const OperationRow &row = row_of(instruction.operation);
    switch (row.kind) {
      case Kind::VALUE:
        return write_value(instruction, live);
      case Kind::STEP:
        return instruction.operation == Operation::mul_step ? write_mul_step(instruction, live)
                                                            : write_div_step(instruction);
      case Kind::MOVE:
        return write_pair(instruction);
      case Kind::CALL:
        return write_call(instruction);
      case Kind::LOAD:
        return write_load(instruction, row.bytes);
      case Kind::STORE:
      case Kind::STORE_ID:
        return write_store(instruction, row.bytes);
      case Kind::NOP:
      case Kind::DMA:
      case Kind::SCHEDULER:
        return;
    }
  }

  const Code &program_;
  const Frame &frame_;
  uint32_t place_;
  const std::function<std::optional<uint32_t>(uint32_t)> &place_of_;
  X86Code code_;
  uint32_t first_ = 0, pc_ = 0;
  std::vector<Exit> exits_;
  std::array<Copy, 6> copies_{{{kDi}, {kBp}, {kR8}, {kR9}, {kR10}, {kR11}}};
  uint32_t uses_ = 0;
};

}  // namespace

Frame make_frame() {
  Frame frame;
  X86Code code;
  code.hex(
      "53 55 41 54 41 55 41 56 41 57 "  // push rbx, rbp, r12 to r15
      "48 89 FB 49 89 F4 49 89 D7 "     // mov rbx, rdi; mov r12, rsi; mov r15, rdx
      "49 89 CD 4D 89 C6 41 FF E1");    // mov r13, rcx; mov r14, r8; jmp r9
  for (const Leave why : {Leave::kBudget, Leave::kInterpret, Leave::kTranslate}) {
    frame.leave[static_cast<size_t>(why)] = code.size();
    code.with_state(0x89, kAx, kPcOffset);
    code.move_number(kAx, static_cast<uint32_t>(why));
    code.hex(
        "4C 89 EA "                           // mov rdx, r13
        "41 5F 41 5E 41 5D 41 5C 5D 5B C3");  // pop all; ret
  }
  frame.bytes = code.bytes();
  return frame;
}

std::vector<uint8_t> make_block(const Code &code, uint32_t pc, const Frame &frame, uint32_t place,
                                const std::function<std::optional<uint32_t>(uint32_t)> &place_of) {
  return BlockWriter(code, frame, place, place_of).write(pc);
}

}  // namespace dpuemu::isa
