/// attributes.h: attributes that set the memory, section and alignment of a PE program's objects.
///
/// Differs from the SDK: __mram_ptr is the address space of a segment register, which gcc supports
/// only in its GNU dialects of C. In C++, __mram_ptr has no effect, so programs reach MRAM only by
/// DMA.
#ifndef PE_ATTRIBUTES_H
#define PE_ATTRIBUTES_H

#define DEPRECATED __attribute__((deprecated))
#define __NO_RETURN __attribute__((noreturn))

#define __weak __attribute__((weak))
#define __section(s) __attribute__((section(s)))
#define __aligned(a) __attribute__((aligned(a)))
#define __used __attribute__((used))
#define __noinline __attribute__((noinline))

/// Places a mutex, which is one byte. The chip limits their number (docs/manual.md).
#define __atomic_bit __section(".atomic")

/// The alignment that mram_read and mram_write require of the MRAM address and the WRAM address.
#define __dma_aligned __aligned(8)

/// Mark WRAM objects that the linker keeps even if the program does not use them. The host finds
/// __host objects by name.
#define __keep __used __section(".data.__sys_keep")
#define __host __aligned(8) __used __section(".dpu_host")

/// On hardware, places an object at a low address that fits into the immediate of a load
/// instruction. In the emulator, only sets the section name.
#define __lower_data(name) __attribute__((used, section(".data.immediate_memory." name)))

/// Marks a pointer to MRAM: the value of the pointer is the byte offset in MRAM. (The host sees
/// symbols at 0x08000000 + this offset; mram_read and mram_write accept both.) A WRAM pointer
/// cannot be converted to an MRAM pointer.
// (After a for loop, gcc takes the bare keyword for a type name.)
#ifdef __cplusplus
#define __mram_ptr
#else
#define __mram_ptr __attribute__(()) __seg_gs
#endif

/// Keeps the order of declarations, from which mram_order.py makes the order of the SDK's compiler;
/// gcc would reverse the order.
#define __in_order __attribute__((no_reorder))

/// Mark MRAM objects. Only __mram and __mram_keep objects can have initial values; when a program
/// is loaded, all other MRAM objects keep the bytes that are in MRAM.
#define __mram __mram_ptr __section(".mram") __dma_aligned __used __in_order
#define __mram_noinit __mram_ptr __section(".mram.noinit") __dma_aligned __used __in_order
#define __mram_keep __mram_ptr __section(".mram.keep") __dma_aligned __used __in_order
#define __mram_noinit_keep __mram_ptr __section(".mram.noinit.keep") __dma_aligned __used __in_order

#endif  // PE_ATTRIBUTES_H
