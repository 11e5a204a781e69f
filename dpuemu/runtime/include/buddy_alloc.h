/// buddy_alloc.h: allocates and frees buffers in a part of the WRAM heap. Buffer sizes are rounded
/// up to powers of two, and are at least 16 bytes.
///
/// Differs from the SDK: buddy_init takes one more byte per 16 bytes of its heap, and an allocation
/// may choose a different free block than in the SDK.
#ifndef PE_BUDDY_ALLOC_H
#define PE_BUDDY_ALLOC_H

#include <stddef.h>

/// Takes size_of_heap bytes (rounded down to a multiple of 16) from the WRAM heap. Call buddy_init
/// again after mem_reset. The PE is in fault if the WRAM heap is full.
void buddy_init(size_t size_of_heap);

/// Frees all buffers of buddy_alloc; the size of the buddy heap does not change.
void buddy_reset(void);

/// Returns a buffer aligned to 8 bytes with undefined contents. On failure, returns NULL and sets
/// errno: EINVAL if size is 0 or larger than the buddy heap, ENOMEM if no free block has `size`
/// bytes. The PE is in fault if the program has not called buddy_init.
void *buddy_alloc(size_t size);

/// Frees the buffer that contains the address `pointer` (a multiple of 8). NULL has no effect. If
/// the pointer is not aligned to 8 or not in an allocated buffer, buddy_free only sets errno to
/// EINVAL.
void buddy_free(void *pointer);

/// Resizes the buffer to `size` bytes, moves the buffer if necessary, and returns the buffer. If
/// ptr is NULL, does the same as buddy_alloc. If size is 0, frees the buffer and returns ptr. On
/// failure returns NULL, sets errno as buddy_alloc and buddy_free do, and leaves the buffer
/// unchanged.
void *buddy_realloc(void *ptr, size_t size);

#endif  // PE_BUDDY_ALLOC_H
