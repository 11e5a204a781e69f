// seqread with one cache size. The host has written the bytes of pattern() to the MRAM heap.
#include <alloc.h>
#include <mram.h>
#include <seqread.h>

#include "expect.h"

#define BYTES 8192

static uint8_t pattern(uint32_t position) { return (uint8_t)(position * 7 + position / 251); }

static uint32_t word_at(uint32_t position) {
  uint32_t word = 0;
  for (uint32_t i = 0; i < 4; ++i) word |= (uint32_t)pattern(position + i) << (8 * i);
  return word;
}

int main(void) {
  mem_reset();
  mem_alloc(8 * me() + 8);
  seqreader_t reader, second;
  const uint32_t heap = (uint32_t)(uintptr_t)DPU_MRAM_HEAP_POINTER;
  seqreader_buffer_t cache = seqread_alloc();
  EXPECT(cache % 8 == 0);

  // Consecutive words, across all page borders.
  uint32_t *word = seqread_init(cache, (__mram_ptr void *)heap, &reader);
  for (uint32_t at = 0; at < BYTES - 4; at += 4) {
    EXPECT(*word == word_at(at));
    EXPECT((uint32_t)(uintptr_t)seqread_tell(word, &reader) == heap + at);
    word = seqread_get(word, 4, &reader);
  }

  // Unaligned items of 12 bytes that cross page borders.
  uint8_t *item = seqread_init(cache, (__mram_ptr void *)(heap + 5), &reader);
  for (uint32_t at = 5; at + 12 < BYTES; at += 12) {
    for (uint32_t i = 0; i < 12; ++i) EXPECT(item[i] == pattern(at + i));
    item = seqread_get(item, 12, &reader);
  }

  // The largest step.
  item = seqread_init(cache, (__mram_ptr void *)(heap + 3), &reader);
  for (uint32_t at = 3; at + SEQREAD_CACHE_SIZE < BYTES; at += SEQREAD_CACHE_SIZE) {
    EXPECT(*item == pattern(at));
    item = seqread_get(item, SEQREAD_CACHE_SIZE, &reader);
  }

  // Random positions.
  for (uint32_t i = 0; i < 200; ++i) {
    uint32_t at = i * 2654435761u % (BYTES - 8);
    item = seqread_seek((__mram_ptr void *)(heap + at), &reader);
    EXPECT(*item == pattern(at) && item[7] == pattern(at + 7));
    EXPECT((uint32_t)(uintptr_t)seqread_tell(item, &reader) == heap + at);
    item = seqread_get(item, 3, &reader);
    EXPECT(*item == pattern(at + 3));
  }

  // Two readers use separate buffers.
  seqreader_buffer_t other_cache = seqread_alloc();
  uint8_t *left = seqread_init(cache, (__mram_ptr void *)heap, &reader);
  uint8_t *right = seqread_init(other_cache, (__mram_ptr void *)(heap + BYTES / 2), &second);
  for (uint32_t at = 0; at < BYTES / 2 - 1; ++at) {
    EXPECT(*left == pattern(at) && *right == pattern(BYTES / 2 + at));
    left = seqread_get(left, 1, &reader);
    right = seqread_get(right, 1, &second);
  }
  return 0;
}
