"""What the instructions of a DPU do, for the tests of the emulator.

The definition uses nothing of the emulator: it has its own encoder, and it computes with Python's
integers. It agrees with the functional simulator of the UPMEM SDK 2020.3.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Literal

MASK = 0xFFFFFFFF
GENERAL_REGISTERS = 24
ZERO, ONE, LNEG, MNEG, ID, ID2, ID4, ID8 = range(24, 32)

ARITHMETIC = {"add": 0, "addc": 1, "rsub": 2, "rsubc": 3, "sub": 4, "subc": 5}
WIDE = {"add": 0, "addc": 1, "rsub": 2, "rsubc": 3, "xor": 4, "and": 5, "or": 6}
WIDE_PAIR = {"add": 0, "and": 1, "or": 2}
LOGIC = {
    "xor": 8, "nxor": 9, "and": 10, "or": 11, "andn": 12, "orn": 13, "nor": 14, "nand": 15
}  # fmt: skip
SHIFTS = {
    "rol": 2, "lsl": 4, "lslx": 5, "lsl1": 6, "lsl1x": 7, "asr": 8, "ror": 10, "lsr": 12,
    "lsrx": 13, "lsr1": 14, "lsr1x": 15
}  # fmt: skip
UNARY = {
    "cao": 0, "clo": 1, "cls": 2, "clz": 3, "extub": 4, "extsb": 5, "extuh": 6, "extsh": 7
}  # fmt: skip
SHIFT_ADDS = {"rol_add": 0, "lsr_add": 1, "lsl_add": 2, "lsl_sub": 3}
PRODUCTS = {
    "mul_ul_ul": 0, "mul_ul_uh": 1, "mul_uh_ul": 2, "mul_uh_uh": 3, "mul_sl_sl": 4, "mul_sl_sh": 5,
    "mul_sh_sl": 6, "mul_sh_sh": 7, "mul_sl_ul": 8, "mul_sl_uh": 9, "mul_sh_ul": 10,
    "mul_sh_uh": 11
}  # fmt: skip
STEPS = {"mul_step": 2, "div_step": 3}
PAIR_MOVES = {"movd": 2, "swapd": 10}
LOADS = {"lbu": 0, "lbs": 1, "lhu": 2, "lhs": 3, "lw": 4, "ld": 6}
STORES = {"sb": 0, "sh": 1, "sw": 2, "sd": 3, "sb_id": 0, "sh_id": 1, "sw_id": 2, "sd_id": 3}
SIZES = {"b": 1, "h": 2, "w": 4, "d": 8}  # of a load or store, by its second letter

# The conditions of jumps by their codes, and those of instructions that write 0 or 1.
BASIC = {1: "true", 2: "z", 3: "nz", 4: "xz", 5: "xnz", 12: "sz", 13: "snz", 14: "spl", 15: "smi"}
SIGN = {8: "pl", 9: "mi"}
ADD = {18: "ov", 19: "nov", 20: "c", 21: "nc", **{bit + 17: f"nc{bit}" for bit in range(5, 15)}}
ORDER = {
    18: "ov", 19: "nov", 20: "ltu", 21: "geu", 22: "lts", 23: "ges", 24: "les", 25: "gts",
    26: "leu", 27: "gtu", 28: "xles", 29: "xgts", 30: "xleu", 31: "xgtu"
}  # fmt: skip
PARITY = {24: "e", 25: "o", 30: "se", 31: "so"}
SOURCE = {1: "true", 12: "sz", 13: "snz", 14: "spl", 15: "smi"}
SET = {6: "z", 7: "nz", 10: "xz", 11: "xnz"}
NOT_OF_ZERO = SOURCE | SIGN | ORDER
SUB_SET = SET | {code + 32: name for code, name in NOT_OF_ZERO.items()}


@dataclasses.dataclass(frozen=True)
class Instruction:
    """An instruction. Unused fields do not matter."""

    name: str
    to: str = "z"  # r: register, s and u: pair with signs or zeros above, p: pair, z: nowhere
    c: int = 0  # register, or even register of a pair
    a: int = ZERO
    b: int | None = None  # register or even register of a pair; None: `immediate` or `shift`
    immediate: int = 0
    shift: int = 0
    code: int = 0  # of the condition; 0: none
    target: int = 0
    offset: int = 0
    is_big_endian: bool = False
    is_wide: bool = False  # the immediate has 32 bits

    @property
    def bytes(self) -> int:
        """The size of a load or store."""
        return SIZES[self.name[1]]


@dataclasses.dataclass(frozen=True)
class State:
    """The state of a tasklet."""

    registers: tuple[int, ...]
    zero: int
    carry: int
    pc: int
    wram: bytes
    tasklet: int = 0

    def register(self, number: int) -> int:
        """Return the value of a register, general or fixed."""
        fixed = (0, 1, MASK, 0x80000000, *(self.tasklet << shift for shift in range(4)))
        return (*self.registers, *fixed)[number]


@dataclasses.dataclass(frozen=True)
class Fault:
    """A load or store at an address that it may not use."""

    address: int
    bytes: int


def signed(value: int, bits: int = 32) -> int:
    """Return the lowest bits as a signed number."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def conditions_of(instruction: Instruction) -> tuple[Mapping[int, str], Mapping[int, str]]:
    """Return the conditions of jumps and of instructions that write 0 or 1, by their codes."""
    name, has_immediate = instruction.name, instruction.b is None
    if instruction.is_wide:
        return {}, {}
    if name in ("add", "addc"):
        return BASIC | SIGN | ADD, SET
    if name in ARITHMETIC:
        return BASIC | SIGN | ORDER, SUB_SET if name in ("sub", "subc") else SET
    if name in SHIFTS:
        sizes = {} if has_immediate else {28: "nsh32", 29: "sh32"}
        return BASIC | SIGN | PARITY | sizes, SET
    if name in ("cao", "clo", "cls", "clz"):
        return BASIC | {8: "max", 9: "nmax"}, SET
    if name in LOGIC or name in UNARY or name in ("sats", "cmpb4"):
        return BASIC | SIGN, SET
    if name in PRODUCTS:
        return BASIC | {30: "small", 31: "large"}, SET
    if name in SHIFT_ADDS or name == "div_step":
        return SOURCE, {}
    if name == "mul_step":
        return BASIC, {}
    return ({1: "true"}, {}) if name in PAIR_MOVES else ({}, {})


