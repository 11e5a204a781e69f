#include <defs.h>
#include <stdint.h>

#include "calls.h"

// These symbols are absolute: the address of each symbol is a number of bytes. The second symbol
// exists only for tasklets with their own stack size.
extern char __pe_stack_bytes[];
#define STACK_SYMBOL(i) extern char __pe_stack_bytes_##i[] __attribute__((weak));
__FOR_EACH_THREAD(STACK_SYMBOL)

int check_stack(void) {
#define STACK_BYTES(i) [i] = __pe_stack_bytes_##i,
  static char *const own_bytes[DPU_NR_THREADS] = {__FOR_EACH_THREAD(STACK_BYTES)};
  uintptr_t stack_pointer, top;
  __asm__ volatile("movl %%esp, %0" : "=r"(stack_pointer));
  __asm__ volatile("movl %%esp, %k0\n\torl $0xFFFF, %k0\n\tmovl -7(%q0), %k0"
                   : "=r"(top));  // as in me()
  uintptr_t used = top - stack_pointer;
  char *declared = own_bytes[me()] != 0 ? own_bytes[me()] : __pe_stack_bytes;
  return ((int)(uintptr_t)declared - (int)used) / 4;
}
