// The start of the MRAM heap: without a log, with a log of default or declared size, with MRAM
// variables.
#include <mram.h>
#include <stdint.h>
#if defined(PRINTS) || defined(LOG_BYTES)
#include <stdio.h>
#endif

#ifdef LOG_BYTES
STDOUT_BUFFER_INIT(LOG_BYTES)
#endif
#ifdef MRAM_VARIABLES
__mram uint32_t numbers[3] = {11, 12, 13};
__mram_noinit uint8_t scratch[20];
#endif

__host uint32_t own_heap;
__host uint32_t log_repeats = 1;

int main(void) {
  own_heap = (uint32_t)(uintptr_t)DPU_MRAM_HEAP_POINTER;
#if defined(PRINTS) || defined(LOG_BYTES)
  for (uint32_t i = 0; i < log_repeats; ++i) printf("line %d\n", (int)i);
#endif
#ifdef MRAM_VARIABLES
  scratch[0] = (uint8_t)numbers[0];
#endif
  return 0;
}