def immediate_bits(instruction: Instruction) -> int:
    """Return the number of bits of the immediate of an arithmetic or logic instruction."""
    if instruction.is_wide:
        return 32
    is_logic, jumps = instruction.name in LOGIC, instruction.code in conditions_of(instruction)[0]
    if instruction.to == "z":
        return (11 if jumps else 27) + is_logic
    return 8 if jumps else 24


def _low_bits(number: int) -> int:
    """Place the lowest 24 bits of an immediate or an offset."""
    reversed_bits = sum((number >> (8 + bit) & 1) << (15 - bit) for bit in range(4))
    return _byte(number) | reversed_bits | number >> 12 & 0xFFF


def _byte(number: int) -> int:
    return (number & 15) << 20 | (number >> 4 & 15) << 16


def _b(number: int) -> int:
    return (number >> 3) << 32 | (number & 7) << 17


def _arithmetic_head(to: str, c: int, high: int) -> int:
    if to == "r":
        return (c >> 3) << 44 | 3 << 42 | (c & 7) << 39
    if to == "z":
        return 3 << 44 | 3 << 42 | (high & 7) << 39
    return 1 << 46 | (c >> 3) << 44 | 3 << 42 | (c >> 1 & 3) << 40 | (to == "s") << 39


def _logic_head(to: str, c: int, high: int) -> int:
    if to in "rp":
        return 8 << 44 | c << 39
    if to == "z":
        return 8 << 44 | (high >> 3 & 1) << 44 | 3 << 42 | (high & 7) << 39
    return 9 << 44 | (c >> 1) << 40 | (to == "s") << 39


def _encode_wide(it: Instruction) -> int:
    """Encode an immediate of 32 bits."""
    number, pair = it.immediate, (it.c >> 1) << 40 | (it.to == "s") << 39
    unsplit = it.a << 34 | 3 << 32 | (number >> 24 & 0xFF) << 24 | _low_bits(number)
    if it.to == "r":
        return WIDE[it.name] << 44 | it.c << 39 | unsplit
    if it.a >= ZERO:
        return 5 << 44 | pair | unsplit
    low = _low_bits(number) & ~0xF0000
    split = (number >> 4 & 7) << 34 | (number >> 24 & 0xFF) << 24 | low | _b(it.a)
    if it.to == "z":
        return 12 << 43 | WIDE[it.name] << 40 | (number >> 7 & 1) << 39 | 3 << 37 | split
    return WIDE_PAIR[it.name] << 45 | (number >> 7 & 1) << 44 | pair | 3 << 37 | split


