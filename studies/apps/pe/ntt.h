/* One step of a number-theoretic transform on a PE: transforms of M = 2^log_size elements, for all
 * rows of all limbs that the PE has.
 *
 * A transform of N coefficients splits x^N + 1 into factors x^(N/2) - w and x^(N/2) + w, and these
 * again, log2(N) times. The first step of a decomposition does the first levels for every column; a
 * later step continues with one subtree per row. So each row needs the twiddles of its subtree, and
 * no step multiplies by separate twiddles. Table entry 2^s + j is the factor of node j at level s
 * of the subtree; entry 0 is the modulus. Tables follow one another in MRAM in the order of rows,
 * so that one DMA transfer reads many entries.
 *
 * Rows have the index ((limb, k), c): k selects the subtree, c the column; rows with the same
 * (limb, k) share a table. In MRAM the element e = (high, low) of row (limb, (k1, k2), (c2, c1))
 * has the index
 *
 *   received by an alltoall:  [high][limb][k1][c2][c1][k2][low]
 *   to be sent:               [high][limb][k1][k2][c1][low][c2]
 *
 * so blocks of the alltoall are contiguous. All lengths are powers of two, except the number of
 * limbs. Blocks have a multiple of 8 bytes, if need be with a gap at their end. A PE with a single
 * row has no gaps before the first and after the last step.
 *
 * The program defines LOG_RADIX (1, 2 or 4) and BATCH, the elements of all rows in WRAM at a time.
 * All tasklets share the rows in WRAM: a stage has M / radix butterflies per row, butterfly i
 * belongs to tasklet i modulo NR_TASKLETS, and a barrier ends the stage. So no two tasklets write
 * the same element between two barriers. */
#ifndef PIDCOMM_APPS_NTT_H
#define PIDCOMM_APPS_NTT_H

#include <barrier.h>
#include <defs.h>
#include <stdint.h>

#include "heap.h"
#include "modular.h"

#define RADIX (1u << LOG_RADIX)
#define ELEMENT_BYTES ((uint32_t)sizeof(word_t))
#define DMA_ELEMENTS (8u / ELEMENT_BYTES) /* elements of the smallest transfer */
#define FACTOR_BYTES ((uint32_t)sizeof(struct factor))
#define TABLE_PIECE_BYTES 1024u
#define LOG_FINISHED 3u /* a tasklet finishes 8 values at a time */
#if WORD_BITS == 32
#define FORWARD_LIMIT 1u /* each level reduces, so values are below 2^(1 + 1) q */
#else
#define FORWARD_LIMIT 7u /* after 17 levels, values are below (1 + 17 * 9) q < 2^(7 + 1) q */
#endif

/* What the host knows about a step. Lengths are logarithms; offsets are bytes in the MRAM heap. */
struct ntt_step {
  uint32_t log_size;
  uint32_t log_k, log_k2, log_c, log_c2; /* numbers of values of k, k2, c and c2 */
  uint32_t log_low_received, log_low_sent;
  uint32_t is_first, is_last; /* the first step reads in the layout to be sent; the last writes in
                                 the layout received */
  uint32_t tables, inverse_tables;
};

/* The limbs of a window: limb i has modulus first + i, from i = gap_at on first + i + gap. */
struct ntt_limbs {
  uint32_t count, first, gap_at, gap;
};

/* One side of a step: where the elements of a row are. */
struct ntt_side {
  uint32_t window, block, log_low, log_stride;
  uint32_t is_received;
  uint32_t is_run; /* the elements of a row with the same `high` are contiguous */
};

static word_t ntt_elements[BATCH] __dma_aligned;
static struct factor ntt_tables[BATCH] __dma_aligned;

/* Returns the index of element 0 of a row. */
static inline uint32_t ntt_start(const struct ntt_step *it, uint32_t is_received, uint32_t row) {
  const uint32_t c = row & ((1u << it->log_c) - 1), k = row >> it->log_c;
  if (is_received) {
    const uint32_t k2 = k & ((1u << it->log_k2) - 1), k1 = k >> it->log_k2;
    return ((((k1 << it->log_c) + c) << it->log_k2) + k2) << it->log_low_received;
  }
  const uint32_t log_c1 = it->log_c - it->log_c2;
  const uint32_t c1 = c & ((1u << log_c1) - 1), c2 = c >> log_c1;
  return (((((k << log_c1) + c1) << it->log_low_sent)) << it->log_c2) + c2;
}

