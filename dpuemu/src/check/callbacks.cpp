// A callback runs on the stack of a tasklet, in the middle of the program's code. Each has an entry
// in assembly, which calls a function of this file. If this function returns true, the entry makes
// the program's call __pe_turn, so that other tasklets run; else it returns to the program.
#include "check/callbacks.h"

#include "base/door.h"
#include "check/pe_check.h"
#include "check/settings.h"

#define DPUEMU_CALLBACK extern "C" __attribute__((visibility("hidden"), used)) bool

namespace {

using dpuemu::PeCheck;

#define DPUEMU_ACCESS(number, name, bytes, writes)                                              \
  DPUEMU_CALLBACK dpuemu_check_##number(uint32_t address, uint32_t, uint32_t, uint32_t place) { \
    return PeCheck::current()->access<bytes, writes>(address, place);                           \
  }
#define DPUEMU_VOLATILE(number, name, bytes, writes)                                            \
  DPUEMU_CALLBACK dpuemu_check_##number(uint32_t address, uint32_t, uint32_t, uint32_t place) { \
    return PeCheck::current()->access_volatile(address, bytes, writes, place);                  \
  }

}  // namespace

DPUEMU_ACCESS(0, read, 1, false)
DPUEMU_ACCESS(1, read, 2, false)
DPUEMU_ACCESS(2, read, 4, false)
DPUEMU_ACCESS(3, read, 8, false)
DPUEMU_ACCESS(4, read, 16, false)
DPUEMU_ACCESS(5, write, 1, true)
DPUEMU_ACCESS(6, write, 2, true)
DPUEMU_ACCESS(7, write, 4, true)
DPUEMU_ACCESS(8, write, 8, true)
DPUEMU_ACCESS(9, write, 16, true)
DPUEMU_VOLATILE(10, read, 1, false)
DPUEMU_VOLATILE(11, read, 2, false)
DPUEMU_VOLATILE(12, read, 4, false)
DPUEMU_VOLATILE(13, read, 8, false)
DPUEMU_VOLATILE(14, read, 16, false)
DPUEMU_VOLATILE(15, write, 1, true)
DPUEMU_VOLATILE(16, write, 2, true)
DPUEMU_VOLATILE(17, write, 4, true)
DPUEMU_VOLATILE(18, write, 8, true)
DPUEMU_VOLATILE(19, write, 16, true)

DPUEMU_CALLBACK dpuemu_check_20(uint32_t address, uint32_t bytes, uint32_t, uint32_t place) {
  return PeCheck::current()->access_range(address, bytes, false, place);
}
DPUEMU_CALLBACK dpuemu_check_21(uint32_t address, uint32_t bytes, uint32_t, uint32_t place) {
  return PeCheck::current()->access_range(address, bytes, true, place);
}
DPUEMU_CALLBACK dpuemu_check_22(uint32_t, uint32_t, uint32_t, uint32_t place) {
  PeCheck::current()->enter_function(reinterpret_cast<uint64_t>(__builtin_frame_address(0)), place);
  return false;
}
DPUEMU_CALLBACK dpuemu_check_23() {
  PeCheck::current()->leave_function();
  return false;
}
DPUEMU_CALLBACK dpuemu_check_24(uint32_t, uint32_t call_site) {
  PeCheck::current()->enter_runtime(reinterpret_cast<uint64_t>(__builtin_frame_address(0)),
                                    call_site);
  return false;
}
DPUEMU_CALLBACK dpuemu_check_25() {
  PeCheck::current()->leave_runtime();
  return false;
}
DPUEMU_CALLBACK dpuemu_check_26(uint32_t address, uint32_t bytes, uint32_t state, uint32_t place) {
  PeCheck::current()->note_memory(address, bytes, state, place);
  return false;
}
DPUEMU_CALLBACK dpuemu_check_27(uint32_t is_taken) {
  PeCheck::current()->lock_heap(is_taken != 0);
  return false;
}
DPUEMU_CALLBACK dpuemu_check_28(uint32_t to, uint32_t from, uint32_t bytes, uint32_t place) {
  PeCheck::current()->copy(to, from, bytes, place);
  return false;
}

// At an entry, the stack pointer is 8 below a multiple of 16.
#define DPUEMU_ENTRY(number, name)                                 \
  asm(".text\n\t.p2align 4\n\t.hidden dpuemu_check_entry_" #number \
      "\n\t"                                                       \
      ".globl dpuemu_check_entry_" #number                         \
      "\n"                                                         \
      "dpuemu_check_entry_" #number                                \
      ":\n\t"                                                      \
      "subq $8, %rsp\n\t"                                          \
      "call dpuemu_check_" #number                                 \
      "\n\t"                                                       \
      "addq $8, %rsp\n\t"                                          \
      "testb %al, %al\n\t"                                         \
      "jne 1f\n\t"                                                 \
      "ret\n"                                                      \
      "1:\n\t"                                                     \
      "movl $18, %eax\n\t" /* __pe_turn */                         \
      "jmp dpuemu_gate\n");                                        \
  extern "C" void dpuemu_check_entry_##number() __attribute__((visibility("hidden")));
PE_CHECK_TABLE(DPUEMU_ENTRY)

namespace dpuemu {

namespace {
void do_nothing() {}
}  // namespace

std::span<void (*const)()> check_callbacks() {
#define DPUEMU_ADDRESS(number, name) dpuemu_check_entry_##number,
  static void (*const kEntries[])() = {PE_CHECK_TABLE(DPUEMU_ADDRESS)};
#undef DPUEMU_ADDRESS
#define DPUEMU_ADDRESS(number, name) do_nothing,
  static void (*const kNothing[])() = {PE_CHECK_TABLE(DPUEMU_ADDRESS)};
#undef DPUEMU_ADDRESS
  if (!check_settings().is_on) return kNothing;
  return kEntries;
}

}  // namespace dpuemu
