/// heap.h: the heap of alloc.h, for other parts of the runtime.
#ifndef PE_RUNTIME_HEAP_H
#define PE_RUNTIME_HEAP_H

#include <stddef.h>
#include <stdint.h>

/// As mem_alloc, at a multiple of `alignment`, a power of two that is at least 8. No other tasklet
/// allocates meanwhile.
void *__pe_mem_alloc(size_t size, uintptr_t alignment);

#endif  // PE_RUNTIME_HEAP_H
