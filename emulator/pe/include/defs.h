/// defs.h: the number and the stack of the calling tasklet, and halt.
#ifndef PE_DEFS_H
#define PE_DEFS_H

#include <attributes.h>
#include <dpufault.h>
#include <macro_utils.h>
#include <sysdef.h>

#define __ATTRIBUTE_NO_RETURN__ __NO_RETURN

/// Returns the number of the calling tasklet, 0 to 23. A tasklet's stack is a block of 64 KiB aligned to its size, with the number in the
/// last word. The number never changes, so the compiler may reuse it.
static inline sysname_t me(void) {
  sysname_t tasklet;
  __asm__("movl %%esp, %k0\n\torl $0xFFFF, %k0\n\tmovl -3(%q0), %k0" : "=r"(tasklet));
  return tasklet;
}

/// Stops the PE with a fault.
__NO_RETURN static inline void halt(void) { __pe_halt(); }

/// Returns how many 32-bit words of its declared stack the calling tasklet does not use; negative if it uses more than declared.
/// Differs from the SDK: frames have x86-64 size, usually larger than on a DPU; it is harmless to use more stack than declared.
int check_stack(void);

#endif  // PE_DEFS_H
