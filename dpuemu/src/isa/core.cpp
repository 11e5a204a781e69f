#include "isa/core.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace dpuemu::isa {

Tasklet::Tasklet(uint32_t number) {
  const uint32_t fixed[] = {0, 1, ~0u, 0x80000000, number, 2 * number, 4 * number, 8 * number};
  std::memcpy(registers + kGeneralRegisters, fixed, sizeof fixed);
}

void Code::write(uint32_t pc, std::span<const uint64_t> words) {
  words_.resize(std::max(words_.size(), pc + words.size()));
  instructions_.resize(words_.size());
  for (const uint64_t word : words) {
    words_[pc] = word;
    instructions_[pc++] = decode(word);
  }
}

namespace {

void write(Tasklet &tasklet, const Instruction &instruction, uint32_t value) {
  switch (instruction.destination) {
    case Destination::kNowhere:
      break;
    case Destination::kRegister:
      tasklet.registers[instruction.c] = value;
      break;
    case Destination::kUnsignedPair:
      tasklet.registers[instruction.c] = 0;
      tasklet.registers[instruction.c + 1] = value;
      break;
    case Destination::kSignedPair:
      tasklet.registers[instruction.c] = value >> 31 != 0 ? ~0u : 0;
      tasklet.registers[instruction.c + 1] = value;
      break;
  }
}

void go_on(Tasklet &tasklet, const Instruction &instruction, bool holds) {
  tasklet.pc = instruction.jumps() && holds ? instruction.target : tasklet.pc + 1;
}

uint64_t read_pair(const Tasklet &tasklet, uint32_t number) {
  return uint64_t{tasklet.registers[number]} << 32 | tasklet.registers[number + 1];
}

void write_pair(Tasklet &tasklet, uint32_t number, uint64_t value) {
  tasklet.registers[number] = static_cast<uint32_t>(value >> 32);
  tasklet.registers[number + 1] = static_cast<uint32_t>(value);
}

uint64_t swap_bytes(uint64_t value, uint32_t bytes) {
  return __builtin_bswap64(value) >> (64 - 8 * bytes);
}

void load(Tasklet &tasklet, const Instruction &instruction, const uint8_t *from, uint32_t bytes) {
  uint64_t value = 0;
  std::memcpy(&value, from, bytes);
  if (instruction.is_big_endian) value = swap_bytes(value, bytes);
  if (bytes == 8) return write_pair(tasklet, instruction.c, value);
  auto word = static_cast<uint32_t>(value);
  if (row_of(instruction.operation).pair == Pair::SIGNED)
    word = bytes == 1 ? static_cast<uint32_t>(static_cast<int8_t>(word))
                      : static_cast<uint32_t>(static_cast<int16_t>(word));
  write(tasklet, instruction, word);
}

void store(const Tasklet &tasklet, const Instruction &instruction, uint8_t *to, uint32_t bytes) {
  uint64_t value;
  if (instruction.is_immediate) {
    value = static_cast<uint64_t>(int64_t{static_cast<int32_t>(instruction.immediate)});
    if (row_of(instruction.operation).kind == Kind::STORE_ID) value |= tasklet.registers[kId];
  } else if (bytes == 8) {
    value = read_pair(tasklet, instruction.b);
  } else {
    value = tasklet.registers[instruction.b];
  }
  if (instruction.is_big_endian) value = swap_bytes(value, bytes);
  std::memcpy(to, &value, bytes);
}

/// mul_step and div_step.
void step(Tasklet &tasklet, const Instruction &instruction) {
  const uint32_t a = tasklet.registers[instruction.a];
  const bool is_product = instruction.operation == Operation::mul_step;
  const auto function = is_product ? __pe_do_step_mul : __pe_do_step_div;
  const uint64_t after = function(a, instruction.shift, read_pair(tasklet, instruction.b),
                                  read_pair(tasklet, instruction.c));
  write_pair(tasklet, instruction.c, after);
  const auto next = static_cast<uint32_t>(after >> 32);
  const Flags before = tasklet.flags;
  Result result = compute(Operation::or_, instruction.condition, {a, 0, 0}, before);
  if (is_product) {
    // The source conditions are those of a, the others those of the remaining factor.
    const Result tested = compute(Operation::or_, instruction.condition, {next, 0, 0}, before);
    const bool is_of_source =
        instruction.condition >= Condition::sz && instruction.condition <= Condition::smi;
    if (!is_of_source) result.holds = tested.holds;
    tasklet.flags.zero = tested.flags.zero;
  }
  go_on(tasklet, instruction, result.holds);
}

}  // namespace

