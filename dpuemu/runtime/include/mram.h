/// mram.h: DMA between MRAM and WRAM.
#ifndef PE_MRAM_H
#define PE_MRAM_H

#include <attributes.h>
#include <dpu_characteristics.h>
#include <stdint.h>

/// The first byte of MRAM after the program's objects, aligned to 8.
extern __mram_ptr __dma_aligned uint8_t __sys_used_mram_end[0];
#define DPU_MRAM_HEAP_POINTER ((__mram_ptr void *)(&__sys_used_mram_end))

/// Copy nb_of_bytes (8 to 2048, a multiple of 8) from MRAM to WRAM, or from WRAM to MRAM. The MRAM
/// address and the WRAM address must be multiples of 8. Differs from the SDK: the emulator checks a
/// constant size at run time, not at compile time.
void mram_read(const __mram_ptr void *from, void *to, unsigned int nb_of_bytes);
void mram_write(const void *from, __mram_ptr void *to, unsigned int nb_of_bytes);

#endif  // PE_MRAM_H
