/* Runs one primitive of a homomorphic multiplication on a PE; ntt.h has the transforms.
 *
 * A window has the elements [block][limb][element of a piece] of some coefficients and limbs.
 * Windows with transforms have 2^LOG_BLOCKS_T blocks, windows with coefficients 2^LOG_BLOCKS_C.
 * Limbs are spread over 2^LOG_SLICES slices. An alltoall between slices before CONVERT moves all
 * limbs of a part of the blocks to each slice, and one after CONVERT moves them back: in both
 * windows, the blocks of CONVERT are [slice][block of the part], each with the limbs of that slice.
 *
 *   TENSOR: d0 = x0 y0, d1 = x0 y1 + x1 y0, d2 = x1 y1.
 *
 *   CONVERT changes the basis: y_i = x_i w_i modulo each of `sources` moduli, `sources_each` from
 *   each slice, then the sum of y_i f_it modulo every modulus t of the target, `limbs` of each
 * slice.
 *
 *   ACCUMULATE: target += u k0, second += u k1, or without `adds` = instead of +=; u is d2 for the
 *   limbs of the digit, else `source`; the key k begins at `other`.
 *
 *   FINISH: target = (source - other) w_t. ADD: target += source. COPY copies `limbs` limbs.
 *
 * The host defines STEPS, LOG_RADIX, BATCH; LOG_ELEMENTS, the elements of a limb; LIMBS and
 * ALL_LIMBS, the numbers of moduli without and with those of the extension; SOURCES_MAX. A piece of
 * work belongs to one tasklet, and no two pieces write the same element. */
#include <barrier.h>
#include <defs.h>
#include <stdint.h>

#include "ntt.h"

enum { FORWARD, INVERSE, TENSOR, CONVERT, ACCUMULATE, FINISH, ADD, COPY };

BARRIER_INIT(everybody, NR_TASKLETS);
__host uint32_t operation;
__host uint32_t step;
__host uint32_t source, target, second, other, constants; /* offsets in the MRAM heap */
__host uint32_t limbs, first, gap_at, gap;                /* of the target; see struct ntt_limbs */
__host uint32_t source_limbs, source_first, sources,
    sources_each; /* limbs of the source's window; the first to use; how many of all slices
                     and of each */
__host uint32_t digit, digit_limbs; /* first modulus of the digit, and how many */
__host uint32_t adds;

static const struct ntt_step steps[] = {STEPS};

#define CHUNK_MAX 4u
#define LOG_CHUNK(log_piece) ((log_piece) < 2 ? (log_piece) : 2)
#define LOG_PIECE_T (LOG_ELEMENTS - LOG_BLOCKS_T)
#define LOG_PIECE_C (LOG_ELEMENTS - LOG_BLOCKS_C)

typedef uint64_t chunk_t[CHUNK_MAX];

static chunk_t values[NR_TASKLETS][SOURCES_MAX] __dma_aligned;
static struct factor rows[NR_TASKLETS][1 + SOURCES_MAX] __dma_aligned;

/* A chunk: consecutive elements of one limb. */
struct chunk {
  uint32_t block, limb, at, log_piece;
};

static inline struct chunk chunk_of(uint32_t work, uint32_t count, uint32_t log_piece) {
  const uint32_t log_chunks = log_piece - LOG_CHUNK(log_piece), piece = work >> log_chunks,
                 block = piece / count;
  return (struct chunk){block, piece - block * count,
                        (work & ((1u << log_chunks) - 1)) << LOG_CHUNK(log_piece), log_piece};
}

static inline uint32_t chunks_of(uint32_t count, uint32_t log_piece) {
  return count << (LOG_ELEMENTS - LOG_CHUNK(log_piece));
}

static inline uint32_t place(const struct chunk *chunk, uint32_t window, uint32_t window_limbs,
                             uint32_t limb) {
  return window +
         ELEMENT_BYTES * (((chunk->block * window_limbs + limb) << chunk->log_piece) + chunk->at);
}

static inline uint32_t bytes_of(const struct chunk *chunk) {
  return ELEMENT_BYTES << LOG_CHUNK(chunk->log_piece);
}

static inline void read_modulus(uint32_t modulus, struct factor *to) {
  read_heap(AT_MODULI + FACTOR_BYTES * modulus, to, FACTOR_BYTES);
}

