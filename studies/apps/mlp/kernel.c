/* Computes this PE's part of one layer, y = W relu(x): for every row, the sum over its columns of W
 * times its elements of x.
 *
 * ELEMENT_BITS: 8, 16, 32 or 64. WIDTH: columns per PE. ROWS: rows of W. SLAB_BYTES: this PE's
 * columns of one layer. ROWS and WIDTH fill complete words of 8 bytes. y may have any values behind
 * ROWS: they become elements of x whose columns of W are zeros.
 *
 * Rows follow one another without gaps, so a tasklet reads its rows as one stream of blocks: a
 * block has many short rows, or a piece of a long row. All of x fits into WRAM: no PE has more
 * columns than W has rows, and a PE's part of W fits into MRAM, so x has at most sqrt(64 MiB * 8
 * bytes) < 24 KiB.
 *
 * No two tasklets write the same bytes: each has its own block, its own sums, and a range of rows
 * that fills complete words of y. Each part of the shared x is written by one tasklet before the
 * barrier; after the barrier x is only read. */
#include <barrier.h>
#include <defs.h>
#include <stdint.h>

#include "heap.h"
#include "unroll.h"

#define BLOCK_BYTES DMA_BYTES
#define SUMS_BYTES 128u
#define WORD_BYTES 8u

#define JOINED(a, b, c) a##b##c
#define TYPE(prefix, bits) JOINED(prefix, bits, _t)
/* Sums wrap; in C only unsigned arithmetic may wrap. */
typedef TYPE(uint, ELEMENT_BITS) element_t;
typedef TYPE(int, ELEMENT_BITS) signed_element_t;

#define ELEMENTS(bytes) ((bytes) / (uint32_t)sizeof(element_t))
#define BYTES(elements) ((elements) * (uint32_t)sizeof(element_t))

__host uint32_t layer;

BARRIER_INIT(everybody, NR_TASKLETS);

__dma_aligned element_t x[WIDTH];
__dma_aligned element_t blocks[NR_TASKLETS][ELEMENTS(BLOCK_BYTES)];
__dma_aligned element_t sums[NR_TASKLETS][ELEMENTS(SUMS_BYTES)];

/* Reads every NR_TASKLETS-th block of x; after the first layer, replaces x by max(x, 0). */
static void read_x(void) {
  for (uint32_t at = me() * BLOCK_BYTES; at < BYTES(WIDTH); at += NR_TASKLETS * BLOCK_BYTES) {
    const uint32_t bytes = min_of(BYTES(WIDTH) - at, BLOCK_BYTES);
    element_t *const part = x + ELEMENTS(at);
    read_heap(AT_X + at, part, bytes);
    if (layer == 0) continue;
    for (uint32_t i = 0; i < ELEMENTS(bytes); ++i)
      if ((signed_element_t)part[i] < 0) part[i] = 0;
  }
}

/* One word per step: the inner loop has a constant count and is unrolled. The product is truncated
 * before the addition, so that 8-bit elements use the DPU's 8-bit multiplication. */
static inline element_t dot(const element_t *a, const element_t *b, uint32_t elements) {
  element_t sum = 0;
  for (const element_t *const end = a + elements; a < end;
       a += ELEMENTS(WORD_BYTES), b += ELEMENTS(WORD_BYTES)) {
    UNROLL
    for (uint32_t i = 0; i < ELEMENTS(WORD_BYTES); ++i) sum += (element_t)(1u * a[i] * b[i]);
  }
  return sum;
}

static void multiply_rows(uint32_t first, uint32_t last) {
  element_t *const block = blocks[me()], *const out = sums[me()];
  uint32_t from = AT_WEIGHTS + layer * SLAB_BYTES + first * BYTES(WIDTH);
  const uint32_t end = AT_WEIGHTS + layer * SLAB_BYTES + last * BYTES(WIDTH);
  uint32_t next = 0, available = 0; /* the next element of the block, and how many the block has */
  uint32_t summed = 0, to = AT_Y + BYTES(first);
  for (uint32_t row = first; row < last; ++row) {
    element_t sum = 0;
    for (uint32_t column = 0; column < WIDTH;) {
      if (next == available) {
        const uint32_t bytes = min_of(end - from, BLOCK_BYTES);
        read_heap(from, block, bytes);
        from += bytes;
        next = 0;
        available = ELEMENTS(bytes);
      }
      const uint32_t elements = min_of(WIDTH - column, available - next);
      sum += dot(block + next, x + column, elements);
      next += elements;
      column += elements;
    }
    out[summed++] = sum;
    if (summed == ELEMENTS(SUMS_BYTES) || row + 1 == last) {
      write_heap(out, to, BYTES(summed));
      to += BYTES(summed);
      summed = 0;
    }
  }
}

int main(void) {
  read_x();
  barrier_wait(&everybody);
  /* Divide the words of y as evenly as possible. */
  const uint32_t words = BYTES(ROWS) / WORD_BYTES, each = words / NR_TASKLETS,
                 more = words % NR_TASKLETS;
  const uint32_t first = me() * each + min_of(me(), more), last = first + each + (me() < more);
  multiply_rows(ELEMENTS(first * WORD_BYTES), ELEMENTS(last * WORD_BYTES));
  return 0;
}
