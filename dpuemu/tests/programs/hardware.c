// Behaviour of hardware that programs rely on: what start-up does, MRAM addresses, and the
// program's own functions.
#include <defs.h>
#include <mram.h>
#include <mutex.h>

#include "expect.h"

enum { kBoot, kAddresses, kOwnFunctions };

MUTEX_INIT(first);
MUTEX_INIT(second);
__mram_noinit uint64_t words[4];
__mram_ptr uint64_t *__mram into_words = &words[2];
__mram_ptr uint64_t *from_wram = &words[3];
__host uint32_t trylocks;
volatile float half = 0.5f;

float sqrtf(float x) { return x + 40; }
float sinf(float x) { return x + 50; }
double floor(double x) { return x + 60; }

static void boot(void) { trylocks += mutex_trylock(first) + mutex_trylock(second); }

static void addresses(void) {
  static __dma_aligned uint64_t buffer[1];
  volatile uint32_t begin =
      (uint32_t)(uintptr_t)words;  // volatile: gcc assumes that the address of an object is not 0
  EXPECT(begin == 0);
  EXPECT((uint32_t)(uintptr_t)DPU_MRAM_HEAP_POINTER == sizeof words + 8);
  EXPECT((uint32_t)(uintptr_t)from_wram == begin + 24);
  EXPECT((uint32_t)(uintptr_t)into_words == begin + 16);
  words[1] = 11;
  EXPECT(*(__mram_ptr uint64_t *)(uintptr_t)(begin + 8) == 11);
  const uint32_t far = 0x900000;
  *(__mram_ptr uint64_t *)(uintptr_t)far = 99;
  mram_read((__mram_ptr void *)(uintptr_t)far, buffer, 8);
  EXPECT(buffer[0] == 99);
  buffer[0] = 77;
  mram_write(buffer, (__mram_ptr void *)(uintptr_t)(0x08000000 + far),
             8);  // the address of the host's symbols
  EXPECT(*(__mram_ptr uint64_t *)(uintptr_t)far == 77);
}

static void own_functions(void) {
  EXPECT(sqrtf(half) == 40.5f && sqrtf(4) == 44);
  EXPECT(sinf(half) == 50.5f && sinf(0) == 50);
  EXPECT(floor(1.5) == 61.5);
}

int main(void) {
  if (me() != 0) return 0;
  if (topic == kBoot) boot();
  if (topic == kAddresses) addresses();
  if (topic == kOwnFunctions) own_functions();
  return 0;
}