static void multiply_all(void) {
  chunk_t *const v = values[me()];
  struct factor *const q = rows[me()];
  for (uint32_t work = me(); work < chunks_of(LIMBS, LOG_PIECE_T); work += NR_TASKLETS) {
    const struct chunk chunk = chunk_of(work, LIMBS, LOG_PIECE_T);
    const uint32_t windows[] = {AT_X0, AT_X1, AT_Y0, AT_Y1};
    read_modulus(chunk.limb, q);
    for (uint32_t i = 0; i < 4; ++i)
      read_heap(place(&chunk, windows[i], LIMBS, chunk.limb), v[i], bytes_of(&chunk));
    for (uint32_t i = 0; i < 1u << LOG_CHUNK(LOG_PIECE_T); ++i) {
      const uint64_t x0 = v[0][i], x1 = v[1][i], y0 = v[2][i], y1 = v[3][i];
      v[0][i] = reduced(product(x0, y0, q), q->value, PRODUCT_LIMIT);
      v[1][i] = reduced(product(x0, y1, q) + product(x1, y0, q), q->value, PRODUCT_LIMIT + 1);
      v[2][i] = reduced(product(x1, y1, q), q->value, PRODUCT_LIMIT);
    }
    write_heap(v[0], place(&chunk, AT_D0, LIMBS, chunk.limb), bytes_of(&chunk));
    write_heap(v[1], place(&chunk, AT_D1, LIMBS, chunk.limb), bytes_of(&chunk));
    write_heap(v[2], place(&chunk, AT_D2, LIMBS, chunk.limb), bytes_of(&chunk));
  }
}

/* constants: for each source (w_i, quotient), (modulus, a_i), then for each target (modulus, s_t)
 * and all f_it. y_i becomes y_i + a_i, and s_t is subtracted from the sum: to round, a_i is half of
 * the modulus. */
_Static_assert(SOURCES_MAX *TIMES_BOUND + 1 <= 2u << FORWARD_LIMIT,
               "FORWARD_LIMIT reduces the sum of all sources");

static void convert(void) {
  chunk_t *const y = values[me()];
  struct factor *const row = rows[me()];
  const uint32_t blocks = 1u << (LOG_BLOCKS_C - LOG_SLICES);
  for (uint32_t work = me(); work < chunks_of(1, LOG_PIECE_C) >> LOG_SLICES; work += NR_TASKLETS) {
    const struct chunk chunk = chunk_of(work, 1, LOG_PIECE_C);
    struct chunk of_slice = chunk;
    for (uint32_t i = 0, limb = 0; i < sources; ++i, ++limb) {
      if (limb == sources_each) limb = 0, of_slice.block += blocks;
      read_heap(constants + 2 * FACTOR_BYTES * i, row, 2 * FACTOR_BYTES);
      read_heap(place(&of_slice, source, source_limbs, source_first + limb), y[i],
                bytes_of(&chunk));
      const uint64_t q = row[1].value;
      for (uint32_t e = 0; e < 1u << LOG_CHUNK(LOG_PIECE_C); ++e)
        y[i][e] = reduced(times(y[i][e], row, q) + row[1].quotient, q, PRODUCT_LIMIT);
    }
    of_slice = chunk;
    for (uint32_t t = 0, limb = 0; t < limbs << LOG_SLICES; ++t, ++limb) {
      if (limb == limbs) limb = 0, of_slice.block += blocks;
      chunk_t out __dma_aligned;
      read_heap(constants + FACTOR_BYTES * (2 * sources + (1 + sources) * t), row,
                FACTOR_BYTES * (1 + sources));
      for (uint32_t e = 0; e < 1u << LOG_CHUNK(LOG_PIECE_C); ++e) {
        uint64_t sum = row->value - row->quotient;
        for (uint32_t i = 0; i < sources; ++i) sum += times(y[i][e], row + 1 + i, row->value);
        out[e] = reduced(sum, row->value, FORWARD_LIMIT);
      }
      write_heap(out, place(&of_slice, target, limbs, limb), bytes_of(&chunk));
    }
  }
}

