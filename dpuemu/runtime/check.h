/// check.h: what the allocators and copies report to `dpuemu check`. Nothing in other programs.
#ifndef PE_RUNTIME_CHECK_H
#define PE_RUNTIME_CHECK_H

#include <stdint.h>

#include "calls.h"

#ifdef PE_CHECK
void __pe_check_memory(const void *address, uint32_t bytes, uint32_t state);
void __pe_check_copy(const void *to, const void *from, uint32_t bytes);
// The function reports its accesses by __pe_check_copy.
#define __PE_REPORTS_COPIES __attribute__((no_sanitize("thread")))
#else
#define __PE_REPORTS_COPIES
static inline void __pe_check_memory(const void *address, uint32_t bytes, uint32_t state) {
  (void)address, (void)bytes, (void)state;
}
static inline void __pe_check_copy(const void *to, const void *from, uint32_t bytes) {
  (void)to, (void)from, (void)bytes;
}
#endif

#endif  // PE_RUNTIME_CHECK_H
