// Errors of DMA and of MRAM.
#include "case.h"

BARRIER_INIT(all, NR_TASKLETS)

CASE(overlap, two_writes_to_one_place) {
  __dma_aligned uint64_t own[8] = {me()};
  mram_write(own, (__mram_ptr void *)UNWRITTEN, 64);
}

__dma_aligned uint32_t rows[NR_TASKLETS][16];
CASE(overlap, rounded_neighbours) {
  // Each tasklet owns 20 bytes, and writes 24.
  memset(rows[me()], 1, 64);
  mram_write(rows[me()], (__mram_ptr void *)(UNWRITTEN + 0x1000 + 16 * me()), 24);
}

__dma_aligned uint64_t block[NR_TASKLETS][8];
CASE(race, reads_before_the_writer_is_done) {
  if (me() == 0) {
    memset(block[0], 1, 64);
    mram_write(block[0], (__mram_ptr void *)INPUT, 64);
  }
  delay(1);
  if (me() == 1) {
    mram_read((__mram_ptr void *)INPUT, block[1], 64);
    sink = block[1][0];
  }
}

__mram uint32_t in_mram;
CASE(race, counter_in_mram) {
  for (int i = 0; i < 3; ++i) in_mram += 1;
}

__dma_aligned uint8_t small[40];
__dma_aligned uint8_t behind[64];
CASE(object, past_a_variable) {
  if (me() != 0) return;
  mram_read((__mram_ptr void *)INPUT, small, 64);
  sink = small[0] + behind[0];
}

CASE(object, past_a_block_of_the_heap) {
  if (me() != 0) return;
  mem_reset();
  uint8_t *odd = mem_alloc(56), *next = mem_alloc(64);
  next[0] = 1;
  mram_read((__mram_ptr void *)INPUT, odd, 64);
}

CASE(object, past_the_heap) {
  if (me() != 0) return;
  mem_reset();
  uint8_t *last = mem_alloc(32);
  mram_read((__mram_ptr void *)INPUT, last, 256);
}

__mram uint8_t first_in_mram[24] = {1};
__mram uint8_t second_in_mram[64] = {2};
CASE(object, past_a_variable_in_mram) {
  __dma_aligned uint8_t own[32];
  if (me() != 0) return;
  sink = second_in_mram[0];
  mram_read(first_in_mram, own, 32);
}

CASE(rounded, odd_mram_address) {
  __dma_aligned uint8_t own[16];
  if (me() == 0) mram_read((__mram_ptr void *)(INPUT + 4), own, 8);
}

CASE(rounded, odd_size) {
  __dma_aligned uint8_t own[16];
  uint32_t size = argument + 12;
  if (me() == 0) mram_read((__mram_ptr void *)INPUT, own, size);
}

uint32_t words[4] __dma_aligned;
CASE(rounded, odd_wram_address) {
  if (me() == 0) mram_read((__mram_ptr void *)INPUT, (uint8_t *)words + 4, 8);
}

__dma_aligned uint32_t received[16];
CASE(uninitialised, mram_that_nothing_wrote) {
  if (me() != 0) return;
  mram_read((__mram_ptr void *)(UNWRITTEN + 0x2000), received, 64);
  sink = received[3];
}

__dma_aligned uint32_t last_block[64];
CASE(uninitialised, behind_the_input) {
  if (me() != 0) return;
  mram_read((__mram_ptr void *)(INPUT + INPUT_BYTES - 128), last_block, 256);
  uint32_t sum = 0;
  for (int i = 0; i < 33; ++i) sum += last_block[i];
  sink = sum;
}

CASE(race, uses_the_word_of_its_neighbour) {
  __dma_aligned static uint64_t rows_of[NR_TASKLETS][3];
  uint64_t *row = rows_of[me()];
  uint32_t own = INPUT + 16 * me();
  for (int turn = 0; turn < 3; ++turn) {
    barrier_wait(&all);
    delay(turn % NR_TASKLETS);
    mram_read((__mram_ptr void *)own, row, 24);
    row[0] += row[2];
    mram_write(row, (__mram_ptr void *)own, 16);
  }
}

// This program has variables in MRAM, and the program at the time of the write had none.
CASE(moved, input_from_before_the_load, early) {
  if (me() != 0) return;
  mram_read((__mram_ptr void *)INPUT, received, 64);
  sink = received[3];
}

CASE(uninitialised, results_that_nothing_wrote) {
  if (me() != 0) return;
  mem_reset();
  uint64_t *results = mem_alloc(64);
  mram_write(results, (__mram_ptr void *)UNWRITTEN, 64);  // before
}
