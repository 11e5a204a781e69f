/// defs.h: the number and the stack of the calling tasklet, and halt.
#ifndef PE_DEFS_H
#define PE_DEFS_H

#include <attributes.h>
#include <dpufault.h>
#include <macro_utils.h>
#include <sysdef.h>

#define __ATTRIBUTE_NO_RETURN__ __NO_RETURN

/// Returns the number of the calling tasklet, 0 to 23. A tasklet's stack is a block of 64 KiB
/// aligned to its size, with the tasklet number in the last word of the block. The tasklet number
/// never changes, so the compiler may reuse the result of me().
static inline sysname_t me(void) {
  sysname_t tasklet;
  __asm__("movl %%esp, %k0\n\torl $0xFFFF, %k0\n\tmovl -3(%q0), %k0" : "=r"(tasklet));
  return tasklet;
}

/// Stops the PE with a fault.
__NO_RETURN void halt(void);

/// Returns the number of 32-bit words of its declared stack that the calling tasklet does not use.
/// The number is negative if the tasklet uses more stack than declared. Differs from the SDK: stack
/// frames have the size of x86-64 frames, which are usually larger than DPU frames. A tasklet may
/// use more stack than declared.
int check_stack(void);

#endif  // PE_DEFS_H
