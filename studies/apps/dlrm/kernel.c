/* Runs one phase of DLRM on a PE.
 *
 *   ARRANGE    writes the indices of the PE's own samples, in a block for each PE that needs them;
 *   LOOK_UP    reads the rows of this PE's part of its tables, for the indices of all samples;
 *   PREDICT    computes the layers for the PE's own samples.
 *
 * The host defines these three and: the axis lengths PES_X, PES_Y and PES_Z; SAMPLES and TABLES,
 * the numbers of a PE, and ALL_TABLES; ROWS of the PE's part of each of its tables, and COLUMNS;
 * PLACES, the numbers of the tables of each x, ALL_TABLES where there is no table; EMBEDDING; the
 * number of DENSE features; BOTTOM and TOP, the widths of the layers, starting with their inputs;
 * WIDEST, the largest width between layers; GROUP, an even number of samples whose vectors fit in
 * WRAM; BUFFER_BYTES. Arithmetic is unsigned, because unsigned arithmetic wraps. */
#include <barrier.h>
#include <defs.h>
#include <stdint.h>

#include "heap.h"

#define EVEN(words) (((words) + 1) / 2 * 2)
#define COUNT(array) (sizeof(array) / sizeof(array)[0])

enum { kBufferWords = BUFFER_BYTES / 4 };
/* A sample in WRAM, in words. Behind the inputs of a layer is a 1, whose weight is the bias. */
enum {
  kFeatures =
      0, /* vector 0, the output of the bottom layers, then the products of pairs of vectors */
  kPairs = kFeatures + EMBEDDING,
  kInputsOfTop = EMBEDDING + ALL_TABLES * (ALL_TABLES + 1) / 2,
  kVectors = kFeatures + EVEN(kInputsOfTop + 1), /* vectors 1 to ALL_TABLES, from the tables */
  kLayers = kVectors + ALL_TABLES * EMBEDDING,   /* two buffers for values between layers */
  kLayerWords = EVEN(WIDEST + 1),
  kSampleWords = kLayers + 2 * kLayerWords
};

BARRIER_INIT(everybody, NR_TASKLETS);
__host uint32_t phase;
__host uint32_t own_y;

/* Each tasklet has its own. */
__dma_aligned uint32_t buffers[NR_TASKLETS][kBufferWords];
/* Shared by all tasklets without locks: between two barriers, either one tasklet writes a word, or
 * any tasklets read it. */
__dma_aligned uint32_t samples[GROUP][kSampleWords];
__dma_aligned uint32_t results[GROUP];

static const uint32_t bottom[] = {BOTTOM}, top[] = {TOP};
static const uint32_t rows_of[] = {ROWS}, places[] = {PLACES};
uint32_t first_rows[TABLES]; /* the first row of each table that this PE has */
uint32_t tables_at[TABLES];

/* ---- ARRANGE */

/* Indices are in the order (x, sample, table). All PEs with the same x have the same tables, so
 * they get the same block: each piece of the block is read once, and written for all y and z. One
 * tasklet reads and writes a piece. */
enum {
  kBlockBytes = SAMPLES * TABLES * 4,
  kPieceBytes = BUFFER_BYTES,
  kPiecesOfBlock = (kBlockBytes + kPieceBytes - 1) / kPieceBytes
};

static void arrange(void) {
  uint32_t *const piece = buffers[me()];
  for (uint32_t work = me(); work < PES_X * kPiecesOfBlock; work += NR_TASKLETS) {
    const uint32_t x = work / kPiecesOfBlock, start = (work - x * kPiecesOfBlock) * kPieceBytes;
    const uint32_t at = x * kBlockBytes + start, bytes = min_of(kBlockBytes - start, kPieceBytes);
    read_heap(AT_WANTED + at, piece, bytes);
    for (uint32_t yz = 0; yz < PES_Y * PES_Z; ++yz)
      write_heap(piece, AT_INDICES + yz * (PES_X * kBlockBytes) + at, bytes);
  }
}

/* ---- LOOK_UP */

