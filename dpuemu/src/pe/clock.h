// The modelled time of one PE: the model has a pipeline that all tasklets share, and a DMA engine.
// All times are modelled, not measured.
//
// A tasklet issues at most one instruction per 11 cycles. An instruction holds the pipeline for 1.2
// cycles on average. A likely cause is instructions that read two registers of one bank and take
// two cycles. So each of n computing tasklets issues one instruction per max(11, 1.2 n) cycles. A
// tasklet that waits for a mutex repeats an instruction of one cycle. The DMA engine carries out
// one transfer after another.
//
// Sources: Gomez-Luna et al., "Benchmarking a New Paradigm" (PrIM), arXiv:2105.03814, for the 11
// cycles and the engine's cycles per transfer; not compared with its text. The 1.2 cycles and the
// engine's cycles per byte are our fit to kernel times that were measured on DIMMs
// (docs/manual.md).
#pragma once

#include <cstdint>

#include "runtime/calls.h"

namespace dpuemu {

constexpr double kIssueCycles = 11;
constexpr double kPipelineCycles = 1.2;
constexpr double kEngineCycles = 34.4, kEngineCyclesPerByte = 0.45;

class PeClock {
 public:
  /// Resets the clock to time 0 and parks all tasklets.
  void start();

  /// The tasklet starts to issue `instructions` instructions.
  void compute(uint32_t tasklet, uint64_t instructions);
  /// The tasklet starts a DMA now and waits for it.
  void transfer(uint32_t tasklet, uint32_t bytes);
  /// The tasklet starts to repeat one instruction until stop_spinning, as a tasklet that waits for
  /// a mutex does.
  void spin(uint32_t tasklet);
  void stop_spinning(uint32_t tasklet);

  static constexpr uint32_t kNobody = UINT32_MAX;
  /// Advances to the next time at which a tasklet completes its work, parks this tasklet and
  /// returns its number. If several tasklets complete at the same time, next() returns the lowest
  /// tasklet number first. Returns kNobody if all tasklets are parked.
  uint32_t next();

  double cycles() const { return now_; }
  uint64_t instructions() const { return instructions_; }

 private:
  uint32_t computing_ = 0, transferring_ = 0, spinning_ = 0;  // bit sets
  double now_ = 0;                                            // cycles
  double issued_ = 0;          // instructions that each issuing tasklet has issued since the start
  double engine_free_ = 0;     // cycles
  uint64_t instructions_ = 0;  // instructions of all tasklets
  double due_[PE_MAX_TASKLETS] =
      {};  // end of the tasklet's work, in units of issued_ (computing) or now_ (transferring)
  uint64_t computing_instructions_[PE_MAX_TASKLETS] = {};
  double spun_since_[PE_MAX_TASKLETS] = {};  // value of issued_
};

}  // namespace dpuemu
