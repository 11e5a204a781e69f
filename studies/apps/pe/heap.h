/* Reads and writes the MRAM heap at offsets from its start, for kernels that keep all their data
 * there. */
#ifndef PIDCOMM_APPS_HEAP_H
#define PIDCOMM_APPS_HEAP_H

#include <mram.h>
#include <stdint.h>

#define DMA_BYTES 2048u /* size of the largest transfer */

static inline uint32_t min_of(uint32_t a, uint32_t b) { return a < b ? a : b; }

/* Requires multiples of 8 for `bytes` (0 is allowed), `at` and `to`. */
static inline void read_heap(uint32_t at, void *to, uint32_t bytes) {
  for (uint32_t done = 0; done < bytes; done += DMA_BYTES)
    mram_read((const __mram_ptr uint8_t *)DPU_MRAM_HEAP_POINTER + at + done, (uint8_t *)to + done,
              min_of(bytes - done, DMA_BYTES));
}

static inline void write_heap(const void *from, uint32_t at, uint32_t bytes) {
  for (uint32_t done = 0; done < bytes; done += DMA_BYTES)
    mram_write((const uint8_t *)from + done,
               (__mram_ptr uint8_t *)DPU_MRAM_HEAP_POINTER + at + done,
               min_of(bytes - done, DMA_BYTES));
}

#endif
