#include <alloc.h>
#include <fsb_allocator.h>
#include <stdint.h>

#include "check.h"
#include "turn.h"

#ifdef PE_CHECK
/// The size of the blocks, behind the pointer to the first free block: mem_alloc rounds up to 8.
static void remember(fsb_allocator_t allocator, uint32_t block_bytes) {
  __pe_check_memory(allocator, 2 * sizeof *allocator, PE_CHECK_INTERNAL);
  ((uint32_t *)allocator)[1] = block_bytes;
}
static void report(fsb_allocator_t allocator, void *block, uint32_t state) {
  __pe_check_memory(block, ((uint32_t *)allocator)[1], state);
}
#else
#define remember(allocator, block_bytes)
#define report(allocator, block, state)
#endif

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
  *allocator = NULL;
  remember(allocator, (uint32_t)block_bytes);
  for (unsigned int i = nb_of_blocks; i-- > 0;) {
    report(allocator, blocks + i * (size_t)block_bytes, PE_CHECK_FREED);
    add_free(allocator, blocks + i * (size_t)block_bytes);
  }
  return allocator;
}

void *fsb_get(fsb_allocator_t allocator) {
  __pe_lock_heap();
  void **block = *allocator;
  if (block != NULL) {
    *allocator = *block;
    report(allocator, block, PE_CHECK_TAKEN);
  }
  unlock_heap();
  return block;
}

void fsb_free(fsb_allocator_t allocator, void *ptr) {
  __pe_lock_heap();
  report(allocator, ptr, PE_CHECK_FREED);
  add_free(allocator, ptr);
  unlock_heap();
}
