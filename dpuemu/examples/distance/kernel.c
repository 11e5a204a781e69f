/* Sums the distances of the words of two arrays. Without -DOWN_PIECES, tasklet 0 loads a piece for
 * each tasklet while the others wait. With it, each tasklet loads its own pieces. */
#include <barrier.h>
#include <defs.h>
#include <mram.h>
#include <stdint.h>
#include <trace_regions.h>

enum { kPieceWords = 256, kWords = 65536, kTurnWords = NR_TASKLETS * kPieceWords };

BARRIER_INIT(all, NR_TASKLETS);
__mram_noinit uint32_t a[kWords], b[kWords];
__host uint32_t sums[NR_TASKLETS];
static __dma_aligned uint32_t pieces[2][NR_TASKLETS][kPieceWords];

static void load(uint32_t first, uint32_t tasklet) {
  mram_read(a + first + tasklet * kPieceWords, pieces[0][tasklet], sizeof pieces[0][0]);
  mram_read(b + first + tasklet * kPieceWords, pieces[1][tasklet], sizeof pieces[1][0]);
}

int main(void) {
  const uint32_t *x = pieces[0][me()], *y = pieces[1][me()];
  uint32_t sum = 0;
  for (uint32_t first = 0; first < kWords; first += kTurnWords) {
    TRACE_BEGIN("load");
#ifdef OWN_PIECES
    load(first, me());
#else
    if (me() == 0)
      for (uint32_t tasklet = 0; tasklet < NR_TASKLETS; ++tasklet) load(first, tasklet);
    barrier_wait(&all);
#endif
    TRACE_END();
    TRACE_BEGIN("sum");
    for (uint32_t i = 0; i < kPieceWords; ++i) sum += x[i] > y[i] ? x[i] - y[i] : y[i] - x[i];
    TRACE_END();
#ifndef OWN_PIECES
    barrier_wait(&all);
#endif
  }
  sums[me()] = sum;
  return 0;
}
