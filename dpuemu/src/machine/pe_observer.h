// The events of a run of a PE, for a profile or a trace. All times are modelled cycles since the
// start of the run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>

#include "machine/pe.h"
#include "machine/program.h"

namespace dpuemu {

/// What tasklets wait for.
enum class Wait : uint8_t { kDma, kMutex, kBarrier, kSemaphore, kHandshake, kStop };
constexpr const char *kWaitNames[] = {"dma", "mutex", "barrier", "semaphore", "handshake", "stop"};
constexpr size_t kWaits = std::size(kWaitNames);

class PeObserver {
 public:
  PeObserver() = default;
  PeObserver(const PeObserver &) = delete;
  PeObserver &operator=(const PeObserver &) = delete;
  virtual ~PeObserver() = default;

  virtual void begin(const Program &program, const PePlace &place) = 0;
  /// The tasklet starts to compute `instructions` instructions.
  virtual void start(uint32_t tasklet, double now, uint64_t instructions) = 0;
  /// The tasklet has computed them.
  virtual void pause(uint32_t tasklet, double now) = 0;
  /// The tasklet makes a call of `instructions` instructions. place: the offset of its return
  /// address in the text; for machine code, the address of the instruction.
  virtual void call(uint32_t tasklet, uint32_t place, uint32_t instructions) = 0;
  /// The tasklet starts to wait in this call.
  virtual void wait(uint32_t tasklet, Wait what, double now) = 0;
  /// The same for a DMA. The engine is busy with it from engine_begin to engine_end.
  struct Dma {
    uint32_t bytes;
    bool is_read;
    double engine_begin, engine_end;
  };
  virtual void wait_for_dma(uint32_t tasklet, double now, const Dma &dma) = 0;
  /// The tasklet stops waiting. instructions: that it has repeated.
  virtual void resume(uint32_t tasklet, double now, uint64_t instructions) = 0;
  /// The tasklet has ended.
  virtual void end_tasklet(uint32_t, double) {}
  /// The tasklet has read or set the performance counter.
  virtual void read_counter(uint32_t, double, uint64_t) {}
  /// The begin and the end of a region that the program marks. name: an offset for
  /// Program::text_at.
  virtual void begin_region(uint32_t, double, uint32_t) {}
  virtual void end_region(uint32_t, double) {}
  /// The run has ended, and its report is complete.
  virtual void end(const PeReport &report) = 0;

  /// Returns whether code at `address` has read a counter and not yet written it. Then no other
  /// tasklet may run.
  virtual bool is_counting(uint64_t) const { return false; }
};

}  // namespace dpuemu