/* The indices for members x = 0 to PES_X - 1 with the same y and z form a run, and so do their
 * rows. Runs are in the order (y, z, x), as the collectives along y, and then along x and z, need
 * them. One tasklet reads and writes a piece of a run. */
enum {
  kRun = PES_X * SAMPLES * TABLES,
  /* The buffer holds the indices and the rows of a piece. */
  kPiece = kBufferWords / (1 + COLUMNS) / 2 * 2,
  kPieces = (kRun + kPiece - 1) / kPiece
};

static void look_up(void) {
  if (me() == 0)
    for (uint32_t table = 0, at = AT_TABLES; table < TABLES; ++table) {
      first_rows[table] = own_y * rows_of[table];
      tables_at[table] = at;
      at += rows_of[table] * (COLUMNS * 4);
    }
  barrier_wait(&everybody);
  uint32_t *const indices = buffers[me()], *const rows = indices + kPiece;
  for (uint32_t work = me(); work < kPieces * PES_Y * PES_Z; work += NR_TASKLETS) {
    const uint32_t run = work / kPieces, start = (work - run * kPieces) * kPiece;
    const uint32_t z = run / PES_Y, y = run - z * PES_Y;
    const uint32_t count = min_of(kRun - start, kPiece);
    read_heap(AT_REQUESTS + 4 * (run * kRun + start), indices, 4 * count);
    uint32_t table = start % TABLES;
    uint32_t *out = rows;
    for (uint32_t i = 0; i < count; ++i) {
      const uint32_t row = indices[i] - first_rows[table];
      if (row < rows_of[table])
        read_heap(tables_at[table] + row * (COLUMNS * 4), out, COLUMNS * 4);
      else
        for (uint32_t c = 0; c < COLUMNS; ++c) out[c] = 0;
      out += COLUMNS;
      if (++table == TABLES) table = 0;
    }
    write_heap(rows, AT_LOOKUPS + 4 * COLUMNS * ((y * PES_Z + z) * kRun + start),
               4 * COLUMNS * count);
  }
}

/* ---- PREDICT */

/* Requires an even number of words. */
static inline uint32_t dot(const uint32_t *a, const uint32_t *b, uint32_t words) {
  uint32_t even = 0, odd = 0;
  for (const uint32_t *const end = a + words; a != end; a += 2, b += 2) {
    even += a[0] * b[0];
    odd += a[1] * b[1];
  }
  return even + odd;
}

/* Vectors come in slices from the PEs of all x and z; a slice has the tables of x and the columns
 * of z. One transfer per slice and sample is fast enough: these transfers take about a hundredth of
 * the time of the layers. */
static void load_vectors(uint32_t first, uint32_t count) {
  uint32_t *const slice = buffers[me()];
  for (uint32_t work = me(); work < PES_X * PES_Z * count; work += NR_TASKLETS) {
    const uint32_t member = work / count, s = work - member * count;
    const uint32_t z = member / PES_X, x = member - z * PES_X;
    const uint32_t at = AT_VECTORS + 4 * COLUMNS * TABLES * (member * SAMPLES + first + s);
    const uint32_t *place = places + x * TABLES;
    for (uint32_t done = 0; done < TABLES;) {
      const uint32_t tables = min_of(TABLES - done, kBufferWords / COLUMNS);
      read_heap(at + 4 * COLUMNS * done, slice, 4 * COLUMNS * tables);
      for (const uint32_t *from = slice; from != slice + tables * COLUMNS;
           from += COLUMNS, ++place) {
        if (*place == ALL_TABLES) continue;
        uint32_t *const to = samples[s] + kVectors + *place * EMBEDDING + z * COLUMNS;
        for (uint32_t c = 0; c < COLUMNS; ++c) to[c] = from[c];
      }
      done += tables;
    }
  }
}

static void load_dense(uint32_t first, uint32_t count) {
  for (uint32_t s = me(); s < count; s += NR_TASKLETS) {
    uint32_t *const to = samples[s] + kLayers;
    read_heap(AT_DENSE + 4 * EVEN(DENSE) * (first + s), to, 4 * EVEN(DENSE));
    to[DENSE] = 1;
  }
}

