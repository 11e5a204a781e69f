// memset, memcpy and memmove with pointers to MRAM (dialect.py). Complete words go through a buffer
// by DMA, other bytes one by one.
#include <mram.h>
#include <stdint.h>
#include <string.h>

#define BUFFER_BYTES 256

/// A byte in MRAM (space 1) or WRAM (space 0).
static uint8_t load(uint32_t space, uint32_t address) {
  return space ? *(__mram_ptr uint8_t *)address : *(uint8_t *)address;
}

static void store(uint32_t space, uint32_t address, uint8_t value) {
  if (space)
    *(__mram_ptr uint8_t *)address = value;
  else
    *(uint8_t *)address = value;
}

void __pe_memset_mram(uint32_t to, int value, uint32_t size) {
  __dma_aligned uint8_t buffer[BUFFER_BYTES];
  memset(buffer, value, size < BUFFER_BYTES ? size : BUFFER_BYTES);
  while (size != 0) {
    uint32_t bytes = 1;
    if (to % 8 == 0 && size >= 8) {
      bytes = size < BUFFER_BYTES ? size & ~7u : BUFFER_BYTES;
      mram_write(buffer, (__mram_ptr void *)to, bytes);
    } else {
      store(1, to, (uint8_t)value);
    }
    to += bytes;
    size -= bytes;
  }
}

/// spaces: bit 0 is set if `to` is in MRAM, bit 1 if `from` is. The two ranges may overlap.
void __pe_memmove_mram(uint32_t spaces, uint32_t to, uint32_t from, uint32_t size) {
  __dma_aligned uint8_t buffer[BUFFER_BYTES];
  const uint32_t to_space = spaces & 1, from_space = spaces >> 1;
  if (to_space == from_space && to > from && to - from < size) {
    while (size-- != 0) store(to_space, to + size, load(from_space, from + size));
    return;
  }
  while (size != 0) {
    uint32_t bytes = 1;
    if (to % 8 == 0 && from % 8 == 0 && size >= 8) {
      bytes = size < BUFFER_BYTES ? size & ~7u : BUFFER_BYTES;
      if (from_space)
        mram_read((__mram_ptr void *)from, to_space ? (void *)buffer : (void *)to, bytes);
      if (to_space)
        mram_write(from_space ? (void *)buffer : (void *)from, (__mram_ptr void *)to, bytes);
    } else {
      store(to_space, to, load(from_space, from));
    }
    to += bytes;
    from += bytes;
    size -= bytes;
  }
}
