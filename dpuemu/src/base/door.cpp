#include "base/door.h"

#include <ucontext.h>

#include <cstddef>
#include <cstring>

static_assert(offsetof(dpuemu::Door, host_stack) == 0 &&
              offsetof(dpuemu::Door, host_continuation) == 8 &&
              offsetof(dpuemu::Door, host_frame) == 16 && offsetof(dpuemu::Door, tasklet) == 24 &&
              offsetof(dpuemu::Door, is_inside) == 32 &&
              offsetof(dpuemu::AtCall, instructions) == 0 && offsetof(dpuemu::AtCall, stack) == 8 &&
              offsetof(dpuemu::AtCall, arguments) == 16);

extern "C" {
__attribute__((visibility("hidden"),
               tls_model("initial-exec"))) thread_local dpuemu::Door *dpuemu_door = nullptr;
__attribute__((visibility("hidden"))) void dpuemu_enter();
__attribute__((visibility("hidden"))) void dpuemu_leave();
__attribute__((visibility("hidden"))) void dpuemu_door_end();
}

static_assert(offsetof(dpuemu::Interrupted, r8) == 512 &&
              offsetof(dpuemu::Interrupted, rip) == 632 &&
              offsetof(dpuemu::Door, interrupted) == 48 && dpuemu::kInterrupted == 0xFFFFFFFE);

// DPUEMU_PASS_DOOR jumps to dpuemu_enter and dpuemu_continue with the door in rdi. dpuemu_leave
// jumps back, with the call in eax. A tasklet pushes its callee-saved registers on its stack.
// dpuemu_continue restores all registers: it pops them from the structure, and iretq sets the stack
// pointer last.
asm(R"(
  .macro push_callee_saved
  pushq %rbx
  pushq %rbp
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  .endm
  .macro pop_callee_saved
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbp
  popq %rbx
  .endm

  .text
  .p2align 4
  .hidden dpuemu_enter
  .globl dpuemu_enter
  .type dpuemu_enter, @function
dpuemu_enter:
  movq %rsi, %rsp
  movl $1, 32(%rdi)
  pop_callee_saved
  popq %r11
  jmp *%r11
  .size dpuemu_enter, .-dpuemu_enter

  .p2align 4
  .hidden dpuemu_continue
  .globl dpuemu_continue
  .type dpuemu_continue, @function
dpuemu_continue:
  movl $1, 32(%rdi)
  fxrstor64 (%rsi)
  leaq 512(%rsi), %rsp
  popq %r8
  popq %r9
  popq %r10
  popq %r11
  popq %r12
  popq %r13
  popq %r14
  popq %r15
  popq %rdi
  popq %rsi
  popq %rbp
  popq %rbx
  popq %rdx
  popq %rax
  popq %rcx
  iretq
  .size dpuemu_continue, .-dpuemu_continue

  .p2align 4
  .hidden dpuemu_gate
  .globl dpuemu_gate
  .type dpuemu_gate, @function
dpuemu_gate:
  push_callee_saved
  movq dpuemu_door@gottpoff(%rip), %r11
  movq %fs:(%r11), %r11
  movq 24(%r11), %rbx
  movq %rsp, 8(%rbx)
  movl %edi, 16(%rbx)
  movl %esi, 20(%rbx)
  movl %edx, 24(%rbx)
  movl %ecx, 28(%rbx)
  .hidden dpuemu_leave
  .globl dpuemu_leave
dpuemu_leave:
  movq 24(%r11), %rbx
  movq %r15, (%rbx)
  movl $0, 32(%r11)
  movq 0(%r11), %rsp
  movq 16(%r11), %rbp
  jmp *8(%r11)
  .size dpuemu_gate, .-dpuemu_gate

  .p2align 4
  .hidden dpuemu_yield
  .globl dpuemu_yield
  .type dpuemu_yield, @function
dpuemu_yield:
  movq %r11, %xmm15
  movq dpuemu_door@gottpoff(%rip), %r11
  movq %fs:(%r11), %r11
  fxsave64 48(%r11)
  movq %r8, 48+512(%r11)
  movq %r9, 48+520(%r11)
  movq %r10, 48+528(%r11)
  movq %r12, 48+544(%r11)
  movq %r13, 48+552(%r11)
  movq %r14, 48+560(%r11)
  movq %r15, 48+568(%r11)
  movq %rdi, 48+576(%r11)
  movq %rsi, 48+584(%r11)
  movq %rbp, 48+592(%r11)
  movq %rbx, 48+600(%r11)
  movq %rdx, 48+608(%r11)
  movq %rax, 48+616(%r11)
  movq %rcx, 48+624(%r11)
  movq %xmm15, 48+632(%r11)
  movq %rsp, 48+656(%r11)
  movq 0(%r11), %rsp
  leaq -128(%rsp), %rsp  # below the red zone of a host function
  pushfq
  popq 48+648(%r11)
  movl %cs, %eax
  movq %rax, 48+640(%r11)
  movl %ss, %eax
  movq %rax, 48+664(%r11)
  movl $0xFFFFFFFE, %eax
  jmp dpuemu_leave
  .size dpuemu_yield, .-dpuemu_yield
  .hidden dpuemu_door_end
  .globl dpuemu_door_end
dpuemu_door_end:
  .purgem push_callee_saved
  .purgem pop_callee_saved
)");