static inline struct ntt_side ntt_side_of(const struct ntt_step *it, uint32_t limbs,
                                          uint32_t window, uint32_t is_received,
                                          uint32_t is_exchanged) {
  const uint32_t log_low = is_received ? it->log_low_received : it->log_low_sent;
  const uint32_t log_stride = is_received ? 0 : it->log_c2;
  uint32_t block = limbs << (it->log_k + it->log_c + log_low);
  if (is_exchanged || limbs > 1) block = (block + DMA_ELEMENTS - 1) & ~(DMA_ELEMENTS - 1);
  return (struct ntt_side){window,      block,
                           log_low,     log_stride,
                           is_received, log_stride == 0 && (1u << log_low) >= DMA_ELEMENTS};
}

static inline uint32_t ntt_modulus(const struct ntt_limbs *limbs, uint32_t limb) {
  return limbs->first + limb + (limb >= limbs->gap_at ? limbs->gap : 0);
}

/* Reads or writes the elements of one row with the same `high`, as a run or one by one. Elements
 * that share the 8 bytes of a transfer may belong to rows of different tasklets, so a tasklet
 * writes those at `turn` in their transfer, and a barrier follows. */
static inline void ntt_move(const struct ntt_step *it, const struct ntt_side *side, uint32_t row,
                            uint32_t high, word_t *elements, uint32_t is_write, uint32_t turn) {
  const uint32_t first = high * side->block + ntt_start(it, side->is_received, row);
  const uint32_t count = 1u << side->log_low, bytes = ELEMENT_BYTES * count;
  if (side->is_run) {
    const uint32_t at = side->window + ELEMENT_BYTES * first;
    if (is_write)
      write_heap(elements, at, bytes);
    else
      read_heap(at, elements, bytes);
    return;
  }
  for (uint32_t piece = 0; piece < count; ++piece) {
    word_t shared[DMA_ELEMENTS] __dma_aligned;
    const uint32_t index = first + (piece << side->log_stride), own = index % DMA_ELEMENTS;
    const uint32_t at = side->window + ELEMENT_BYTES * (index - own);
    if (is_write && own != turn) continue;
    if (!is_write || DMA_ELEMENTS > 1) read_heap(at, shared, 8);
    if (is_write) {
      shared[own] = elements[piece];
      write_heap(shared, at, 8);
    } else {
      elements[piece] = shared[own];
    }
  }
}

/* Values stay below (1 + 9 l) q after l levels; with 32-bit words below 4 q. */
static inline void ntt_split(word_t *x, word_t *y, const struct factor *w, word_t q) {
  const word_t limit = TIMES_BOUND * q, term = times(*y, w, q);
  const word_t a = WORD_BITS == 32 && *x >= limit ? *x - limit : *x;
  *x = a + term;
  *y = a + limit - term;
}

/* Values stay below 2^(TIMES_LIMIT + 1) q. */
static inline void ntt_merge(word_t *x, word_t *y, const struct factor *w, word_t q) {
  const word_t limit = q << (TIMES_LIMIT + 1), sum = *x + *y, difference = *x + limit - *y;
  *x = sum >= limit ? sum - limit : sum;
  *y = times(difference, w, q);
}

/* A radix-2^LOG_RADIX butterfly: LOG_RADIX levels of radix-2 butterflies on elements that are
 * `step` apart, from node `node` at `level`. */
