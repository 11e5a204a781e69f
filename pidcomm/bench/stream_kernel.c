/* The kernel of bench_streams: adds to the elements of a part of a window, `job[1]` times. */
#include <defs.h>
#include <mram.h>
#include <stdint.h>

#define CHUNK_WORDS 128

__host uint32_t part[2] = {0, 1};
__host uint32_t job[2]; /* bytes, repeats */

__dma_aligned uint32_t chunks[NR_TASKLETS][CHUNK_WORDS];

int main(void) {
  const uint32_t bytes = job[0] / part[1], begin = part[0] * bytes;
  uint32_t *const chunk = chunks[me()];
  __mram_ptr uint8_t *const heap = (__mram_ptr uint8_t *)DPU_MRAM_HEAP_POINTER;
  for (uint32_t at = begin + me() * sizeof chunks[0]; at < begin + bytes;
       at += NR_TASKLETS * sizeof chunks[0]) {
    mram_read(heap + at, chunk, sizeof chunks[0]);
    for (uint32_t repeat = 0; repeat < job[1]; ++repeat)
      for (uint32_t i = 0; i < CHUNK_WORDS; ++i) chunk[i] += chunk[i] >> 3;
    mram_write(chunk, heap + at, sizeof chunks[0]);
  }
  return 0;
}
