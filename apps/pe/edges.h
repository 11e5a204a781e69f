/* A PE's edges in patches, as apps/edges.py cuts them: a patch is what leads from a chunk of vertices, a few that are this PE's, to a tile
 * of vertices. All tasklets go from patch to patch together, and each reads its part of a patch's edges from MRAM.
 *
 * DMA needs addresses and sizes that are multiples of 8. Windows begin at multiples of 64. Chunks and tiles begin at multiples of 64
 * vertices and have multiples of 64: with a bit each as with 4 bytes, these are whole words of 8 bytes. Patches have an even number of
 * edges, 4 bytes each, and so has the part of a tasklet. A struct patch has 24 bytes. So this holds for graphs of every size. */
#ifndef PIDCOMM_APPS_EDGES_H
#define PIDCOMM_APPS_EDGES_H

#include <atomic_bit.h>
#include <barrier.h>
#include <defs.h>
#include <mutex.h>
#include <stdint.h>

#include "heap.h"

#define EDGES_AT_ONCE 256u /* a tasklet's buffer: 1 KiB */
#define PATCHES_AT_ONCE 8u
#define COUNT_WORDS 8u

/* Mutexes for things with numbers; things whose numbers agree in the low bits share one. Not by mutex_pool.h, which older SDKs lack. */
#define MUTEXES 16u
#define MUTEXES_INIT(name) ATOMIC_BIT_INIT(name)[MUTEXES]
#define MUTEX_OF(name, number) (&ATOMIC_BIT_GET(name)[(number) % MUTEXES])

struct patch {
  uint32_t chunk_first, chunk_vertices; /* where the edges come from */
  uint32_t tile_first, tile_vertices;   /* where they lead to */
  uint32_t first_edge, edges;
};

/* So many words of 8 bytes from a first one on. */
struct part {
  uint32_t first, words;
};

/* A tasklet's edges of a patch that it has not read yet. */
struct edge_slice {
  uint32_t next, end;
};

/* What the calling tasklet does of so many words. */
static inline struct part my_part(uint32_t words) {
  const uint32_t most = (words + NR_TASKLETS - 1) / NR_TASKLETS;
  const uint32_t first = min_of(me() * most, words);
  return (struct part){first, min_of(most, words - first)};
}

/* The same of the first words of a buffer that has room for more. A tasklet's part of the buffer is always the same, so nobody reads the
 * next thing into what another has still to write back. */
static inline struct part my_part_of(uint32_t words, uint32_t room) {
  const struct part part = my_part(room);
  return part.first < words ? (struct part){part.first, min_of(part.words, words - part.first)} : (struct part){0, 0};
}

/* Copies words from one window to another, all tasklets together. */
static inline void copy_heap(uint32_t from, uint32_t to, uint32_t words, uint32_t *buffer) {
  const struct part part = my_part(words);
  const uint32_t end = (part.first + part.words) * 8;
  for (uint32_t at = part.first * 8; at < end; at += EDGES_AT_ONCE * 4) {
    const uint32_t bytes = min_of(end - at, EDGES_AT_ONCE * 4);
    read_heap(from + at, buffer, bytes);
    write_heap(buffer, to + at, bytes);
  }
}

/* Patch i of so many, for i = 0, 1, 2 ...: read some at a time into the caller's `read`. */
static inline const struct patch *patch_at(uint32_t i, uint32_t patches, struct patch read[PATCHES_AT_ONCE]) {
  if (i % PATCHES_AT_ONCE == 0)
    read_heap(AT_PATCHES + i * sizeof(struct patch), read, min_of(patches - i, PATCHES_AT_ONCE) * sizeof(struct patch));
  return &read[i % PATCHES_AT_ONCE];
}

/* What the calling tasklet follows of a patch's edges: neighbours in the order of edges, so few sources are those of two tasklets. */
static inline struct edge_slice my_edges(const struct patch *patch) {
  const struct part part = my_part(patch->edges / 2);
  const uint32_t first = patch->first_edge + part.first * 2;
  return (struct edge_slice){first, first + part.words * 2};
}

/* Reads the next edges of a slice and returns how many: 0 at its end. */
static inline uint32_t next_edges(struct edge_slice *slice, uint32_t buffer[EDGES_AT_ONCE]) {
  const uint32_t edges = min_of(slice->end - slice->next, EDGES_AT_ONCE);
  read_heap(AT_EDGES + slice->next * 4, buffer, edges * 4);
  slice->next += edges;
  return edges;
}

/* An edge: the numbers of its ends in the chunk and in the tile. */
static inline uint32_t source_of(uint32_t edge) { return edge >> TILE_BITS; }
static inline uint32_t target_of(uint32_t edge) { return edge & ((1u << TILE_BITS) - 1); }

/* Writes what the tasklets have counted, as int64 whose sum it is, for the reduction over PEs. After a barrier. */
static inline void write_count(const uint32_t counts[NR_TASKLETS]) {
  if (me() != 0) return;
  __dma_aligned uint64_t sums[COUNT_WORDS] = {0};
  for (uint32_t t = 0; t < NR_TASKLETS; ++t) sums[t % COUNT_WORDS] += counts[t];
  write_heap(sums, AT_COUNT, sizeof sums);
}

#endif
