// The performance counter.
#include <mram.h>
#include <perfcounter.h>

#include "expect.h"

__host uint64_t readings[8];
__host uint64_t cycles[5], instructions[5];
__host uint32_t clocks;
static volatile uint32_t sink;

static void read_both(uint32_t place, bool resets) {
  const perfcounter_pair_t pair = perfcounter_get_both(resets);
  cycles[place] = pair.cycles;
  instructions[place] = pair.instr;
}

static void work(uint32_t steps) {
  for (uint32_t i = 0; i < steps; ++i) sink += i;
}

int main(void) {
  static __dma_aligned uint8_t buffer[2048];
  clocks = CLOCKS_PER_SEC;
  perfcounter_config(COUNT_CYCLES, true);
  readings[0] = perfcounter_get();
  work(100);
  readings[1] = perfcounter_get();
  work(1000);
  readings[2] = perfcounter_get();
  mram_read((__mram_ptr void *)DPU_MRAM_HEAP_POINTER, buffer, 2048);
  readings[3] = perfcounter_get();
  readings[4] = perfcounter_config(COUNT_INSTRUCTIONS, true);
  work(1000);
  readings[5] = perfcounter_get();
  mram_read((__mram_ptr void *)DPU_MRAM_HEAP_POINTER, buffer, 2048);
  readings[6] = perfcounter_get();
  perfcounter_config(COUNT_SAME, true);
  readings[7] = perfcounter_get();
  if (topic == 1) {
    perfcounter_config(COUNT_ENABLE_BOTH, true);
    work(1000);
    readings[0] = perfcounter_get();
    read_both(0, true);
    work(1000);
    read_both(1, false);
    work(1000);
    perfcounter_config(COUNT_DISABLE_BOTH, false);
    work(1000);
    read_both(2, false);
    perfcounter_config(COUNT_INSTRUCTIONS, false);
    work(1000);
    readings[1] = perfcounter_get();
    read_both(3, false);
    perfcounter_config(COUNT_SAME, true);
    read_both(4, false);
  }
  return 0;
}
