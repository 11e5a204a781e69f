/* Computes one round of connected components. Every PE has the labels of all vertices, and a slice
 * of the edges. The graph has each edge in both directions.
 *
 * A label is the number of a vertex of the same component. It is at most the vertex's own number,
 * and it only gets smaller, so PEs may use labels that other tasklets have just changed. The labels
 * of the next round are the minima over all PEs. The rounds end when no PE changes a label: then
 * both ends of every edge have the same label. Three steps reduce labels:
 *
 *   fold       the label of a source becomes the smallest label of its targets;
 *   shortcut   a label becomes the label of the vertex that it names, several times;
 *   hook       the vertex that a source's old label names gets the source's new label, which
 *              moves a complete tree at once.
 *
 * Source of hooks and shortcuts: Shiloach and Vishkin (1982). */
#include "edges.h"

#define HOPS 4u
#define ROOM (1u << ROOM_BITS) /* vertices of the largest tile that is read completely */

__host uint32_t at_labels; /* offset of the labels in the heap */
__host uint32_t patches;   /* number of patches of edges */
__host uint32_t first;     /* first vertex of this PE's share of the result */

BARRIER_INIT(everybody, NR_TASKLETS);
MUTEXES_INIT(labels_of_chunk);
MUTEXES_INIT(words_of_labels);

__dma_aligned uint32_t chunk[1u << CHUNK_BITS];
__dma_aligned uint32_t tile[ROOM];
__dma_aligned uint32_t buffers[NR_TASKLETS][EDGES_AT_ONCE];
uint32_t counts[NR_TASKLETS];

static inline uint32_t label_of(uint32_t vertex) {
  __dma_aligned uint32_t pair[2];
  read_heap(at_labels + vertex / 2 * 8, pair, 8);
  return pair[vertex % 2];
}

static void read_chunk(uint32_t chunk_first, struct part part) {
  for (uint32_t v = part.first * 2, end = v + part.words * 2; v < end; v += EDGES_AT_ONCE)
    read_heap(at_labels + (chunk_first + v) * 4, chunk + v, min_of(end - v, EDGES_AT_ONCE) * 4);
}

/* Two tasklets may have edges of the same source. A label is written only under its mutex, after it
 * is read again, so no label gets larger. The check before the mutex relies on atomic 32-bit loads
 * from WRAM: it sees a valid label. If that label is old, the tasklet only takes the mutex in vain.
 * Volatile keeps the compiler from caching labels. */
static inline __attribute__((always_inline)) void fold(const struct patch *patch, int is_tile_read,
                                                       uint32_t *edges) {
  volatile uint32_t *const labels = chunk;
  struct edge_slice slice = my_edges(patch);
  for (uint32_t count; (count = next_edges(&slice, edges)) != 0;)
    for (const uint32_t *edge = edges; edge < edges + count; ++edge) {
      const uint32_t source = source_of(*edge), target = target_of(*edge);
      const uint32_t label = is_tile_read ? tile[target] : label_of(patch->tile_first + target);
      if (label >= labels[source]) continue;
      mutex_lock(MUTEX_OF(labels_of_chunk, source));
      if (label < labels[source]) labels[source] = label;
      mutex_unlock(MUTEX_OF(labels_of_chunk, source));
    }
}

/* A word has two labels. Outside `write_chunk` it is changed only under its mutex. The check before
 * the mutex relies on atomic DMA of 8 bytes: it sees a valid word. If that word is old, the tasklet
 * only takes the mutex in vain. */
static void hook(uint32_t root, uint32_t label) {
  __dma_aligned uint32_t pair[2];
  const uint32_t at = at_labels + root / 2 * 8;
  read_heap(at, pair, 8);
  if (pair[root % 2] <= label) return;
  mutex_lock(MUTEX_OF(words_of_labels, root / 2));
  read_heap(at, pair, 8);
  if (label < pair[root % 2]) {
    pair[root % 2] = label;
    write_heap(pair, at, 8);
  }
  mutex_unlock(MUTEX_OF(words_of_labels, root / 2));
}

