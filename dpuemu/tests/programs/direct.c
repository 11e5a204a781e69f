// MRAM variables used as ordinary variables, together with DMA.
#include <barrier.h>
#include <mram.h>

#include "expect.h"

enum { kTypes, kDma, kAllTasklets, kHeap };

struct record {
  uint8_t small;
  uint16_t middle;
  uint32_t large;
  uint64_t wide;
  double real;
};

__mram uint8_t bytes[16] = {1, 2, 3, 4, 5, 6, 7, 8};
__mram uint16_t halves[8] = {0x1111, 0x2222};
__mram uint32_t words[8] = {10, 20, 30, 40};
__mram uint64_t wides[4] = {0x0102030405060708};
__mram struct record record = {1, 2, 3, 4, 5.5};
__mram_noinit uint64_t scratch[NR_TASKLETS * 8];
BARRIER_INIT(all, NR_TASKLETS);

static void types(void) {
  EXPECT(bytes[2] == 3 && bytes[15] == 0 && halves[1] == 0x2222 && words[3] == 40 &&
         wides[0] == 0x0102030405060708);
  EXPECT(record.small == 1 && record.middle == 2 && record.large == 3 && record.wide == 4 &&
         record.real == 5.5);
  bytes[3] = 0xAB;
  halves[0] += 1;
  words[2] -= 31;
  wides[0] ^= 0xFF;
  wides[1] = 5;
  wides[1] <<= 40;
  record.real *= 2;
  record.middle |= 0x100;
  ++record.small;
  EXPECT(bytes[2] == 3 && bytes[3] == 0xAB && bytes[4] == 5);
  EXPECT(halves[0] == 0x1112 && halves[1] == 0x2222);
  EXPECT(words[1] == 20 && words[2] == 0xFFFFFFFF && words[3] == 40);
  EXPECT(wides[0] == 0x01020304050607F7 && wides[1] == 5ull << 40);
  EXPECT(record.real == 11 && record.middle == 0x102 && record.small == 2 && record.large == 3);
  __mram_ptr uint8_t *byte = (__mram_ptr uint8_t *)&wides[0];
  EXPECT(byte[0] == 0xF7 && byte[7] == 1);
  struct record copy = record;
  EXPECT(copy.wide == 4 && copy.real == 11);
  copy.wide = 9;
  record = copy;
  EXPECT(record.wide == 9);
}

struct pair {
  uint32_t first, second;
};
static const struct pair nothing = {UINT32_MAX, UINT32_MAX};
__mram_noinit struct pair pairs[12];

__attribute__((noinline)) static void fill(__mram_ptr struct pair *to, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i)
    if (i % 3 == 1)
      to[i] = (struct pair){i, 7 * i};
    else
      to[i] = nothing;
}

static void structures(void) {
  static __dma_aligned struct pair copy[12];
  fill(pairs, 12);
  mram_read(pairs, copy, sizeof copy);
  for (uint32_t i = 0; i < 12; ++i) {
    EXPECT(copy[i].first == (i % 3 == 1 ? i : UINT32_MAX));
    EXPECT(copy[i].second == (i % 3 == 1 ? 7 * i : UINT32_MAX));
  }
}

static void with_dma(void) {
  static __dma_aligned uint32_t buffer[8];
  words[0] = 1234;
  mram_read(words, buffer, 32);
  EXPECT(buffer[0] == 1234 && buffer[1] == 20);
  for (uint32_t i = 0; i < 8; ++i) buffer[i] = 100 + i;
  mram_write(buffer, words, 32);
  EXPECT(words[0] == 100 && words[7] == 107);
  words[7] += 1;
  mram_read(&words[6], buffer, 8);
  EXPECT(buffer[0] == 106 && buffer[1] == 108);
}

static void all_tasklets(void) {
  for (uint32_t i = 0; i < 8; ++i) scratch[me() * 8 + i] = me() * 100 + i;
  barrier_wait(&all);
  uint32_t next = (me() + 1) % NR_TASKLETS;
  for (uint32_t i = 0; i < 8; ++i) EXPECT(scratch[next * 8 + i] == next * 100 + i);
}

// Distant pages, and the last byte of MRAM.
static void heap(void) {
  __mram_ptr uint32_t *start = (__mram_ptr uint32_t *)DPU_MRAM_HEAP_POINTER;
  __mram_ptr uint8_t *end = (__mram_ptr uint8_t *)0x0BFFFFFF;
  for (uint32_t i = 0; i < 20; ++i) start[i * 50000] += i;
  *end = (uint8_t)(*end + 1);
  EXPECT(1);
}

int main(void) {
  if (topic == kAllTasklets) all_tasklets();
  if (me() != 0) return 0;
  if (topic == kTypes) types();
  if (topic == kDma) structures();
  if (topic == kDma) with_dma();
  if (topic == kHeap) heap();
  return 0;
}
