/// mram_unaligned.h: MRAM accesses with any address and size, and atomic changes of single bytes
/// and ints.
///
/// A tasklet that changes part of an aligned 8-byte word holds the word's virtual mutex. There are
/// 2048 virtual mutexes for all words of MRAM.
#ifndef PE_MRAM_UNALIGNED_H
#define PE_MRAM_UNALIGNED_H

#include <defs.h>
#include <mram.h>
#include <stdint.h>
#include <vmutex.h>

#ifndef __MRAM_UNALIGNED_ACCESS_LOG_NB_VLOCK
#define __MRAM_UNALIGNED_ACCESS_LOG_NB_VLOCK 11
#endif

extern struct vmutex __mram_unaligned_access_virtual_locks;

/// Each tasklet has 8 bytes in this buffer, for the word that the tasklet changes.
extern __dma_aligned uint8_t __mram_unaligned_access_buffer[DPU_NR_THREADS << 3];

/// Copies nb_of_bytes (up to 2048) from MRAM into the buffer (aligned to 8, with room for
/// nb_of_bytes + 16). Returns the address of the first copied byte in the buffer.
void *mram_read_unaligned(const __mram_ptr void *from, void *buffer, unsigned int nb_of_bytes);

/// Copies nb_of_bytes (up to 2048) from WRAM to MRAM. The PE is in fault if `from` and `dest`
/// differ in their lowest three bits.
void mram_write_unaligned(const void *from, __mram_ptr void *dest, unsigned nb_of_bytes);

/// The first function locks the MRAM word that contains the address, reads the word into the
/// tasklet's 8 bytes and returns the address of these bytes. The second function writes the word to
/// MRAM and unlocks the word.
void *__pe_open_mram_word(uintptr_t address);
void __pe_close_mram_word(uintptr_t address);

#define __PE_CHANGE_MRAM_WORD(dest, change)               \
  do {                                                    \
    uintptr_t pe_address_ = (uintptr_t)(dest);            \
    uint8_t *pe_word_ = __pe_open_mram_word(pe_address_); \
    change;                                               \
    __pe_close_mram_word(pe_address_);                    \
  } while (0)

/// Returns the int in the word at dest: the first four bytes if dest is the start of the word, else
/// the last four bytes.
#define __PE_MRAM_INT ((int *)(pe_word_ + ((pe_address_ & 7) != 0 ? 4 : 0)))
#define __PE_MRAM_BYTE (pe_word_ + (pe_address_ & 7))

/// Change the int or byte at dest with update_func(pointer to a copy, args), or write val to dest.
#define mram_update_int_atomic(dest, update_func, args) \
  __PE_CHANGE_MRAM_WORD(dest, (*update_func)(__PE_MRAM_INT, args))
#define mram_write_int_atomic(dest, val) __PE_CHANGE_MRAM_WORD(dest, *__PE_MRAM_INT = (val))
#define mram_update_byte_atomic(dest, update_func, args) \
  __PE_CHANGE_MRAM_WORD(dest, (*update_func)(__PE_MRAM_BYTE, args))
#define mram_write_byte_atomic(dest, val) __PE_CHANGE_MRAM_WORD(dest, *__PE_MRAM_BYTE = (val))

#endif  // PE_MRAM_UNALIGNED_H
