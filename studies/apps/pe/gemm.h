/// gemm.h: multiplies two matrices in MRAM with all tasklets of a PE, in integers that wrap.
///
/// A program defines ELEMENT (int8_t, int16_t or int32_t) and ELEMENT_BYTES before it includes this
/// header.
///
/// Matrices are stored in slabs of `width` columns, one after the other, each slab row by row:
/// [slab][row][width]. A single slab is a matrix stored row by row. With narrow slabs a collective
/// splits a matrix by columns without a copy, because its blocks are slabs.
#ifndef PIDCOMM_APPS_GEMM_H
#define PIDCOMM_APPS_GEMM_H

#include <barrier.h>
#include <defs.h>
#include <stdint.h>
#include <string.h>

#include "heap.h"
#include "unroll.h"

#define PIECE_BYTES 512  // size of the pieces that tasklets read in read_together

/// out = in * weights. Addresses are offsets from the start of the MRAM heap, multiples of 8, as
/// are the bytes of a slab's row; `out` lies apart from the others.
struct product {
  uint32_t in, weights, out;
  uint32_t rows;                  // of in and out
  uint32_t block_rows;            // rows that a tasklet computes at a time
  uint32_t in_slabs, in_width;    // in_slabs * in_width columns of in are the rows of weights
  uint32_t out_slabs, out_width;  // of out and of weights
};

/// WRAM for a product. All tasklets share `weights`, which holds at least in_width rows of a slab
/// of weights. Each tasklet has its own `in` and `out`, which hold block_rows rows of a slab.
struct product_room {
  ELEMENT *weights;
  uint32_t weights_bytes;
  ELEMENT *in, *out;
};

/// Copies from MRAM to WRAM with all tasklets; piece i belongs to tasklet i modulo their number.
/// The caller puts barriers around it.
static inline void read_together(uint32_t from, void *to, uint32_t bytes) {
  for (uint32_t at = me() * PIECE_BYTES; at < bytes; at += NR_TASKLETS * PIECE_BYTES)
    read_heap(from + at, (uint8_t *)to + at, min_of(PIECE_BYTES, bytes - at));
}

// Columns whose sums are in registers at the same time: 8 bytes of columns.
#define PRODUCT_COLUMNS (8 / ELEMENT_BYTES)

// A PE multiplies bytes in one instruction, and longer integers in a routine of about 30
// instructions. Sums have 32 bits until they are stored.
#if ELEMENT_BYTES == 1
#define PRODUCT(a, b) ((uint16_t)((uint8_t)(a) * (uint8_t)(b)))
#else
#define PRODUCT(a, b) ((uint32_t)(a) * (uint32_t)(b))
#endif

/// out += in * weights in WRAM; `in` is `rows` x `depth`, weights are `depth` x `width`. Not
/// inline: the function needs the registers.
static __attribute__((noinline)) void add_product(const ELEMENT *in, const ELEMENT *weights,
                                                  ELEMENT *out, uint32_t rows, uint32_t depth,
                                                  uint32_t width) {
  for (; rows > 0; rows--, in += depth) {
    for (uint32_t column = 0; column < width; column += PRODUCT_COLUMNS, out += PRODUCT_COLUMNS) {
      uint32_t sums[PRODUCT_COLUMNS];
      UNROLL
      for (uint32_t i = 0; i < PRODUCT_COLUMNS; i++) sums[i] = (uint32_t)out[i];
      const ELEMENT *factors = weights + column;
      for (uint32_t k = 0; k < depth; k++, factors += width) {
        const ELEMENT value = in[k];
        if (value == 0) continue;  // for example in padding
        UNROLL
        for (uint32_t i = 0; i < PRODUCT_COLUMNS; i++) sums[i] += PRODUCT(value, factors[i]);
      }
      UNROLL
      for (uint32_t i = 0; i < PRODUCT_COLUMNS; i++) out[i] = (ELEMENT)sums[i];
    }
  }
}

/// Computes a product. Every tasklet calls this function with the same barrier.
///
/// There is no race: weights are written between two barriers and read between the next two; a
/// block of rows of `out` belongs to one tasklet, which computes the same blocks for each part of
/// the weights.
static inline void multiply(const struct product *p, const struct product_room *room,
                            barrier_t *barrier) {
  const uint32_t in_row = p->in_width * ELEMENT_BYTES, out_row = p->out_width * ELEMENT_BYTES;
  const uint32_t slab_bytes =
      p->in_width * out_row;  // part of the weights that one slab of in and one slab of out need
  const uint32_t part = room->weights_bytes / slab_bytes;
  for (uint32_t out_slab = 0; out_slab < p->out_slabs; out_slab++) {
    for (uint32_t first = 0; first < p->in_slabs; first += part) {
      const uint32_t end = min_of(first + part, p->in_slabs);
      barrier_wait(barrier);
      read_together(p->weights + (out_slab * p->in_slabs + first) * slab_bytes, room->weights,
                    (end - first) * slab_bytes);
      barrier_wait(barrier);
      for (uint32_t row = me() * p->block_rows; row < p->rows; row += NR_TASKLETS * p->block_rows) {
        const uint32_t rows = min_of(p->block_rows, p->rows - row);
        const uint32_t out = p->out + (out_slab * p->rows + row) * out_row;
        if (first == 0)
          memset(room->out, 0, rows * out_row);
        else
          read_heap(out, room->out, rows * out_row);
        const ELEMENT *weights = room->weights;
        for (uint32_t in_slab = first; in_slab < end;
             in_slab++, weights += p->in_width * p->out_width) {
          read_heap(p->in + (in_slab * p->rows + row) * in_row, room->in, rows * in_row);
          add_product(room->in, weights, room->out, rows, p->in_width, p->out_width);
        }
        write_heap(room->out, out, rows * out_row);
      }
    }
  }
}

#endif
