// A door: through it, a host thread enters a tasklet of a PE program. The thread leaves at a call of pe/calls.h or by a signal.
//
// Inside, the thread runs the program's code on the tasklet's stack. It keeps the host's thread pointer (fs) and signal mask; x86-64 hosts
// do not use gs, so it serves direct MRAM accesses. r15 counts modelled instructions; PE programs do not use r15 otherwise.
#pragma once

#include <cstdint>

namespace dpuemu {

/// Each host thread has a Door. The assembly in door.cpp uses the offsets of the fields.
struct Door {
  uint64_t host_stack = 0;
  uint64_t tasklet_stack = 0;  // stack pointer of the tasklet: set before the entry, updated when it leaves
  uint32_t call = 0;           // number in PE_CALL_TABLE; kSignal if a signal ended the tasklet
  uint32_t arguments[4] = {};
  uint32_t is_inside = 0;
  uint64_t instructions = 0;  // r15 at the call

  // The signal that ended the tasklet.
  int signal = 0;
  uint64_t signal_address = 0;  // the accessed address, or the instruction's address
};

constexpr uint32_t kSignal = UINT32_MAX;

/// The door of the calling thread; nullptr if the thread has no door.
Door *current_door();
void set_current_door(Door *door);

/// Resumes the tasklet whose stack is door.tasklet_stack, with `result`. Returns when the tasklet leaves again.
void enter_tasklet(Door &door, uint64_t result);

/// Prepares the stack that ends at `stack_end` (a multiple of 64 KiB) for a tasklet that starts at `entry`. Returns its tasklet_stack.
uint64_t prepare_tasklet(uint64_t stack_end, uint32_t entry, uint32_t number);

/// The address to which PE programs jump.
extern "C" void dpuemu_gate();

/// In a signal handler of a thread that is inside: the thread leaves with kSignal when the handler returns.
/// context: the handler's third argument.
void leave_by_signal(Door &door, int signal, uint64_t address, void *context);

}  // namespace dpuemu