/* Shortcuts the labels of a tasklet's part of the chunk, hooks, and returns how many labels are
 * smaller than before. A label that a hook of another tasklet has just changed may not count; that
 * hook's source counts. */
static uint32_t hook_chunk(uint32_t chunk_first, struct part part, uint32_t *before) {
  uint32_t changed = 0;
  for (uint32_t v = part.first * 2, end = v + part.words * 2; v < end; v += EDGES_AT_ONCE) {
    const uint32_t vertices = min_of(end - v, EDGES_AT_ONCE);
    read_heap(at_labels + (chunk_first + v) * 4, before, vertices * 4);
    for (uint32_t i = 0; i < vertices; ++i) {
      const uint32_t vertex = chunk_first + v + i;
      uint32_t label = chunk[v + i];
      for (uint32_t hop = 0, up; hop < HOPS && label != vertex && (up = label_of(label)) < label;
           ++hop)
        label = up;
      chunk[v + i] = label;
      if (label >= before[i]) continue;
      ++changed;
      if (before[i] != vertex) hook(before[i], label);
    }
  }
  return changed;
}

/* Writes a tasklet's part of the chunk. A label that a hook made smaller keeps its value. */
static void write_chunk(uint32_t chunk_first, struct part part, uint32_t *hooked) {
  for (uint32_t v = part.first * 2, end = v + part.words * 2; v < end; v += EDGES_AT_ONCE) {
    const uint32_t vertices = min_of(end - v, EDGES_AT_ONCE), at = (chunk_first + v) * 4;
    read_heap(at_labels + at, hooked, vertices * 4);
    for (uint32_t i = 0; i < vertices; ++i) chunk[v + i] = min_of(chunk[v + i], hooked[i]);
    write_heap(chunk + v, at_labels + at, vertices * 4);
  }
}

/* Call this when all edges of a chunk are folded. It writes the chunk after all tasklets have
 * hooked, and before the next chunk is read. */
static uint32_t finish_chunk(uint32_t chunk_first, struct part part, uint32_t *buffer) {
  barrier_wait(&everybody);
  const uint32_t changed = hook_chunk(chunk_first, part, buffer);
  barrier_wait(&everybody);
  write_chunk(chunk_first, part, buffer);
  barrier_wait(&everybody);
  return changed;
}

int main(void) {
  uint32_t *const buffer = buffers[me()];
  if (first < WORDS * 2)
    copy_heap(at_labels + first * 4, AT_RESULT, min_of(SHARE_WORDS, WORDS - first / 2), buffer);
  barrier_wait(&everybody);
  __dma_aligned struct patch read[PATCHES_AT_ONCE];
  uint32_t chunk_first = UINT32_MAX, changed = 0;
  struct part part = {0, 0};
  for (uint32_t i = 0; i < patches; ++i) {
    const struct patch *const patch = patch_at(i, patches, read);
    if (patch->chunk_first != chunk_first) {
      if (i != 0) changed += finish_chunk(chunk_first, part, buffer);
      chunk_first = patch->chunk_first;
      part = my_part(patch->chunk_vertices / 2);
      read_chunk(chunk_first, part);
      barrier_wait(&everybody);
    }
    /* The barriers separate three steps: all tasklets read their parts of the tile, use the tile,
     * and read the next tile. */
    if (patch->tile_vertices <= ROOM && patch->tile_vertices <= VERTICES_PER_READ * patch->edges) {
      const struct part mine = my_part_of(patch->tile_vertices / 2, ROOM / 2);
      read_heap(at_labels + patch->tile_first * 4 + mine.first * 8, tile + mine.first * 2,
                mine.words * 8);
      barrier_wait(&everybody);
      fold(patch, 1, buffer);
      barrier_wait(&everybody);
    } else
      fold(patch, 0, buffer);
  }
  if (patches != 0) changed += finish_chunk(chunk_first, part, buffer);
  counts[me()] = changed;
  barrier_wait(&everybody);
  write_count(counts);
  return 0;
}
