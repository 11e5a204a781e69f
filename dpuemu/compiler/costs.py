"""List the costs of gcc's x86-64 instructions on a DPU, for counting.py.

Costs count DPU instructions, which are issue slots of a tasklet. A DPU is a 32-bit machine with
three-operand instructions. One instruction compares and jumps, shifts and adds, or loads or stores
1 to 8 bytes at base + offset.
Software routines do the other operations: multiplication (8x8-bit steps), division, 64-bit
multiplication and division, floating point.
"""

# The clock in MHz, and the throughput in 10^6 operations per second that PrIM (arXiv:2105.03814)
# measured on one DPU with 11 tasklets or more, where one instruction issues per cycle. No figure is
# checked against its text.
# An iteration of its loop has 5 instructions of overhead (address, load, store, index,
# compare-and-jump), and 6 with 64-bit elements. So the operation itself takes 350 / throughput -
# overhead instructions.
CLOCK_MHZ = 350
LOOP_OVERHEAD = {32: 5, 64: 6}
MEASURED_MOPS = {
    "int32_mul": (10.27, 32),
    "int32_div": (11.27, 32),
    "int64_mul": (2.56, 64),
    "int64_div": (1.40, 64),
    "float_add": (4.91, 32),
    "float_sub": (4.59, 32),
    "float_mul": (1.91, 32),
    "float_div": (0.34, 32),
    "double_add": (3.32, 64),
    "double_sub": (3.11, 64),
    "double_mul": (0.53, 64),
    "double_div": (0.16, 64),
}

# Software routine -> instructions of one run. The rows without a measurement are estimates. A
# comparison unpacks and orders two words, which is about a third of an addition. An integer becomes
# a float by counting leading zeros, shifting and rounding, which is the second half of an addition.
# A narrowing conversion rounds, a widening conversion only moves bits. A minimum is
# a comparison and a choice. A square root yields one bit per step, like a division.
ROUTINE_RUN = {
    name: CLOCK_MHZ / mops - LOOP_OVERHEAD[bits] for name, (mops, bits) in MEASURED_MOPS.items()
} | {
    "float_compare": 22,
    "double_compare": 30,
    "int32_to_float": 30,
    "int32_to_double": 25,
    "int64_to_float": 50,
    "int64_to_double": 50,
    "float_to_int32": 20,
    "double_to_int32": 25,
    "float_to_int64": 35,
    "double_to_int64": 40,
    "float_to_double": 20,
    "double_to_float": 35,
    "float_sqrt": 1000,
    "double_sqrt": 2100,
}

# The routines of the SDK for 32-bit integers end early: a multiplication takes a step per bit of
# the smaller factor, a division a step per bit of the quotient. Instructions of one run without its
# steps, which are counted at run time.
# Source: our reading of the routines; a call, a comparison, moves and a return.
MULTIPLICATION_WITHOUT_STEPS = 7
DIVISION_WITHOUT_STEPS = 8
SIGNED_DIVISION_WITHOUT_STEPS = 16

# Calls that are one instruction on a DPU, so the call itself costs nothing.
INLINED_CALLS = {"mutex_lock", "mutex_trylock", "mutex_unlock", "mram_read", "mram_write"}

# Software routine -> its instructions in IRAM, once per program. The estimates assume 32 unrolled
# steps in the 32-bit routines, and loops in all other routines.
ROUTINE_SIZE = {
    "int32_mul": 40,
    "int32_div": 45,
    "int64_mul": 80,
    "int64_div": 200,
    "float_add": 150,
    "float_sub": 10,  # this routine shares the instructions of the addition
    "float_mul": 130,
    "float_div": 150,
    "double_add": 220,
    "double_sub": 10,
    "double_mul": 250,
    "double_div": 250,
    "float_compare": 40,
    "double_compare": 50,
    "int32_to_float": 40,
    "int32_to_double": 35,
    "int64_to_float": 60,
    "int64_to_double": 60,
    "float_to_int32": 30,
    "double_to_int32": 35,
    "float_to_int64": 45,
    "double_to_int64": 50,
    "float_to_double": 30,
    "double_to_float": 50,
    "float_sqrt": 150,
    "double_sqrt": 250,
}

# Instructions to call a software routine: the call and the move of an argument.
ROUTINE_CALL = 2

