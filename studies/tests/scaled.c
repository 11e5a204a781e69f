/* For test_apps.py: y = factor * x + own. MRAM: x and y, WORDS words each. */
#include <defs.h>
#include <mram.h>
#include <stdint.h>

#define CHUNK 16

__host uint32_t factor, own;
__dma_aligned uint32_t words[NR_TASKLETS][CHUNK];

int main(void) {
  __mram_ptr uint8_t *heap = DPU_MRAM_HEAP_POINTER;
  uint32_t *mine = words[me()];
  for (uint32_t at = me() * CHUNK; at < WORDS; at += NR_TASKLETS * CHUNK) {
    mram_read(heap + AT_X + 4 * at, mine, sizeof words[0]);
    for (uint32_t i = 0; i < CHUNK; i++) mine[i] = factor * mine[i] + own;
    mram_write(mine, heap + AT_Y + 4 * at, sizeof words[0]);
  }
  return 0;
}
