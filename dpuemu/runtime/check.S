/// check.S: the calls of programs that are compiled for `dpuemu check` (calls.h). Each jumps to the
/// emulator, with the address from which the program calls in ecx. The emulator's code runs on the
/// stack of the tasklet and returns to the program as an ordinary function.
#include "calls.h"

#define PE_CHECK_SLOT(number, name) .quad 0;

/// The loader writes the addresses of the emulator's functions here.
  .section .text.__pe_check_gate, "ax", @progbits
  .balign 8
  .globl __pe_check_gate
  .type __pe_check_gate, @object
__pe_check_gate:
  PE_CHECK_TABLE(PE_CHECK_SLOT)
  .size __pe_check_gate, . - __pe_check_gate

#define PE_CHECK_CALL(number, name)       \
  .section .text.name, "ax", @progbits;   \
  .globl name;                            \
  .type name, @function;                  \
name:                                     \
  movl (%rsp), %ecx;                      \
  jmp *__pe_check_gate + 8 * number;      \
  .size name, . - name;

PE_CHECK_TABLE(PE_CHECK_CALL)

#define PE_CHECK_ALIAS(number, name, other) \
  .section .text.name, "ax", @progbits;     \
  .globl other;                             \
  .set other, name;

PE_CHECK_ALIASES(PE_CHECK_ALIAS)

/// Tasklets of a PE see stores in the order of the program.
  .section .text.__tsan_atomic_thread_fence, "ax", @progbits
  .globl __tsan_atomic_thread_fence
  .type __tsan_atomic_thread_fence, @function
__tsan_atomic_thread_fence:
  ret
  .size __tsan_atomic_thread_fence, . - __tsan_atomic_thread_fence

  .section .note.GNU-stack, "", @progbits
