/* Counts the lowest bytes of words in 256 bins. Without -DPRIVATE, all tasklets share the bins, so
 * each addition needs a mutex. With it, each tasklet has its own bins, and they are added at the
 * end. */
#include <barrier.h>
#include <defs.h>
#include <mram.h>
#include <mutex.h>
#include <stdint.h>

enum { kPieceWords = 256, kWords = 65536, kBins = 256 };

MUTEX_INIT(lock);
BARRIER_INIT(all, NR_TASKLETS);
__mram_noinit uint32_t words[kWords];
__host uint32_t bins[kBins];
#ifdef PRIVATE
uint32_t own_bins[NR_TASKLETS][kBins];
#endif

int main(void) {
  static __dma_aligned uint32_t pieces[NR_TASKLETS][kPieceWords];
  uint32_t *piece = pieces[me()];
  for (uint32_t i = me() * kPieceWords; i < kWords; i += NR_TASKLETS * kPieceWords) {
    mram_read(words + i, piece, sizeof pieces[0]);
    for (uint32_t j = 0; j < kPieceWords; ++j) {
#ifdef PRIVATE
      ++own_bins[me()][piece[j] % kBins];
#else
      mutex_lock(lock);
      ++bins[piece[j] % kBins];
      mutex_unlock(lock);
#endif
    }
  }
#ifdef PRIVATE
  barrier_wait(&all);
  for (uint32_t bin = me(); bin < kBins; bin += NR_TASKLETS)
    for (uint32_t tasklet = 0; tasklet < NR_TASKLETS; ++tasklet)
      bins[bin] += own_bins[tasklet][bin];
#endif
  return 0;
}
