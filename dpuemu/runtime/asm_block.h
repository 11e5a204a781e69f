/// asm_block.h: declarations for the C code that the compiler writes in place of asm blocks
/// (compiler/asm_blocks.py). The compiler inserts the preprocessed text into programs, so it
/// includes no header of a program and defines only reserved names.
#define int8_t __INT8_TYPE__
#define int16_t __INT16_TYPE__
#define int32_t __INT32_TYPE__
#define uint32_t __UINT32_TYPE__
#define uint64_t __UINT64_TYPE__
#include "instructions.h"

typedef uint32_t __pe_word;
typedef uint64_t __pe_pair;

void __pe_acquire(__pe_word lock) __asm__("mutex_lock");
unsigned char __pe_try_acquire(__pe_word lock) __asm__("mutex_trylock");
void __pe_release(__pe_word lock) __asm__("mutex_unlock");
void __pe_stop(int status) __asm__("__pe_exit");
void __pe_fault_now(__pe_word number) __asm__("__pe_fault_instruction");

PE_INSTRUCTION __pe_word __pe_tasklet(void) {
  __pe_word tasklet;
  __asm__("movl %%esp, %k0\n\torl $0xFFFF, %k0\n\tmovl -3(%q0), %k0" : "=r"(tasklet));
  return tasklet;
}