# An access directly to MRAM, through %gs: DMA of 8 bytes and the instructions around them, in
# instructions of a tasklet alone. More tasklets share the DMA engine, which this cost neglects.
# Source: launches of loops of x[i] += 1 on DIMMs (oscarferraz/MLP_UPMEM): 1,026 cycles per float in
# MRAM and 791 in WRAM, so a load and a store take 21.4 * 11 cycles longer.
MRAM_ACCESS_RUN = 11
MRAM_ACCESS_SIZE = 6

# One iteration of a string instruction: load or store, address, compare-and-jump. An x86 address
# scale counts the iterations, so the value must be 1, 2, 4 or 8.
STRING_TURN = 4
# Estimated iterations of a string instruction that ends at a difference or a match.
STRING_SEARCH_TURNS = 8

# An address base + index needs a separate addition, once per basic block.
INDEXED_ADDRESS = 1

# Mnemonics without their operand size -> instructions at 32 bits, at 64 bits, without loads and
# stores of operands.
INTEGER = {
    "add": (1, 2),
    "sub": (1, 2),
    "adc": (1, 2),
    "sbb": (1, 2),
    "and": (1, 2),
    "or": (1, 2),
    "xor": (1, 2),
    "not": (1, 2),  # or nothing: COMPLEMENTED
    "neg": (1, 2),
    "inc": (1, 2),
    "dec": (1, 2),
    # A comparison is part of the jump that uses it. The upper halves take one more instruction.
    "cmp": (0, 1),
    "test": (0, 1),
    # 64-bit shifts: two shifts and the crossing bits.
    "shl": (1, 3),
    "sal": (1, 3),
    "shr": (1, 3),
    "sar": (1, 3),
    "rol": (1, 4),
    "ror": (1, 4),
    "shld": (3, 6),
    "shrd": (3, 6),
    "bt": (2, 4),
    "bts": (2, 4),
    "btr": (2, 4),
    "btc": (2, 4),
    "bsr": (1, 4),
    "bsf": (3, 6),
    "tzcnt": (3, 6),
    "lzcnt": (1, 4),
    "popcnt": (1, 3),
    "bswap": (5, 10),
    "xchg": (2, 2),
    "push": (0.5, 0.5),  # a DPU stores registers in pairs
    "pop": (0.5, 0.5),
    "cmpxchg": (3, 5),
    "xadd": (1, 2),
}
# Source of the operations on 64 bits: the code that upmem/llvm-project emits
# (llvm/lib/Target/DPU/DPUTargetLowering.cpp). A rotation by a constant is lslx and lsl_add for each
# word, by 32 it is swapd. A variable amount needs lslx with a jump, lsl and or, and the other word.
VARIABLE_SHIFT_64 = 4
VARIABLE_ROTATION_64 = 6
ROTATION_64_BY_32 = 1
# The logic whose operand or result the same instruction complements: andn, nand, orn, nor, nxor (in
# the instruction table of the same compiler).
COMPLEMENTED = ("and", "or", "xor")

# Moves. A DPU's three-operand code does not need all copies of gcc's two-operand code, but it must
# move arguments, so half of the copies count.
REGISTER_MOVE = 0.5
CONSTANT_MOVE = 1
EXTEND_REGISTER = 1  # movzbl %al, %eax; an extending load costs the same as a load
LOAD = 1  # a store costs the same
SET_CONDITION = 1  # 2 with the extension or the zeroing that gcc adds
CONDITIONAL_MOVE = 2
LEA = 1
LEA_THREE_PARTS = 2

# Mnemonics without an operand size.
FIXED = {
    "ret": 1,
    "call": 1,
    "jmp": 1,
    "cltq": 1,
    "cwtl": 1,
    "cbtw": 1,
    "cltd": 0,  # this is part of the division
    "cqto": 0,
    "cwtd": 0,
    "leave": 1,
    "nop": 0,
    "nopw": 0,
    "nopl": 0,
    "endbr64": 0,
    "ud2": 1,
    "pause": 1,
    "mfence": 0,
    "lfence": 0,
    "sfence": 0,
    "cld": 0,
    "std": 0,
    "hlt": 1,
    "int3": 1,
}
CONDITIONAL_JUMP = 1
# An iteration of a loop of unknown length (loops.py) takes this many instructions more than gcc
# emits. Empirical: fitted to PrIM's RED, VA, HST-S and GEMV (tools/fit_pe_time.py,
# 2026-11-26). In GEMV the SDK's compiler reloads 3 values per iteration; the others are
# unexplained.
UNKNOWN_LENGTH = 3

