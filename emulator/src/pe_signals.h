// Signals that a PE program raises end its PE, not the process.
#pragma once

#include <pthread.h>

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

/// For each thread that runs PEs, once: gives it a stack for handlers, and leaves it no signals but those that PEs cause.
void prepare_thread_for_signals(SignalTarget &target);

/// Before PEs run: the handlers are ours, and pass on what is not. A program may have put others in their place since the last time.
void install_signal_handlers();

/// Ends the tasklet of that turn, if it is still inside when the signal arrives.
void end_tasklet(pthread_t thread, SignalTarget &target, uint64_t turn);

}  // namespace dpuemu
