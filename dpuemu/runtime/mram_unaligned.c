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

// The common cases are separate, because they then take about as many instructions as in the SDK:
// on DIMMs, 14 more than mram_read and 10 more than mram_write (s9770652/pim-memcpy).

static __attribute__((noinline)) void *read_parts(uintptr_t start, uint8_t *to, uint32_t bytes,
                                                  void *first) {
  enum { kMostBytes = 2048 };
  if (bytes <= kMostBytes) {
    mram_read((const __mram_ptr void *)start, to, bytes);
  } else {  // the words around a range of 2048 bytes need two DMA
    mram_read((const __mram_ptr void *)start, to, kMostBytes);
    mram_read((const __mram_ptr void *)(start + kMostBytes), to + kMostBytes, bytes - kMostBytes);
  }
  return first;
}

void *mram_read_unaligned(const __mram_ptr void *from, void *buffer, unsigned int nb_of_bytes) {
  uintptr_t offset = (uintptr_t)from & 7;
  uintptr_t start = (uintptr_t)from - offset;
  uint32_t bytes = (uint32_t)(offset + nb_of_bytes + 7) & ~7u;
  uint8_t *first = (uint8_t *)buffer + offset;
  __asm__("" : "+r"(first));  // one register survives the call, instead of buffer and offset
  if (nb_of_bytes - 1 >= 2040)
    return nb_of_bytes == 0 ? first : read_parts(start, buffer, bytes, first);
  mram_read((const __mram_ptr void *)start, buffer, bytes);
  return first;
}

static __attribute__((noinline)) void write_parts(const uint8_t *from, uintptr_t address,
                                                  uint32_t bytes) {
  if ((((uintptr_t)from ^ address) & 7) != 0) __pe_fault(PE_FAULT_MRAM_UNALIGNED, 0);
  uint32_t head = -address & 7;
  if (head > bytes) head = bytes;
  uint32_t words = (bytes - head) & ~7u;
  uint32_t tail = bytes - head - words;
  if (head != 0) write_part(from, address, head);
  if (words != 0) mram_write(from + head, (__mram_ptr void *)(address + head), words);
  if (tail != 0) write_part(from + head + words, address + head + words, tail);
}

void mram_write_unaligned(const void *from, __mram_ptr void *dest, unsigned nb_of_bytes) {
  if ((((uintptr_t)from | (uintptr_t)dest | nb_of_bytes) & 7) == 0 && nb_of_bytes != 0)
    mram_write(from, dest, nb_of_bytes);
  else
    write_parts(from, (uintptr_t)dest, nb_of_bytes);
}
