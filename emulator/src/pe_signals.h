// Signals that a PE program raises end its PE, not the process.
#pragma once

#include <pthread.h>
#include <signal.h>

#include <atomic>
#include <cstdint>

#include "pe_run.h"

namespace dpuemu {

/// What a handler must know about the thread it runs on.
struct SignalTarget {
  Door door;
  PeRun *run = nullptr;                   // whose tasklet is inside the door
  std::atomic<uint64_t> turns{0};         // counts up at every entry of a tasklet
  std::atomic<uint64_t> overdue_turn{0};  // the tasklet of this turn shall end
};

/// A SignalTarget with a stack for signal handlers. One thread at a time has it.
class PeSignals {
 public:
  /// Throws std::bad_alloc.
  PeSignals();
  ~PeSignals();
  PeSignals(const PeSignals &) = delete;
  PeSignals &operator=(const PeSignals &) = delete;

  /// The calling thread handles the signals of the PEs it runs until detach(). From its first attach() on it gets no signals but those that
  /// PEs cause.
  void attach();
  void detach();

  SignalTarget target;

 private:
  void *stack_;
  stack_t stack_before_ = {};  // of the thread
};

/// Before PEs run: the handlers are ours, and pass on what is not. A program may have put others in their place since the last time.
void install_signal_handlers();

/// Ends the tasklet of that turn, if it is still inside when the signal arrives.
void end_tasklet(pthread_t thread, SignalTarget &target, uint64_t turn);

}  // namespace dpuemu
