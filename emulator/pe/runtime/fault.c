#include "fault.h"

#include <dpufault.h>
#include <stdlib.h>

void __pe_halt(void) { __pe_fault(PE_FAULT_HALT); }

void __pe_assert_failed(void) { __pe_fault(PE_FAULT_ASSERT_FAILED); }

void abort(void) { __pe_fault(PE_FAULT_ABORT); }

void exit(int status) { __pe_exit(status); }
