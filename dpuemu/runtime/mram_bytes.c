// memset, memcpy and memmove with pointers to MRAM (dialect.py). Complete words go through a buffer
// by DMA, other bytes one by one. Copies use DMA of 8 bytes: on DIMMs, memcpy between places
// in MRAM takes as long as a loop of such DMA (s9770652/pim-memcpy).
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

/// Copies words of 8 bytes, of which at least one side is in MRAM. Not inlined: the
/// loops of an inlined copy would save registers around each DMA, which is a call only here.
static void __attribute__((noinline)) copy_words(uint32_t spaces, uint32_t to, uint32_t from,
                                                 uint32_t end) {
  __dma_aligned uint8_t word[8];
  if (spaces == 1)
    for (; to != end; to += 8, from += 8) mram_write((void *)from, (__mram_ptr void *)to, 8);
  else if (spaces == 2)
    for (; to != end; to += 8, from += 8) mram_read((__mram_ptr void *)from, (void *)to, 8);
  else
    for (; to != end; to += 8, from += 8) {
      mram_read((__mram_ptr void *)from, word, 8);
      mram_write(word, (__mram_ptr void *)to, 8);
    }
}

/// spaces: bit 0 is set if `to` is in MRAM, bit 1 if `from` is. The two ranges may overlap.
void __pe_memmove_mram(uint32_t spaces, uint32_t to, uint32_t from, uint32_t size) {
  const uint32_t to_space = spaces & 1, from_space = spaces >> 1;
  if (to_space == from_space && to > from && to - from < size) {
    while (size-- != 0) store(to_space, to + size, load(from_space, from + size));
    return;
  }
  if ((to - from) % 8 == 0) {
    while (size != 0 && to % 8 != 0) {
      store(to_space, to++, load(from_space, from++));
      --size;
    }
    const uint32_t bytes = size & ~7u;
    copy_words(spaces, to, from, to + bytes);
    to += bytes;
    from += bytes;
    size -= bytes;
  }
  while (size-- != 0) store(to_space, to++, load(from_space, from++));
}
