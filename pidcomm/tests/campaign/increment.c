// Tasklet 0 adds a constant to the 32-bit words at the start of the MRAM heap.
#include <alloc.h>
#include <defs.h>
#include <mram.h>
#include <stdint.h>

__host uint32_t bytes;  // a multiple of 8, at most 2048

int main(void) {
  if (me() != 0) return 0;
  mem_reset();
  uint32_t *words = mem_alloc(bytes);
  mram_read(DPU_MRAM_HEAP_POINTER, words, bytes);
  for (uint32_t i = 0; i < bytes / 4; ++i) ++words[i];
  mram_write(words, DPU_MRAM_HEAP_POINTER, bytes);
  return 0;
}
