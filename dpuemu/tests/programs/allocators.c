// mem_alloc, fsb_alloc, buddy_alloc.
#include <alloc.h>
#include <errno.h>
#include <mram.h>
#include <string.h>

#include "expect.h"

enum { kHeap, kHeapGoesOn, kBlocks, kBuddy, kBuddyErrors, kBuddyRealloc };

static uint32_t address(const volatile void *pointer) { return (uint32_t)(uintptr_t)pointer; }

static void heap(void) {
  uint8_t *start = mem_reset();
  EXPECT(address(start) % 8 == 0);
  uint8_t *one = mem_alloc(1), *three = mem_alloc(3), *nine = mem_alloc(9), *end = mem_alloc(8);
  EXPECT(one == start);
  EXPECT(three == one + 8);
  EXPECT(nine == three + 8);
  EXPECT(end == nine + 16);
  EXPECT((uint8_t *)mem_reset() == start);
  EXPECT((uint8_t *)mem_alloc(5) == start);
  // This program is small, so most of the 64 KiB are free.
  mem_reset();
  uint8_t *large = mem_alloc(48 << 10);
  memset(large, 0x5A, 48 << 10);
  EXPECT(large[0] == 0x5A && large[(48 << 10) - 1] == 0x5A);
  mram_write(large + (48 << 10) - 2048, (__mram_ptr void *)DPU_MRAM_HEAP_POINTER, 2048);
  memset(large, 0, 2048);
  mram_read((__mram_ptr void *)DPU_MRAM_HEAP_POINTER, large, 2048);
  EXPECT(large[0] == 0x5A && large[2047] == 0x5A);
}

// The second launch continues after the buffers of the first.
static void heap_goes_on(void) {
  static uint8_t *previous;
  uint8_t *buffer = mem_alloc(24);
  if (previous != 0) {
    EXPECT(buffer == previous + 24);
    EXPECT(*(uint64_t *)previous == 0x0102030405060708);
  }
  *(uint64_t *)buffer = 0x0102030405060708;
  previous = buffer;
  EXPECT(1);
}

static void blocks(void) {
  mem_reset();
  fsb_allocator_t five = fsb_alloc(5, 4), none = fsb_alloc(0, 2), wide = fsb_alloc(24, 3);
  uint8_t *got[4];
  for (uint32_t i = 0; i < 4; ++i) {
    got[i] = fsb_get(five);
    EXPECT(got[i] != 0 && address(got[i]) % 8 == 0);
    for (uint32_t j = 0; j < i; ++j) EXPECT(got[i] >= got[j] + 8 || got[j] >= got[i] + 8);
    memset(got[i], 0xFF, 8);
  }
  EXPECT(fsb_get(five) == 0);
  fsb_free(five, got[2]);
  EXPECT(fsb_get(five) == got[2]);
  EXPECT(fsb_get(five) == 0);
  for (uint32_t i = 0; i < 4; ++i) fsb_free(five, got[i]);
  for (uint32_t i = 0; i < 4; ++i) EXPECT(fsb_get(five) != 0);
  EXPECT(fsb_get(five) == 0);
  EXPECT(fsb_get(none) != 0);
  EXPECT(fsb_get(none) != 0);
  EXPECT(fsb_get(none) == 0);
  uint8_t *a = fsb_get(wide), *b = fsb_get(wide), *c = fsb_get(wide);
  memset(a, 1, 24);
  memset(b, 2, 24);
  memset(c, 3, 24);
  EXPECT(a[0] == 1 && a[23] == 1 && b[0] == 2 && b[23] == 2 && c[0] == 3 && c[23] == 3);
  EXPECT(fsb_get(wide) == 0);
}