# Multiplication and division by operand size. A product of bytes takes one instruction and a move.
MULTIPLY = {"b": (2, None), "w": (0, "int32_mul"), "l": (0, "int32_mul"), "q": (0, "int64_mul")}
DIVIDE = {
    "b": (0, "int32_div"),
    "w": (0, "int32_div"),
    "l": (0, "int32_div"),
    "q": (0, "int64_div"),
}
# Factors that an instruction has just extended from 8 or 16 bits need no routine. The SDK's
# compiler emits mul_sl_sl and similar for bytes. For 16 bits it emits mul_ul_ul, which ends if both
# factors are bytes, and six more instructions (decoded from programs, as in compiler.py).
NARROW_PRODUCT = {8: 1, 16: 7}
# A factor that the code before a product has not just loaded or computed stays in its register, so
# the SDK's compiler moves it to the register of the routine's argument (decoded from programs).
ARGUMENT_MOVE = 1
# A constant factor with at most this many signed binary digits takes one shift-and-add per digit.
SHIFT_AND_ADD_DIGITS = 2

# Scalar SSE: mnemonic -> routine.
FLOATING = {
    "addss": "float_add",
    "subss": "float_sub",
    "mulss": "float_mul",
    "divss": "float_div",
    "addsd": "double_add",
    "subsd": "double_sub",
    "mulsd": "double_mul",
    "divsd": "double_div",
    "ucomiss": "float_compare",
    "comiss": "float_compare",
    "ucomisd": "double_compare",
    "comisd": "double_compare",
    "minss": "float_compare",
    "maxss": "float_compare",
    "minsd": "double_compare",
    "maxsd": "double_compare",
    "cmpss": "float_compare",
    "cmpsd": "double_compare",
    "cvtsi2ss": "int32_to_float",
    "cvtsi2ssl": "int32_to_float",
    "cvtsi2ssq": "int64_to_float",
    "cvtsi2sd": "int32_to_double",
    "cvtsi2sdl": "int32_to_double",
    "cvtsi2sdq": "int64_to_double",
    "cvttss2si": "float_to_int32",
    "cvttss2sil": "float_to_int32",
    "cvttss2siq": "float_to_int64",
    "cvtss2si": "float_to_int32",
    "cvtss2siq": "float_to_int64",
    "cvttsd2si": "double_to_int32",
    "cvttsd2sil": "double_to_int32",
    "cvttsd2siq": "double_to_int64",
    "cvtsd2si": "double_to_int32",
    "cvtsd2siq": "double_to_int64",
    "cvtss2sd": "float_to_double",
    "cvtps2pd": "float_to_double",
    "cvtsd2ss": "double_to_float",
    "cvtpd2ps": "double_to_float",
    "sqrtss": "float_sqrt",
    "sqrtsd": "double_sqrt",
}
# Comparison predicates that gas writes into the mnemonic (cmpltss).
FLOATING_COMPARE_SUFFIX = {"ss": "float_compare", "sd": "double_compare"}

# Packed floating point (rare, since vectorisation is off): suffix -> lanes, scalar suffix.
PACKED_FLOATING = {"ps": (4, "ss"), "pd": (2, "sd")}

# SSE moves: mnemonic -> 8-byte loads or stores of a memory operand. Moves between registers are
# free: a DPU has one register file.
SSE_MOVE = {
    "movss": 1,
    "movsd": 1,
    "movd": 1,
    "movq": 1,
    "movlps": 1,
    "movhps": 1,
    "movlpd": 1,
    "movhpd": 1,
    "movaps": 2,
    "movups": 2,
    "movapd": 2,
    "movupd": 2,
    "movdqa": 2,
    "movdqu": 2,
    "movntdq": 2,
    "movddup": 1,
    "movhlps": 1,
    "movlhps": 1,
}

# SSE operations that only arrange registers for other SSE operations; a DPU does not need them.
SSE_FREE = {
    "pxor",
    "xorps",
    "xorpd",
    "unpcklps",
    "unpcklpd",
    "unpckhps",
    "unpckhpd",
    "punpcklqdq",
    "punpckldq",
    "punpckhqdq",
    "shufps",
    "shufpd",
    "pshufd",
}

# Any other SSE operation on 16 bytes: four words.
SSE_OTHER = 4

# An instruction that no row names.
UNKNOWN = 1
