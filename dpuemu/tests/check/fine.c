// Correct programs that look wrong.
#include <mram_unaligned.h>

#include "case.h"

BARRIER_INIT(all, NR_TASKLETS)
MUTEX_INIT(mutex);
MUTEX_INIT(gate);

uint32_t turn_of, steps;
CASE(fine, flag_under_a_mutex) {
  for (;;) {
    mutex_lock(mutex);
    int is_own = turn_of == me();
    if (is_own) {
      steps += 1;
      ++turn_of;
    }
    mutex_unlock(mutex);
    if (is_own) break;
  }
}

uint16_t halves[2 * NR_TASKLETS];
CASE(fine, halves_of_a_word) { halves[me()] = me(); }

uint8_t letters[NR_TASKLETS];
CASE(fine, bytes_of_a_word) { letters[me()] += me(); }

uint32_t chain[NR_TASKLETS];
CASE(fine, chain_of_handshakes) {
  uint32_t before = 0;
  if (me() > 0) {
    handshake_wait_for(me() - 1);
    before = chain[me() - 1];
  }
  chain[me()] = before + 1;
  if (me() + 1 < NR_TASKLETS) handshake_notify();
}

// One tasklet loads a buffer while the others work on the other one.
__dma_aligned uint32_t buffers[2][64];
CASE(fine, double_buffering) {
  uint32_t sum = 0;
  if (me() == 0) mram_read((__mram_ptr void *)INPUT, buffers[0], 256);
  barrier_wait(&all);
  for (int i = 0; i < 4; ++i) {
    if (me() == 0 && i < 3)
      mram_read((__mram_ptr void *)(INPUT + 256 * (i + 1)), buffers[(i + 1) % 2], 256);
    else
      for (int j = 0; j < 64; ++j) sum += buffers[i % 2][j];
    barrier_wait(&all);
  }
  sink = sum;
}

SEMAPHORE_INIT(places, 2)
SEMAPHORE_INIT(items, 0)
uint32_t ring[2];
CASE(fine, ring_with_semaphores) {
  for (uint32_t i = 0; i < 10 && me() < 2; ++i) {
    if (me() == 0) {
      sem_take(&places);
      ring[i % 2] = i;
      sem_give(&items);
    } else {
      sem_take(&items);
      sink = ring[i % 2];
      sem_give(&places);
    }
  }
}

uint32_t tried;
CASE(fine, trylock_in_a_loop) {
  while (!mutex_trylock(mutex)) continue;
  tried += 1;
  mutex_unlock(mutex);
}

volatile uint32_t flag;
uint32_t behind_the_flag;
CASE(fine, volatile_flag) {
  if (me() == 0) {
    behind_the_flag = 9;
    flag = 1;
  } else {
    while (!flag) continue;
    sink = behind_the_flag;
  }
}

volatile uint32_t ball;
uint32_t hits;
CASE(fine, volatile_turn) {
  if (me() > 1) return;
  for (uint32_t i = 0; i < 5; ++i) {
    while (ball % 2 != me()) continue;
    hits += 1;
    ball = 1 - me();
  }
}

uint32_t opened;
CASE(fine, mutex_unlocked_by_another_tasklet) {
  if (me() == 0) mutex_lock(gate);
  barrier_wait(&all);
  if (me() == 1) {
    mutex_lock(gate);
    sink = opened;
    mutex_unlock(gate);
  } else if (me() == 0) {
    opened = 1;
    mutex_unlock(gate);
  }
}

VMUTEX_INIT(of_bins, 16, 1)
uint32_t bins[16];
CASE(fine, one_vmutex_per_bin) {
  for (uint32_t i = 0; i < 16; ++i) {
    vmutex_lock(&of_bins, i);
    bins[i] += me();
    vmutex_unlock(&of_bins, i);
  }
}

MUTEX_POOL_INIT(pool, 4)
uint32_t pooled[16];
CASE(fine, pool_of_mutexes) {
  for (uint32_t i = 0; i < 16; ++i) {
    mutex_pool_lock(&pool, i);
    pooled[i] += 1;
    mutex_pool_unlock(&pool, i);
  }
}

uint32_t tree[NR_TASKLETS];
CASE(fine, tree_with_barriers) {
  tree[me()] = me();
  for (uint32_t step = 1; step < NR_TASKLETS; step *= 2) {
    barrier_wait(&all);
    if (me() % (2 * step) == 0) tree[me()] += tree[me() + step];
  }
}

// The DMA reads more than the host has written, but the program does not use it.
__dma_aligned uint32_t rest[64];
CASE(fine, block_longer_than_the_input) {
  if (me() != 0) return;
  mram_read((__mram_ptr void *)(INPUT + INPUT_BYTES - 128), rest, 256);
  uint32_t sum = 0;
  for (int i = 0; i < 32; ++i) sum += rest[i];
  sink = sum;
}

