// Every tasklet adds `amount` to its share of the 32-bit words on the MRAM heap.
#include <alloc.h>
#include <barrier.h>
#include <defs.h>
#include <mram.h>
#include <mutex.h>
#include <perfcounter.h>
#include <stdint.h>

#define PIECE 256

BARRIER_INIT(all, NR_TASKLETS);
MUTEX_INIT(sum_lock);

__host uint32_t bytes;
__host uint32_t amount = 1;
__host uint32_t sum;
__host uint64_t cycles;

int main(void) {
  if (me() == 0) {
    mem_reset();
    perfcounter_config(COUNT_CYCLES, true);
    sum = 0;
  }
  barrier_wait(&all);
  uint32_t *piece = mem_alloc(PIECE);
  uint32_t own = 0;
  for (uint32_t at = me() * PIECE; at < bytes; at += NR_TASKLETS * PIECE) {
    uint32_t size = bytes - at < PIECE ? bytes - at : PIECE;
    mram_read((__mram_ptr void *)(DPU_MRAM_HEAP_POINTER + at), piece, size);
    for (uint32_t i = 0; i < size / 4; ++i) {
      piece[i] += amount;
      own += piece[i];
    }
    mram_write(piece, (__mram_ptr void *)(DPU_MRAM_HEAP_POINTER + at), size);
  }
  mutex_lock(sum_lock);
  sum += own;
  mutex_unlock(sum_lock);
  barrier_wait(&all);
  if (me() == 0) cycles = perfcounter_get();
  return 0;
}
