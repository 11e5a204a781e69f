/// alloc.h: the heap in WRAM, from the end of the program's objects and stacks to the end of WRAM.
/// mem_reset frees all buffers of the heap together.
#ifndef PE_ALLOC_H
#define PE_ALLOC_H

#include <attributes.h>
#include <buddy_alloc.h>
#include <fsb_allocator.h>
#include <stddef.h>

/// Allocates `size` bytes, aligned to 8 bytes. If size is 0, returns the address of the next
/// buffer. The heap keeps its buffers over launches until mem_reset. The PE is in fault if the heap
/// is full.
void *mem_alloc(size_t size);

/// Does the same as mem_alloc for a tasklet that holds the lock ATOMIC_BIT_EXTERN(__heap_pointer);
/// other tasklets then cannot allocate. The lock takes one of the mutexes of the chip.
void *mem_alloc_nolock(size_t size);

/// Frees the complete heap, including the memory of fsb_alloc and buddy_init. Returns the start of
/// the heap.
void *mem_reset(void);

#endif  // PE_ALLOC_H