static inline void ntt_butterfly(word_t *elements, uint32_t step, const struct factor *table,
                                 uint32_t level, uint32_t node, uint32_t is_inverse) {
  word_t x[RADIX];
  const word_t q = table->value;
  for (uint32_t i = 0; i < RADIX; ++i) x[i] = elements[i * step];
  for (uint32_t turn = 0; turn < LOG_RADIX; ++turn) {
    const uint32_t s = is_inverse ? LOG_RADIX - 1 - turn : turn;
    const uint32_t half = RADIX >> (s + 1);
    const struct factor *w = table + (1u << (level + s)) + (node << s);
    word_t *low = x;
    for (uint32_t j = 0; j < 1u << s; ++j, ++w, low += 2 * half)
      for (uint32_t u = 0; u < half; ++u) {
        if (is_inverse)
          ntt_merge(low + u, low + half + u, w, q);
        else
          ntt_split(low + u, low + half + u, w, q);
      }
  }
  for (uint32_t i = 0; i < RADIX; ++i) elements[i * step] = x[i];
}

/* Does the butterflies of this tasklet in one stage, for `rows` rows in WRAM; first: the index of
 * the first. */
static inline void ntt_stage(const struct ntt_step *it, uint32_t level, uint32_t first,
                             uint32_t rows, uint32_t is_inverse) {
  const uint32_t log_row = it->log_size - LOG_RADIX, log_apart = log_row - level;
  const uint32_t first_table = first >> it->log_c;
  for (uint32_t work = me(); work < rows << log_row; work += NR_TASKLETS) {
    const uint32_t row = work >> log_row, index = work & ((1u << log_row) - 1);
    const uint32_t node = index >> log_apart, place = index & ((1u << log_apart) - 1);
    const struct factor *table =
        ntt_tables + ((((first + row) >> it->log_c) - first_table) << it->log_size);
    word_t *const elements =
        ntt_elements + (row << it->log_size) + (node << (log_apart + LOG_RADIX)) + place;
    ntt_butterfly(elements, 1u << log_apart, table, level, node, is_inverse);
  }
}

/* Makes the values of this tasklet smaller than q; after an inverse transform, multiplies them by
 * the factors of their limbs first. */
static inline void ntt_finish(const struct ntt_step *it, const struct ntt_limbs *limbs,
                              uint32_t first, uint32_t rows, uint32_t is_inverse, uint32_t scales) {
  const uint32_t log_part = min_of(LOG_FINISHED, it->log_size), log_parts = it->log_size - log_part;
  for (uint32_t work = me(); work < rows << log_parts; work += NR_TASKLETS) {
    const uint32_t row = first + (work >> log_parts);
    const word_t q = ntt_tables[((row >> it->log_c) - (first >> it->log_c)) << it->log_size].value;
    word_t *const elements = ntt_elements + (work << log_part);
    if (is_inverse) {
      struct factor scale __dma_aligned;
      read_heap(scales + FACTOR_BYTES * ntt_modulus(limbs, row >> (it->log_k + it->log_c)), &scale,
                FACTOR_BYTES);
      for (uint32_t i = 0; i < 1u << log_part; ++i)
        elements[i] = reduced(times(elements[i], &scale, q), q, PRODUCT_LIMIT);
    } else {
      for (uint32_t i = 0; i < 1u << log_part; ++i)
        elements[i] = reduced(elements[i], q, FORWARD_LIMIT);
    }
  }
}

/* Transforms all rows, from the window `from` to the window `to`, which may be equal in the first
 * and the last step. Results of the last step of a transform are below q. is_inverse: the inverse
 * transform, which does the steps in reverse order, and multiplies the results of the first step by
 * the factors of their limbs at `scales`. Every tasklet calls this function with the same barrier.
 */
