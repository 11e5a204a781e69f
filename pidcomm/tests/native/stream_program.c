/* A PE program whose launches compute a part of a window from the same part of another. */
#include <mram.h>
#include <stdint.h>

#define CHUNK_WORDS 32

__host uint32_t part[2] = {0, 1};
__host uint32_t job[5]; /* source, destination, bytes, factor, the PE that ends in a fault */
__host uint32_t pidcomm_pe;

__dma_aligned uint64_t chunk[CHUNK_WORDS];

int main(void) {
  if (job[4] == pidcomm_pe) __builtin_trap();
  const uint32_t bytes = job[2] / part[1], begin = part[0] * bytes;
  __mram_ptr uint8_t *const heap = (__mram_ptr uint8_t *)DPU_MRAM_HEAP_POINTER;
  for (uint32_t at = begin; at < begin + bytes; at += sizeof chunk) {
    mram_read(heap + job[0] + at, chunk, sizeof chunk);
    for (uint32_t i = 0; i < CHUNK_WORDS; ++i)
      chunk[i] = chunk[i] * job[3] + at + 8 * i + ((uint64_t)pidcomm_pe << 32);
    mram_write(chunk, heap + job[1] + at, sizeof chunk);
  }
  return 0;
}