CASE(fine, sends_a_block_filled_in_part) {
  if (me() != 0) return;
  mem_reset();
  uint32_t *block = mem_alloc(64), *copy = mem_alloc(64);
  for (int i = 0; i < 5; ++i) block[i] = i;
  mram_write(block, (__mram_ptr void *)UNWRITTEN, 64);
  mram_read((__mram_ptr void *)UNWRITTEN, copy, 64);
  sink = copy[4];
}

struct padded {
  uint8_t tag;
  uint32_t value;
};
CASE(fine, copies_padding) {
  if (me() != 0) return;
  mem_reset();
  struct padded *from = mem_alloc(8), *to = mem_alloc(8), *third = mem_alloc(8);
  from->tag = 1;
  from->value = 2;
  *to = *from;
  memcpy(third, to, sizeof *to);
  sink = third->tag + third->value;
}

uint32_t *passed;
CASE(fine, frees_the_block_of_another_tasklet) {
  if (me() == 0) {
    mem_reset();
    buddy_init(1024);
    passed = buddy_alloc(64);
    passed[0] = 1;
  }
  barrier_wait(&all);
  if (me() == 1) {
    sink = passed[0];
    buddy_free(passed);
    uint32_t *next = buddy_alloc(64);
    next[0] = 2;
    sink = next[0];
  }
}

fsb_allocator_t blocks;
CASE(fine, blocks_pass_between_tasklets) {
  if (me() == 0) {
    mem_reset();
    blocks = fsb_alloc(16, 2);
  }
  barrier_wait(&all);
  for (int i = 0; i < 4; ++i) {
    uint32_t *block = fsb_get(blocks);
    if (block == NULL) continue;
    block[2] = me();
    sink = block[2];
    fsb_free(blocks, block);
  }
}

// The block and its contents stay until the next launch.
uint32_t *kept;
CASE(fine, heap_kept_over_launches, again) {
  if (me() != 0) return;
  if (argument == 0) {
    kept = mem_alloc(32);
    kept[0] = 1;
  }
  sink = kept[0];
}

CASE(fine, unaligned_neighbours_in_mram) {
  mram_write_int_atomic((__mram_ptr int *)(INPUT + 4 * me()), (int)me());
}

__dma_aligned uint32_t tiles[NR_TASKLETS][8];
CASE(fine, own_tile_of_one_array) {
  for (int i = 0; i < 3; ++i) {
    mram_read((__mram_ptr void *)(INPUT + 32 * me()), tiles[me()], 32);
    tiles[me()][0] += 1;
    mram_write(tiles[me()], (__mram_ptr void *)(INPUT + 32 * me()), 32);
  }
}

static __attribute__((noinline)) uint32_t shallow(uint32_t n) {
  volatile uint32_t own[4];
  own[n % 4] = n;
  return n == 0 ? 0 : own[n % 4] + shallow(n - 1);
}
CASE(fine, recursion_within_the_stack) { sink = shallow(argument + 10); }

CASE(fine, sequential_reader) {
  if (me() == 0) mem_reset();
  barrier_wait(&all);
  seqreader_t reader;
  uint32_t *next = seqread_init(seqread_alloc(), (__mram_ptr void *)INPUT, &reader);
  uint32_t sum = 0;
  for (uint32_t i = 0; i < INPUT_BYTES / 4; ++i) {
    sum += *next;
    next = seqread_get(next, 4, &reader);
  }
  sink = sum;
}

// A local array, which another tasklet reads while its owner waits.
uint32_t *lent;
CASE(fine, array_on_the_stack_of_another_tasklet) {
  uint32_t own[4] = {me(), 1, 2, 3};
  if (me() == 0) lent = own;
  barrier_wait(&all);
  if (me() == 1) sink = lent[2];
  barrier_wait(&all);
}

uint32_t printed;
CASE(fine, prints_one_after_another) {
  mutex_lock(mutex);
  printf("tasklet %u, %s %u\n", me(), "line", printed++);
  mutex_unlock(mutex);
}

uint32_t read_by_all = 5;
CASE(fine, all_read_then_one_writes) {
  sink = read_by_all;
  barrier_wait(&all);
  if (me() == 2) read_by_all = 6;
  barrier_wait(&all);
  sink = read_by_all;
}

