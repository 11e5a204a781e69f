/// buddy_alloc.h: buffers in a part of the WRAM heap; sizes are rounded up to powers of two, at least 16 bytes.
///
/// Differs from the SDK: buddy_init takes one more byte per 16 bytes of its heap, and an allocation may choose another free block.
#ifndef PE_BUDDY_ALLOC_H
#define PE_BUDDY_ALLOC_H

#include <stddef.h>

/// Takes size_of_heap bytes (rounded down to a multiple of 16) from the WRAM heap. Call it again after mem_reset. Faults if the WRAM heap
/// is full.
void buddy_init(size_t size_of_heap);

/// Frees all buffers; the heap keeps its size.
void buddy_reset(void);

/// Returns a buffer aligned to 8 with undefined contents. On failure returns NULL and sets errno: EINVAL if size is 0 or larger than the
/// heap, ENOMEM if no free block is large enough. Faults if buddy_init was not called.
void *buddy_alloc(size_t size);

/// Frees the buffer that contains the pointer (a multiple of 8). NULL has no effect. If the pointer is not aligned to 8 or not in
/// an allocated buffer, buddy_free only sets errno to EINVAL.
void buddy_free(void *pointer);

/// Resizes the buffer to `size` bytes, moves it if necessary, and returns it. If ptr is NULL, does the same as buddy_alloc. If size is 0,
/// frees the buffer and returns ptr. On failure returns NULL, sets errno as buddy_alloc and buddy_free do, and leaves the buffer unchanged.
void *buddy_realloc(void *ptr, size_t size);

#endif  // PE_BUDDY_ALLOC_H
