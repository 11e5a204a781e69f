/* Adds two vectors of a PE: c = a + b. Each tasklet adds every NR_TASKLETS-th piece of 64 words. */
#include <defs.h>
#include <mram.h>
#include <stdint.h>

enum { kPieceWords = 64, kMostWords = 65536 };

__host uint32_t words; /* number of words of each vector, a multiple of kPieceWords */
__mram_noinit uint32_t a[kMostWords], b[kMostWords], c[kMostWords];

int main(void) {
  __dma_aligned uint32_t x[kPieceWords];
  __dma_aligned uint32_t y[kPieceWords];
  for (uint32_t i = me() * kPieceWords; i < words; i += NR_TASKLETS * kPieceWords) {
    mram_read(a + i, x, sizeof x);
    mram_read(b + i, y, sizeof y);
    for (uint32_t j = 0; j < kPieceWords; ++j) x[j] += y[j];
    mram_write(x, c + i, sizeof x);
  }
  return 0;
}
