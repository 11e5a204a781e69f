/* Computes one step of a graph neural network layer on this PE's part: the aggregation (sums = tile
 * * features) or the combination (a product with weights, gemm.h).
 *
 * Features, sums and blocks are matrices in slabs of WIDTH columns: [slab][row][WIDTH]. The tile of
 * the adjacency matrix is cut into cells. A cell has the edges between a chunk, CHUNK_ROWS rows of
 * features that fit in WRAM, and a block, block_rows rows of sums that a tasklet computes at a
 * time. Cell chunk * blocks + block has the edges starts[cell] to starts[cell + 1] - 1. An edge is
 * two byte offsets: of the row in the chunk, in the low 16 bits, and of the row in the block.
 *
 * The host defines ELEMENT, ELEMENT_BYTES, WIDTH, CHUNK_BYTES and BLOCK_BYTES. Offsets are from the
 * start of the MRAM heap. */
#include <barrier.h>
#include <defs.h>
#include <stdint.h>
#include <string.h>

#include "gemm.h"
#include "heap.h"
#include "unroll.h"

#define ROW_BYTES (WIDTH * ELEMENT_BYTES)
#define ROW_WORDS (ROW_BYTES / 4)
#define STEP (ROW_WORDS < 8 ? ROW_WORDS : 8) /* words of an unrolled loop over a row */
#define CHUNK_ROWS (CHUNK_BYTES / ROW_BYTES)
#define BLOCK_EDGES (BLOCK_BYTES / 4)

/* Bits of an element, and a mask of the highest bit of each element of a 32-bit word. */
#define ELEMENT_BITS (8 * ELEMENT_BYTES)
#define HIGH_BITS \
  (ELEMENT_BYTES == 1 ? 0x80808080u : ELEMENT_BYTES == 2 ? 0x80008000u : 0x80000000u)

__host uint32_t is_combination;
__host uint32_t input, output;    /* features and sums, or the factor and the product */
__host uint32_t rows, block_rows; /* rows of sums, or of the product */
__host uint32_t slabs;            /* slabs of features and sums, or of the factor */
__host uint32_t source_rows, starts, edges, is_rectified;
__host uint32_t weights, weight_slabs;

BARRIER_INIT(all, NR_TASKLETS);
__dma_aligned uint8_t chunk[CHUNK_BYTES];
__dma_aligned uint8_t buffers[NR_TASKLETS][2][BLOCK_BYTES];

/* Adds two words element by element: no carry leaves an element. */
static inline uint32_t add_elements(uint32_t a, uint32_t b) {
  if (ELEMENT_BYTES == 4) return a + b;
  return ((a & ~HIGH_BITS) + (b & ~HIGH_BITS)) ^ ((a ^ b) & HIGH_BITS);
}

/* Replaces each negative element by 0. */
static inline uint32_t rectified(uint32_t word) {
  if (ELEMENT_BYTES == 4) return word & ~(uint32_t)((int32_t)word >> 31);
  const uint32_t signs = word & HIGH_BITS;
  return word & ~(signs | (signs - (signs >> (ELEMENT_BITS - 1))));
}

/* Reads rows of features into the chunk with all tasklets; each tasklet rectifies the rows that it
 * has read. */
static void read_chunk(uint32_t at, uint32_t bytes) {
  read_together(at, chunk, bytes);
  if (!is_rectified) return;
  for (uint32_t piece = me() * PIECE_BYTES; piece < bytes; piece += NR_TASKLETS * PIECE_BYTES) {
    uint32_t *const words = (uint32_t *)(chunk + piece);
    const uint32_t count = min_of(PIECE_BYTES, bytes - piece) / 4;
    for (uint32_t i = 0; i < count; i += STEP) {
      UNROLL
      for (uint32_t j = 0; j < STEP; j++) words[i + j] = rectified(words[i + j]);
    }
  }
}

/* Adds the rows of the chunk to which the edges of a cell lead. */
static void add_edges(uint32_t begin, uint32_t end, uint8_t *sums, uint32_t *some) {
  uint32_t skipped = begin & 1; /* transfers begin at whole words of 8 bytes */
  for (uint32_t at = begin - skipped; at < end; at += BLOCK_EDGES) {
    const uint32_t count = min_of(BLOCK_EDGES, end - at);
    read_heap(edges + 4 * at, some, 4 * (count + (count & 1)));
    for (uint32_t i = skipped; i < count; i++) {
      const uint32_t *const row = (const uint32_t *)(chunk + (some[i] & 0xFFFF));
      uint32_t *const sum = (uint32_t *)(sums + (some[i] >> 16));
      for (uint32_t first = 0; first < ROW_WORDS; first += STEP) {
        UNROLL
        for (uint32_t j = first; j < first + STEP; j++) sum[j] = add_elements(sum[j], row[j]);
      }
    }
    skipped = 0;
  }
}

/* sums = tile * features. There is no race: the chunk is written between two barriers and read
 * between the next two; a block of sums belongs to one tasklet, for all chunks. */
static void aggregate(void) {
  uint8_t *const sums = buffers[me()][0];
  uint32_t *const some = (uint32_t *)buffers[me()][1];
  const uint32_t blocks = (rows + block_rows - 1) / block_rows;
  for (uint32_t slab = 0; slab < slabs; slab++) {
    uint32_t cell = 0;
    for (uint32_t source = 0; source < source_rows; source += CHUNK_ROWS, cell += blocks) {
      barrier_wait(&all);
      read_chunk(input + (slab * source_rows + source) * ROW_BYTES,
                 min_of(CHUNK_ROWS, source_rows - source) * ROW_BYTES);
      barrier_wait(&all);
      for (uint32_t block = me(); block < blocks; block += NR_TASKLETS) {
        const uint32_t row = block * block_rows, bytes = min_of(block_rows, rows - row) * ROW_BYTES;
        const uint32_t at = output + (slab * rows + row) * ROW_BYTES;
        const uint32_t skipped = (cell + block) & 1;
        read_heap(starts + 4 * (cell + block - skipped), some, 16);
        const uint32_t begin = some[skipped], end = some[skipped + 1];
        if (source == 0)
          memset(sums, 0, bytes);
        else if (begin == end)
          continue;
        else
          read_heap(at, sums, bytes);
        add_edges(begin, end, sums, some);
        write_heap(sums, at, bytes);
      }
    }
  }
}

int main(void) {
  if (!is_combination) {
    aggregate();
    return 0;
  }
  const struct product product = {.in = input,
                                  .weights = weights,
                                  .out = output,
                                  .rows = rows,
                                  .block_rows = block_rows,
                                  .in_slabs = slabs,
                                  .in_width = WIDTH,
                                  .out_slabs = weight_slabs,
                                  .out_width = WIDTH};
  const struct product_room room = {.weights = (ELEMENT *)chunk,
                                    .weights_bytes = CHUNK_BYTES,
                                    .in = (ELEMENT *)buffers[me()][0],
                                    .out = (ELEMENT *)buffers[me()][1]};
  multiply(&product, &room, &all);
  return 0;
}