static inline void ntt_transform(const struct ntt_step *it, const struct ntt_limbs *limbs,
                                 uint32_t from, uint32_t to, uint32_t is_inverse, uint32_t scales,
                                 barrier_t *barrier) {
  const uint32_t rows = limbs->count << (it->log_k + it->log_c), most = BATCH >> it->log_size;
  struct ntt_side in = ntt_side_of(it, limbs->count, from, !it->is_first, !it->is_first),
                  out = ntt_side_of(it, limbs->count, to, it->is_last, !it->is_last);
  if (is_inverse) {
    in = ntt_side_of(it, limbs->count, from, it->is_last, !it->is_last);
    out = ntt_side_of(it, limbs->count, to, !it->is_first, !it->is_first);
  }
  const uint32_t tables = is_inverse ? it->inverse_tables : it->tables;
  const uint32_t log_in = it->log_size - in.log_low, log_out = it->log_size - out.log_low;
  for (uint32_t first = 0; first < rows; first += most) {
    const uint32_t count = min_of(most, rows - first);
    const uint32_t table = first >> it->log_c, end = ((first + count - 1) >> it->log_c) + 1;
    const uint32_t table_bytes = FACTOR_BYTES << it->log_size,
                   pieces = (table_bytes + TABLE_PIECE_BYTES - 1) / TABLE_PIECE_BYTES;
    for (uint32_t work = me(); work < (end - table) * pieces; work += NR_TASKLETS) {
      const uint32_t index = work / pieces, at = (work - index * pieces) * TABLE_PIECE_BYTES;
      const uint32_t limb = (table + index) >> it->log_k,
                     k = (table + index) & ((1u << it->log_k) - 1);
      const uint32_t place =
          tables + ((ntt_modulus(limbs, limb) << it->log_k) + k) * table_bytes + at;
      read_heap(place, (uint8_t *)ntt_tables + index * table_bytes + at,
                min_of(TABLE_PIECE_BYTES, table_bytes - at));
    }
    for (uint32_t work = me(); work < count << log_in; work += NR_TASKLETS) {
      const uint32_t row = work >> log_in, high = work & ((1u << log_in) - 1);
      ntt_move(it, &in, first + row, high,
               ntt_elements + (row << it->log_size) + (high << in.log_low), 0, 0);
    }
    barrier_wait(barrier);
    for (uint32_t level = 0; level < it->log_size; level += LOG_RADIX) {
      ntt_stage(it, is_inverse ? it->log_size - LOG_RADIX - level : level, first, count,
                is_inverse);
      barrier_wait(barrier);
    }
    if (is_inverse ? it->is_first : it->is_last) {
      ntt_finish(it, limbs, first, count, is_inverse, scales);
      barrier_wait(barrier);
    }
    for (uint32_t turn = 0; turn < (out.is_run ? 1 : DMA_ELEMENTS); ++turn) {
      for (uint32_t work = me(); work < count << log_out; work += NR_TASKLETS) {
        const uint32_t row = work >> log_out, high = work & ((1u << log_out) - 1);
        ntt_move(it, &out, first + row, high,
                 ntt_elements + (row << it->log_size) + (high << out.log_low), 1, turn);
      }
      barrier_wait(barrier);
    }
  }
}

#define CHUNK 16u /* elements that a tasklet multiplies at a time */

/* Multiplies element by element, a *= b, in the layout in which the last step leaves its results.
 * elements: including gaps, whose products do not matter. */
static inline void ntt_multiply(const struct ntt_step *last, const struct ntt_limbs *limbs,
                                uint32_t elements, uint32_t a, uint32_t b) {
  const uint32_t log_piece =
      last->log_k + last->log_c + last->log_low_received; /* elements of one limb in a block */
  const uint32_t chunk = log_piece == 0 ? DMA_ELEMENTS : min_of(CHUNK, 1u << log_piece);
  const uint32_t block = ntt_side_of(last, limbs->count, 0, 1, 0).block;
  word_t *const x = ntt_elements + me() * 2 * CHUNK, *const y = x + CHUNK;
  for (uint32_t at = me() * chunk; at < elements; at += NR_TASKLETS * chunk) {
    struct factor modulus __dma_aligned;
    read_heap(a + at * ELEMENT_BYTES, x, chunk * ELEMENT_BYTES);
    read_heap(b + at * ELEMENT_BYTES, y, chunk * ELEMENT_BYTES);
    for (uint32_t i = 0; i < chunk; ++i) {
      if (i % (1u << log_piece) == 0) {
        const uint32_t limb = min_of((at + i) % block >> log_piece, limbs->count - 1);
        const uint32_t modulus_at = ntt_modulus(limbs, limb);
        read_heap(last->tables + (modulus_at * FACTOR_BYTES << (last->log_k + last->log_size)),
                  &modulus, FACTOR_BYTES);
      }
      x[i] = reduced(product(x[i], y[i], &modulus), modulus.value, PRODUCT_LIMIT);
    }
    write_heap(x, a + at * ELEMENT_BYTES, chunk * ELEMENT_BYTES);
  }
}

#endif
