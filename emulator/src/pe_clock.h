// The modelled time of one PE: the model has a pipeline that all tasklets share, and a DMA engine. All times are modelled, not measured.
//
// The pipeline issues at most one instruction per cycle, and at most one instruction per 11 cycles for each tasklet. So each of n computing
// tasklets issues one instruction per max(11, n) cycles. The DMA engine carries out one transfer after another.
//
// Source: Gomez-Luna et al., "Benchmarking a New Paradigm" (PrIM), arXiv:2105.03814. The numbers below have not been compared with the text
// of this paper. 11 cycles between two instructions of a tasklet; a DMA of one tasklet takes 77 (read) or 61 (write) cycles and half a
// cycle per byte. The DMA engine's time per transfer is our fit to two bandwidths of the paper at 350 MHz: 624.02 MB/s for copies in pieces
// of 1024 bytes, 72.58 MB/s for random reads and writes of 8 bytes.
#pragma once

#include <cstdint>

#include "pe/calls.h"

namespace dpuemu {

constexpr double kIssueCycles = 11;
constexpr double kReadLatencyCycles = 77, kWriteLatencyCycles = 61, kLatencyCyclesPerByte = 0.5;
constexpr double kEngineCycles = 34.4, kEngineCyclesPerByte = 0.527;

class PeClock {
 public:
  /// Resets the clock to time 0 and parks all tasklets.
  void start();

  /// The tasklet starts to issue `instructions` instructions.
  void compute(uint32_t tasklet, uint64_t instructions);
  /// The tasklet starts a DMA now and waits for it.
  void transfer(uint32_t tasklet, uint32_t bytes, bool is_read);

  static constexpr uint32_t kNobody = UINT32_MAX;
  /// Advances to the next time at which a tasklet completes its work, parks this tasklet and returns its number. If several tasklets
  /// complete at the same time, next() returns the lowest tasklet number first. Returns kNobody if all tasklets are parked.
  uint32_t next();

  double cycles() const { return now_; }
  uint64_t instructions() const { return instructions_; }

 private:
  uint32_t computing_ = 0, transferring_ = 0;  // bit sets
  double now_ = 0;                             // cycles
  double issued_ = 0;                          // instructions that each computing tasklet has issued since the start
  double engine_free_ = 0;                     // cycles
  uint64_t instructions_ = 0;                  // instructions of all tasklets
  double due_[PE_MAX_TASKLETS] = {};           // end of the tasklet's work, in units of issued_ (computing) or now_ (transferring)
  uint64_t computing_instructions_[PE_MAX_TASKLETS] = {};
};

}  // namespace dpuemu
