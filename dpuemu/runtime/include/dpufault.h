/// dpufault.h: the SDK's fault numbers, and the fault that the emulator's headers can raise.
///
/// Differs from the SDK: the emulator reports faults as sentences, without these numbers.
#ifndef PE_DPUFAULT_H
#define PE_DPUFAULT_H

#define __FAULT_ALLOC_HEAP_FULL__ 1
#define __FAULT_DIVISION_BY_ZERO__ 2
#define __FAULT_ASSERT_FAILED__ 3
#define __FAULT_HALT__ 4
#define __FAULT_PRINTF_OVERFLOW__ 5
#define __FAULT_ALREADY_PROFILING__ 6
#define __FAULT_NOT_PROFILING__ 7
#define __FAULT_MRAM_UNALIGNED__ 8
#define __FAULT_PFM_COUNTER_INCOMPATIBILITY__ 9

/// Stops the PE with a fault. expression: a string in section .pe_strings, which only the emulator
/// can read.
__attribute__((noreturn)) void __pe_assert_failed(const char *expression);

#endif  // PE_DPUFAULT_H
