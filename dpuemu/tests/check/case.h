// Shared by the programs of test_check.py. Each CASE is one small program: all tasklets call its
// function. The first word is the kind of the only finding that `dpuemu check` may report, or
// `fine`. `again`, `beside` and `early` change what the host does (host.c). Comments `now` and
// `before` mark the lines that the finding names.
#include <alloc.h>
#include <atomic_bit.h>
#include <barrier.h>
#include <defs.h>
#include <handshake.h>
#include <mram.h>
#include <mutex.h>
#include <mutex_pool.h>
#include <perfcounter.h>
#include <sem.h>
#include <seqread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <vmutex.h>

#define CASE(kind, name, ...) __attribute__((noinline)) void kind##_##name(void)

#define INPUT_BYTES 1024  // of the MRAM heap, written by the host
#define INPUT ((uint32_t)DPU_MRAM_HEAP_POINTER)
#define UNWRITTEN (INPUT + 0x100000)  // the host reads 64 bytes after the launches

extern volatile uint32_t sink;
extern __host uint32_t argument;

// Lets `tasklet` arrive later in modelled time than the others.
static inline void delay(uint32_t tasklet) {
  if (me() == tasklet)
    for (volatile uint32_t i = 0; i < 1000; ++i) continue;
}
