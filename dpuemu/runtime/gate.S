/// gate.S: the entry of a tasklet, and its calls into the emulator.
#include "calls.h"

/// The loader writes the addresses of two entries of the emulator here: the entry of calls, and the
/// entry of loops that wait for another tasklet's store, which expects in r11 where the loop
/// continues.
  .section .pe_gate, "ax", @progbits
  .balign 8
  .globl __pe_gate
  .type __pe_gate, @object
  .size __pe_gate, 16
__pe_gate:
  .quad 0, 0

/// The tasklet's first instruction. rsp is a multiple of 16; __pe_exit does not return.
/// cfi_undefined: for debuggers, no function has called this one.
  .cfi_sections .debug_frame
  .section .text.__pe_start, "ax", @progbits
  .globl __pe_start
  .type __pe_start, @function
__pe_start:
  .cfi_startproc
  .cfi_undefined rip
  call main
  movl %eax, %edi
  call __pe_exit
  ud2
  .cfi_endproc
  .size __pe_start, . - __pe_start

#define PE_CALL(number, name)           \
  .section .text.name, "ax", @progbits; \
  .globl name;                          \
  .type name, @function;                \
name:                                   \
  movl $number, %eax;                   \
  jmp *__pe_gate;                       \
  .size name, . - name;

PE_CALL_TABLE(PE_CALL)

/// The emulator clears the lock at each start, also after a fault of the tasklet that held it. A
/// tasklet can be interrupted while it holds the lock. Then it is ahead in modelled time, so each
/// further attempt takes 1000 instructions.
  .section .text.__pe_lock_heap, "ax", @progbits
  .globl __pe_lock_heap
  .type __pe_lock_heap, @function
__pe_lock_heap:
  subq $8, %rsp
  jmp 2f
1:
  leaq 1000(%r15), %r15
2:
  call __pe_turn
  movb $1, %al
  xchgb %al, __pe_heap_lock
  testb %al, %al
  jne 1b
  addq $8, %rsp
  ret
  .size __pe_lock_heap, . - __pe_lock_heap

  .section .note.GNU-stack, "", @progbits
