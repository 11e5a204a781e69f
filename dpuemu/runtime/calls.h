/// calls.h: the calls by which a PE program enters the emulator. C++, C and the assembler include
/// this header.
///
/// Each call has a row X(number, name); the numbers of the rows ascend from 0. The PE program calls
/// `name` as an ordinary function. The body of this function (runtime/gate.S) enters the emulator,
/// which executes the call at the tasklet's modelled time and resumes the tasklet with the result.
/// The arguments of a call are 32-bit words in registers edi, esi, edx, ecx; the result is in
/// register rax.
#ifndef DPUEMU_PE_CALLS_H
#define DPUEMU_PE_CALLS_H

#define PE_CALL_TABLE(X)    \
  X(0, __pe_exit)           \
  X(1, __pe_fault)          \
  X(2, mram_read)           \
  X(3, mram_write)          \
  X(4, barrier_wait)        \
  X(5, mutex_lock)          \
  X(6, mutex_trylock)       \
  X(7, mutex_unlock)        \
  X(8, sem_take)            \
  X(9, sem_give)            \
  X(10, handshake_notify)   \
  X(11, handshake_wait_for) \
  X(12, vmutex_lock)        \
  X(13, vmutex_unlock)      \
  X(14, perfcounter_config) \
  X(15, perfcounter_get)    \
  X(16, __pe_print_format)  \
  X(17, __pe_print_bytes)   \
  X(18, __pe_turn)          \
  X(19, __pe_read_counters) \
  X(20, __pe_await_host)    \
  X(21, __pe_ldma)          \
  X(22, __pe_sdma)          \
  X(23, __pe_use_run)       \
  X(24, __pe_stop)          \
  X(25, __pe_region)

/// The second argument of __pe_use_run: the instruction that uses a bit of the RUN register.
#define PE_READ_RUN 0
#define PE_RESUME 1
#define PE_CLR_RUN 2

/// The second argument of __pe_region, whose first one is a string in section .pe_strings or NULL.
#define PE_REGION_END 0
#define PE_REGION_BEGIN 1

/// Reasons that a PE program passes to __pe_fault.
#define PE_FAULT_TABLE(X)                                                          \
  X(1, HEAP_FULL, "the WRAM heap is full")                                         \
  X(2, ASSERT_FAILED, "an assertion failed")                                       \
  X(3, HALT, "the program halted")                                                 \
  X(4, BUDDY_NOT_READY, "buddy_alloc was called before buddy_init")                \
  X(5, ABORT, "the program called abort")                                          \
  X(6, MRAM_UNALIGNED,                                                             \
    "the two addresses of mram_write_unaligned differ in their lowest three bits") \
  X(7, FAULT_INSTRUCTION, "the program executed the instruction fault")            \
  X(8, ASSEMBLY, "the program reached DPU assembly that is not supported")

/// The program file: an ELF32 x86-64 executable at the link addresses below, with its relocations
/// (--emit-relocs). For each PE, the loader moves text and WRAM to addresses below 2 GiB that only
/// this PE uses. MRAM addresses in the program begin at 0, as the SDK's linker makes them, but the
/// file's symbols keep PE_MRAM_ORIGIN. Accesses past the end of WRAM fault in a gap between WRAM
/// and the mutexes.
#define PE_WRAM_ORIGIN 0x00000000
#define PE_WRAM_BYTES 0x10000
#define PE_ATOMIC_ORIGIN 0x0001F000
#define PE_ATOMIC_BYTES 256
#define PE_MRAM_ORIGIN 0x08000000
#define PE_MRAM_BYTES 0x04000000
#define PE_TEXT_ORIGIN 0x40000000
#define PE_TEXT_BYTES 0x20000
/// The counters of a program that is compiled for `dpuemu profile` (compiler/profiling.py). They
/// follow the largest text, and move with it.
#define PE_COUNTERS_ORIGIN 0x40020000
#define PE_COUNTERS_BYTES 0x8000

/// The size in bytes of the block that holds a tasklet's stack. The block is aligned to its size.
/// Its last words hold, from the end, the tasklet's number, the address at which its frames start,
/// and the WRAM address of the stack of its functions in assembly (src/base/door.h).
#define PE_STACK_BLOCK_BYTES 0x10000

#define PE_MAX_TASKLETS 24

