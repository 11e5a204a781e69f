/* Searches one level of a breadth-first search. Every PE has a slice of the edges, and a bit for
 * every vertex: whether it is reached.
 *
 * A vertex is in the frontier if it is reached now but was not in the last launch. `next` has the
 * vertices that this PE has found in all launches. The union of `next` over PEs is the set of
 * reached vertices, so the kernel merges nothing. */
#include "edges.h"

#define WORD_VERTICES 64u /* one bit for each vertex */
#define TILE_WORDS ((1u << TILE_BITS) / WORD_VERTICES)

__host uint32_t
    level; /* level of the frontier; 0 begins a search and ignores the contents of the windows */
__host uint32_t patches; /* number of patches of edges */
__host uint32_t first;   /* first word of the vertices whose levels this PE stores */

BARRIER_INIT(everybody, NR_TASKLETS);
MUTEXES_INIT(words_of_tile);

__dma_aligned uint64_t frontier[(1u << CHUNK_BITS) / WORD_VERTICES];
__dma_aligned uint64_t tile[TILE_WORDS];
__dma_aligned uint32_t buffers[NR_TASKLETS][EDGES_AT_ONCE];
uint32_t counts[NR_TASKLETS];
uint8_t is_empty[NR_TASKLETS];

/* Stores the level of this PE's vertices in the frontier; returns their number. No two tasklets
 * write the same word of 8 bytes. */
static uint32_t note_levels(int32_t *levels) {
  uint32_t count = 0;
  for (uint32_t word = me(); word < SHARE_WORDS; word += NR_TASKLETS) {
    __dma_aligned uint64_t reached = 0, noted = 0;
    if (first + word < WORDS) read_heap(AT_REACHED + (first + word) * 8, &reached, 8);
    if (level != 0) read_heap(AT_NOTED + word * 8, &noted, 8);
    uint32_t new_ones[2] = {(uint32_t)(reached & ~noted), (uint32_t)((reached & ~noted) >> 32)};
    if (level != 0 && (new_ones[0] | new_ones[1]) == 0) continue;
    const uint32_t at = AT_LEVELS + word * WORD_VERTICES * 4;
    if (level == 0)
      for (uint32_t v = 0; v < WORD_VERTICES; ++v) levels[v] = -1;
    else
      read_heap(at, levels, WORD_VERTICES * 4);
    for (uint32_t half = 0; half < 2; ++half)
      for (uint32_t v = 32 * half, bits = new_ones[half]; bits != 0; ++v, bits >>= 1)
        if (bits & 1) {
          levels[v] = (int32_t)level;
          ++count;
        }
    write_heap(levels, at, WORD_VERTICES * 4);
    write_heap(&reached, AT_NOTED + word * 8, 8);
  }
  return count;
}

/* Reads the frontier of a patch's chunk; each tasklet reads a part. Returns whether the frontier is
 * empty. A launch does not read a chunk twice, so reached vertices count as visited from here on.
 */
static uint32_t read_frontier(const struct patch *patch, uint64_t *visited) {
  const struct part part = my_part(patch->chunk_vertices / WORD_VERTICES);
  uint64_t any = 0;
  for (uint32_t done = 0; done < part.words; done += EDGES_AT_ONCE / 2) {
    const uint32_t words = min_of(part.words - done, EDGES_AT_ONCE / 2);
    uint64_t *const reached = frontier + part.first + done;
    const uint32_t at = patch->chunk_first / 8 + (part.first + done) * 8;
    read_heap(AT_REACHED + at, reached, words * 8);
    if (level != 0) {
      read_heap(AT_VISITED + at, visited, words * 8);
      write_heap(reached, AT_VISITED + at, words * 8);
      for (uint32_t w = 0; w < words; ++w) any |= reached[w] &= ~visited[w];
    } else {
      write_heap(reached, AT_VISITED + at, words * 8);
      for (uint32_t w = 0; w < words; ++w) any |= reached[w];
    }
  }
  is_empty[me()] = any == 0;
  barrier_wait(&everybody);
  uint32_t all = 1;
  for (uint32_t t = 0; t < NR_TASKLETS; ++t) all &= is_empty[t];
  barrier_wait(&everybody); /* all tasklets read is_empty before one writes it for the next chunk */
  return all;
}

/* Several tasklets may set bits in the same word. A word is written only under its mutex, after it
 * is read again, so no bit is lost. The check before the mutex relies on atomic 32-bit loads from
 * WRAM: a bit that reads as set is set. A bit that is being set may read as unset; then the tasklet
 * only takes the mutex in vain. Volatile keeps the compiler from caching words. */
static void follow(const struct patch *patch, uint32_t *edges) {
  volatile uint32_t *const found = (volatile uint32_t *)tile;
  const uint32_t *const active = (const uint32_t *)frontier;
  struct edge_slice slice = my_edges(patch);
  for (uint32_t count; (count = next_edges(&slice, edges)) != 0;)
    for (const uint32_t *edge = edges, *const end = edges + count; edge < end;) {
      /* Edges of one source are adjacent, so the source is looked up once. */
      const uint32_t source = source_of(*edge), last = *edge | ((1u << TILE_BITS) - 1);
      if (!(active[source / 32] >> (source % 32) & 1)) {
        while (++edge < end && *edge <= last) {
        }
        continue;
      }
      do {
        const uint32_t target = target_of(*edge), word = target / 32, bit = 1u << (target % 32);
        if (found[word] & bit) continue;
        mutex_lock(MUTEX_OF(words_of_tile, word));
        found[word] |= bit;
        mutex_unlock(MUTEX_OF(words_of_tile, word));
      } while (++edge < end && *edge <= last);
    }
}

int main(void) {
  uint32_t *const buffer = buffers[me()];
  if (level == 0) copy_heap(AT_REACHED, AT_NEXT, WORDS, buffer);
  counts[me()] = note_levels((int32_t *)buffer);
  barrier_wait(&everybody);
  write_count(counts);
  __dma_aligned struct patch read[PATCHES_AT_ONCE];
  uint32_t chunk = UINT32_MAX, is_idle = 1;
  for (uint32_t i = 0; i < patches; ++i) {
    const struct patch *const patch = patch_at(i, patches, read);
    if (patch->chunk_first != chunk) {
      chunk = patch->chunk_first;
      is_idle = read_frontier(patch, (uint64_t *)buffer);
    }
    if (is_idle) continue;
    const struct part part = my_part_of(patch->tile_vertices / WORD_VERTICES, TILE_WORDS);
    const uint32_t at = AT_NEXT + patch->tile_first / 8 + part.first * 8;
    read_heap(at, tile + part.first, part.words * 8);
    barrier_wait(&everybody);
    follow(patch, buffer);
    barrier_wait(&everybody);
    write_heap(tile + part.first, at, part.words * 8);
  }
  return 0;
}
