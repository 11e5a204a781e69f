// Kernels for test_profile.py and test_trace.py: -DKERNEL=name chooses the function that all
// tasklets call. Comments `here` mark the line that a test looks for.
#include <alloc.h>
#include <barrier.h>
#include <defs.h>
#include <handshake.h>
#include <mram.h>
#include <mram_unaligned.h>
#include <mutex.h>
#include <perfcounter.h>
#include <sem.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <trace_regions.h>

#define TURNS 100
MUTEX_INIT(lock);
MUTEX_INIT(other_lock);
BARRIER_INIT(all, NR_TASKLETS);
SEMAPHORE_INIT(places, 1);
__mram_noinit uint8_t data[1 << 20];
__dma_aligned uint8_t buffers[NR_TASKLETS][2048];
__host uint32_t number;
volatile uint32_t counter;

static inline void work(uint32_t turns) {
  uint32_t sum = 0;
  for (uint32_t i = 0; i < turns; ++i) __asm__ volatile("add %0, %0, 1" : "+r"(sum));
}

static inline void computes(void) {
  uint32_t sum = 0;
  for (uint32_t i = 0; i < TURNS * 100; ++i)
    __asm__ volatile("add %0, %0, 1; add %0, %0, 2; add %0, %0, 3" : "+r"(sum));  // here
}

static inline void copies(void) {
  for (uint32_t i = 0; i < TURNS; ++i)
    mram_read(data + 2048 * ((me() + i) % 512), buffers[me()], 2048);  // here
}

static inline void copies_words(void) {
  for (uint32_t i = 0; i < TURNS; ++i) mram_read(data + 8 * i, buffers[me()], 8);  // here
}

static inline void counts(void) {
  for (uint32_t i = 0; i < TURNS; ++i) {
    mutex_lock(lock);  // here
    work(200);
    counter = counter + 1;
    mutex_unlock(lock);
  }
}

static inline void lets_one_work(void) {
  if (me() == 0) work(10000);
  barrier_wait(&all);  // here
}

static inline void works_by_number(void) { work(1000 + (number == 7) * 50000); }

// Counters that only the run knows, software routines, calls of the runtime and of the emulator.
static inline void does_everything(void) {
  uint32_t factor = me() * 77 + number + 1, sum = 0;
  for (uint32_t i = 1; i < TURNS; ++i)
    sum += factor * i + factor / i + (int32_t)(sum - factor) % 13;
  uint64_t wide = (uint64_t)sum * factor / (me() + 3);
  float real = (float)sum * 1.5f + (float)wide;
  uint8_t *own = mem_alloc(64);
  memset(buffers[me()], (int)real, sum % 1000);
  memcpy(own, buffers[me()], 64);
  mram_read_unaligned(data + 3 + me(), buffers[me()], 21);
  mram_write_unaligned(buffers[me()], data + 64 * me(), 9);
  counts();
  sem_take(&places);
  counter = counter + 1;
  sem_give(&places);
  if (me() == 0) handshake_notify();
  if (me() == 1) handshake_wait_for(0);
  if (me() == 2) printf("%u\n", (unsigned)wide);
  barrier_wait(&all);
}

// Two tasklets compute in the same block. Only an interruption of tasklet 0 lets tasklet 1 start.
static inline void computes_for_long(void) {
  uint32_t turns = 0;
  if (me() == 1) counter = 1;
  do work(40000000);
  while (counter == 0 && ++turns < TURNS);
  if (counter == 0) halt();
}

static inline void keeps_a_mutex(void) {
  mutex_lock(lock);  // here
}

static inline void misses_a_barrier(void) {
  if (me() != 1) barrier_wait(&all);  // here
}

static inline void stops(void) {
  if (me() == 0) __asm__ volatile("stop");  // here
}

// Regions nest, an end without a begin has no effect, and the last region ends with the tasklet.
static inline void marks(void) {
  TRACE_BEGIN("load");
  copies_words();
  TRACE_END();
  TRACE_BEGIN("all \"turns\"");
  for (uint32_t i = 0; i < 3; ++i) {
    TRACE_BEGIN("turn");
    work(100 * (me() + 1));
    TRACE_END();
  }
  TRACE_END();
  TRACE_END();
  if (me() == 1) {
    perfcounter_config(COUNT_CYCLES, true);
    work(1000);
    counter = perfcounter_get();
  }
  TRACE_BEGIN("until the end");
  work(10);
}

static inline void marks_often(void) {
  for (uint32_t i = 0; i < 500; ++i) {
    TRACE_BEGIN(
        "one of many turns, with a long name that takes more bytes than the other fields do");
    work(10);
    TRACE_END();
  }
  TRACE_BEGIN("after \xff all");
  copies_words();
  TRACE_END();
}

static inline void never_ends(void) {
  while (counter != 77) work(1000);  // here
}

int main(void) {
  KERNEL();
  return 0;
}