def _encode_access(it: Instruction) -> int:
    """Encode a load or store."""
    word = it.a << 34 | it.is_big_endian << 27
    if it.name in LOADS:
        word |= 7 << 44 | 3 << 32 | LOADS[it.name] << 24 | _low_bits(it.offset)
        if it.to in "rp":
            return word | it.c << 39 | 4 << 28
        return word | (it.c >> 1) << 40 | (it.to == "s") << 39 | 6 << 28
    word |= 0x1F << 42 | STORES[it.name] << 25
    word |= (it.offset >> 4 & 7) << 39 | (it.offset >> 7 & 1) << 24 | (it.offset & 15) << 20
    if it.b is not None:
        return word | _b(it.b) | 4 << 28 | (it.name == "sd") << 16 | _low_bits(it.offset) & 0xFFFF
    word |= 3 << 32 | (6 if it.name.endswith("_id") else 4) << 28 | _low_bits(it.offset) & 0xF000
    return word | (it.immediate & 15) << 16 | it.immediate >> 4 & 0xFFF


def encode(it: Instruction) -> int:
    """Return the word of an instruction."""
    name, code = it.name, it.code
    if name == "nop":
        return 0x7C6300000000
    if name in LOADS or name in STORES:
        return _encode_access(it)
    if it.is_wide:
        return _encode_wide(it)
    jumps = code in conditions_of(it)[0]
    high = it.immediate >> (8 if jumps else 24)
    number = _byte(it.immediate) if jumps else _low_bits(it.immediate)
    word = it.a << 34 | (it.target if jumps else 0)
    if name in ARITHMETIC:
        word |= _arithmetic_head(it.to, it.c, high) | ARITHMETIC[name] << 29 | (code & 31) << 24
        word |= (code > 31) << 30
        return word | (3 << 32 | number if it.b is None else _b(it.b) | 3 << 22)
    if name in PRODUCTS:
        assert it.b is not None
        head = _arithmetic_head(it.to, it.c, 0)
        return word | head | _b(it.b) | code << 24 | PRODUCTS[name] << 20
    word |= _logic_head(it.to, it.c, high)
    amount = (it.shift >> 4) << 28 | (it.shift & 15) << 20
    if it.b is None:
        word |= 3 << 32
        if name in LOGIC:
            return word | LOGIC[name] << 28 | code << 24 | number
        if name in SHIFTS:
            return (
                word | (4 | code >> 4 << 1) << 28 | amount | (code & 15) << 24 | SHIFTS[name] << 16
            )
        if name in UNARY:
            return word | 3 << 28 | code << 24 | UNARY[name] << 20
        if name == "sats":
            return word | 2 << 28 | code << 24
        return word | number  # call
    word |= _b(it.b)
    if name in LOGIC:
        return word | 12 << 28 | code << 24 | LOGIC[name] << 20
    if name in SHIFTS:
        return word | (13 | code >> 4 << 1) << 28 | (code & 15) << 24 | SHIFTS[name] << 20
    if name in SHIFT_ADDS:
        return word | SHIFT_ADDS[name] << 29 | amount | code << 24
    if name == "cmpb4":
        return word | 8 << 28 | code << 24
    if name in STEPS:
        return word | STEPS[name] << 29 | amount | code << 24 | 1 << 16
    if name in PAIR_MOVES:
        return word | PAIR_MOVES[name] << 28 | code << 24 | 1 << 16
    return word | 12 << 28  # call


def _shifted(name: str, value: int, count: int) -> int:
    ones, over = (1 << count) - 1, value << count >> 32
    return {
        "lsl": value << count,
        "lsl1": value << count | ones,
        "lslx": over,
        "lsl1x": over | ~ones,
        "lsr": value >> count,
        "lsr1": value >> count | ones << (32 - count),
        "lsrx": value << 32 >> count,
        "lsr1x": value << 32 >> count | MASK >> count,
        "asr": signed(value) >> count,
        "rol": value << count | over,
        "ror": value >> count | value << (32 - count),
    }[name] & MASK


