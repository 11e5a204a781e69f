// A run of the program of one PE, step by step. There are two kinds of programs, and of runs: PeRun
// and CodeRun.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "base/door.h"
#include "machine/debugger.h"
#include "machine/pe_observer.h"
#include "pe/clock.h"

namespace dpuemu {

class PeCheck;

class AnyRun {
 public:
  AnyRun() = default;
  AnyRun(const AnyRun &) = delete;
  AnyRun &operator=(const AnyRun &) = delete;
  virtual ~AnyRun() = default;

  enum class Step { kTransferred, kAwaitsHost, kOther, kEnded };
  /// Runs the PE for a limited number of calls. Returns kTransferred if its DMA moved kStepBytes,
  /// kAwaitsHost if a tasklet waits for the host, kOther after kStepCalls calls or an interruption,
  /// and kEnded if the run is over; pe.report and pe.fault then have the results. turns: the number
  /// of times that a thread has entered a tasklet, which step() increments.
  virtual Step step(Door &door, std::atomic<uint64_t> &turns) = 0;

  /// Ends the run with a fault: the host, or the end of another PE, stops it. reason: a part of a
  /// sentence.
  void stop(const char *reason);
  /// Ends the run with a fault because the host has no memory. Allocates nothing.
  Step fail_without_memory();
  /// Ends the run with a fault because it takes too long.
  void end_as_endless();

  /// Call this function in the handler of a SIGSEGV that a tasklet caused. Returns whether the
  /// tasklet can continue.
  virtual bool handle_memory_fault(uint64_t) { return false; }
  /// Returns whether a signal of the watch may interrupt the tasklet at this address.
  virtual bool is_interruptible(uint64_t) const { return false; }
  /// Returns the checks of the run, or nullptr.
  virtual PeCheck *check() const { return nullptr; }
  /// Returns the value of gs while the tasklets run.
  virtual uint64_t gs_base() const { return 0; }

 protected:
  /// What the tasklet does after an instruction or a call that concerns others.
  enum class After { kGoOn, kStay };

  /// The limits of a step. The caches hold the lines of kStepBytes until the other PEs of the bank
  /// have accessed them.
  static constexpr uint32_t kStepBytes = 2048, kStepCalls = 1024;
  /// The bits of the RUN register. The lowest ones say which tasklets run.
  static constexpr uint32_t kRunBits = 64;

  /// Begins a run at modelled time 0.
  void begin(Pe &pe);
  /// Ends the run with a fault, to whose reason it adds the tasklet's place.
  After fault(FaultKind kind, uint32_t tasklet, std::string reason);
  /// Ends the run.
  void end();

  /// Returns the last transfer, for an observer.
  PeObserver::Dma last_dma(uint32_t bytes, bool is_read) const {
    const double end = clock_.engine_free();
    return {bytes, is_read, end - PeClock::engine_cycles(bytes), end};
  }

  Pe *pe_ = nullptr;
  bool has_ended_ = false;
  PeClock clock_;
  uint32_t woken_ = 0;  // bit set of the tasklets to run now
  DebuggedRun debugged_;

 private:
  /// Releases what the run uses. pe_->fault has its fault.
  virtual void finish() = 0;
  /// Returns the part of a sentence that names the functions that a tasklet runs.
  virtual std::string place_of(uint32_t tasklet) const = 0;
};

}  // namespace dpuemu