/// The chips, and their limits: X(name, chip number of the host API, clock in MHz, tasklets, bytes
/// of WRAM, instructions in IRAM, mutexes). No chip exceeds PE_MAX_TASKLETS, PE_WRAM_BYTES and
/// PE_ATOMIC_BYTES. v1A and v1B: the vendor's manual of the SDK 2025.1, "DPU chip characteristics".
/// generic, the default: a v1A with all the mutexes that the SDK's linker accepts, and with the
/// performance counters of v1B.
#define PE_CHIP_TABLE(X)                   \
  X(generic, 4, 350, 24, 65536, 4096, 256) \
  X(v1A, 4, 350, 24, 65536, 4096, 56)      \
  X(v1B, 68, 400, 16, 63488, 3968, 64)

/// The calls of a program that is compiled for `dpuemu check`: X(number, name). gcc adds the first
/// ones: before each access of 1, 2, 4, 8 or 16 bytes, with its address in edi; before an access of
/// esi bytes; at the begin and the end of a function. __cyg_profile_func_... is the same for
/// functions of the runtime. __pe_check_memory(address, bytes, state) reports what an allocator has
/// done, and
/// __pe_check_copy(to, from, bytes) that memcpy copies bytes.
#define PE_CHECK_TABLE(X)         \
  X(0, __tsan_read1)              \
  X(1, __tsan_read2)              \
  X(2, __tsan_read4)              \
  X(3, __tsan_read8)              \
  X(4, __tsan_read16)             \
  X(5, __tsan_write1)             \
  X(6, __tsan_write2)             \
  X(7, __tsan_write4)             \
  X(8, __tsan_write8)             \
  X(9, __tsan_write16)            \
  X(10, __tsan_volatile_read1)    \
  X(11, __tsan_volatile_read2)    \
  X(12, __tsan_volatile_read4)    \
  X(13, __tsan_volatile_read8)    \
  X(14, __tsan_volatile_read16)   \
  X(15, __tsan_volatile_write1)   \
  X(16, __tsan_volatile_write2)   \
  X(17, __tsan_volatile_write4)   \
  X(18, __tsan_volatile_write8)   \
  X(19, __tsan_volatile_write16)  \
  X(20, __tsan_read_range)        \
  X(21, __tsan_write_range)       \
  X(22, __tsan_func_entry)        \
  X(23, __tsan_func_exit)         \
  X(24, __cyg_profile_func_enter) \
  X(25, __cyg_profile_func_exit)  \
  X(26, __pe_check_memory)        \
  X(27, __pe_check_copy)

/// Other names of these calls: X(number, name, other name).
#define PE_CHECK_ALIASES(X)                                         \
  X(1, __tsan_read2, __tsan_unaligned_read2)                        \
  X(2, __tsan_read4, __tsan_unaligned_read4)                        \
  X(3, __tsan_read8, __tsan_unaligned_read8)                        \
  X(4, __tsan_read16, __tsan_unaligned_read16)                      \
  X(6, __tsan_write2, __tsan_unaligned_write2)                      \
  X(7, __tsan_write4, __tsan_unaligned_write4)                      \
  X(8, __tsan_write8, __tsan_unaligned_write8)                      \
  X(9, __tsan_write16, __tsan_unaligned_write16)                    \
  X(11, __tsan_volatile_read2, __tsan_unaligned_volatile_read2)     \
  X(12, __tsan_volatile_read4, __tsan_unaligned_volatile_read4)     \
  X(13, __tsan_volatile_read8, __tsan_unaligned_volatile_read8)     \
  X(14, __tsan_volatile_read16, __tsan_unaligned_volatile_read16)   \
  X(16, __tsan_volatile_write2, __tsan_unaligned_volatile_write2)   \
  X(17, __tsan_volatile_write4, __tsan_unaligned_volatile_write4)   \
  X(18, __tsan_volatile_write8, __tsan_unaligned_volatile_write8)   \
  X(19, __tsan_volatile_write16, __tsan_unaligned_volatile_write16) \
  X(2, __tsan_read4, __tsan_vptr_read)                              \
  X(7, __tsan_write4, __tsan_vptr_update)

/// The states of __pe_check_memory: allocated by mem_alloc; the complete heap is free; allocated or
/// freed by buddy_alloc or fsb_get; memory of an allocator itself.
#define PE_CHECK_ALLOCATED 0
#define PE_CHECK_RESET 1
#define PE_CHECK_TAKEN 2
#define PE_CHECK_FREED 3
#define PE_CHECK_INTERNAL 4

/// The emulator estimates the number of instructions of a program to within a factor of about 1.5,
/// so it accepts programs whose estimate is at most this percentage of the instructions that fit
/// into IRAM.
#define PE_ESTIMATE_PERCENT 150

#endif  // DPUEMU_PE_CALLS_H