namespace dpuemu {

Door *current_door() { return dpuemu_door; }
void set_current_door(Door *door) { dpuemu_door = door; }

uint64_t prepare_tasklet(uint64_t block_end, uint64_t stack_top, uint32_t entry, uint32_t number,
                         uint32_t wram_stack) {
  const uint32_t end_words[3] = {wram_stack, static_cast<uint32_t>(stack_top), number};
  std::memcpy(reinterpret_cast<void *>(block_end - sizeof end_words), end_words, sizeof end_words);
  // dpuemu_enter pops six registers (zero) and the entry; then the stack is aligned to 16.
  uint64_t frame[7] = {};
  frame[6] = entry;
  const uint64_t top = stack_top - sizeof frame;
  std::memcpy(reinterpret_cast<void *>(top), frame, sizeof frame);
  return top;
}

namespace {

/// Stores the registers in the door, and lets the signal handler return to dpuemu_leave with
/// `call`.
void leave(Door &door, uint32_t call, void *context) {
  auto &machine = static_cast<ucontext_t *>(context)->uc_mcontext;
  auto &registers = machine.gregs;
  const auto value = [&](int which) { return static_cast<uint64_t>(registers[which]); };
  Interrupted &at = door.interrupted;
  std::memcpy(at.floating_point, machine.fpregs, sizeof at.floating_point);
  at.r8 = value(REG_R8), at.r9 = value(REG_R9), at.r10 = value(REG_R10), at.r11 = value(REG_R11);
  at.r12 = value(REG_R12), at.r13 = value(REG_R13), at.r14 = value(REG_R14),
  at.r15 = value(REG_R15);
  at.rdi = value(REG_RDI), at.rsi = value(REG_RSI), at.rbp = value(REG_RBP),
  at.rbx = value(REG_RBX);
  at.rdx = value(REG_RDX), at.rax = value(REG_RAX), at.rcx = value(REG_RCX);
  at.rip = value(REG_RIP), at.flags = value(REG_EFL), at.rsp = value(REG_RSP);
  at.cs = value(REG_CSGSFS) & 0xFFFF, at.ss = value(REG_CSGSFS) >> 48;
  registers[REG_RAX] = call;
  registers[REG_R11] = reinterpret_cast<greg_t>(&door);
  registers[REG_RIP] = reinterpret_cast<greg_t>(&dpuemu_leave);
  registers[REG_EFL] &= ~greg_t{0x400};  // clears the direction flag
}

}  // namespace

void leave_by_signal(Door &door, int signal, uint64_t address, void *context) {
  door.signal = signal;
  door.signal_address = address;
  leave(door, kSignal, context);
}

void interrupt_tasklet(Door &door, void *context) {
  const auto place =
      static_cast<uint64_t>(static_cast<ucontext_t *>(context)->uc_mcontext.gregs[REG_RIP]);
  if (place >= reinterpret_cast<uint64_t>(&dpuemu_enter) &&
      place < reinterpret_cast<uint64_t>(&dpuemu_door_end))
    return;
  leave(door, kInterrupted, context);
}

}  // namespace dpuemu