// Each tasklet reads 8 bytes more than it uses; its neighbour writes these bytes.
CASE(fine, reads_more_than_it_uses) {
  __dma_aligned static uint64_t rows_of[NR_TASKLETS][3];
  uint64_t *row = rows_of[me()];
  uint32_t own = INPUT + 16 * me();
  for (int turn = 0; turn < 3; ++turn) {
    mram_read((__mram_ptr void *)own, row, 24);
    row[0] += row[1];
    mram_write(row, (__mram_ptr void *)own, 16);
    barrier_wait(&all);
  }
}

BARRIER_INIT(pair, 2)
CASE(fine, barrier_of_one_pair_after_another) {
  if (me() < 2) barrier_wait(&pair);
  barrier_wait(&all);
  if (me() >= 2) barrier_wait(&pair);
}

#define MY_TURN(work)                  \
  do {                                 \
    while (ball % 2 != me()) continue; \
    work;                              \
    ball = 1 - me();                   \
  } while (0)
CASE(fine, turns_on_one_line) {
  if (me() > 1) return;
  for (uint32_t i = 0; i < 5; ++i) MY_TURN(hits += 1);
}

CASE(fine, realloc_of_a_block_without_values) {
  if (me() != 0) return;
  mem_reset();
  buddy_init(2048);
  uint32_t *block = buddy_alloc(32), *other = buddy_alloc(32);
  other[0] = 1;
  block = buddy_realloc(block, 512);
  block[0] = 1;
  sink = block[0];
}

// gcc may load both fields for the conditional expression.
struct fields {
  uint32_t left, right;
} own_fields = {1, 2};
CASE(fine, each_its_field) {
  struct fields *both = &own_fields;
  if (me() > 1) return;
  for (uint32_t i = 0; i < 4; ++i) {
    uint32_t value = 3 + (me() == 0 ? both->left : both->right);
    if (me() == 0)
      both->left = value;
    else
      both->right = value;
  }
}

__mram uint32_t two_ints[2] = {5, 6};
CASE(fine, int_beside_an_int_in_mram) {
  __dma_aligned static uint32_t read[2];
  for (int i = 0; i < 3 && me() < 2; ++i) {
    if (me() == 1) {
      mram_write_int_atomic(&two_ints[1], i);
    } else {
      mram_read(two_ints, read, 8);
      sink = read[0];
    }
  }
}

CASE(fine, unaligned_rows) {
  __dma_aligned static uint8_t buffers_of[NR_TASKLETS][40];
  uint32_t own = INPUT + 12 * me();
  for (int i = 0; i < 3; ++i) {
    uint8_t *row = mram_read_unaligned((__mram_ptr void *)own, buffers_of[me()], 12);
    for (int j = 0; j < 12; ++j) row[j] += 1;
    mram_write_unaligned(row, (__mram_ptr void *)own, 12);
  }
}

CASE(fine, overwrites_more_than_it_uses) {
  __dma_aligned static uint32_t rows_of[NR_TASKLETS][6];
  uint32_t *row = rows_of[me()], own = INPUT + 16 * me();
  for (int turn = 0; turn < 3; ++turn) {
    mram_read((__mram_ptr void *)own, row, 24);
    row[0] += row[1];
    mram_write(row, (__mram_ptr void *)own, 16);
    barrier_wait(&all);
    for (int i = 0; i < 6; ++i) {
      row[i] = i;
      __asm__ volatile("" ::: "memory");
    }
  }
}

volatile uint32_t head, tail;
uint32_t slot;
CASE(fine, two_volatile_variables) {
  if (me() == 0) {
    slot = 4;
    head = 1;
  } else if (me() == 1) {
    while (head == tail) continue;
    sink = slot;
    tail = 1;
  }
}

uint32_t produced;
CASE(fine, polls_under_a_mutex) {
  for (uint32_t is_there = 0; me() < 2 && !is_there;) {
    mutex_lock(mutex);
    if (me() == 0) produced = 1;
    is_there = produced;
    mutex_unlock(mutex);
  }
}

uint32_t sums_of_arguments[NR_TASKLETS];
CASE(fine, argument_changes_between_launches, queued) {
  for (uint32_t i = 0; i < 2000; ++i) sums_of_arguments[me()] += argument;
}

__mram uint32_t halves_in_mram[2] = {5, 6};
CASE(fine, halves_of_a_word_in_mram) {
  for (int i = 0; i < 3; ++i) {
    if (me() == 0) sink = halves_in_mram[0];
    if (me() == 1) halves_in_mram[1] = i;
  }
}

CASE(fine, reads_once_more_than_it_uses) {
  __dma_aligned static uint64_t rows_of[NR_TASKLETS][3];
  uint64_t *row = rows_of[me()];
  uint32_t own = INPUT + 16 * me();
  mram_read((__mram_ptr void *)own, row, 24);
  row[0] += row[1];
  mram_write(row, (__mram_ptr void *)own, 16);
}
