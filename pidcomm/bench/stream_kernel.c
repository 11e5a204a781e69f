/* The kernel of bench_streams: divides `job[1]` times for each 512 bytes of a part of a window, and
 * changes the first 64 bytes of them. PEs divide slowly, but the emulator fast. */
#include <defs.h>
#include <mram.h>
#include <stdint.h>

#define CHUNK_BYTES 512
#define CHANGED_WORDS 16

__host uint32_t part[2] = {0, 1};
__host uint32_t job[2]; /* bytes, divisions */

__dma_aligned uint32_t chunks[NR_TASKLETS][CHANGED_WORDS];

int main(void) {
  const uint32_t bytes = job[0] / part[1], begin = part[0] * bytes;
  uint32_t *const chunk = chunks[me()];
  __mram_ptr uint8_t *const heap = (__mram_ptr uint8_t *)DPU_MRAM_HEAP_POINTER;
  for (uint32_t at = begin + me() * CHUNK_BYTES; at < begin + bytes;
       at += NR_TASKLETS * CHUNK_BYTES) {
    mram_read(heap + at, chunk, sizeof chunks[0]);
    double quotient = 1 + (chunk[0] & 7);
    for (uint32_t i = 0; i < job[1]; ++i) quotient = 3 / quotient;
    for (uint32_t i = 0; i < CHANGED_WORDS; ++i) chunk[i] += (uint32_t)quotient;
    mram_write(chunk, heap + at, sizeof chunks[0]);
  }
  return 0;
}
