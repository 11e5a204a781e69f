// A door is the state with which a host thread enters the code of a tasklet of a PE program. The
// thread leaves this code at a call of runtime/calls.h or by a signal. A signal of the watch
// interrupts the tasklet, which can continue later.
//
// Between entering and leaving, the thread runs the program's code on the tasklet's stack. The
// thread keeps the host's thread pointer (register fs) and signal mask. Programs on x86-64 do not
// use register gs, so the emulator uses gs for direct MRAM accesses. Register r15 counts modelled
// instructions; PE programs do not use r15 for anything else.
#pragma once

#include <cstdint>

namespace dpuemu {

/// The state of a tasklet at a signal. The assembly in door.cpp uses the offsets of the fields.
struct alignas(16) Interrupted {
  uint8_t floating_point[512];  // in the format of the instruction fxsave
  uint64_t r8, r9, r10, r11, r12, r13, r14, r15, rdi, rsi, rbp, rbx, rdx, rax, rcx;
  uint64_t rip, cs, flags, rsp, ss;  // as the instruction iretq expects them
};

/// The state of a tasklet at its last call. The assembly in door.cpp uses the offsets of the
/// fields.
struct AtCall {
  uint64_t instructions = 0;  // value of r15; also after a signal
  uint64_t stack = 0;         // stack pointer
  uint32_t arguments[4] = {};
};

/// Each host thread has a Door. The assembly in door.cpp uses the offsets of the fields.
struct Door {
  uint64_t host_stack = 0, host_continuation = 0, host_frame = 0;  // rsp, rip and rbp
  AtCall *tasklet = nullptr;  // the tasklet whose code the thread runs
  uint32_t is_inside = 0;

  // If the thread left by a signal:
  int signal = 0;
  uint64_t signal_address =
      0;  // the address that caused the signal, or the address of the instruction
  Interrupted interrupted = {};
};

constexpr uint32_t kSignal = UINT32_MAX;  // the tasklet caused a signal
constexpr uint32_t kInterrupted =
    UINT32_MAX -
    1;  // the watch interrupted the tasklet, or the tasklet waits for another tasklet's store

/// The door of the calling thread; nullptr if the thread has no door.
Door *current_door();
void set_current_door(Door *door);

// Jumps in place of a call and a return: with `ret`, the processor would mispredict the target.
// `place`: dpuemu_enter or dpuemu_continue, which gets `from` in rsi.
#define DPUEMU_PASS_DOOR(place, door, from, call_or_result)                                        \
  asm volatile(                                                                                    \
      "leaq 1f(%%rip), %%rdx\n\t"                                                                  \
      "movq %%rsp, 0(%%rdi)\n\t"                                                                   \
      "movq %%rdx, 8(%%rdi)\n\t"                                                                   \
      "movq %%rbp, 16(%%rdi)\n\t"                                                                  \
      "jmp " place                                                                                 \
      "\n"                                                                                         \
      "1:"                                                                                         \
      : "+a"(call_or_result), "+D"(door), "+S"(from)                                               \
      :                                                                                            \
      : "rbx", "rcx", "rdx", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "xmm0", "xmm1", \
        "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", \
        "xmm13", "xmm14", "xmm15", "cc", "memory")

/// Resumes the tasklet with `result` as the result of its last call. Returns when the thread leaves
/// the tasklet: the number of the call in PE_CALL_TABLE, kSignal or kInterrupted. After a call,
/// `tasklet` has the state at this call.
inline uint32_t enter_tasklet(Door &door, AtCall &tasklet, uint64_t result) {
  door.tasklet = &tasklet;
  Door *at_door = &door;
  uint64_t stack = tasklet.stack;
  DPUEMU_PASS_DOOR("dpuemu_enter", at_door, stack, result);
  return static_cast<uint32_t>(result);
}
/// The same for an interrupted tasklet.
inline uint32_t continue_tasklet(Door &door, AtCall &tasklet, const Interrupted &at) {
  door.tasklet = &tasklet;
  Door *at_door = &door;
  const Interrupted *from = &at;
  uint64_t call = 0;
  DPUEMU_PASS_DOOR("dpuemu_continue", at_door, from, call);
  return static_cast<uint32_t>(call);
}
#undef DPUEMU_PASS_DOOR

/// Prepares a tasklet that starts at `entry`. Its block of memory ends at `block_end` (a multiple
/// of 64 KiB); the last kStackEndBytes of the block hold `number`, `stack_top`, where the tasklet's
/// frames start (a multiple of 16), and `wram_stack`, where its functions in DPU assembly have
/// their stack. Returns its stack pointer.
uint64_t prepare_tasklet(uint64_t block_end, uint64_t stack_top, uint32_t entry, uint32_t number,
                         uint32_t wram_stack);
constexpr uint32_t kStackEndBytes = 16;

/// The addresses to which PE programs jump: for calls, and in loops that wait for another tasklet's
/// store. Such a loop leaves the tasklet with kInterrupted.
extern "C" void dpuemu_gate();
extern "C" void dpuemu_yield();

/// Call these functions in the signal handler of a thread that runs a tasklet. When the handler
/// returns, the thread leaves the tasklet with kSignal or kInterrupted. interrupt_tasklet() does
/// nothing if the thread is about to leave the tasklet. context: the third argument of the signal
/// handler.
void leave_by_signal(Door &door, int signal, uint64_t address, void *context);
void interrupt_tasklet(Door &door, void *context);

}  // namespace dpuemu
