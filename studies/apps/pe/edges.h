/* Reads a PE's edges in the patches that apps/edges.py cuts. A patch has the edges from a chunk of
 * vertices, which are sources of this PE, to a tile of vertices. All tasklets work on the same
 * patch at a time; each reads its part of the patch's edges from MRAM.
 *
 * DMA needs addresses and sizes that are multiples of 8. Windows begin at multiples of 64. Chunks
 * and tiles begin at multiples of 64 vertices, and their sizes are multiples of 64 vertices: with
 * one bit or 4 bytes per vertex, these are complete words of 8 bytes. A patch has an even number of
 * edges of 4 bytes, and so has the part of a tasklet. A struct patch has 24 bytes. So all transfers
 * are aligned for every graph. */
#ifndef PIDCOMM_APPS_EDGES_H
#define PIDCOMM_APPS_EDGES_H

#include <atomic_bit.h>
#include <barrier.h>
#include <defs.h>
#include <mutex.h>
#include <stdint.h>

#include "heap.h"

#define EDGES_AT_ONCE 256u /* size of a tasklet's buffer: 1 KiB */
#define PATCHES_AT_ONCE 8u
#define COUNT_WORDS 8u

/* Mutexes for numbered objects; objects with equal low bits share one. Older SDKs lack
 * mutex_pool.h, so it is not used. */
#define MUTEXES 16u
#define MUTEXES_INIT(name) ATOMIC_BIT_INIT(name)[MUTEXES]
#define MUTEX_OF(name, number) (&ATOMIC_BIT_GET(name)[(number) % MUTEXES])

struct patch {
  uint32_t chunk_first, chunk_vertices; /* the sources of the edges */
  uint32_t tile_first, tile_vertices;   /* the targets of the edges */
  uint32_t first_edge, edges;
};

/* A range of `words` words of 8 bytes that starts at word `first`. */
struct part {
  uint32_t first, words;
};

/* The edges of a patch that a tasklet has not read yet. */
struct edge_slice {
  uint32_t next, end;
};

/* Returns the part of `words` words that belongs to the calling tasklet. */
static inline struct part my_part(uint32_t words) {
  const uint32_t most = (words + NR_TASKLETS - 1) / NR_TASKLETS;
  const uint32_t first = min_of(me() * most, words);
  return (struct part){first, min_of(most, words - first)};
}

/* Does the same for the first `words` words of a buffer of `room` words. A tasklet always has the
 * same part of the buffer, so it never overwrites data that another tasklet has not written back
 * yet. */
static inline struct part my_part_of(uint32_t words, uint32_t room) {
  const struct part part = my_part(room);
  return part.first < words ? (struct part){part.first, min_of(part.words, words - part.first)}
                            : (struct part){0, 0};
}

/* Copies words from one window to another with all tasklets. */
static inline void copy_heap(uint32_t from, uint32_t to, uint32_t words, uint32_t *buffer) {
  const struct part part = my_part(words);
  const uint32_t end = (part.first + part.words) * 8;
  for (uint32_t at = part.first * 8; at < end; at += EDGES_AT_ONCE * 4) {
    const uint32_t bytes = min_of(end - at, EDGES_AT_ONCE * 4);
    read_heap(from + at, buffer, bytes);
    write_heap(buffer, to + at, bytes);
  }
}

/* Returns patch i of `patches`. Call it for i = 0, 1, 2, ...: it reads PATCHES_AT_ONCE patches at a
 * time into the caller's `read`. */
static inline const struct patch *patch_at(uint32_t i, uint32_t patches,
                                           struct patch read[PATCHES_AT_ONCE]) {
  if (i % PATCHES_AT_ONCE == 0)
    read_heap(AT_PATCHES + i * sizeof(struct patch), read,
              min_of(patches - i, PATCHES_AT_ONCE) * sizeof(struct patch));
  return &read[i % PATCHES_AT_ONCE];
}

/* Returns the part of a patch's edges that belongs to the calling tasklet. It is contiguous, so
 * tasklets share few sources. */
static inline struct edge_slice my_edges(const struct patch *patch) {
  const struct part part = my_part(patch->edges / 2);
  const uint32_t first = patch->first_edge + part.first * 2;
  return (struct edge_slice){first, first + part.words * 2};
}

/* Reads the next edges of a slice; returns their number, 0 at the end of the slice. */
static inline uint32_t next_edges(struct edge_slice *slice, uint32_t buffer[EDGES_AT_ONCE]) {
  const uint32_t edges = min_of(slice->end - slice->next, EDGES_AT_ONCE);
  read_heap(AT_EDGES + slice->next * 4, buffer, edges * 4);
  slice->next += edges;
  return edges;
}

/* An edge: the numbers of its ends in the chunk and in the tile. */
static inline uint32_t source_of(uint32_t edge) { return edge >> TILE_BITS; }
static inline uint32_t target_of(uint32_t edge) { return edge & ((1u << TILE_BITS) - 1); }

/* Writes the counts of the tasklets for the reduction over PEs, as int64 values with the same sum.
 * Call it after a barrier. */
static inline void write_count(const uint32_t counts[NR_TASKLETS]) {
  if (me() != 0) return;
  __dma_aligned uint64_t sums[COUNT_WORDS] = {0};
  for (uint32_t t = 0; t < NR_TASKLETS; ++t) sums[t % COUNT_WORDS] += counts[t];
  write_heap(sums, AT_COUNT, sizeof sums);
}

#endif
