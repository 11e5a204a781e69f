/// fsb_allocator.h: blocks of a fixed size, allocated and freed in any order.
#ifndef PE_FSB_ALLOCATOR_H
#define PE_FSB_ALLOCATOR_H

/// Points to the first free block. Every free block begins with a pointer to the next free block;
/// the last free block begins with NULL.
typedef void **fsb_allocator_t;

/// Creates an allocator of nb_of_blocks blocks of block_size bytes (rounded up to a multiple of 8,
/// at least 8) on the WRAM heap. The PE is in fault if the heap is full.
fsb_allocator_t fsb_alloc(unsigned int block_size, unsigned int nb_of_blocks);

/// Returns a block with undefined contents, or NULL if no block is free.
void *fsb_get(fsb_allocator_t allocator);

/// Frees a block that fsb_get returned. fsb_free does not check the pointer.
void fsb_free(fsb_allocator_t allocator, void *ptr);

#endif  // PE_FSB_ALLOCATOR_H
