// Runs the machine code of one PE once: a program of the vendor's compiler.
//
// A tasklet executes instructions until it reaches one that concerns other tasklets, MRAM or time,
// or has executed kQuantum instructions. This instruction takes effect at its modelled time
// (clock.h), after those of other tasklets before this time. So runs are deterministic, also of
// programs whose tasklets wait for each other's stores.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <string>

#include "isa/core.h"
#include "machine/pe_memory.h"
#include "pe/any_run.h"
#include "pe/mram_port.h"
#include "pe/performance_counter.h"

namespace dpuemu {

class CodeRun : public AnyRun {
 public:
  CodeRun();

  /// Boots tasklet 0. If the PE's WRAM is not accessible, because the host has no memory, sets a
  /// fault and returns false. observer: gets the events of the run, or nullptr.
  bool begin(Pe &pe, const PePlace &place, const MramPort &port, bool is_strict, bool is_accessible,
             PeObserver *observer);

  Step step(Door &door, std::atomic<uint64_t> &turns) override;

 private:
  /// python/dpuemu/in_gdb has the names of the values.
  /// kRepeating: the tasklet repeats an instruction that jumps to itself until its condition
  /// changes.
  enum class State : uint8_t { kStopped, kExecuting, kTransferring, kRepeating };
  struct Tasklet {
    isa::Tasklet core;
    isa::Outcome outcome = {};  // of the instructions until now
    uint64_t word = 0;          // of the instruction that ended them
    bool is_counted = false;    // the clock has counted the next instruction
    State state = State::kStopped;
    uint32_t awaited = 0;  // kRepeating: the mutex, or kMutexes + the bit of RUN, that it waits for
    uint64_t order = 0;    // kRepeating: of the waiting tasklets
  };
  static constexpr uint64_t kQuantum = 2000;
  static constexpr uint32_t kMutexes = PE_ATOMIC_BYTES;

  const isa::Code &code() const {
    return pe_->code != nullptr ? *pe_->code : *pe_->program->code();
  }
  /// Returns the word of the tasklet's next instruction, or a value that is no word.
  uint64_t word_of(const Tasklet &tasklet) const {
    return tasklet.core.pc < code().size() ? code().word(tasklet.core.pc) : ~uint64_t{0};
  }
  /// Executes instructions up to the next one that has to wait for its modelled time.
  void execute(uint32_t number);
  /// Carries out this instruction.
  After carry_out(uint32_t number);
  /// The same, and reports what happens to the observer.
  After carry_out_observed(uint32_t number);
  /// Returns the bytes of a DMA. The highest byte of the WRAM or IRAM address is added to the
  /// immediate; the sum modulo 256 is the number of 8-byte units less one.
  static uint32_t dma_bytes(const Tasklet &tasklet, const isa::Instruction &instruction);
  After transfer(uint32_t number, const isa::Instruction &instruction);
  /// Gives the PE its own instructions. Those from `first` on are `words`.
  void load_instructions(uint32_t first, std::span<const uint64_t> words);
  After acquire(uint32_t number, const isa::Instruction &instruction);
  After release(uint32_t number, const isa::Instruction &instruction);
  /// boot, resume, read_run and clr_run.
  After use_run_bit(uint32_t number, const isa::Instruction &instruction);
  After stop_tasklet(uint32_t number, const isa::Instruction &instruction);
  After read_time(uint32_t number, const isa::Instruction &instruction);
  /// The tasklet repeats its instruction until `awaited` changes.
  After repeat(uint32_t number, uint32_t awaited);
  void stop_repeating(uint32_t number);
  /// Returns the tasklet that has repeated an instruction longest until `awaited` changes, or
  /// PE_MAX_TASKLETS; it then no longer repeats it.
  uint32_t take_waiter(uint32_t awaited);
  /// Takes all of them.
  void wake_all(uint32_t awaited);
  bool run_bit(uint32_t bit) const;

  After fault_by_instruction(uint32_t number, const isa::Instruction &instruction);
  After fault_by_address(uint32_t number);
  void end_waiting();
  void finish() override;
  /// Replaces the log of the PE by the output that its program has left in MRAM.
  void read_log();
  std::string place_of(uint32_t number) const override;

  PeObserver *observer_ = nullptr;
  isa::Wram wram_ = {};
  uint32_t iram_bytes_ = 0;     // of the machine's chip
  uint8_t *mutexes_ = nullptr;  // 256 bytes: 1 if locked
  MramPort port_;
  bool is_strict_ = false;
  uint32_t tasklet_count_ = 0;  // of the machine's chip
  Tasklet tasklets_[PE_MAX_TASKLETS];
  uint64_t other_run_bits_ = 0;  // of the RUN register, above those of the tasklets
  uint32_t moved_bytes_ = 0;     // by DMA in this step
  uint64_t repeats_ = 0;
  PerformanceCounter cycle_counter_, instruction_counter_;
  bool shows_instructions_ = false;
  uint64_t time_ = 0;  // that the last instruction time or time_cfg has read
};

}  // namespace dpuemu