void finish(Tasklet &tasklet, const Instruction &instruction, const Result &result) {
  tasklet.flags = result.flags;
  write(tasklet, instruction, instruction.sets ? result.holds : result.value);
  go_on(tasklet, instruction, result.holds);
}

void finish(Tasklet &tasklet, const Instruction &instruction, uint32_t value) {
  const Result result =
      compute(Operation::or_, instruction.condition, {value, 0, 0}, tasklet.flags);
  tasklet.flags = result.flags;
  go_on(tasklet, instruction, result.holds);
}

Outcome interpret(const Code &code, Tasklet &tasklet, Wram wram, uint64_t budget) {
  uint32_t *const registers = tasklet.registers;
  for (uint64_t done = 0;; ++done) {
    const Instruction *const at = code.at(tasklet.pc);
    if (at == nullptr) return {Stop::kIllegal, done};
    const Instruction &instruction = *at;
    const OperationRow &row = row_of(instruction.operation);
    const uint32_t pc = tasklet.pc;
    bool is_taken = false;
    switch (row.kind) {
      case Kind::DMA:
      case Kind::SCHEDULER:
        return {Stop::kCall, done};
      case Kind::LOAD:
      case Kind::STORE:
      case Kind::STORE_ID: {
        const uint32_t address = registers[instruction.a] + instruction.offset;
        if (address % row.bytes != 0 || address > wram.size - row.bytes)
          return {Stop::kAddress, done, address, row.bytes};
        if (row.kind == Kind::LOAD)
          load(tasklet, instruction, wram.bytes + address, row.bytes);
        else
          store(tasklet, instruction, wram.bytes + address, row.bytes);
        ++tasklet.pc;
        continue;
      }
      case Kind::STEP:
        step(tasklet, instruction);
        break;
      case Kind::MOVE: {
        const bool swaps = instruction.operation == Operation::swapd;
        const uint32_t high = registers[instruction.b], low = registers[instruction.b + 1];
        registers[instruction.c] = swaps ? low : high;
        registers[instruction.c + 1] = swaps ? high : low;
        go_on(tasklet, instruction, true);
        break;
      }
      case Kind::CALL: {
        const uint32_t target =
            registers[instruction.a] +
            (instruction.is_immediate ? instruction.immediate : registers[instruction.b]);
        write(tasklet, instruction, pc + 1);
        tasklet.pc = target % kReachableInstructions;
        is_taken = true;
        break;
      }
      case Kind::NOP:
        ++tasklet.pc;
        break;
      case Kind::VALUE: {
        const uint32_t b =
            instruction.is_immediate ? instruction.immediate : registers[instruction.b];
        const bool has_dynamic_shift = is_shift(instruction.operation) && !instruction.is_immediate;
        finish(tasklet, instruction,
               compute(instruction.operation, instruction.condition,
                       {registers[instruction.a], b,
                        has_dynamic_shift ? b & 31 : uint32_t{instruction.shift}},
                       tasklet.flags));
        break;
      }
    }
    is_taken = is_taken || tasklet.pc != pc + 1;
    if (is_taken && done + 1 >= budget) return {Stop::kBudget, done + 1};
  }
}

}  // namespace dpuemu::isa
