/// buddy_alloc.h: buffers of any size within one part of the heap, rounded up to powers of two, at least 16 bytes.
///
/// Differs from the SDK: next to the heap itself, buddy_init takes one byte for every 16 bytes of it, and which of several free blocks an
/// allocation gets may differ.
#ifndef PE_BUDDY_ALLOC_H
#define PE_BUDDY_ALLOC_H

#include <stddef.h>

/// Takes size_of_heap bytes (rounded down to a multiple of 16) from the WRAM heap. Again after mem_reset. Faults: the WRAM heap is full.
void buddy_init(size_t size_of_heap);

/// Frees all buffers; the size stays.
void buddy_reset(void);

/// A buffer aligned to 8 with undefined contents, or NULL: errno is EINVAL if size is 0 or more than the whole heap, ENOMEM if no free
/// block is large enough. Faults: buddy_init was not called.
void *buddy_alloc(size_t size);

/// Frees the buffer that the pointer points into, at any offset that is a multiple of 8. NULL is fine. Does nothing but set errno to EINVAL
/// if the pointer is not aligned to 8, lies outside the heap or in no allocated buffer.
void buddy_free(void *pointer);

/// Makes the buffer `size` bytes large, possibly by moving it, and returns it. NULL for ptr: as buddy_alloc. Size 0: as buddy_free, and
/// returns ptr. On failure returns NULL, with errno as buddy_alloc and buddy_free set it, and the buffer stays as it was.
void *buddy_realloc(void *ptr, size_t size);

#endif  // PE_BUDDY_ALLOC_H