static void accumulate(void) {
  chunk_t *const v = values[me()];
  struct factor *const q = rows[me()];
  const uint32_t key_bytes = ELEMENT_BYTES * ALL_LIMBS << LOG_ELEMENTS;
  for (uint32_t work = me(); work < chunks_of(limbs, LOG_PIECE_T); work += NR_TASKLETS) {
    const struct chunk chunk = chunk_of(work, limbs, LOG_PIECE_T);
    const uint32_t modulus = first + chunk.limb, bytes = bytes_of(&chunk);
    read_modulus(modulus, q);
    if (modulus >= digit && modulus < digit + digit_limbs)
      read_heap(place(&chunk, AT_D2, LIMBS, modulus), v[0], bytes);
    else
      read_heap(
          place(&chunk, source, source_limbs, modulus < digit ? modulus : modulus - digit_limbs),
          v[0], bytes);
    const uint32_t targets[] = {target, second};
    for (uint32_t part = 0; part < 2; ++part) {
      read_heap(place(&chunk, other + part * key_bytes, ALL_LIMBS, modulus), v[1], bytes);
      if (adds) read_heap(place(&chunk, targets[part], limbs, chunk.limb), v[2], bytes);
      for (uint32_t e = 0; e < 1u << LOG_CHUNK(LOG_PIECE_T); ++e)
        v[1][e] = reduced(product(v[0][e], v[1][e], q) + (adds ? v[2][e] : 0), q->value,
                          PRODUCT_LIMIT + 1);
      write_heap(v[1], place(&chunk, targets[part], limbs, chunk.limb), bytes);
    }
  }
}

static void finish(void) {
  chunk_t *const v = values[me()];
  struct factor *const row = rows[me()];
  for (uint32_t work = me(); work < chunks_of(limbs, LOG_PIECE_T); work += NR_TASKLETS) {
    const struct chunk chunk = chunk_of(work, limbs, LOG_PIECE_T);
    const uint32_t bytes = bytes_of(&chunk);
    read_modulus(chunk.limb, row);
    read_heap(constants + FACTOR_BYTES * chunk.limb, row + 1, FACTOR_BYTES);
    read_heap(place(&chunk, source, source_limbs, chunk.limb), v[0], bytes);
    read_heap(place(&chunk, other, limbs, chunk.limb), v[1], bytes);
    const uint64_t q = row->value;
    for (uint32_t e = 0; e < 1u << LOG_CHUNK(LOG_PIECE_T); ++e)
      v[0][e] = reduced(times(v[0][e] + q - v[1][e], row + 1, q), q, PRODUCT_LIMIT);
    write_heap(v[0], place(&chunk, target, limbs, chunk.limb), bytes);
  }
}

static void add(void) {
  chunk_t *const v = values[me()];
  struct factor *const q = rows[me()];
  for (uint32_t work = me(); work < chunks_of(limbs, LOG_PIECE_T); work += NR_TASKLETS) {
    const struct chunk chunk = chunk_of(work, limbs, LOG_PIECE_T);
    const uint32_t bytes = bytes_of(&chunk);
    read_modulus(chunk.limb, q);
    read_heap(place(&chunk, source, limbs, chunk.limb), v[0], bytes);
    read_heap(place(&chunk, target, limbs, chunk.limb), v[1], bytes);
    for (uint32_t e = 0; e < 1u << LOG_CHUNK(LOG_PIECE_T); ++e)
      v[0][e] = reduced(v[0][e] + v[1][e], q->value, 0);
    write_heap(v[0], place(&chunk, target, limbs, chunk.limb), bytes);
  }
}

static void copy(void) {
  chunk_t *const v = values[me()];
  for (uint32_t work = me(); work < chunks_of(limbs, LOG_PIECE_T); work += NR_TASKLETS) {
    const struct chunk chunk = chunk_of(work, limbs, LOG_PIECE_T);
    read_heap(place(&chunk, source, source_limbs, source_first + chunk.limb), v[0],
              bytes_of(&chunk));
    write_heap(v[0], place(&chunk, target, limbs, chunk.limb), bytes_of(&chunk));
  }
}

int main(void) {
  const struct ntt_limbs of_target = {limbs, first, gap_at, gap};
  switch (operation) {
    case TENSOR:
      multiply_all();
      break;
    case CONVERT:
      convert();
      break;
    case ACCUMULATE:
      accumulate();
      break;
    case FINISH:
      finish();
      break;
    case ADD:
      add();
      break;
    case COPY:
      copy();
      break;
    default:
      ntt_transform(steps + step, &of_target, source, target, operation == INVERSE, AT_SCALES,
                    &everybody);
  }
  return 0;
}
