"""Model the cost of one x86-64 instruction in DPU instructions, for counting.py."""

from __future__ import annotations

import re
from copy import copy
from functools import lru_cache

import costs
from gcc_assembly import register_of, split_instruction
from steps import division_steps, multiplication_steps

_MEMORY = re.compile(r"(%[cdefgs]s:)?([^\s,()$]*)\(([^)]*)\)")
_SIZED = re.compile(r"([a-z0-9]+?)([bwlq]?)$")
_STRING_OPERATION = re.compile(r"(?:stos|movs|lods|scas|cmps)([bwlq])?$")
_POINTER_REGISTERS = {"%rsp", "%esp", "%rbp", "%ebp"}
_EXTENDS = re.compile(r"mov[sz]([bw])[lq]$")
# Instructions that write no register but their last operand.
_PLAIN = ("mov", "add", "sub", "lea", "and", "or", "xor", "sh", "sa", "cmp", "test", "j", "set")
_ENDS_BLOCK = ("jmp", "ret", "call", "hlt", "ud2")


class Cost:
    """Cost of one instruction.

    `run`: instructions executed; `size`: instructions in IRAM; `routine`: the software routine that
    it calls, or None; `indexed`: the address base + index that must be computed, or None; `ends`:
    whether it ends a block; `inlined`:
    whether it is a call that is one instruction on a DPU; `turns`: the address scale that counts
    the iterations of a string instruction; 0 for other instructions; `steps`: assembly that counts
    the steps of a routine.
    """

    __slots__ = (
        "ends",
        "indexed",
        "inlined",
        "mnemonic",
        "operands",
        "routine",
        "run",
        "size",
        "steps",
        "turns",
    )

    def __init__(self, mnemonic: str, operands: list[str]) -> None:
        """Start at zero cost."""
        self.mnemonic = mnemonic
        self.operands = operands
        self.run = 0.0
        self.size = 0.0
        self.routine: str | None = None
        self.indexed: str | None = None
        self.ends = False
        self.turns = 0
        self.inlined = False
        self.steps: list[str] = []

    def add(self, instructions: float) -> None:
        """Add instructions that are executed and stored."""
        self.run += instructions
        self.size += instructions

    def count_steps(self, routine: str, without_steps: int, steps: list[str]) -> None:
        """Replace the routine's mean cost: `steps` is code that counts its steps at run time."""
        self.run += without_steps - costs.ROUTINE_RUN[routine]
        self.steps = steps

    def call(self, routine: str, times: int = 1) -> None:
        """Add calls of a software routine."""
        self.run += costs.ROUTINE_RUN[routine] * times
        self.size += costs.ROUTINE_CALL * times
        self.routine = routine


class Registers:
    """The registers that instructions wrote since the last label, and the bits of those whose value
    was extended from 8 or 16 bits.
    """

    def __init__(self) -> None:
        """Start without such registers."""
        self._bits: dict[str, int] = {}
        self._written: set[str] = set()

    def forget(self) -> None:
        """Forget all, because other code can reach a label."""
        self._bits.clear()
        self._written.clear()

    def product(self, cost: Cost) -> Cost:
        """Return the cost of an instruction: lower for a product of narrow registers, and higher
        for a product whose factors must move to the registers of arguments.
        """
        if cost.mnemonic != "imull" or len(cost.operands) == 1:
            return cost
        factors = [register_of(operand) for operand in cost.operands[:2]]
        bits = [self._bits.get(factor or "") for factor in factors]
        if None not in bits:
            narrow = Cost(cost.mnemonic, cost.operands)
            narrow.add(costs.NARROW_PRODUCT[max(value or 0 for value in bits)])
            return narrow
        moves = sum(factor is not None and factor not in self._written for factor in factors)
        if cost.routine is None or not moves:
            return cost
        moving = copy(cost)
        moving.add(costs.ARGUMENT_MOVE * moves)
        return moving

    def execute(self, cost: Cost) -> None:
        """Note what the instruction writes."""
        name = cost.mnemonic
        target = register_of(cost.operands[-1]) if cost.operands else None
        bits = None
        if extends := _EXTENDS.match(name):
            bits = 8 if extends[1] == "b" else 16
        elif name == "movl":
            bits = self._bits.get(register_of(cost.operands[0]) or "")
        elif not name.startswith(_PLAIN) and (name != "imull" or len(cost.operands) == 1):
            self.forget()
        writes_pair = name.startswith(("call", "div", "idiv", "mul")) or (
            name.startswith("imul") and len(cost.operands) == 1
        )
        if writes_pair:
            self._written |= {"rax", "rdx"}
        elif target is not None and not name.startswith(("cmp", "test")):
            self._written.add(target)
            self._bits.pop(target, None)
            if bits is not None:
                self._bits[target] = bits


