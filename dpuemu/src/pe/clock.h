// The modelled time of one PE: the model has a pipeline that all tasklets share, and a DMA engine.
// All times are modelled, not measured.
//
// A tasklet issues at most one instruction per 11 cycles, and the pipeline accepts one instruction
// per cycle. So each of n issuing tasklets issues one instruction per max(11, n) cycles. A tasklet
// that waits for a mutex repeats an instruction. The DMA engine carries out one transfer after
// another. It moves 2 bytes per cycle; opening a row of MRAM overlaps the previous transfer. So a
// tasklet waits for its transfer longer than the transfer occupies the engine.
//
// Sources, all of DIMMs: PrIM's Arithmetic-Throughput (CMU-SAFARI/prim-benchmarks, pull request 7)
// takes 66.08 cycles per addition of int32 with 1 tasklet, 6.02 with 11 and 5.99 with 16, which are
// 6 instructions at 11 and at 1 cycle. The cycles of a transfer: tools/fit_pe_time.py, from copies
// of 8 to 2,048 bytes by one tasklet (s9770652/pim-memcpy). The cycles of the engine: PrIM's
// microbenchmarks (arXiv:2105.03814), not compared with its text. A start of 12 cycles per transfer
// would make PrIM's BS (VIA-Research/uPIMulator) 12% too slow, instead of 4%.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>

#include "base/chip.h"
#include "runtime/calls.h"

namespace dpuemu {

constexpr double kTransferCycles = 44.9, kTransferCyclesPerByte = 0.534;
constexpr double kEngineCyclesPerByte = 0.5, kLeastEngineCycles = 38;

class PeClock {
 public:
  /// Resets the clock to time 0 and parks all tasklets.
  void start();

  /// The tasklet starts to issue `instructions` instructions.
  void compute(uint32_t tasklet, uint64_t instructions);
  /// The tasklet starts a DMA now and waits for it.
  void transfer(uint32_t tasklet, uint32_t bytes);
  /// Returns how long a transfer occupies the engine.
  static double engine_cycles(uint32_t bytes) {
    return std::max(kLeastEngineCycles, kEngineCyclesPerByte * bytes);
  }
  /// Returns when the engine ends the last transfer.
  double engine_free() const { return engine_free_; }
  /// The tasklet starts to repeat one instruction until stop_spinning, as a tasklet that waits for
  /// a mutex does.
  void spin(uint32_t tasklet);
  void stop_spinning(uint32_t tasklet);

  static constexpr uint32_t kNobody = UINT32_MAX;
  struct Completion {
    uint32_t tasklet;
    bool is_transfer;
  };
  /// Advances to the next time at which a tasklet completes its work, and parks this tasklet. If
  /// several tasklets complete at the same time, next() returns the lowest tasklet number first.
  /// The tasklet is kNobody if all tasklets are parked.
  Completion next();

  double cycles() const { return now_; }
  uint64_t instructions() const { return instructions_; }

 private:
  /// The tasklets with work of one kind, in the order in which the work ends; of two that end at
  /// the same time, the lower number first.
  class Queue {
   public:
    uint32_t size() const { return end_ - begin_; }
    /// The time at which the work of the first tasklet ends; infinity if the queue is empty.
    double due() const { return due_[begin_]; }
    /// The number of the first tasklet; kNobody if the queue is empty.
    uint32_t first() const { return tasklets_[begin_]; }
    void pop() { ++begin_; }
    void clear() {
      begin_ = end_ = 0;
      end();
    }
    void insert(uint32_t tasklet, double due);

   private:
    void end() {
      due_[end_] = std::numeric_limits<double>::infinity();
      tasklets_[end_] = kNobody;
    }
    static constexpr uint32_t kEntries = 8 * PE_MAX_TASKLETS;
    uint32_t begin_ = 0, end_ = 0;
    // Two arrays: a 16-byte load of a pair that was just stored in two parts cannot be forwarded
    // and would stall.
    double due_[kEntries + 1];
    uint32_t tasklets_[kEntries + 1];
  };

  Queue computing_;            // by the value of issued_ at which they end
  Queue transferring_;         // by cycles
  uint32_t spinning_ = 0;      // bit set
  uint32_t spinners_ = 0;      // their number
  double now_ = 0;             // cycles
  double issued_ = 0;          // instructions that each issuing tasklet has issued since the start
  double engine_free_ = 0;     // cycles
  uint64_t instructions_ = 0;  // instructions of all tasklets
  uint64_t computing_instructions_[PE_MAX_TASKLETS] = {};
  double spun_since_[PE_MAX_TASKLETS] = {};  // value of issued_
};

// Inline, because each call of a tasklet needs several of these functions.

inline void PeClock::Queue::insert(uint32_t tasklet, double due) {
  if (end_ == kEntries) {
    std::copy(due_ + begin_, due_ + end_, due_);
    std::copy(tasklets_ + begin_, tasklets_ + end_, tasklets_);
    end_ -= std::exchange(begin_, 0);
  }
  uint32_t place = end_++;
  end();
  for (; place != begin_; --place) {
    if (due_[place - 1] < due || (due_[place - 1] == due && tasklets_[place - 1] < tasklet)) break;
    due_[place] = due_[place - 1];
    tasklets_[place] = tasklets_[place - 1];
  }
  due_[place] = due;
  tasklets_[place] = tasklet;
}

inline void PeClock::start() {
  computing_.clear();
  transferring_.clear();
  spinning_ = spinners_ = 0;
  now_ = issued_ = engine_free_ = 0;
  instructions_ = 0;
}

inline void PeClock::compute(uint32_t tasklet, uint64_t instructions) {
  computing_.insert(tasklet, issued_ + static_cast<double>(instructions));
  computing_instructions_[tasklet] = instructions;
}

inline void PeClock::transfer(uint32_t tasklet, uint32_t bytes) {
  const double begin = std::max(now_, engine_free_);
  engine_free_ = begin + engine_cycles(bytes);
  transferring_.insert(tasklet, begin + kTransferCycles + kTransferCyclesPerByte * bytes);
}

inline void PeClock::spin(uint32_t tasklet) {
  spinning_ |= 1u << tasklet;
  ++spinners_;
  spun_since_[tasklet] = issued_;
}

inline void PeClock::stop_spinning(uint32_t tasklet) {
  if ((spinning_ >> tasklet & 1) == 0) return;
  spinning_ &= ~(1u << tasklet);
  --spinners_;
  instructions_ += static_cast<uint64_t>(issued_ - spun_since_[tasklet]);
}

inline PeClock::Completion PeClock::next() {
  const uint32_t issuing = computing_.size() + spinners_;
  const double cycles_per_instruction =
      issuing <= kIssueCycles ? kIssueCycles : static_cast<double>(issuing);
  const uint32_t computed = computing_.first(), transferred = transferring_.first();
  const double computed_at = now_ + (computing_.due() - issued_) * cycles_per_instruction;
  const double transferred_at = transferring_.due();
  if (computed_at < transferred_at || (computed_at == transferred_at && computed < transferred)) {
    issued_ = computing_.due();
    now_ = computed_at;
    instructions_ += computing_instructions_[computed];
    computing_.pop();
    return {computed, false};
  }
  if (transferred == kNobody) return {kNobody, false};
  if (issuing != 0) issued_ += (transferred_at - now_) / cycles_per_instruction;
  now_ = transferred_at;
  transferring_.pop();
  return {transferred, true};
}

}  // namespace dpuemu
