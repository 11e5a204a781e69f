#include <alloc.h>
#include <fsb_allocator.h>
#include <stdint.h>

#include "check.h"
#include "turn.h"

static void add_free(fsb_allocator_t allocator, void *block) {
  *(void **)block = *allocator;
  *allocator = block;
}

fsb_allocator_t fsb_alloc(unsigned int block_size, unsigned int nb_of_blocks) {
  uint64_t block_bytes = block_size == 0 ? 8 : ((uint64_t)block_size + 7) & ~(uint64_t)7;
  fsb_allocator_t allocator = mem_alloc(sizeof *allocator);
  // The size needs 64 bits, because the product may exceed 32 bits.
  uint64_t bytes = block_bytes * nb_of_blocks;
  uint8_t *blocks = mem_alloc(bytes > UINT32_MAX ? UINT32_MAX : (size_t)bytes);
  __pe_check_memory(allocator, sizeof *allocator, PE_CHECK_INTERNAL);
  *allocator = NULL;
  for (unsigned int i = nb_of_blocks; i-- > 0;)
    add_free(allocator, blocks + i * (size_t)block_bytes);
  return allocator;
}

void *fsb_get(fsb_allocator_t allocator) {
  __pe_lock_heap();
  __pe_check_lock(1);
  void **block = *allocator;
  if (block != NULL) *allocator = *block;
  __pe_check_lock(0);
  unlock_heap();
  return block;
}

void fsb_free(fsb_allocator_t allocator, void *ptr) {
  __pe_lock_heap();
  __pe_check_lock(1);
  add_free(allocator, ptr);
  __pe_check_lock(0);
  unlock_heap();
}
