/// memmram_utils.h: macros that round numbers to the DMA alignment.
#ifndef PE_MEMMRAM_UTILS_H
#define PE_MEMMRAM_UTILS_H

/// Round x up to a multiple of mask + 1, of a (both powers of two), or of 8.
#define ALIGN_MASK(x, mask) (((x) + (mask)) & ~(mask))
#define ALIGN(x, a) ALIGN_MASK((x), (a) - 1)
#define DMA_ALIGNMENT 8
#define DMA_OFF_MASK (DMA_ALIGNMENT - 1)
#define DMA_ALIGNED(x) ALIGN(x, DMA_ALIGNMENT)

#define MIN(a, b) ((a) < (b) ? (a) : (b))

#define MRAM_CACHE_SIZE 8  // bytes of the smallest DMA

#endif  // PE_MEMMRAM_UTILS_H
