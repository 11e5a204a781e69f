#include <mram_unaligned.h>
#include <string.h>

#include "fault.h"

VMUTEX_INIT(__mram_unaligned_access_virtual_locks, 1 << __MRAM_UNALIGNED_ACCESS_LOG_NB_VLOCK, 1)

__dma_aligned uint8_t __mram_unaligned_access_buffer[DPU_NR_THREADS << 3];

static uint16_t lock_of(uintptr_t address) {
  return (address >> 3) & ((1 << __MRAM_UNALIGNED_ACCESS_LOG_NB_VLOCK) - 1);
}

void *__pe_open_mram_word(uintptr_t address) {
  uint8_t *word = &__mram_unaligned_access_buffer[me() << 3];
  vmutex_lock(&__mram_unaligned_access_virtual_locks, lock_of(address));
  mram_read((__mram_ptr void *)(address & ~(uintptr_t)7), word, 8);
  return word;
}

void __pe_close_mram_word(uintptr_t address) {
  mram_write(&__mram_unaligned_access_buffer[me() << 3],
             (__mram_ptr void *)(address & ~(uintptr_t)7), 8);
  vmutex_unlock(&__mram_unaligned_access_virtual_locks, lock_of(address));
}

// Writes a range of less than 8 bytes within one word of MRAM.
static void write_part(const uint8_t *from, uintptr_t address, uint32_t bytes) {
  uint8_t *word = __pe_open_mram_word(address);
  memcpy(word + (address & 7), from, bytes);
  __pe_close_mram_word(address);
}

void *mram_read_unaligned(const __mram_ptr void *from, void *buffer, unsigned int nb_of_bytes) {
  enum { kMostBytes = 2048 };
  uintptr_t offset = (uintptr_t)from & 7;
  uintptr_t start = (uintptr_t)from - offset;
  uint32_t bytes = (uint32_t)(offset + nb_of_bytes + 7) & ~7u;
  uint8_t *to = buffer;
  if (nb_of_bytes == 0) return to + offset;
  if (bytes > kMostBytes) {  // the words around a range of 2048 bytes need two DMA
    mram_read((const __mram_ptr void *)start, to, kMostBytes);
    mram_read((const __mram_ptr void *)(start + kMostBytes), to + kMostBytes, bytes - kMostBytes);
  } else {
    mram_read((const __mram_ptr void *)start, to, bytes);
  }
  return to + offset;
}

void mram_write_unaligned(const void *from, __mram_ptr void *dest, unsigned nb_of_bytes) {
  const uint8_t *source = from;
  uintptr_t address = (uintptr_t)dest;
  if ((((uintptr_t)from ^ address) & 7) != 0) __pe_fault(PE_FAULT_MRAM_UNALIGNED, 0);
  if (((address | nb_of_bytes) & 7) == 0 && nb_of_bytes != 0) {
    mram_write(source, dest, nb_of_bytes);
    return;
  }
  uint32_t head = -address & 7;
  if (head > nb_of_bytes) head = nb_of_bytes;
  uint32_t words = (nb_of_bytes - head) & ~7u;
  uint32_t tail = nb_of_bytes - head - words;
  if (head != 0) write_part(source, address, head);
  if (words != 0) mram_write(source + head, (__mram_ptr void *)(address + head), words);
  if (tail != 0) write_part(source + head + words, address + head + words, tail);
}
