/// alloc.h: the heap in WRAM, from the end of the program's objects and stacks to the end of WRAM. It only grows.
#ifndef PE_ALLOC_H
#define PE_ALLOC_H

#include <attributes.h>
#include <buddy_alloc.h>
#include <fsb_allocator.h>
#include <stddef.h>

/// `size` bytes, aligned to 8. Size 0 takes nothing and tells where the next buffer would start. The heap lives on from launch to launch
/// until mem_reset. Faults: the heap is full.
void *mem_alloc(size_t size);

/// Gives everything back, including what fsb_alloc and buddy_init took. Returns the start of the heap.
void *mem_reset(void);

#endif  // PE_ALLOC_H
