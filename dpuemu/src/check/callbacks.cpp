// A callback runs on the stack of a tasklet, in the middle of the program's code, and returns to
// it. If other tasklets shall run, it makes the program's call __pe_turn.
#include "check/callbacks.h"

#include "base/door.h"
#include "check/pe_check.h"
#include "check/settings.h"

// Lets other tasklets run: the call __pe_turn of runtime/calls.h.
asm(R"(
  .text
  .p2align 4
  .hidden dpuemu_check_turn
  .globl dpuemu_check_turn
  .type dpuemu_check_turn, @function
dpuemu_check_turn:
  movl $18, %eax
  jmp dpuemu_gate
  .size dpuemu_check_turn, .-dpuemu_check_turn
)");
extern "C" __attribute__((visibility("hidden"))) void dpuemu_check_turn();

namespace dpuemu {
namespace {

void leave(bool lets_others_run) {
  if (lets_others_run) [[unlikely]]
    dpuemu_check_turn();
}

/// The function of a row of PE_CHECK_TABLE. The arguments are those of the program, and the place
/// of the call.
template <int kNumber>
void callback(uint32_t, uint32_t, uint32_t, uint32_t);

#define DPUEMU_ACCESS(number, bytes, is_write)                                  \
  template <>                                                                   \
  void callback<number>(uint32_t address, uint32_t, uint32_t, uint32_t place) { \
    leave(PeCheck::current()->access<bytes, is_write>(address, place));         \
  }
#define DPUEMU_VOLATILE(number, bytes, is_write)                                 \
  template <>                                                                    \
  void callback<number>(uint32_t address, uint32_t, uint32_t, uint32_t place) {  \
    leave(PeCheck::current()->access_volatile(address, bytes, is_write, place)); \
  }
DPUEMU_ACCESS(0, 1, false)
DPUEMU_ACCESS(1, 2, false)
DPUEMU_ACCESS(2, 4, false)
DPUEMU_ACCESS(3, 8, false)
DPUEMU_ACCESS(4, 16, false)
DPUEMU_ACCESS(5, 1, true)
DPUEMU_ACCESS(6, 2, true)
DPUEMU_ACCESS(7, 4, true)
DPUEMU_ACCESS(8, 8, true)
DPUEMU_ACCESS(9, 16, true)
DPUEMU_VOLATILE(10, 1, false)
DPUEMU_VOLATILE(11, 2, false)
DPUEMU_VOLATILE(12, 4, false)
DPUEMU_VOLATILE(13, 8, false)
DPUEMU_VOLATILE(14, 16, false)
DPUEMU_VOLATILE(15, 1, true)
DPUEMU_VOLATILE(16, 2, true)
DPUEMU_VOLATILE(17, 4, true)
DPUEMU_VOLATILE(18, 8, true)
DPUEMU_VOLATILE(19, 16, true)

template <>
void callback<20>(uint32_t address, uint32_t bytes, uint32_t, uint32_t place) {
  leave(PeCheck::current()->access_range(address, bytes, false, place));
}
template <>
void callback<21>(uint32_t address, uint32_t bytes, uint32_t, uint32_t place) {
  leave(PeCheck::current()->access_range(address, bytes, true, place));
}
uint64_t stack_pointer() { return reinterpret_cast<uint64_t>(__builtin_frame_address(0)); }
template <>
void callback<22>(uint32_t, uint32_t, uint32_t, uint32_t place) {
  PeCheck::current()->enter_function(stack_pointer(), place);
}
template <>
void callback<23>(uint32_t, uint32_t, uint32_t, uint32_t) {
  PeCheck::current()->leave_function();
}
template <>
void callback<24>(uint32_t, uint32_t call_site, uint32_t, uint32_t) {
  PeCheck::current()->enter_runtime(stack_pointer(), call_site);
}
template <>
void callback<25>(uint32_t, uint32_t, uint32_t, uint32_t) {
  PeCheck::current()->leave_runtime();
}
template <>
void callback<26>(uint32_t address, uint32_t bytes, uint32_t state, uint32_t place) {
  PeCheck::current()->note_memory(address, bytes, state, place);
}
template <>
void callback<27>(uint32_t to, uint32_t from, uint32_t bytes, uint32_t place) {
  leave(PeCheck::current()->copy(to, from, bytes, place));
}

void do_nothing(uint32_t, uint32_t, uint32_t, uint32_t) {}

}  // namespace

std::span<const CheckCallback> check_callbacks() {
#define DPUEMU_ADDRESS(number, name) callback<number>,
  static constexpr CheckCallback kCallbacks[] = {PE_CHECK_TABLE(DPUEMU_ADDRESS)};
#undef DPUEMU_ADDRESS
#define DPUEMU_ADDRESS(number, name) do_nothing,
  static constexpr CheckCallback kNothing[] = {PE_CHECK_TABLE(DPUEMU_ADDRESS)};
#undef DPUEMU_ADDRESS
  if (!check_settings().is_on) return kNothing;
  return kCallbacks;
}

}  // namespace dpuemu