/* Computes a layer for `count` samples. An output belongs to one tasklet, so its weights are read
 * once for all samples. If there are fewer outputs than tasklets, several tasklets share an output
 * and take different samples. Returns the address of the next layer's weights. */
static uint32_t layer(uint32_t weights_at, uint32_t inputs, uint32_t outputs, uint32_t from,
                      uint32_t to, uint32_t count, uint32_t is_last) {
  uint32_t *const weights = buffers[me()];
  const uint32_t row_words = EVEN(inputs + 1);
  const uint32_t step = outputs < NR_TASKLETS ? outputs : NR_TASKLETS;
  const uint32_t teams = NR_TASKLETS / step, team = me() / step;
  if (team < teams)
    for (uint32_t n = me() - team * step; n < outputs; n += step)
      for (uint32_t k = 0; k < row_words; k += kBufferWords) {
        const uint32_t words = min_of(row_words - k, kBufferWords);
        read_heap(weights_at + 4 * (n * row_words + k), weights, 4 * words);
        for (uint32_t s = team; s < count; s += teams) {
          uint32_t sum = dot(weights, samples[s] + from + k, words);
          if (k != 0) sum += samples[s][to + n];
          if (k + words == row_words && !is_last && (int32_t)sum < 0) sum = 0;
          samples[s][to + n] = sum;
        }
      }
  for (uint32_t s = me(); s < count; s += NR_TASKLETS) samples[s][to + outputs] = 1;
  barrier_wait(&everybody);
  return weights_at + 4 * outputs * row_words;
}

/* Computes the dot products of vector i with all vectors before it. */
static void multiply(uint32_t *sample, uint32_t i) {
  const uint32_t *const vector = sample + kVectors + (i - 1) * EMBEDDING,
                        *other = sample + kVectors;
  uint32_t *out = sample + kPairs + i * (i - 1) / 2;
  *out = dot(vector, sample + kFeatures, EMBEDDING);
  for (uint32_t j = 1; j < i; ++j, other += EMBEDDING) *++out = dot(vector, other, EMBEDDING);
}

/* A tasklet processes the k-th vector and the k-th last together: every pair has the same number of
 * products. */
static void interact(uint32_t count) {
  enum { kHalf = (ALL_TABLES + 1) / 2 };
  for (uint32_t work = me(); work < count * kHalf; work += NR_TASKLETS) {
    const uint32_t s = work / kHalf, k = work - s * kHalf;
    multiply(samples[s], k + 1);
    if (k + 1 != ALL_TABLES - k) multiply(samples[s], ALL_TABLES - k);
    if (k == 0) samples[s][kFeatures + kInputsOfTop] = 1;
  }
  barrier_wait(&everybody);
}

static void predict(uint32_t first, uint32_t count) {
  load_vectors(first, count);
  load_dense(first, count);
  barrier_wait(&everybody);
  uint32_t weights_at = AT_WEIGHTS, from = kLayers, to = kLayers;
  for (uint32_t i = 1; i < COUNT(bottom); ++i, from = to) {
    to = i == COUNT(bottom) - 1 ? kFeatures : kLayers + i % 2 * kLayerWords;
    weights_at = layer(weights_at, bottom[i - 1], bottom[i], from, to, count, 0);
  }
  interact(count);
  for (uint32_t i = 1; i < COUNT(top); ++i, from = to) {
    to = kLayers + i % 2 * kLayerWords;
    weights_at = layer(weights_at, top[i - 1], top[i], from, to, count, i == COUNT(top) - 1);
  }
  if (me() == 0) {
    for (uint32_t s = 0; s < count; ++s) results[s] = samples[s][to];
    write_heap(results, AT_OUTPUTS + 4 * first, 4 * count);
  }
  barrier_wait(&everybody);
}

int main(void) {
  if (phase == ARRANGE)
    arrange();
  else if (phase == LOOK_UP)
    look_up();
  else
    for (uint32_t first = 0; first < SAMPLES; first += GROUP)
      predict(first, min_of(SAMPLES - first, GROUP));
  return 0;
}
