// mem_alloc_nolock under the heap's lock, beside mem_alloc.
#include <alloc.h>
#include <atomic_bit.h>
#include <barrier.h>
#include <dpuruntime.h>
#include <mram.h>

#include "expect.h"

ATOMIC_BIT_EXTERN(__heap_pointer);
BARRIER_INIT(all_tasklets, NR_TASKLETS);

static uint32_t ends[NR_TASKLETS];

int main(void) {
  if (me() == 0) mem_reset();
  barrier_wait(&all_tasklets);
  __dma_aligned uint8_t bytes[8];
  for (uint32_t i = 0; i < 50; ++i) {
    if (me() % 2 == 0) {
      ATOMIC_BIT_ACQUIRE(__heap_pointer);
      uint8_t *first = mem_alloc_nolock(8);
      mram_read(DPU_MRAM_HEAP_POINTER, bytes, 8);  // the other tasklets run here
      uint8_t *second = mem_alloc_nolock(5);
      EXPECT(second == first + 8 && __HEAP_POINTER == (uint32_t)second + 5);
      ATOMIC_BIT_RELEASE(__heap_pointer);
      ends[me()] = (uint32_t)second + 8;
    } else {
      ends[me()] = (uint32_t)mem_alloc(16) + 16;
    }
  }
  barrier_wait(&all_tasklets);
  if (me() == 0) {
    uint32_t last = 0;
    for (uint32_t i = 0; i < NR_TASKLETS; ++i) last = ends[i] > last ? ends[i] : last;
    EXPECT(last == (uint32_t)mem_reset() + NR_TASKLETS * 50 * 16);
  }
  return 0;
}
