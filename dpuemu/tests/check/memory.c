// Errors of heaps, stacks and locks.
#include "case.h"

BARRIER_INIT(all, NR_TASKLETS)
MUTEX_INIT(mutex);

CASE(uninitialised, new_block) {
  if (me() != 0) return;
  mem_reset();
  uint32_t *block = mem_alloc(64);
  sink = block[5];
}

CASE(uninitialised, end_of_a_histogram) {
  if (me() != 0) return;
  mem_reset();
  uint32_t *bins = mem_alloc(64);
  for (int i = 0; i < 15; ++i) bins[i] = 0;
  for (int i = 0; i < 16; ++i) bins[i] += 1;
}

CASE(uninitialised, block_of_buddy) {
  if (me() != 0) return;
  mem_reset();
  buddy_init(1024);
  uint32_t *block = buddy_alloc(64);
  sink = block[2];
}

// The second launch reads the sums of the first.
CASE(leftover, sums_of_the_last_launch, again) {
  if (me() != 0) return;
  mem_reset();
  uint32_t *sums = mem_alloc(32);
  if (argument == 0) memset(sums, 0, 32);
  sums[3] += 1;
}

static __attribute__((noinline)) uint32_t deep_in_recursion(uint32_t n) {
  volatile uint32_t own[16];
  own[n % 16] = n;
  return n == 0 ? 0 : own[n % 16] + deep_in_recursion(n - 1);
}
CASE(stack, recursion) {
  if (me() == 1) sink = deep_in_recursion(argument + 50);
}

CASE(stack, array_larger_than_the_stack) {
  uint8_t array[3000];
  if (me() != 0) return;
  memset(array, 1, sizeof array);
  sink = array[2999];
}

CASE(held, mutex_of_an_early_return) {
  if (me() != 0) return;
  mutex_lock(mutex);
  if (argument == 0) return;
  mutex_unlock(mutex);
}

ATOMIC_BIT_INIT(bit);
CASE(held, atomic_bit) {
  if (me() == 2) ATOMIC_BIT_ACQUIRE(bit);
}

BARRIER_INIT(too_large, NR_TASKLETS + 1)
CASE(barrier, one_tasklet_too_few) { barrier_wait(&too_large); }

BARRIER_INIT(too_small, NR_TASKLETS / 2)
CASE(barrier, twice_the_tasklets) { barrier_wait(&too_small); }

CASE(barrier, skipped_by_one_tasklet) {
  if (me() != 3) barrier_wait(&all);
}

CASE(freed, use_after_buddy_free) {
  if (me() != 0) return;
  mem_reset();
  buddy_init(1024);
  uint32_t *block = buddy_alloc(64);
  block[10] = 1;
  buddy_free(block);
  sink = block[10];
}

CASE(freed, pointer_from_before_realloc) {
  if (me() != 0) return;
  mem_reset();
  buddy_init(2048);
  uint32_t *block = buddy_alloc(32), *other = buddy_alloc(32);
  other[4] = block[4] = 1;
  buddy_realloc(block, 512);
  block[4] = 2;
}

mutex_id_t never_initialised;
CASE(mutex, pointer_that_nothing_set) {
  if (me() != 0) return;
  mutex_lock(never_initialised);
  mutex_unlock(never_initialised);
}

// The host writes the parameter while the tasklets read it.
__host uint32_t parameter, rounds;
CASE(host, parameter_changes_during_the_launch, beside) {
  uint32_t seen = 0;
  for (uint32_t i = 0; i < 3000000; ++i) {
    __asm__ volatile("" ::: "memory");
    seen += parameter;
    if (i % 1000 == 0) barrier_wait(&all);
  }
  sink = seen;
}

uint32_t sums_of_arguments[NR_TASKLETS];
CASE(host, argument_changes_before_the_launch_begins, once) {
  while (argument != 7) {  // a PE of the first launch ends after the write of the host
    __asm__ volatile("" ::: "memory");
    sums_of_arguments[me()] += argument;
  }
}

CASE(freed, dma_to_a_freed_block) {
  if (me() != 0) return;
  mem_reset();
  buddy_init(1024);
  uint32_t *block = buddy_alloc(64);
  buddy_free(block);                               // before
  mram_read((__mram_ptr void *)INPUT, block, 64);  // now
  sink = block[3];
}

CASE(freed, dma_from_a_freed_block) {
  if (me() != 0) return;
  mem_reset();
  buddy_init(1024);
  uint32_t *block = buddy_alloc(64);
  for (int i = 0; i < 16; ++i) block[i] = i;
  buddy_free(block);                                    // before
  mram_write(block, (__mram_ptr void *)UNWRITTEN, 64);  // now
}

CASE(freed, end_of_a_block_after_realloc) {
  if (me() != 0) return;
  mem_reset();
  buddy_init(1024);
  uint32_t *block = buddy_alloc(256);
  for (int i = 0; i < 64; ++i) block[i] = 1;
  block = buddy_realloc(block, 32);  // before
  sink = block[40];                  // now
}

CASE(freed, block_of_a_pool) {
  if (me() != 0) return;
  mem_reset();
  fsb_allocator_t blocks = fsb_alloc(32, 4);
  uint32_t *block = fsb_get(blocks);
  block[2] = 1;
  fsb_free(blocks, block);  // before
  sink = block[2];          // now
}

CASE(object, dma_past_a_block_of_buddy) {
  if (me() != 0) return;
  mem_reset();
  buddy_init(1024);
  uint32_t *block = buddy_alloc(64), *next = buddy_alloc(64);  // before
  next[0] = 1;
  mram_read((__mram_ptr void *)INPUT, block, 128);  // now
}

uint32_t guarded;
CASE(held, mutex_before_a_barrier) {
  mutex_lock(mutex);  // now
  guarded += 1;
  if (me() != 0) mutex_unlock(mutex);
  barrier_wait(&all);
}

CASE(held, mutex_while_others_allocate) {
  if (me() == 0) {
    mutex_lock(mutex);  // now
  } else {
    uint32_t *own = mem_alloc(8);
    own[0] = 1;
  }
}

CASE(uninitialised, copy_of_a_new_block) {
  static uint8_t copied[64];
  if (me() != 0) return;
  mem_reset();
  uint8_t *block = mem_alloc(64);
  memcpy(copied, block, 64);  // now
}

VMUTEX_INIT(of_rows, 16, 8)
CASE(held, virtual_mutex) {
  if (me() == 0) vmutex_lock(&of_rows, 3);  // now
}
