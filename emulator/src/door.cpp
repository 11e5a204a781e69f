#include "door.h"

#include <ucontext.h>

#include <cstddef>
#include <cstring>

static_assert(offsetof(dpuemu::Door, tasklet_stack) == 8 && offsetof(dpuemu::Door, call) == 16 && offsetof(dpuemu::Door, arguments) == 20 &&
              offsetof(dpuemu::Door, is_inside) == 36 && offsetof(dpuemu::Door, instructions) == 40);

extern "C" {
__attribute__((visibility("hidden"), tls_model("initial-exec"))) thread_local dpuemu::Door *dpuemu_door = nullptr;
__attribute__((visibility("hidden"))) void dpuemu_enter(dpuemu::Door *door, uint64_t result);
__attribute__((visibility("hidden"))) void dpuemu_leave();
}

// The host thread and the tasklet each push the callee-saved registers on their own stack, in the same order.
asm(R"(
  .text
  .p2align 4
  .hidden dpuemu_enter
  .globl dpuemu_enter
  .type dpuemu_enter, @function
dpuemu_enter:
  pushq %rbx
  pushq %rbp
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, 0(%rdi)
  movq 8(%rdi), %rsp
  movq %rsi, %rax
  movl $1, 36(%rdi)
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbp
  popq %rbx
  ret
  .size dpuemu_enter, .-dpuemu_enter

  .p2align 4
  .hidden dpuemu_gate
  .globl dpuemu_gate
  .type dpuemu_gate, @function
dpuemu_gate:
  pushq %rbx
  pushq %rbp
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq dpuemu_door@gottpoff(%rip), %r11
  movq %fs:(%r11), %r11
  movl %eax, 16(%r11)
  movl %edi, 20(%r11)
  movl %esi, 24(%r11)
  movl %edx, 28(%r11)
  movl %ecx, 32(%r11)
  movq %r15, 40(%r11)
  movq %rsp, 8(%r11)
  .hidden dpuemu_leave
  .globl dpuemu_leave
dpuemu_leave:
  movl $0, 36(%r11)
  movq 0(%r11), %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbp
  popq %rbx
  ret
  .size dpuemu_gate, .-dpuemu_gate
)");

namespace dpuemu {

Door *current_door() { return dpuemu_door; }
void set_current_door(Door *door) { dpuemu_door = door; }

void enter_tasklet(Door &door, uint64_t result) { dpuemu_enter(&door, result); }

uint64_t prepare_tasklet(uint64_t stack_end, uint32_t entry, uint32_t number) {
  // The last word is the tasklet's number. dpuemu_enter pops six registers (zero) and the entry; then the stack is aligned to 16.
  std::memcpy(reinterpret_cast<void *>(stack_end - sizeof number), &number, sizeof number);
  uint64_t frame[7] = {};
  frame[6] = entry;
  const uint64_t top = stack_end - 16 - sizeof frame;
  std::memcpy(reinterpret_cast<void *>(top), frame, sizeof frame);
  return top;
}

void leave_by_signal(Door &door, int signal, uint64_t address, void *context) {
  auto &registers = static_cast<ucontext_t *>(context)->uc_mcontext.gregs;
  door.call = kSignal;
  door.signal = signal;
  door.signal_address = address;
  door.instructions = static_cast<uint64_t>(registers[REG_R15]);
  registers[REG_R11] = reinterpret_cast<greg_t>(&door);
  registers[REG_RIP] = reinterpret_cast<greg_t>(&dpuemu_leave);
  registers[REG_EFL] &= ~greg_t{0x400};  // clears the direction flag
}

}  // namespace dpuemu
