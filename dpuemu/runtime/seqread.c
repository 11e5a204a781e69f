// All cache sizes share one implementation. Functions such as seqread32_get only pass their cache
// size.
#include <mram.h>
#include <seqread.h>

#include "calls.h"
#include "heap.h"

// Fills both halves of the buffer from the page (of `size` bytes) around the address, and returns
// the item's address. If the page is the last page of MRAM, fills only the first half of the
// buffer.
static void *load(uintptr_t mram_addr, seqreader_t *reader, uint32_t size) {
  uintptr_t page = mram_addr & ~(uintptr_t)(size - 1);
  uint32_t left = PE_MRAM_BYTES - (page & (PE_MRAM_BYTES - 1));
  reader->mram_addr = page;
  mram_read((__mram_ptr void *)page, (void *)reader->wram_cache, left < 2 * size ? left : 2 * size);
  return (void *)(reader->wram_cache + (mram_addr - page));
}

// As on hardware, the buffer begins at a multiple of `size`.
static seqreader_buffer_t alloc(uint32_t size) {
  return (seqreader_buffer_t)__pe_mem_alloc(2 * size, size);
}

static void *init(seqreader_buffer_t cache, __mram_ptr void *mram_addr, seqreader_t *reader,
                  uint32_t size) {
  reader->wram_cache = cache;
  return load((uintptr_t)mram_addr, reader, size);
}

static void *seek(uintptr_t mram_addr, seqreader_t *reader, uint32_t size) {
  uintptr_t offset = mram_addr - reader->mram_addr;
  return offset < size ? (void *)(reader->wram_cache + offset) : load(mram_addr, reader, size);
}

static void *get(void *ptr, uint32_t inc, seqreader_t *reader, uint32_t size) {
  uintptr_t offset = (uintptr_t)ptr + inc - reader->wram_cache;
  return offset < size ? (void *)(reader->wram_cache + offset)
                       : load(reader->mram_addr + offset, reader, size);
}

static __mram_ptr void *tell(void *ptr, seqreader_t *reader) {
  return (__mram_ptr void *)((uintptr_t)ptr - reader->wram_cache + reader->mram_addr);
}

#define SEQREAD_OF_SIZE(size)                                                      \
  seqreader_buffer_t seqread##size##_alloc(void) { return alloc(size); }           \
  void *seqread##size##_init(seqreader_buffer_t cache, __mram_ptr void *mram_addr, \
                             seqreader_t *reader) {                                \
    return init(cache, mram_addr, reader, size);                                   \
  }                                                                                \
  void *seqread##size##_get(void *ptr, uint32_t inc, seqreader_t *reader) {        \
    return get(ptr, inc, reader, size);                                            \
  }                                                                                \
  void *seqread##size##_seek(__mram_ptr void *mram_addr, seqreader_t *reader) {    \
    return seek((uintptr_t)mram_addr, reader, size);                               \
  }                                                                                \
  __mram_ptr void *seqread##size##_tell(void *ptr, seqreader_t *reader) {          \
    return tell(ptr, reader);                                                      \
  }

SEQREAD_OF_SIZE(32)
SEQREAD_OF_SIZE(64)
SEQREAD_OF_SIZE(128)
SEQREAD_OF_SIZE(256)
SEQREAD_OF_SIZE(512)
SEQREAD_OF_SIZE(1024)
