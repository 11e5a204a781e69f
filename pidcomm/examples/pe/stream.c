/* Changes each word of a part of the vector at the begin of the heap. `part` has the number of the
 * part and the number of parts. */
#include "stream.h"

#include <defs.h>
#include <mram.h>

enum { kChunkWords = 64 };

__host uint32_t part[2] = {0, 1};
__dma_aligned uint32_t chunks[NR_TASKLETS][kChunkWords];

int main(void) {
  __mram_ptr uint32_t *const vector = (__mram_ptr uint32_t *)DPU_MRAM_HEAP_POINTER;
  uint32_t *const chunk = chunks[me()];
  const uint32_t words = kWords / part[1], begin = part[0] * words;
  for (uint32_t at = begin + me() * kChunkWords; at < begin + words;
       at += NR_TASKLETS * kChunkWords) {
    mram_read(vector + at, chunk, sizeof chunks[0]);
    for (uint32_t i = 0; i < kChunkWords; ++i) chunk[i] = new_word(chunk[i]);
    mram_write(chunk, vector + at, sizeof chunks[0]);
  }
  return 0;
}
