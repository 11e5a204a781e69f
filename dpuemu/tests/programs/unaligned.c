// mram_unaligned.h. The MRAM heap holds bytes 0, 1, 2, ... at the start.
#include <barrier.h>
#include <mram_unaligned.h>
#include <string.h>

#include "expect.h"

enum { kRead, kWrite, kBytes, kInts };

BARRIER_INIT(all, NR_TASKLETS);
static __dma_aligned uint8_t buffer[2048 + 16], back[2048];

static void read_anywhere(uint32_t heap) {
  static const uint32_t sizes[] = {1, 3, 8, 9, 250, 2040, 2048};
  for (uint32_t offset = 0; offset < 16; ++offset)
    for (uint32_t i = 0; i < sizeof sizes / sizeof *sizes; ++i) {
      memset(buffer, 0xEE, sizeof buffer);
      uint8_t *got = mram_read_unaligned((__mram_ptr void *)(heap + offset), buffer, sizes[i]);
      EXPECT(got >= buffer && got + sizes[i] <= buffer + sizeof buffer);
      EXPECT(got[0] == (uint8_t)offset && got[sizes[i] - 1] == (uint8_t)(offset + sizes[i] - 1));
    }
}

// The words around the written bytes keep their values.
static void write_anywhere(uint32_t heap) {
  static const uint32_t sizes[] = {1, 2, 7, 8, 9, 15, 100, 2000};
  for (uint32_t offset = 0; offset < 8; ++offset)
    for (uint32_t i = 0; i < sizeof sizes / sizeof *sizes; ++i) {
      memset(buffer, 0x55, sizeof buffer);
      mram_write(buffer, (__mram_ptr void *)(heap + 4096), 2048);
      memset(buffer, 0xAA, sizeof buffer);
      mram_write_unaligned(buffer + offset, (__mram_ptr void *)(heap + 4096 + offset), sizes[i]);
      mram_read((__mram_ptr void *)(heap + 4096), back, 2048);
      uint32_t written = 0;
      for (uint32_t j = 0; j < 2048; ++j) written += back[j] == 0xAA;
      EXPECT(written == sizes[i]);
      EXPECT(back[offset] == 0xAA && back[offset + sizes[i] - 1] == 0xAA &&
             back[offset + sizes[i]] == 0x55);
    }
}

static void add_byte(uint8_t *byte, void *amount) { *byte = (uint8_t)(*byte + *(uint8_t *)amount); }
static void add_int(int *number, void *amount) { *number += *(int *)amount; }

// All tasklets change the same words.
static void bytes(uint32_t heap) {
  uint8_t amount = (uint8_t)(me() + 1);
  mram_write_byte_atomic((__mram_ptr uint8_t *)(heap + 64 + me()), (uint8_t)(200 + me()));
  for (uint32_t i = 0; i < 5; ++i)
    mram_update_byte_atomic((__mram_ptr uint8_t *)(heap + 133), add_byte, &amount);
  barrier_wait(&all);
  if (me() != 0) return;
  mram_read((__mram_ptr void *)(heap + 64), buffer, 128);
  for (uint32_t i = 0; i < NR_TASKLETS; ++i) EXPECT(buffer[i] == 200 + i);
  EXPECT(buffer[133 - 64] == (uint8_t)(133 + 5 * NR_TASKLETS * (NR_TASKLETS + 1) / 2));
  EXPECT(buffer[132 - 64] == 132 && buffer[134 - 64] == 134);
}

static void ints(uint32_t heap) {
  int amount = (int)me() - 100;
  mram_write_int_atomic((__mram_ptr int *)(heap + 256 + 4 * me()), -(int)me());
  if (me() == 0) {
    uint64_t *zero = (uint64_t *)buffer;
    *zero = 0;
    mram_write(zero, (__mram_ptr void *)(heap + 512), 8);
  }
  barrier_wait(&all);
  for (uint32_t i = 0; i < 5; ++i)
    mram_update_int_atomic((__mram_ptr int *)(heap + 512 + 4 * (me() % 2)), add_int, &amount);
  barrier_wait(&all);
  if (me() != 0) return;
  int wanted[2] = {0, 0};
  for (uint32_t i = 0; i < NR_TASKLETS; ++i) wanted[i % 2] += 5 * ((int)i - 100);
  int *got = (int *)buffer;
  mram_read((__mram_ptr void *)(heap + 512), got, 8);
  EXPECT(got[0] == wanted[0] && got[1] == wanted[1]);
  mram_read((__mram_ptr void *)(heap + 256), got, 4 * NR_TASKLETS);
  for (uint32_t i = 0; i < NR_TASKLETS; ++i) EXPECT(got[i] == -(int)i);
}

int main(void) {
  const uint32_t heap = (uint32_t)(uintptr_t)DPU_MRAM_HEAP_POINTER;
  if (topic == kBytes) bytes(heap);
  if (topic == kInts) ints(heap);
  if (me() != 0) return 0;
  if (topic == kRead) read_anywhere(heap);
  if (topic == kWrite) write_anywhere(heap);
  return 0;
}
