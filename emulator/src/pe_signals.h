// Handles signals that a PE program raises: they end the PE, not the process.
#pragma once

#include <pthread.h>
#include <signal.h>

#include <atomic>
#include <cstdint>

#include "pe_run.h"

namespace dpuemu {

/// The data of a thread for its signal handlers.
struct SignalTarget {
  Door door;
  PeRun *run = nullptr;                   // the run whose tasklet is inside the door
  std::atomic<uint64_t> turns{0};         // incremented at every entry of a tasklet
  std::atomic<uint64_t> overdue_turn{0};  // the tasklet of this turn must end
};

/// A SignalTarget with a stack for signal handlers, for one thread at a time.
class PeSignals {
 public:
  /// Throws std::bad_alloc.
  PeSignals();
  ~PeSignals();
  PeSignals(const PeSignals &) = delete;
  PeSignals &operator=(const PeSignals &) = delete;

  /// Until detach(), the calling thread handles the signals of the PEs that it runs. From its first attach() on, it receives only signals
  /// that PEs cause.
  void attach();
  void detach();

  SignalTarget target;

 private:
  void *stack_;
  stack_t stack_before_ = {};  // signal stack that the thread had before
};

/// Installs our handlers, which pass on all other signals. Call before PEs run, since the program may have replaced them.
void install_signal_handlers();

/// Ends the tasklet of this turn if it is still inside when the signal arrives.
void end_tasklet(pthread_t thread, SignalTarget &target, uint64_t turn);

}  // namespace dpuemu
