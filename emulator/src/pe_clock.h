// The modelled time of one PE: a pipeline that all tasklets share, and a DMA engine. All of it is modelled, not measured.
//
// Pipeline: at most one instruction per cycle, and one per 11 cycles and tasklet. So n computing tasklets each issue an instruction every
// max(11, n) cycles. DMA engine: one transfer after the other.
//
// Source: Gomez-Luna et al., "Benchmarking a New Paradigm" (PrIM), arXiv:2105.03814. No figure is checked against its text.
// 11 cycles between two instructions of a tasklet; a DMA of one tasklet takes 77 (read) or 61 (write) cycles and half a cycle per byte. The
// engine's time per transfer is our fit to two of its figures at 350 MHz: 624.02 MB/s for copies in pieces of 1024 bytes, 72.58 MB/s for
// random reads and writes of 8 bytes.
#pragma once

#include <cstdint>

#include "pe/calls.h"

namespace dpuemu {

constexpr double kIssueCycles = 11;
constexpr double kReadLatencyCycles = 77, kWriteLatencyCycles = 61, kLatencyCyclesPerByte = 0.5;
constexpr double kEngineCycles = 34.4, kEngineCyclesPerByte = 0.527;

class PeClock {
 public:
  /// Resets to time 0; all tasklets are parked.
  void start();

  /// The tasklet starts to issue this number of instructions.
  void compute(uint32_t tasklet, uint64_t instructions);
  /// The tasklet starts a DMA now and waits for it.
  void transfer(uint32_t tasklet, uint32_t bytes, bool is_read);

  static constexpr uint32_t kNobody = UINT32_MAX;
  /// Advances to the next time at which a tasklet completes its work, parks it and returns it. At equal times, the lowest tasklet comes
  /// first. Returns kNobody if all tasklets are parked.
  uint32_t next();

  double cycles() const { return now_; }
  uint64_t instructions() const { return instructions_; }

 private:
  uint32_t computing_ = 0, transferring_ = 0;  // bit sets
  double now_ = 0;                             // cycles
  double issued_ = 0;                          // instructions that each computing tasklet has issued since the start
  double engine_free_ = 0;                     // cycles
  uint64_t instructions_ = 0;                  // instructions of all tasklets
  double due_[PE_MAX_TASKLETS] = {};           // end of the work: compared with issued_ (computing) or now_ (transferring)
  uint64_t computing_instructions_[PE_MAX_TASKLETS] = {};
};

}  // namespace dpuemu