def is_memory(operand: str) -> bool:
    """Return whether the operand is in memory: neither a register nor a constant."""
    if operand.startswith("%"):
        return ":" in operand
    return not operand.startswith("$")


def signed_digits(value: int) -> int:
    """Return the number of nonzero signed binary digits of the value: a product has one term per
    digit.
    """
    value, digits = abs(value), 0
    while value:
        if value & 1:
            digits += 1
            value -= 2 - (value & 3)
        value >>= 1
    return digits


def _add_access(cost: Cost, operand: str, accesses: int, words: int = 1) -> None:
    """Add `accesses` loads or stores of the memory operand, `words` instructions each."""
    cost.add(costs.LOAD * accesses * words)
    if operand.startswith("%gs:"):
        cost.run += costs.MRAM_ACCESS_RUN * accesses * words
        cost.size += costs.MRAM_ACCESS_SIZE * accesses * words
    memory = _MEMORY.search(operand)
    if memory and "," in memory[3]:
        base, index = memory[3].split(",")[:2]
        if index.strip() and (base.strip() or memory[2]):
            cost.indexed = memory[3]


def _integer(cost: Cost, name: str, size: str, operands: list[str]) -> None:
    narrow, wide = costs.INTEGER[name]
    last = operands[-1] if operands else ""
    is_wide = size == "q" or (
        not size and last.startswith("%r") and not last.endswith(("d", "w", "b"))
    )
    instructions = wide if is_wide and last not in _POINTER_REGISTERS else narrow
    if is_wide and name in ("shl", "sal", "shr", "sar") and operands[0] == "%cl":
        instructions = costs.VARIABLE_SHIFT_64
    if is_wide and name in ("rol", "ror"):
        special = {"%cl": costs.VARIABLE_ROTATION_64, "$32": costs.ROTATION_64_BY_32}
        instructions = special.get(operands[0], wide)
    # 64-bit shifts by 32 or more only move words.
    if (
        is_wide
        and name in ("shl", "sal", "shr", "sar")
        and operands[0].startswith("$")
        and _constant(operands[0]) >= 32
    ):
        instructions = 2
    if name == "xor" and operands[0] == last:
        instructions = costs.CONSTANT_MOVE
    cost.add(instructions)
    for place, operand in enumerate(operands):
        if not is_memory(operand):
            continue
        reads_only = place != len(operands) - 1 or name in ("cmp", "test", "bt", "push")
        writes_only = name == "pop"
        _add_access(cost, operand, 1 if reads_only or writes_only else 2)


def _constant(operand: str) -> int:
    try:
        return int(operand.lstrip("$"), 0)
    except ValueError:
        return 0x55555555


def _multiply(cost: Cost, size: str, operands: list[str]) -> None:
    for operand in operands:
        if is_memory(operand):
            _add_access(cost, operand, 1)
    if len(operands) > 1 and operands[0].startswith("$"):
        digits = signed_digits(_constant(operands[0]))
        if digits <= costs.SHIFT_AND_ADD_DIGITS:
            cost.add(digits * (3 if size == "q" else 1))
            return
    instructions, routine = costs.MULTIPLY[size]
    cost.add(instructions)
    if routine is not None:
        # With one operand, the product is twice as wide. gcc needs the 128-bit product only to
        # divide 64 bits by a constant.
        if len(operands) == 1:
            routine = {"l": "int64_mul", "q": "int64_div"}.get(size, routine)
        cost.call(routine)
        if len(operands) > 1 and size == "l":
            cost.count_steps(
                routine, costs.MULTIPLICATION_WITHOUT_STEPS, multiplication_steps(operands)
            )


def _move(cost: Cost, source: str, target: str) -> None:
    if is_memory(source):
        _add_access(cost, source, 1)
    elif is_memory(target):
        _add_access(cost, target, 1)
    else:
        cost.add(costs.CONSTANT_MOVE if source.startswith("$") else costs.REGISTER_MOVE)