def _logic(name: str, a: int, b: int) -> int:
    return {
        "xor": a ^ b,
        "nxor": ~(a ^ b),
        "and": a & b,
        "or": a | b,
        "andn": ~a & b,
        "orn": ~a | b,
        "nor": ~(a | b),
        "nand": ~(a & b),
    }[name] & MASK


def _unary(name: str, a: int) -> int:
    bits = f"{a:032b}"
    return {
        "cao": bits.count("1"),
        "clo": len(bits) - len(bits.lstrip("1")),
        "cls": len(bits) - len(bits.lstrip(bits[0])) - 1,
        "clz": len(bits) - len(bits.lstrip("0")),
        "extub": a & 0xFF,
        "extsb": signed(a, 8),
        "extuh": a & 0xFFFF,
        "extsh": signed(a, 16),
    }[name] & MASK


def _product(name: str, a: int, b: int) -> int:
    def half(value: int, kind: str) -> int:
        byte = value >> (8 if kind[1] == "h" else 0) & 0xFF
        return signed(byte, 8) if kind[0] == "s" else byte

    _, left, right = name.split("_")
    return half(a, left) * half(b, right) & MASK


@dataclasses.dataclass
class _Result:
    """The result of an operation, for its condition."""

    a: int
    b: int
    value: int
    carry: int
    zero: int  # the flag before
    is_zero: int
    overflow: int = 0
    most: int = 32  # the largest count

    def holds(self, condition: str) -> bool:
        """Return whether a condition holds. A letter n before a name negates it."""
        negated = {
            "nz": "z", "xnz": "xz", "mi": "pl", "snz": "sz", "smi": "spl", "nov": "ov", "nc": "c",
            "ltu": "geu", "ges": "lts", "gts": "les", "leu": "gtu", "xgts": "xles",
            "xleu": "xgtu", "o": "e", "so": "se", "nsh32": "sh32", "nmax": "max",
            "large": "small"
        }  # fmt: skip
        if condition in negated:
            return not self.holds(negated[condition])
        if condition.startswith("nc"):
            return (self.a ^ self.b ^ self.value) >> int(condition[2:]) & 1 == 0
        return CONDITIONS[condition](self)


CONDITIONS: dict[str, Callable[[_Result], bool]] = {
    "true": lambda r: True,
    "z": lambda r: r.is_zero == 1,
    "xz": lambda r: r.is_zero == 1 == r.zero,
    "pl": lambda r: r.value < 0x80000000,
    "sz": lambda r: r.a == 0,
    "spl": lambda r: r.a < 0x80000000,
    "ov": lambda r: r.overflow == 1,
    "c": lambda r: r.carry == 1,
    "geu": lambda r: r.carry == 1,
    "lts": lambda r: r.value >> 31 != r.overflow,
    "les": lambda r: r.is_zero == 1 or r.value >> 31 != r.overflow,
    "xles": lambda r: r.is_zero == 1 == r.zero or r.value >> 31 != r.overflow,
    "gtu": lambda r: r.carry == 1 and r.is_zero == 0,
    "xgtu": lambda r: r.carry == 1 and not r.is_zero == 1 == r.zero,
    "e": lambda r: r.value % 2 == 0,
    "se": lambda r: r.a % 2 == 0,
    "sh32": lambda r: r.b >> 5 & 1 == 1,
    "max": lambda r: r.value == r.most,
    "small": lambda r: (r.a | r.b) & 0xFF00 == 0,
}


def _compute(it: Instruction, before: State) -> _Result:
    name, a = it.name, before.register(it.a)
    b = it.immediate if it.b is None else before.register(it.b)
    result = _Result(a, b, 0, before.carry, before.zero, 0)
    tested = None
    if name in ARITHMETIC:
        left, right = (b, a) if name.startswith("rsub") else (a, b)
        if name.startswith("add"):
            carry = before.carry if name == "addc" else 0
            total, exact = left + right + carry, signed(left) + signed(right) + carry
            result.carry = total >> 32
        else:
            borrow = 1 - before.carry if name.endswith("c") else 0
            total, exact = left - right - borrow, signed(left) - signed(right) - borrow
            result.carry = int(total >= 0)
        result.value = total & MASK
        result.overflow = int(exact != signed(total))
    elif name in LOGIC:
        result.value = _logic(name, a, b)
    elif name in SHIFTS:
        result.value = _shifted(name, a, it.shift if it.b is None else b & 31)
    elif name in UNARY:
        result.value = _unary(name, a)
        result.most = 31 if name == "cls" else 32
    elif name in SHIFT_ADDS:
        tested = _shifted(name[:3], a, it.shift)
        result.value = (b - tested if name == "lsl_sub" else b + tested) & MASK
    elif name in PRODUCTS:
        result.value = _product(name, a, b)
    elif name == "sats":
        result.value = 0x7FFFFFFF if a >> 31 else 0x80000000
    else:
        assert name == "cmpb4"
        result.value = sum((a >> s & 255 == b >> s & 255) << s for s in (0, 8, 16, 24))
    result.is_zero = int((result.value if tested is None else tested) == 0)
    return result


