/// seqread.h: reads MRAM sequentially through a small buffer in WRAM.
///
/// SEQREAD_CACHE_SIZE (32, 64, ..., 1024 bytes; a program may define it before the #include,
/// default 256) is part of the functions' names, so files of one program may use different cache
/// sizes. A buffer has twice SEQREAD_CACHE_SIZE bytes, because an item may start in the first half
/// of the buffer and end in the second half.
#ifndef PE_SEQREAD_H
#define PE_SEQREAD_H

#include <macro_utils.h>
#include <mram.h>
#include <stdint.h>

#ifndef SEQREAD_CACHE_SIZE
#define SEQREAD_CACHE_SIZE 256
#endif

_Static_assert(SEQREAD_CACHE_SIZE >= 32 && SEQREAD_CACHE_SIZE <= 1024 &&
                   (SEQREAD_CACHE_SIZE & (SEQREAD_CACHE_SIZE - 1)) == 0,
               "SEQREAD_CACHE_SIZE must be a power of two from 32 to 1024");

/// Address of a buffer in WRAM.
typedef uintptr_t seqreader_buffer_t;

typedef struct {
  seqreader_buffer_t wram_cache;
  uintptr_t mram_addr;  // MRAM address of the buffer's first byte, a multiple of SEQREAD_CACHE_SIZE
} seqreader_t;

#define __SEQREAD_FCT(suffix) __CONCAT(__CONCAT(seqread, SEQREAD_CACHE_SIZE), suffix)
#define __SEQREAD_ALLOC __SEQREAD_FCT(_alloc)
#define __SEQREAD_INIT __SEQREAD_FCT(_init)
#define __SEQREAD_GET __SEQREAD_FCT(_get)
#define __SEQREAD_TELL __SEQREAD_FCT(_tell)
#define __SEQREAD_SEEK __SEQREAD_FCT(_seek)

/// Allocates a buffer on the WRAM heap, for one reader at a time. The PE is in fault if the heap is
/// full.
seqreader_buffer_t __SEQREAD_ALLOC(void);

/// Starts to read at mram_addr, which may have any alignment. Returns the WRAM address of the item
/// at mram_addr.
void *__SEQREAD_INIT(seqreader_buffer_t cache, __mram_ptr void *mram_addr, seqreader_t *reader);

/// Returns the address in WRAM of the item inc bytes after the item at ptr. Refills the buffer if
/// necessary. Differs from the SDK: inc may exceed SEQREAD_CACHE_SIZE.
void *__SEQREAD_GET(void *ptr, uint32_t inc, seqreader_t *reader);

/// Moves the reader to any MRAM address. Reads MRAM only if the first half of the buffer does not
/// hold the byte at this address.
void *__SEQREAD_SEEK(__mram_ptr void *mram_addr, seqreader_t *reader);

/// Returns the address in MRAM of the item at ptr.
__mram_ptr void *__SEQREAD_TELL(void *ptr, seqreader_t *reader);

#define seqread_alloc __SEQREAD_ALLOC
#define seqread_init(cache, mram_addr, reader) __SEQREAD_INIT(cache, mram_addr, reader)
#define seqread_get(ptr, inc, reader) __SEQREAD_GET(ptr, inc, reader)
#define seqread_seek(mram_addr, reader) __SEQREAD_SEEK(mram_addr, reader)
#define seqread_tell(ptr, reader) __SEQREAD_TELL(ptr, reader)

#endif  // PE_SEQREAD_H