def _sse(cost: Cost, mnemonic: str, operands: list[str]) -> None:
    memory = next((operand for operand in operands if is_memory(operand)), None)
    routine = costs.FLOATING.get(mnemonic)
    packed = costs.PACKED_FLOATING.get(mnemonic[-2:])
    if routine is None and mnemonic.startswith("cmp"):
        routine = costs.FLOATING_COMPARE_SUFFIX.get(mnemonic[-2:])
    if mnemonic in costs.SSE_MOVE:
        if memory is not None:
            _add_access(cost, memory, 1, costs.SSE_MOVE[mnemonic])
        return
    if routine is not None:
        if memory is not None:
            _add_access(cost, memory, 1)
        cost.call(routine)
    elif packed is not None and mnemonic[:-2] + packed[1] in costs.FLOATING:
        if memory is not None:
            _add_access(cost, memory, 1, 2)
        cost.call(costs.FLOATING[mnemonic[:-2] + packed[1]], packed[0])
    elif mnemonic in costs.SSE_FREE:
        if memory is not None:
            _add_access(cost, memory, 1)
    elif mnemonic.startswith(
        ("and", "or", "xor")
    ):  # this changes a sign: one word, or the upper word of two
        cost.add(1)
    else:
        if memory is not None:
            _add_access(cost, memory, 1, 2)
        cost.add(costs.SSE_OTHER)


@lru_cache(maxsize=20000)
def instruction_cost(text: str) -> Cost:
    """Return the cost of one instruction, given as text without label and comment."""
    prefixes, mnemonic, operands = split_instruction(text)
    repeated = any(prefix.startswith("rep") for prefix in prefixes)
    searched = any(prefix.startswith("rep") and prefix != "rep" for prefix in prefixes)
    cost = Cost(mnemonic, operands)

    if mnemonic in ("jmp", "call", "callq", "jmpq", "ret", "retq"):
        cost.ends = True
        if operands and operands[0] in costs.INLINED_CALLS:
            cost.inlined = True
            return cost
        cost.add(1)
        if operands and operands[0].startswith("*") and is_memory(operands[0][1:]):
            _add_access(cost, operands[0][1:], 1)
        return cost
    if mnemonic[0] == "j":
        cost.ends = True
        cost.add(costs.CONDITIONAL_JUMP)
        return cost
    if mnemonic in costs.FIXED:
        cost.ends = mnemonic in _ENDS_BLOCK
        cost.add(costs.FIXED[mnemonic])
        return cost
    if _STRING_OPERATION.match(mnemonic) and not (mnemonic == "movsd" and operands):
        if searched:
            cost.add(costs.STRING_TURN * costs.STRING_SEARCH_TURNS)
        elif repeated:
            cost.turns = costs.STRING_TURN
            cost.size += costs.STRING_TURN
        else:
            cost.add(costs.STRING_TURN - 1)
        return cost
    if mnemonic in costs.FLOATING or any(operand.startswith("%xmm") for operand in operands):
        _sse(cost, mnemonic, operands)
        return cost

    sized = _SIZED.match(mnemonic)
    name, size = (sized[1], sized[2]) if sized else (mnemonic, "")
    if (
        mnemonic in costs.INTEGER
    ):  # names without a size that end in a size letter (shl, sub, bsr with a register)
        name, size = mnemonic, ""
    if name in costs.INTEGER:
        _integer(cost, name, size, operands)
    elif name == "mov" or mnemonic == "movabsq":
        _move(cost, operands[0], operands[-1])
    elif name in ("movz", "movs") or mnemonic.startswith(
        ("movzb", "movzw", "movsb", "movsw", "movsl")
    ):
        if is_memory(operands[0]):
            _add_access(cost, operands[0], 1)
        else:
            cost.add(costs.EXTEND_REGISTER)
    elif name == "lea":
        memory = _MEMORY.search(operands[0])
        parts = memory[3].split(",") if memory else [""]
        three = memory is not None and memory[2] and len(parts) > 1 and parts[0].strip()
        instructions = costs.LEA_THREE_PARTS if three else costs.LEA
        is_stack = parts[0].strip() in _POINTER_REGISTERS
        cost.add(instructions * (2 if size == "q" and not is_stack else 1))
    elif name in ("imul", "mul"):
        _multiply(cost, size, operands)
    elif name in ("idiv", "div"):
        if is_memory(operands[0]):
            _add_access(cost, operands[0], 1)
        instructions, routine = costs.DIVIDE[size]
        cost.add(instructions)
        cost.call(routine)
        if size == "l" and name == "div":
            cost.count_steps(
                routine, costs.DIVISION_WITHOUT_STEPS, division_steps(operands[0], False)
            )
        elif size == "l":
            cost.count_steps(
                routine, costs.SIGNED_DIVISION_WITHOUT_STEPS, division_steps(operands[0], True)
            )
    elif mnemonic.startswith(("set", "cmov")):
        cost.add(costs.SET_CONDITION if mnemonic.startswith("set") else costs.CONDITIONAL_MOVE)
        for operand in operands:
            if is_memory(operand):
                _add_access(cost, operand, 1)
    else:
        cost.add(costs.UNKNOWN)
        for operand in operands:
            if "(" in operand:
                _add_access(cost, operand, 1)
    return cost