def _write(registers: list[int], it: Instruction, value: int) -> None:
    if it.to == "r":
        registers[it.c] = value
    elif it.to in "su":
        registers[it.c : it.c + 2] = [MASK if it.to == "s" and value >> 31 else 0, value]


def _access(it: Instruction, before: State) -> State | Fault:
    """Load or store."""
    size = it.bytes
    address = (before.register(it.a) + it.offset) & MASK
    if address % size or address + size > len(before.wram):
        return Fault(address, size)
    order: Literal["big", "little"] = "big" if it.is_big_endian else "little"
    registers, wram = list(before.registers), bytearray(before.wram)
    place = slice(address, address + size)
    if it.name in LOADS:
        value = int.from_bytes(wram[place], order, signed=it.name.endswith("s"))
        if it.name == "ld":
            registers[it.c : it.c + 2] = [value >> 32, value & MASK]
        else:
            _write(registers, it, value & MASK)
    else:
        if it.b is None:
            value = signed(it.immediate, 16)
            value |= before.tasklet if it.name.endswith("_id") else 0
        elif it.name == "sd":
            value = before.register(it.b) << 32 | before.register(it.b + 1)
        else:
            value = before.register(it.b)
        wram[place] = (value & (1 << 8 * size) - 1).to_bytes(size, order)
    return dataclasses.replace(
        before, registers=tuple(registers), wram=bytes(wram), pc=before.pc + 1
    )


def _step(it: Instruction, before: State) -> tuple[list[int], _Result]:
    """Compute one bit of a product or a quotient, or move a pair. Return the registers, and what
    the condition tests.
    """
    assert it.b is not None
    registers, a = list(before.registers), before.register(it.a)
    high, low = before.register(it.b), before.register(it.b + 1)
    result = _Result(a, 0, 0, before.carry, before.zero, before.zero)
    shifted = a << it.shift & MASK
    if it.name == "mul_step":
        # The low register keeps its value if the bit is 0.
        if high & 1:
            registers[it.c + 1] = (low + shifted) & MASK
        registers[it.c] = result.value = high >> 1
        result.is_zero = int(result.value == 0)
    elif it.name == "div_step":
        if low >= shifted:
            registers[it.c + 1] = low - shifted
        registers[it.c] = (high << 1 | (low >= shifted)) & MASK
    else:
        registers[it.c : it.c + 2] = [high, low] if it.name == "movd" else [low, high]
    return registers, result


def execute(it: Instruction, before: State) -> State | Fault:
    """Return the state after an instruction, or the fault that it causes."""
    if it.name in LOADS or it.name in STORES:
        return _access(it, before)
    jumps, sets = conditions_of(it)
    after = dataclasses.replace(before, pc=before.pc + 1)
    if it.name == "nop":
        return after
    registers = list(before.registers)
    if it.name == "call":
        offset = it.immediate if it.b is None else before.register(it.b)
        _write(registers, it, before.pc + 1)
        target = (before.register(it.a) + offset) & MASK
        return dataclasses.replace(before, registers=tuple(registers), pc=target)
    if it.name in STEPS or it.name in PAIR_MOVES:
        registers, result = _step(it, before)
    else:
        result = _compute(it, before)
        is_set = it.code in sets
        _write(registers, it, int(result.holds(sets[it.code])) if is_set else result.value)
    return dataclasses.replace(
        after,
        registers=tuple(registers),
        zero=result.is_zero,
        carry=result.carry,
        pc=it.target if it.code in jumps and result.holds(jumps[it.code]) else before.pc + 1,
    )
