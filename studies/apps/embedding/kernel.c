/* Looks up the rows of embedding tables on a PE, and adds the rows of each bag.
 *
 * The PE has a part of some tables: ROWS rows of COLUMNS columns of each. Its request has the start
 * of each of its BAGS bags among its indices, then the number of indices (START_WORDS words in all,
 * with padding), then the indices: local table * ROWS + local row. The sums of the bags follow each
 * other without gaps. Tasklets take groups of GROUP bags, whose sums are a multiple of 8 bytes.
 * With SKIPS_EMPTY, the sums of a group without indices keep their former values.
 *
 * VALUE is the type of the elements. The sum of integers wraps; floats are added in the order of
 * the indices. */
#include <defs.h>
#include <stdint.h>

#include "heap.h"
#include "unroll.h"

#define EVEN(words) (((words) + 1) / 2 * 2)

enum {
  kUnrolled = COLUMNS / 8 * 8,
  /* Transfers start at multiples of 8 bytes, so a slice with an odd number of columns may start at
     the second word of a transfer. */
  kRowWords = EVEN(COLUMNS),
  kStarts = EVEN(GROUP + 2)
};

/* Each tasklet has its own. */
__dma_aligned uint32_t starts_of[NR_TASKLETS][kStarts];
__dma_aligned uint32_t indices_of[NR_TASKLETS][PIECE];
__dma_aligned VALUE row_of[NR_TASKLETS][kRowWords];
__dma_aligned VALUE sums_of[NR_TASKLETS][EVEN(GROUP * COLUMNS)];

static void add(VALUE *sum, const VALUE *row) {
  for (uint32_t c = 0; c < kUnrolled; c += 8) {
    UNROLL
    for (uint32_t k = 0; k < 8; ++k) sum[c + k] += row[c + k];
  }
  UNROLL
  for (uint32_t c = kUnrolled; c < COLUMNS; ++c) sum[c] += row[c];
}

/* Sets the sum of a bag without indices to 0. */
static void clear(VALUE *sum) {
  for (uint32_t c = 0; c < kUnrolled; c += 8) {
    UNROLL
    for (uint32_t k = 0; k < 8; ++k) sum[c + k] = 0;
  }
  UNROLL
  for (uint32_t c = kUnrolled; c < COLUMNS; ++c) sum[c] = 0;
}

static void copy(VALUE *sum, const VALUE *row) {
  for (uint32_t c = 0; c < kUnrolled; c += 8) {
    UNROLL
    for (uint32_t k = 0; k < 8; ++k) sum[c + k] = row[c + k];
  }
  UNROLL
  for (uint32_t c = kUnrolled; c < COLUMNS; ++c) sum[c] = row[c];
}

static void pool(uint32_t first, uint32_t count) {
  uint32_t *const indices = indices_of[me()];
  VALUE *const row = row_of[me()], *const sums = sums_of[me()];
  read_heap(AT_REQUESTS + 4 * (first & ~1u), starts_of[me()], 4 * EVEN(count + 1 + (first & 1)));
  const uint32_t *const starts = starts_of[me()] + (first & 1);
  uint32_t at = starts[0], piece = at & ~1u, piece_end = at; /* no piece yet */
  if (SKIPS_EMPTY && at == starts[count]) return;
  for (uint32_t b = 0; b < count; ++b) {
    VALUE *const sum = sums + b * COLUMNS;
    const uint32_t end = starts[b + 1];
    if (at == end) clear(sum);
    for (uint32_t is_first = 1; at < end; ++at, is_first = 0) {
      if (at >= piece_end) {
        piece = at & ~1u;
        piece_end = piece + PIECE;
        read_heap(AT_REQUESTS + 4 * (START_WORDS + piece), indices, 4 * PIECE);
      }
      const uint32_t word = indices[at - piece] * COLUMNS;
      const __mram_ptr uint8_t *const from =
          (const __mram_ptr uint8_t *)DPU_MRAM_HEAP_POINTER + AT_TABLES + 4 * (word & ~1u);
      /* The first row of a bag becomes its sum; only aligned rows go to aligned sums directly. */
      const uint32_t is_direct = is_first && COLUMNS % 2 == 0;
      mram_read(from, is_direct ? sum : row, 4 * kRowWords);
      const VALUE *const slice = row + (COLUMNS % 2 ? word & 1 : 0);
      if (!is_first)
        add(sum, slice);
      else if (!is_direct)
        copy(sum, slice);
    }
  }
  write_heap(sums, AT_POOLED + 4 * first * COLUMNS, 4 * EVEN(count * COLUMNS));
}

int main(void) {
  for (uint32_t first = me() * GROUP; first < BAGS; first += NR_TASKLETS * GROUP)
    pool(first, min_of(BAGS - first, GROUP));
  return 0;
}
