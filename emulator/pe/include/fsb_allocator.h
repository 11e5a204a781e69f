/// fsb_allocator.h: blocks of one size, taken and given back in any order.
#ifndef PE_FSB_ALLOCATOR_H
#define PE_FSB_ALLOCATOR_H

/// Points to the first free block; every free block begins with a pointer to the next one, the last with NULL.
typedef void **fsb_allocator_t;

/// An allocator of nb_of_blocks blocks of block_size bytes (rounded up to a multiple of 8, at least 8), all taken from the heap at once.
/// Faults: the heap is full.
fsb_allocator_t fsb_alloc(unsigned int block_size, unsigned int nb_of_blocks);

/// A block with undefined contents, or NULL if none is free.
void *fsb_get(fsb_allocator_t allocator);

/// Gives back a block that fsb_get returned. Nothing is checked.
void fsb_free(fsb_allocator_t allocator, void *ptr);

#endif  // PE_FSB_ALLOCATOR_H
