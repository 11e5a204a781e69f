#include "fault.h"

#include <defs.h>
#include <dpufault.h>
#include <stdlib.h>

void halt(void) { __pe_fault(PE_FAULT_HALT, 0); }

void __pe_assert_failed(const char *expression) { __pe_fault(PE_FAULT_ASSERT_FAILED, expression); }

void abort(void) { __pe_fault(PE_FAULT_ABORT, 0); }

void exit(int status) { __pe_exit(status); }

/// DPU assembly that assembly.py cannot replace. place: a string in section .pe_strings.
void __pe_assembly(const char *place) { __pe_fault(PE_FAULT_ASSEMBLY, place); }

/// The instruction fault with this number (assembly.py).
void __pe_fault_instruction(unsigned number) {
  __pe_fault(PE_FAULT_FAULT_INSTRUCTION, (const char *)number);
}
