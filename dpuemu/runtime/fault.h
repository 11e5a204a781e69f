/// fault.h: the runtime's calls into the emulator.
#ifndef PE_RUNTIME_FAULT_H
#define PE_RUNTIME_FAULT_H

#include <stdarg.h>
#include <stdint.h>

#include "calls.h"

enum {
#define PE_FAULT_CODE(number, name, text) PE_FAULT_##name = number,
  PE_FAULT_TABLE(PE_FAULT_CODE)
#undef PE_FAULT_CODE
};

/// Ends the calling tasklet.
__attribute__((noreturn)) void __pe_exit(int status);

/// Stops the PE with a fault. `code`: a number of PE_FAULT_TABLE. text: 0, or a string in section
/// .pe_strings.
__attribute__((noreturn)) void __pe_fault(uint32_t code, const char *text);

void __pe_print_format(const char *format, va_list *arguments);

#endif  // PE_RUNTIME_FAULT_H
