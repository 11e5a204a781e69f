"""Find the products with which gcc divides 32 bits by a constant, for counting.py.

gcc divides x by d as (x * m) >> s, where the constant m is 2^s / d, rounded up. It uses only the upper half of the
64-bit product, so a program's own product of two variables can look the same. The value of m makes the difference.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import combinations
from typing import Protocol

_SHORT = {"a": "rax", "b": "rbx", "c": "rcx", "d": "rdx", "si": "rsi", "di": "rdi", "bp": "rbp", "sp": "rsp"}
_NAME = re.compile(r"%(?:[re]?([abcd])[xlh]|[re]?(si|di|bp|sp)l?|(r\d+)[dwb]?)$")
_KEPT_BY_CALLS = {"rbx", "rbp", "r12", "r13", "r14"}
_WRITES_RAX_RDX = {"mul", "div", "idiv", "cltd", "cqto", "cltq", "cwtl", "imul", "cmpxchg"}
_WINDOW = 8  # instructions after the product, in which gcc shifts it
_MOST_SHIFT = 30  # a shift by 31 extracts a sign


class Instruction(Protocol):
    """An instruction with its operands; the last is the target."""

    @property
    def mnemonic(self) -> str:
        """Its name, with the letter of the operand size."""

    @property
    def operands(self) -> list[str]:
        """Its operands in AT&T order."""


def _register(operand: str) -> str | None:
    """Return the 64-bit name of a register, or None."""
    found = _NAME.match(operand)
    return None if found is None else found[3] or _SHORT[found[1] or found[2]]


def _constant(operand: str) -> int | None:
    try:
        return int(operand[1:], 0) if operand.startswith("$") else None
    except ValueError:
        return None


class Constants:
    """The registers whose last write, in the order of the code, was a constant."""

    def __init__(self) -> None:
        """Start a function."""
        self._values: dict[str, int] = {}

    def forget(self) -> None:
        """Start another function."""
        self._values.clear()

    def execute(self, instruction: Instruction) -> None:
        """Note what the instruction writes."""
        name, operands = instruction.mnemonic, instruction.operands
        if name.startswith("call"):
            self._values = {register: value for register, value in self._values.items() if register in _KEPT_BY_CALLS}
        elif name in _WRITES_RAX_RDX or (len(operands) == 1 and name[:-1] in _WRITES_RAX_RDX):
            self._values.pop("rax", None)
            self._values.pop("rdx", None)
        elif operands and (register := _register(operands[-1])) is not None:
            value = _constant(operands[0]) if name in ("movl", "movq", "movabsq") else None
            if value is not None:
                self._values[register] = value
            elif not name.startswith(("cmp", "test", "push")):
                self._values.pop(register, None)

    def factor(self, instruction: Instruction) -> int | None:
        """Return the constant factor of a 64-bit product in one register, or None."""
        name, operands = instruction.mnemonic, instruction.operands
        if name != "imulq" or len(operands) < 2:
            return None
        values = (self._values.get(_register(operand) or "") for operand in operands[:2])
        return next((value for value in (_constant(operands[0]), *values) if value is not None), None)


def divides(factor: int, block: Sequence[Instruction], place: int) -> bool:
    """Return whether the product at `place` of the block, with this constant factor, divides 32 bits by a constant."""
    later, target, upper = block[place + 1 :], block[place].operands[-1], 0
    for shift in later[:3]:
        if shift.mnemonic in ("shrq", "sarq") and shift.operands[-1] == target and len(shift.operands) == 2:
            upper = _constant(shift.operands[0]) or 0
            break
        if target in shift.operands[-1:] and shift.mnemonic not in ("movq", "movl"):
            return False
    if upper < 32:
        return False
    more = {sum(chosen) for count in range(3) for chosen in combinations(_shifts(later[:_WINDOW]), count)}
    # If d is even, gcc may shift x first, and then needs fewer bits of the quotient.
    fewer = max(_shifts(block[max(0, place - _WINDOW) : place]), default=0)
    low = factor % 2**32
    # gcc adds x afterwards if the multiplier needs 33 bits.
    return any(_is_reciprocal(value, upper + extra, 31 - fewer) for value in (low, low + 2**32) for extra in more)


def _shifts(instructions: Sequence[Instruction]) -> list[int]:
    """Return the amounts of the 32-bit shifts to the right, without those that extract a sign."""
    amounts = (
        _constant(shift.operands[0]) if len(shift.operands) == 2 else 1
        for shift in instructions
        if shift.mnemonic in ("shrl", "sarl")
    )
    return [amount for amount in amounts if amount is not None and amount <= _MOST_SHIFT]


def _is_reciprocal(multiplier: int, shift: int, bits: int) -> bool:
    """Return whether (x * multiplier) >> shift is x / d for some d above 2 and all x of `bits` bits."""
    divisor = -(-(2**shift) // multiplier) if multiplier else 0
    return divisor > 2 and multiplier * divisor - 2**shift <= 2 ** (shift - bits)
