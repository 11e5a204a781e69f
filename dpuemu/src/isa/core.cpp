#include "isa/core.h"

#include <bit>
#include <cstring>

namespace dpuemu::isa {

Tasklet::Tasklet(uint32_t number) {
  const uint32_t fixed[] = {0, 1, ~0u, 0x80000000, number, 2 * number, 4 * number, 8 * number};
  std::memcpy(registers + kGeneralRegisters, fixed, sizeof fixed);
}

Code::Code(std::span<const uint64_t> words) : words_(words.begin(), words.end()) {
  instructions_.reserve(words.size());
  for (const uint64_t word : words) instructions_.push_back(decode(word));
}

bool calls_scheduler(Operation operation) {
  switch (operation) {
    case Operation::ldma:
    case Operation::ldmai:
    case Operation::sdma:
    case Operation::acquire:
    case Operation::release:
    case Operation::boot:
    case Operation::resume:
    case Operation::clr_run:
    case Operation::read_run:
    case Operation::stop:
    case Operation::fault:
    case Operation::tell:
    case Operation::time:
    case Operation::time_cfg:
      return true;
    default:
      return false;
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

bool is_shift(Operation operation) {
  return operation >= Operation::lsl && operation <= Operation::ror;
}

}  // namespace

uint32_t bytes_of(Operation operation) {
  switch (operation) {
    case Operation::lbu:
    case Operation::lbs:
    case Operation::sb:
    case Operation::sb_id:
      return 1;
    case Operation::lhu:
    case Operation::lhs:
    case Operation::sh:
    case Operation::sh_id:
      return 2;
    case Operation::lw:
    case Operation::sw:
    case Operation::sw_id:
      return 4;
    case Operation::ld:
    case Operation::sd:
    case Operation::sd_id:
      return 8;
    default:
      return 0;
  }
}

namespace {

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
  if (instruction.operation == Operation::lbs)
    value = static_cast<uint32_t>(static_cast<int8_t>(value));
  if (instruction.operation == Operation::lhs)
    value = static_cast<uint32_t>(static_cast<int16_t>(value));
  if (instruction.operation == Operation::ld) {
    write_pair(tasklet, instruction.c, value);
  } else {
    write(tasklet, instruction, static_cast<uint32_t>(value));
  }
}

void store(const Tasklet &tasklet, const Instruction &instruction, uint8_t *to, uint32_t bytes) {
  uint64_t value;
  if (instruction.is_immediate) {
    value = static_cast<uint64_t>(int64_t{static_cast<int32_t>(instruction.immediate)});
    if (instruction.operation >= Operation::sb_id && instruction.operation <= Operation::sd_id)
      value |= tasklet.registers[kId];
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
    if (calls_scheduler(instruction.operation)) return {Stop::kCall, done};
    const uint32_t pc = tasklet.pc;
    bool is_taken = false;
    if (const uint32_t bytes = bytes_of(instruction.operation); bytes != 0) {
      const uint32_t address = registers[instruction.a] + instruction.offset;
      if (address % bytes != 0 || address > wram.size - bytes)
        return {Stop::kAddress, done, address, bytes};
      if (instruction.operation <= Operation::ld)
        load(tasklet, instruction, wram.bytes + address, bytes);
      else
        store(tasklet, instruction, wram.bytes + address, bytes);
      ++tasklet.pc;
      continue;
    }
    switch (instruction.operation) {
      case Operation::mul_step:
      case Operation::div_step:
        step(tasklet, instruction);
        break;
      case Operation::movd:
      case Operation::swapd: {
        const bool swaps = instruction.operation == Operation::swapd;
        const uint32_t high = registers[instruction.b], low = registers[instruction.b + 1];
        registers[instruction.c] = swaps ? low : high;
        registers[instruction.c + 1] = swaps ? high : low;
        go_on(tasklet, instruction, true);
        break;
      }
      case Operation::call: {
        const uint32_t target =
            registers[instruction.a] +
            (instruction.is_immediate ? instruction.immediate : registers[instruction.b]);
        write(tasklet, instruction, pc + 1);
        tasklet.pc = target % kReachableInstructions;
        is_taken = true;
        break;
      }
      case Operation::nop:
        ++tasklet.pc;
        break;
      default: {
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
