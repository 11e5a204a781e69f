#include "pe/code_run.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "machine/machine.h"
#include "machine/symbols.h"
#include "pe/format.h"

namespace dpuemu {
namespace {

constexpr uint32_t kLowBits = kWordBytes - 1;  // of addresses, which DMA ignores
constexpr uint32_t kDmaUnits = 256, kDmaUnitBytes = 8;

/// The faults of the SDK's runtime: the operand of `fault`.
constexpr struct {
  uint32_t code;
  FaultKind kind;
  const char *reason;
} kRuntimeFaults[] = {
    {1, FaultKind::kProgram, "the WRAM heap is full"},
    {2, FaultKind::kDivision, "division by zero"},
    {3, FaultKind::kProgram, "an assertion failed"},
    {4, FaultKind::kProgram, "the program halted"},
    {5, FaultKind::kProgram, "one printf printed more than the log holds"},
    {6, FaultKind::kProgram, "profiling_start was called twice"},
    {7, FaultKind::kProgram, "profiling_stop was called without profiling_start"},
    {8, FaultKind::kProgram,
     "the two addresses of mram_write_unaligned differ in their lowest three bits"},
};

/// Returns the number of the mutex at an address.
uint32_t mutex_number(uint32_t address) { return (address ^ address >> 8) & 0xFF; }

}  // namespace

CodeRun::CodeRun() {
  const Tasklet &first = tasklets_[0];
  debugged_.is_machine_code = 1;
  debugged_.tasklet_bytes = sizeof first;
  debugged_.woken = &woken_;
  debugged_.state = &first.state;
  debugged_.awaited = &first.awaited;
  debugged_.registers = first.core.registers;
  debugged_.pc = &first.core.pc;
}

bool CodeRun::begin(Pe &pe, const PePlace &place, const MramPort &port, bool is_strict,
                    bool is_accessible, PeObserver *observer) {
  const Chip &chip = Machine::instance().chip();
  AnyRun::begin(pe);
  observer_ = nullptr;
  wram_ = {place.wram, chip.wram_bytes};
  iram_bytes_ = chip.instructions * kInstructionBytes;
  mutexes_ = place.wram + PE_ATOMIC_ORIGIN;
  port_ = port;
  is_strict_ = is_strict;
  tasklet_count_ = chip.tasklets;
  other_run_bits_ = 0;
  cycle_counter_ = instruction_counter_ = {};
  shows_instructions_ = false;
  if (!is_accessible) {
    fail_without_memory();
    return false;
  }
  for (uint32_t i = 0; i < PE_MAX_TASKLETS; ++i) {
    tasklets_[i] = Tasklet();
    tasklets_[i].core = isa::Tasklet(i);
  }
  debugged_.place = place;
  debugged_.tasklets = tasklet_count_;
  tasklets_[0].state = State::kExecuting;
  woken_ = 1;
  observer_ = observer;
  if (observer != nullptr) observer->begin(*pe.program, place);
  return true;
}

void CodeRun::execute(uint32_t number) {
  Tasklet &tasklet = tasklets_[number];
  tasklet.state = State::kExecuting;
  tasklet.outcome = pe_->code != nullptr
                        ? isa::interpret(*pe_->code, tasklet.core, wram_, kQuantum)
                        : pe_->program->translation().run(tasklet.core, wram_, kQuantum);
  const bool has_stopped = tasklet.outcome.stop != isa::Stop::kBudget;
  const uint64_t issued = tasklet.outcome.instructions + has_stopped - tasklet.is_counted;
  if (observer_ != nullptr) observer_->start(number, clock_.cycles(), issued);
  clock_.compute(number, issued);
  tasklet.is_counted = false;
  tasklet.word = word_of(tasklet);
  if (tasklet.outcome.stop != isa::Stop::kCall) return;
  const isa::Instruction &call = *code().at(tasklet.core.pc);
  if (call.operation == isa::Operation::ldma || call.operation == isa::Operation::sdma)
    port_.prefetch(tasklet.core.registers[call.b], dma_bytes(tasklet, call));
}

CodeRun::Step CodeRun::step(Door &, std::atomic<uint64_t> &turns) {
  moved_bytes_ = 0;
  for (uint32_t calls = 0; calls < kStepCalls; ++calls) {
    turns.store(turns.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    for (; woken_ != 0; woken_ &= woken_ - 1)
      execute(static_cast<uint32_t>(std::countr_zero(woken_)));
    if (has_ended_) return Step::kEnded;
    const auto [number, is_transfer] = clock_.next();
    if (number == PeClock::kNobody) {
      end_waiting();
      if (!has_ended_) end();
      return Step::kEnded;
    }
    if (observer_ != nullptr && is_transfer) observer_->resume(number, clock_.cycles(), 0);
    if (is_transfer ||
        (observer_ == nullptr ? carry_out(number) : carry_out_observed(number)) == After::kGoOn)
      woken_ |= 1u << number;
    if (moved_bytes_ >= kStepBytes) return Step::kTransferred;
  }
  return Step::kOther;
}

CodeRun::After CodeRun::carry_out(uint32_t number) {
  Tasklet &tasklet = tasklets_[number];
  const uint32_t pc = tasklet.core.pc;
  const isa::Instruction *const next = code().at(pc);
  if (tasklet.outcome.stop != isa::Stop::kBudget && word_of(tasklet) != tasklet.word) {
    tasklet.is_counted = true;  // another tasklet has replaced the instruction meanwhile
    return After::kGoOn;
  }
  switch (tasklet.outcome.stop) {
    case isa::Stop::kBudget:
      return After::kGoOn;
    case isa::Stop::kIllegal:
      return fault(FaultKind::kInstruction, number,
                   pc < code().size()
                       ? "the word " + hexadecimal(code().word(pc)) + " is not an instruction"
                       : "the program has no instruction");
    case isa::Stop::kAddress:
      return fault_by_address(number);
    case isa::Stop::kCall:
      break;
  }
  const isa::Instruction &instruction = *next;
  switch (instruction.operation) {
    case isa::Operation::ldma:
    case isa::Operation::ldmai:
    case isa::Operation::sdma:
      return transfer(number, instruction);
    case isa::Operation::acquire:
      return acquire(number, instruction);
    case isa::Operation::release:
      return release(number, instruction);
    case isa::Operation::boot:
    case isa::Operation::resume:
    case isa::Operation::read_run:
    case isa::Operation::clr_run:
      return use_run_bit(number, instruction);
    case isa::Operation::stop:
      return stop_tasklet(number, instruction);
    case isa::Operation::time:
    case isa::Operation::time_cfg:
      return read_time(number, instruction);
    case isa::Operation::tell:
      ++tasklet.core.pc;
      return After::kGoOn;
    default:  // fault
      return fault_by_instruction(number, instruction);
  }
}

CodeRun::After CodeRun::carry_out_observed(uint32_t number) {
  const Tasklet &tasklet = tasklets_[number];
  const uint32_t woken = woken_, moved_bytes = moved_bytes_, pc = tasklet.core.pc;
  const uint64_t reads = pe_->report.dma_reads;
  const double now = clock_.cycles();
  const isa::Instruction *const next = code().at(pc);
  const bool reads_time =
      next != nullptr && tasklet.outcome.stop == isa::Stop::kCall &&
      (next->operation == isa::Operation::time || next->operation == isa::Operation::time_cfg);
  observer_->pause(number, now);
  observer_->call(number, kIramAddress + pc * kInstructionBytes, 1);
  const After after = carry_out(number);
  if (has_ended_) return after;
  for (uint32_t others = woken_ & ~woken & ~(1u << number); others != 0; others &= others - 1)
    observer_->resume(static_cast<uint32_t>(std::countr_zero(others)), now, 0);
  if (tasklet.state == State::kTransferring)
    observer_->wait_for_dma(number, now,
                            last_dma(moved_bytes_ - moved_bytes, pe_->report.dma_reads != reads));
  else if (tasklet.state == State::kStopped)
    observer_->wait(number, Wait::kStop, now);
  else if (tasklet.state == State::kRepeating)
    observer_->wait(number, tasklet.awaited < kMutexes ? Wait::kMutex : Wait::kHandshake, now);
  else if (reads_time)
    observer_->read_counter(number, now, time_);
  return after;
}

CodeRun::After CodeRun::repeat(uint32_t number, uint32_t awaited) {
  tasklets_[number].state = State::kRepeating;
  tasklets_[number].awaited = awaited;
  tasklets_[number].order = repeats_++;
  clock_.spin(number);
  return After::kStay;
}

uint32_t CodeRun::take_waiter(uint32_t awaited) {
  uint32_t first = PE_MAX_TASKLETS;
  for (uint32_t i = 0; i < PE_MAX_TASKLETS; ++i) {
    const Tasklet &tasklet = tasklets_[i];
    if (tasklet.state == State::kRepeating && tasklet.awaited == awaited &&
        (first == PE_MAX_TASKLETS || tasklet.order < tasklets_[first].order))
      first = i;
  }
  if (first != PE_MAX_TASKLETS) stop_repeating(first);
  return first;
}

void CodeRun::stop_repeating(uint32_t number) {
  clock_.stop_spinning(number);
  tasklets_[number].state = State::kExecuting;
  woken_ |= 1u << number;
}

void CodeRun::wake_all(uint32_t awaited) {
  while (take_waiter(awaited) != PE_MAX_TASKLETS) continue;
}

// --- DMA

uint32_t CodeRun::dma_bytes(const Tasklet &tasklet, const isa::Instruction &instruction) {
  const uint32_t units = (tasklet.core.registers[instruction.a] >> 24) + instruction.immediate;
  return (units % kDmaUnits + 1) * kDmaUnitBytes;
}

CodeRun::After CodeRun::transfer(uint32_t number, const isa::Instruction &instruction) {
  Tasklet &tasklet = tasklets_[number];
  PeReport &report = pe_->report;
  const isa::Operation operation = instruction.operation;
  const bool has_iram = operation == isa::Operation::ldmai;
  const uint32_t address = tasklet.core.registers[instruction.a] & 0xFFFFFF,
                 mram = tasklet.core.registers[instruction.b],
                 bytes = dma_bytes(tasklet, instruction), place = address & ~kLowBits,
                 offset = mram & (PE_MRAM_BYTES - 1) & ~kLowBits;
  const char *const memory = has_iram ? "IRAM" : "WRAM";
  const auto refuse = [&](const std::string &rule) {
    return fault(FaultKind::kDma, number,
                 std::string(isa::name_of(operation)) + " of " + std::to_string(bytes) +
                     " bytes between " + memory + " address " +
                     (has_iram ? hexadecimal(address)
                               : pe_->program->address_and_variable(address, address)) +
                     " and MRAM address " +
                     pe_->program->address_and_variable(mram, kMramAddress + offset) + rule);
  };
  if (mram >= PE_MRAM_BYTES && mram - kMramAddress >= PE_MRAM_BYTES)
    return refuse(": outside MRAM");
  if (offset + bytes > PE_MRAM_BYTES) return refuse(": beyond the end of MRAM");
  if (place > (has_iram ? iram_bytes_ : wram_.size) - bytes)
    return refuse(std::string(": beyond the end of ") + memory);
  if (is_strict_ && ((address | mram) & kLowBits) != 0)
    return refuse(": the addresses must be multiples of 8");
  report.masked_addresses += ((address & kLowBits) != 0) + ((mram & kLowBits) != 0);
  if (operation == isa::Operation::sdma) {
    port_.write(offset, bytes, wram_.bytes + place);
    ++report.dma_writes;
    report.dma_write_bytes += bytes;
  } else {
    uint64_t words[kDmaUnits];
    port_.read(offset, bytes, has_iram ? reinterpret_cast<uint8_t *>(words) : wram_.bytes + place);
    ++report.dma_reads;
    report.dma_read_bytes += bytes;
    if (has_iram) load_instructions(place / kInstructionBytes, {words, bytes / kInstructionBytes});
  }
  moved_bytes_ += bytes;
  ++tasklet.core.pc;
  tasklet.state = State::kTransferring;
  clock_.transfer(number, bytes);
  return After::kStay;
}

void CodeRun::load_instructions(uint32_t first, std::span<const uint64_t> words) {
  if (pe_->code == nullptr) pe_->code = std::make_unique<isa::Code>(*pe_->program->code());
  pe_->code->write(first, words);
  for (uint32_t i = 0; i < PE_MAX_TASKLETS; ++i) {
    const bool is_replaced = tasklets_[i].core.pc - first < words.size();
    if (tasklets_[i].state == State::kRepeating && is_replaced) stop_repeating(i);
  }
}

// --- Mutexes. A tasklet that waits for one repeats its instruction: `acquire r, 0, nz, .`.

CodeRun::After CodeRun::acquire(uint32_t number, const isa::Instruction &instruction) {
  Tasklet &tasklet = tasklets_[number];
  const uint32_t mutex =
      mutex_number(tasklet.core.registers[instruction.a] + instruction.immediate);
  const uint32_t pc = tasklet.core.pc;
  isa::finish(tasklet.core, instruction, std::exchange(mutexes_[mutex], uint8_t{1}));
  return tasklet.core.pc != pc ? After::kGoOn : repeat(number, mutex);
}

CodeRun::After CodeRun::release(uint32_t number, const isa::Instruction &instruction) {
  Tasklet &tasklet = tasklets_[number];
  const uint32_t mutex =
      mutex_number(tasklet.core.registers[instruction.a] + instruction.immediate);
  isa::finish(tasklet.core, instruction, std::exchange(mutexes_[mutex], uint8_t{0}));
  if (const uint32_t waiter = take_waiter(mutex); waiter != PE_MAX_TASKLETS) {
    Tasklet &next = tasklets_[waiter];
    isa::finish(next.core, *code().at(next.core.pc), std::exchange(mutexes_[mutex], uint8_t{1}));
  }
  return After::kGoOn;
}

// --- The RUN register: 64 bits. The lowest ones say which tasklets run, the others mean nothing.

bool CodeRun::run_bit(uint32_t bit) const {
  return bit < tasklet_count_ ? tasklets_[bit].state != State::kStopped
                              : (other_run_bits_ >> bit & 1) != 0;
}

CodeRun::After CodeRun::use_run_bit(uint32_t number, const isa::Instruction &instruction) {
  Tasklet &tasklet = tasklets_[number];
  const uint32_t bit = (tasklet.core.registers[instruction.a] + instruction.immediate) % kRunBits;
  const isa::Operation operation = instruction.operation;
  const bool was_set = run_bit(bit), is_boot = operation == isa::Operation::boot,
             sets = is_boot || operation == isa::Operation::resume,
             clears = operation == isa::Operation::clr_run;
  if (clears && bit < tasklet_count_)
    return fault(FaultKind::kInstruction, number,
                 "clr_run of tasklet " + std::to_string(bit) + " is not supported; use stop");
  const uint32_t pc = tasklet.core.pc;
  isa::finish(tasklet.core, instruction, was_set);
  if (bit >= tasklet_count_) {
    other_run_bits_ &= ~(UINT64_C(1) << bit);
    other_run_bits_ |= uint64_t{clears ? false : sets || was_set} << bit;
  } else if (sets && !was_set) {
    if (is_boot) tasklets_[bit].core.pc = 0;
    tasklets_[bit].state = State::kExecuting;
    woken_ |= 1u << bit;
  }
  if (run_bit(bit) != was_set) wake_all(kMutexes + bit);
  return tasklet.core.pc != pc ? After::kGoOn : repeat(number, kMutexes + bit);
}

CodeRun::After CodeRun::stop_tasklet(uint32_t number, const isa::Instruction &instruction) {
  Tasklet &tasklet = tasklets_[number];
  isa::finish(tasklet.core, instruction, 0);
  tasklet.state = State::kStopped;
  wake_all(kMutexes + number);
  return After::kStay;
}

// --- Time. As on hardware, the register lacks the low four bits of the counter.

CodeRun::After CodeRun::read_time(uint32_t number, const isa::Instruction &instruction) {
  constexpr uint32_t kMissingBits = 4;
  Tasklet &tasklet = tasklets_[number];
  const double cycles = clock_.cycles(), instructions = static_cast<double>(clock_.instructions());
  const uint64_t counted =
      shows_instructions_ ? instruction_counter_.value(instructions) : cycle_counter_.value(cycles);
  time_ = counted;
  const auto value = static_cast<uint32_t>(counted >> kMissingBits);
  if (instruction.operation == isa::Operation::time_cfg) {
    using Counter = PerformanceCounter;
    const uint32_t configuration = tasklet.core.registers[instruction.b];
    const bool resets = (configuration & 1) != 0;
    const uint32_t mode = configuration >> 1;
    if (mode > Counter::kNothing)
      return fault(FaultKind::kInstruction, number,
                   "time_cfg with mode " + std::to_string(mode) +
                       " is not supported; 1 counts cycles, 2 instructions, 3 nothing");
    const auto counts = [&](const Counter &counter, Counter::Mode own) {
      return mode == Counter::kSame ? counter.runs() : mode == own;
    };
    cycle_counter_.set(cycles, counts(cycle_counter_, Counter::kCycles), resets);
    instruction_counter_.set(instructions, counts(instruction_counter_, Counter::kInstructions),
                             resets);
    if (mode == Counter::kCycles || mode == Counter::kInstructions)
      shows_instructions_ = mode == Counter::kInstructions;
  }
  isa::finish(
      tasklet.core, instruction,
      isa::compute(isa::Operation::or_, instruction.condition, {value, 0, 0}, tasklet.core.flags));
  return After::kGoOn;
}

// --- The end of a run

std::string CodeRun::place_of(uint32_t number) const {
  const uint32_t address = kIramAddress + tasklets_[number].core.pc * kInstructionBytes;
  const std::string function = pe_->program->function_at(address);
  return ", at " + hexadecimal(address) + (function.empty() ? "" : " in " + function);
}

CodeRun::After CodeRun::fault_by_instruction(uint32_t number, const isa::Instruction &instruction) {
  for (const auto &row : kRuntimeFaults)
    if (row.code == instruction.immediate) return fault(row.kind, number, row.reason);
  return fault(
      FaultKind::kProgram, number,
      "the program executed the instruction fault " + std::to_string(instruction.immediate));
}

CodeRun::After CodeRun::fault_by_address(uint32_t number) {
  const isa::Outcome &outcome = tasklets_[number].outcome;
  const bool is_misaligned = outcome.address % outcome.bytes != 0;
  return fault(FaultKind::kMemory, number,
               "an access of " + std::to_string(outcome.bytes) + " bytes to WRAM address " +
                   pe_->program->address_and_variable(outcome.address, outcome.address) +
                   (is_misaligned ? ", which is not a multiple of " + std::to_string(outcome.bytes)
                                  : ", beyond the end of WRAM"));
}

// A DPU with only stopped tasklets is done. A tasklet that repeats an instruction never ends.
void CodeRun::end_waiting() {
  // A tasklet at address 0 has not begun. A tasklet that has ended would stop again.
  const auto waits = [&](const Tasklet &tasklet) {
    const isa::Instruction *const next = code().at(tasklet.core.pc);
    return tasklet.state == State::kRepeating ||
           (tasklet.core.pc != 0 && (next == nullptr || next->operation != isa::Operation::stop));
  };
  for (uint32_t i = 0; i < PE_MAX_TASKLETS; ++i) {
    const Tasklet &tasklet = tasklets_[i];
    if (!waits(tasklet)) continue;
    pe_->report.waiting_tasklets += 1;
    const bool is_stopped = tasklet.state == State::kStopped;
    if (has_ended_ || (is_stopped && !is_strict_)) continue;
    const std::string name = tasklet.awaited < kMutexes
                                 ? pe_->program->variable_at(kMutexAddress + tasklet.awaited)
                                 : "";
    const std::string what =
        is_stopped ? "another tasklet to resume it"
        : tasklet.awaited < kMutexes
            ? "mutex " + std::to_string(tasklet.awaited) + (name.empty() ? "" : " (" + name + ")")
            : "bit " + std::to_string(tasklet.awaited - kMutexes) + " of RUN to change";
    fault(FaultKind::kDeadlock, i,
          "deadlock: tasklet " + std::to_string(i) + " waits for " + what + place_of(i));
  }
}

void CodeRun::finish() {
  if (pe_->fault.kind == FaultKind::kNoMemory) return;
  read_log();
  if (observer_ != nullptr) observer_->end(pe_->report);
}

void CodeRun::read_log() {
  struct LogState {
    uint32_t end, has_wrapped;
  };
  const Program &program = *pe_->program;
  const dpu_symbol_t *const buffer = program.find("__stdout_buffer"), *const at = program.find(
                                                                          "__stdout_buffer_state");
  if (buffer == nullptr || at == nullptr || at->address > wram_.size - sizeof(LogState)) return;
  LogState state;
  std::memcpy(&state, wram_.bytes + at->address, sizeof state);
  pe_->log.clear();
  const uint32_t offset = buffer->address - kMramAddress;
  if (state.has_wrapped != 0 || offset > PE_MRAM_BYTES || state.end > buffer->size ||
      state.end > PE_MRAM_BYTES - offset) {
    pe_->log_status = DPU_ERR_LOG_BUFFER_TOO_SMALL;
    return;
  }
  std::vector<uint8_t> log(state.end & ~kLowBits);
  port_.read(offset, log.size(), log.data());
  pe_->log_status = format_log(log, pe_->log) ? DPU_OK : DPU_ERR_LOG_FORMAT;
}

}  // namespace dpuemu