static void buddy(void) {
  mem_reset();
  buddy_init(4096);
  uint8_t *small[300];
  // Blocks of 16 bytes fill the heap exactly.
  uint32_t count = 0;
  while (count < 300 && (small[count] = buddy_alloc(1 + count % 16)) != 0) {
    EXPECT(address(small[count]) % 8 == 0);
    memset(small[count], (int)count, 16);
    ++count;
  }
  EXPECT(count == 256);
  EXPECT(errno == ENOMEM);
  for (uint32_t i = 0; i < 256; ++i)
    EXPECT(small[i][0] == (uint8_t)i && small[i][15] == (uint8_t)i);
  for (uint32_t i = 0; i < 256; i += 2) buddy_free(small[i]);
  EXPECT(buddy_alloc(17) == 0);  // every second block is taken
  for (uint32_t i = 1; i < 256; i += 2) buddy_free(small[i]);
  uint8_t *all = buddy_alloc(4096);
  EXPECT(all != 0);
  EXPECT(buddy_alloc(1) == 0);
  buddy_free(all);
  // 2049 bytes take 4096, 33 take 64.
  all = buddy_alloc(2049);
  EXPECT(all != 0 && buddy_alloc(16) == 0);
  buddy_free(all + 8 * 20);  // any pointer into the block
  for (uint32_t i = 0; i < 64; ++i) EXPECT(buddy_alloc(33) != 0);
  EXPECT(buddy_alloc(1) == 0);
  buddy_reset();
  uint8_t *again = buddy_alloc(4096);
  EXPECT(again != 0);
  // DMA reaches every byte of the block.
  memset(again, 9, 4096);
  mram_write(again + 2048, (__mram_ptr void *)DPU_MRAM_HEAP_POINTER, 2048);
}

static void buddy_errors(void) {
  mem_reset();
  buddy_init(2048);
  errno = 0;
  EXPECT(buddy_alloc(0) == 0 && errno == EINVAL);
  errno = 0;
  EXPECT(buddy_alloc(2049) == 0 && errno == EINVAL);
  uint8_t *half = buddy_alloc(1024), *other = buddy_alloc(1024);
  EXPECT(half != 0 && other != 0);
  errno = 0;
  EXPECT(buddy_alloc(1) == 0 && errno == ENOMEM);
  errno = 0;
  buddy_free(0);
  EXPECT(errno == 0);
  buddy_free(half + 4);
  EXPECT(errno == EINVAL);
  errno = 0;
  buddy_free((void *)&topic);
  EXPECT(errno == EINVAL);
  errno = 0;
  buddy_free(half);
  EXPECT(errno == 0);
  buddy_free(half);
  EXPECT(errno == EINVAL);
  buddy_free(other);
  EXPECT(buddy_alloc(2048) != 0);
}

static void buddy_realloc_keeps(void) {
  mem_reset();
  buddy_init(2048);
  uint8_t *buffer = buddy_realloc(0, 100);
  EXPECT(buffer != 0);
  for (uint32_t i = 0; i < 100; ++i) buffer[i] = (uint8_t)(i * 7);
  uint8_t *neighbour = buddy_alloc(100);
  memset(neighbour, 0xEE, 100);
  uint8_t *larger = buddy_realloc(buffer, 600);
  EXPECT(larger != 0);
  memset(larger + 100, 0xDD, 500);
  for (uint32_t i = 0; i < 100; ++i) EXPECT(larger[i] == (uint8_t)(i * 7) && neighbour[i] == 0xEE);
  uint8_t *smaller = buddy_realloc(larger, 30);
  for (uint32_t i = 0; i < 30; ++i) EXPECT(smaller[i] == (uint8_t)(i * 7));
  errno = 0;
  EXPECT(buddy_realloc(smaller, 2048) == 0 && errno == ENOMEM);
  EXPECT(smaller[29] == (uint8_t)(29 * 7));
  errno = 0;
  EXPECT(buddy_realloc(smaller, 5000) == 0 && errno == EINVAL);
  EXPECT(buddy_realloc(smaller, 0) == smaller);
  buddy_free(neighbour);
  EXPECT(buddy_alloc(2048) != 0);
}

int main(void) {
  if (me() != 0) return 0;
  if (topic == kHeap) heap();
  if (topic == kHeapGoesOn) heap_goes_on();
  if (topic == kBlocks) blocks();
  if (topic == kBuddy) buddy();
  if (topic == kBuddyErrors) buddy_errors();
  if (topic == kBuddyRealloc) buddy_realloc_keeps();
  return 0;
}
