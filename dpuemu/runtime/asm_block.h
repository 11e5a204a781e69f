/// asm_block.h: declarations for the C code that the compiler writes in place of asm blocks
/// (compiler/asm_code.py). The compiler inserts the preprocessed text into programs, so it
/// includes no header of a program and defines only reserved names.
#define int8_t __INT8_TYPE__
#define int16_t __INT16_TYPE__
#define int32_t __INT32_TYPE__
#define uint32_t __UINT32_TYPE__
#define uint64_t __UINT64_TYPE__
#include "calls.h"
#include "instructions.h"

typedef uint32_t __pe_word;
typedef uint64_t __pe_pair;

void __pe_acquire(__pe_word lock) __asm__("mutex_lock");
unsigned char __pe_try_acquire(__pe_word lock) __asm__("mutex_trylock");
void __pe_release(__pe_word lock) __asm__("mutex_unlock");
void __pe_ldma(__pe_word wram, __pe_word mram, __pe_word units);
void __pe_sdma(__pe_word wram, __pe_word mram, __pe_word units);
__pe_word __pe_use_run(__pe_word bit, __pe_word instruction);
void __pe_stop(void);
void __pe_end(int status) __asm__("__pe_exit");
__pe_pair __pe_counter(void) __asm__("perfcounter_get");
__pe_pair __pe_set_counter(__pe_word mode, __pe_word resets) __asm__("perfcounter_config");
void __pe_unsupported(const char *text) __asm__("__pe_assembly");
void __pe_fault_now(__pe_word number) __asm__("__pe_fault_instruction");

PE_INSTRUCTION __pe_word __pe_tasklet(void) {
  __pe_word tasklet;
  __asm__("movl %%esp, %k0\n\torl $0xFFFF, %k0\n\tmovl -3(%q0), %k0" : "=r"(tasklet));
  return tasklet;
}

/// Return whether a bit of RUN was set before the instruction.
PE_INSTRUCTION __pe_word __pe_resume(__pe_word bit) { return __pe_use_run(bit, PE_RESUME); }
PE_INSTRUCTION __pe_word __pe_read_run(__pe_word bit) { return __pe_use_run(bit, PE_READ_RUN); }
PE_INSTRUCTION __pe_word __pe_clr_run(__pe_word bit) { return __pe_use_run(bit, PE_CLR_RUN); }

/// time_cfg. Returns the counter before it, without its low four bits. configuration: the mode, and
/// in the lowest bit whether the counter begins anew.
PE_INSTRUCTION __pe_word __pe_configure_time(__pe_word configuration) {
  static const char text[] __attribute__((section(".pe_strings"))) = "time_cfg with a mode above 3";
  if (configuration >> 1 > 3) __pe_unsupported(text);
  return (__pe_word)(__pe_set_counter(configuration >> 1, configuration & 1) >> 4);
}

/// The state of a tasklet in functions in assembly (compiler/asm_functions.py).
struct __pe_registers {
  __pe_word r[24], zero, carry;
};
typedef __pe_word __pe_external(__pe_word, __pe_word, __pe_word, __pe_word, __pe_word, __pe_word,
                                __pe_word, __pe_word);

/// Returns where the tasklet keeps the stack pointer of such functions: its stack lies in WRAM.
PE_INSTRUCTION __pe_word *__pe_stack(void) {
  __pe_word *place;
  __asm__("movl %%esp, %k0\n\torl $0xFFFF, %k0\n\tsubl $11, %k0" : "=r"(place));
  return place;
}

/// Calls a C function from assembly.
PE_INSTRUCTION void __pe_call(struct __pe_registers *s, __pe_external *function) {
  __pe_word *const stack = __pe_stack(), before = *stack;
  *stack = s->r[22];
  s->r[0] = function(s->r[0], s->r[1], s->r[2], s->r[3], s->r[4], s->r[5], s->r[6], s->r[7]);
  *stack = before;
}

/// Calls a function in assembly from C. Returns whether it has preserved r14 to r22. The call has
/// the lowest return address.
PE_INSTRUCTION __pe_word __pe_enter(struct __pe_registers *s,
                                    void (*function)(struct __pe_registers *, __pe_word)) {
  const __pe_word mark = 0xF1000000, address = 0xF0000000, stack = *__pe_stack();
  for (__pe_word i = 14; i < 22; ++i) s->r[i] = mark + i;
  s->r[22] = stack;
  s->r[23] = address;
  function(s, address);
  __pe_word is_same = s->r[22] == stack;
  for (__pe_word i = 14; i < 22; ++i) is_same &= s->r[i] == mark + i;
  return is_same;
}
