// Handles signals that a PE program raises. Such a signal ends the PE, but not the process.
#pragma once

#include <pthread.h>
#include <signal.h>

#include <atomic>
#include <cstdint>

#include "pe/run.h"

namespace dpuemu {

/// The data that a thread provides for its signal handlers.
struct SignalTarget {
  Door door;
  std::atomic<AnyRun *> run{nullptr};  // the run whose tasklets the thread enters
  std::atomic<uint64_t> turns{0};      // incremented whenever the thread enters a tasklet
  std::atomic<uint64_t> long_turn{0};  // the number of the turn to interrupt
};

/// A SignalTarget with a stack for signal handlers, for one thread at a time.
class PeSignals {
 public:
  /// Throws std::bad_alloc.
  PeSignals();
  ~PeSignals();
  PeSignals(const PeSignals &) = delete;
  PeSignals &operator=(const PeSignals &) = delete;

  /// Until detach(), the calling thread handles the signals of the PEs that it runs. After its
  /// first attach(), the thread receives only signals that PEs cause.
  void attach();
  void detach();

  SignalTarget target;

 private:
  void *stack_;
  stack_t stack_before_ = {};  // signal stack of the thread before attach()
};

/// Installs the signal handlers of the emulator. Signals that no PE causes go to the previous
/// handlers. Call this function before each launch, since the program may have replaced the
/// handlers of the emulator.
void install_signal_handlers();

/// Sends a signal to the thread. If the thread is still in turn `turn` of a tasklet when the signal
/// arrives, the signal interrupts the tasklet.
void interrupt_turn(pthread_t thread, SignalTarget &target, uint64_t turn);

}  // namespace dpuemu
