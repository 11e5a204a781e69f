// seqread in all tasklets. The host has written 1, 2, 3, ... to the words of the MRAM heap.
#include <barrier.h>
#include <mram.h>
#include <seqread.h>

#include "expect.h"

#define WORDS 200

static seqreader_buffer_t buffers[NR_TASKLETS];
BARRIER_INIT(all_allocated, NR_TASKLETS);

int main(void) {
  seqreader_t reader;
  buffers[me()] = seqread_alloc();
  barrier_wait(&all_allocated);
  for (uint32_t i = 0; i < NR_TASKLETS; ++i)
    EXPECT(i == me() || buffers[i] + 2 * SEQREAD_CACHE_SIZE <= buffers[me()] ||
           buffers[me()] + 2 * SEQREAD_CACHE_SIZE <= buffers[i]);
  const uint32_t first = WORDS * me();
  uint32_t *word =
      seqread_init(buffers[me()], (uint32_t __mram_ptr *)DPU_MRAM_HEAP_POINTER + first, &reader);
  for (uint32_t i = 0; i < WORDS; ++i) {
    EXPECT(*word == first + i + 1);
    word = seqread_get(word, sizeof *word, &reader);
  }
  return 0;
}
