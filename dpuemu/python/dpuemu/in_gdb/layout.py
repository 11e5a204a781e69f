"""Constants and layouts of the emulator, which debug.py, `in_gdb` and their tests share.

This module imports nothing, so that Python with and without GDB can import it.
"""

from __future__ import annotations

CHIPS = BANKS = WORD = 8
PES = CHIPS * BANKS  # of a rank
RANKS = 40
MRAM_BYTES, WRAM_BYTES, PAGE = 64 << 20, 64 << 10, 4096
MRAM_WINDOWS = (0, 0x8000000)  # where programs and symbols have MRAM (runtime/calls.h)
RUN_BYTES = 8 << 10  # of MRAM whose lines lie at LINE_STRIDE (src/base/address_map.h)
LINE_STRIDE = 128
STACK_BLOCK, MUTEXES = 0x10000, 0x1F000  # runtime/calls.h
RUNTIME = "dpuemu/runtime/"  # begins the names of its source files (compiler/compiler.py)
TASKLETS = 24
REGISTERS = 24  # of a tasklet of machine code
CODE = 0x80000000  # the address of the first instruction of machine code
FLAT = 0x4D52414D << 32  # where core files have the MRAM of PE 0, without interleaving
SIZES = {"b": 1, "h": 2, "w": 4, "g": 8}

# The states of src/pe/run.h and src/pe/code_run.h.
READY, COMPUTES, DMA, WAITS, ENDED = "ready", "computes", "waits for DMA", "waits ", "ended"
STATES = [READY, COMPUTES, DMA, WAITS, ENDED]
CODE_STATES = ["stopped", COMPUTES, DMA, WAITS]
AWAITED = ["at the barrier {}", "for the mutex {}", "for a bit of the vmutex {}"]
AWAITED += ["for the semaphore {}", "for a handshake_wait_for on tasklet {}"]
AWAITED += ["for a handshake_notify by tasklet {}", "for another tasklet to resume it"]

# src/base/door.h: in the order of memory, after a call and after a signal.
AT_CALL = "r15 r14 r13 r12 rbp rbx rip"
INTERRUPTED = "r8 r9 r10 r11 r12 r13 r14 r15 rdi rsi rbp rbx rdx rax rcx rip cs eflags rsp"
FLOATING_POINT_BYTES = 512
ENTRY = "__pe_start"  # where tasklets begin

# The members of DebuggedRun, in order.
RUN = (
    "next wram text is_code tasklets tasklet_bytes woken state awaited registers pc"
    " wait_kind interrupted wait_key stack stack_end mutex_holders copy copy_pages has_copy"
)
