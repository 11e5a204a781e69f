// Where a host thread goes into a tasklet of a PE program and comes back out: at a call of pe/calls.h, or by a signal.
//
// Inside, the thread runs on the tasklet's stack with the program's code. It keeps the host's thread pointer (fs) and signal mask; gs is
// free on x86-64 and serves the program's direct MRAM accesses. r15 counts modelled instructions, and is nobody else's in PE programs.
#pragma once

#include <cstdint>

namespace dpuemu {

/// One per host thread. The assembly in door.cpp knows these offsets.
struct Door {
  uint64_t host_stack = 0;
  uint64_t tasklet_stack = 0;  // of the tasklet that is entered, and where it stands when it has come out
  uint32_t call = 0;           // number in PE_CALL_TABLE; kSignal if a signal brought the tasklet out, which then cannot go on
  uint32_t arguments[4] = {};
  uint32_t is_inside = 0;
  uint64_t instructions = 0;  // r15 at the call

  // Of the signal.
  int signal = 0;
  uint64_t signal_address = 0;  // what was touched, or the instruction
};

constexpr uint32_t kSignal = UINT32_MAX;

/// The door of the calling thread; nullptr if it has none.
Door *current_door();
void set_current_door(Door *door);

/// Goes on with the tasklet whose stack is door.tasklet_stack, giving it `result`, until it comes out again.
void enter_tasklet(Door &door, uint64_t result);

/// Puts a tasklet that will start at `entry` on the stack that ends at `stack_end` (a multiple of 64 KiB). Returns its tasklet_stack.
uint64_t prepare_tasklet(uint64_t stack_end, uint32_t entry, uint32_t number);

/// What PE programs jump to.
extern "C" void dpuemu_gate();

/// In a signal handler whose context says that the thread is inside: makes it come out with kSignal when the handler returns.
/// context: the handler's third argument.
void leave_by_signal(Door &door, int signal, uint64_t address, void *context);

}  // namespace dpuemu
