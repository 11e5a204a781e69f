"""Find the products with which gcc divides 32 bits by a constant, for counting.py.

gcc divides x by d as (x * m) >> s, where the constant m is 2^s / d, rounded up. It uses only the
upper half of the 64-bit product, so a program's own product of two variables can look the same. The
value of m makes the difference.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import Protocol, TypeGuard

from gcc_assembly import register_of

_KEPT_BY_CALLS = {"rbx", "rbp", "r12", "r13", "r14"}
_WRITES_RAX_RDX = {"mul", "div", "idiv", "cltd", "cqto", "cltq", "cwtl", "imul"}
_WRITES_ALL_OPERANDS = ("xchg", "xadd", "cmpxchg")
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


def _constant(operand: str) -> int | None:
    try:
        return int(operand[1:], 0) if operand.startswith("$") else None
    except ValueError:
        return None


class Constants:
    """The registers that have the same constant on all paths to the current instruction."""

    def __init__(self, values: dict[str, int] | None = None) -> None:
        """Start with these registers, without any at the start of a function."""
        self._values = dict(values or {})

    def common(self, others: dict[str, int] | None) -> dict[str, int]:
        """Return the registers whose constant is the same in `others` (None: of a path that is
        not known yet).
        """
        if others is None:
            return dict(self._values)
        return {
            register: value
            for register, value in self._values.items()
            if others.get(register) == value
        }

    def execute(self, instruction: Instruction) -> None:
        """Note what the instruction writes."""
        name, operands = instruction.mnemonic, instruction.operands
        if name.startswith("call"):
            self._values = {
                register: value
                for register, value in self._values.items()
                if register in _KEPT_BY_CALLS
            }
        elif name.startswith(_WRITES_ALL_OPERANDS):
            for register in ("rax", "rdx", *map(register_of, operands)):
                self._values.pop(register or "", None)
        elif name in _WRITES_RAX_RDX or (len(operands) == 1 and name[:-1] in _WRITES_RAX_RDX):
            self._values.pop("rax", None)
            self._values.pop("rdx", None)
        elif operands and (register := register_of(operands[-1])) is not None:
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
        values = (self._values.get(register_of(operand) or "") for operand in operands[:2])
        return next(
            (value for value in (_constant(operands[0]), *values) if value is not None), None
        )


def constants_at_labels(
    code: Sequence[str | Instruction], in_tables: set[str]
) -> dict[str, dict[str, int]]:
    """Return the registers with constants at each label. code: labels and instructions, in order.

    in_tables: the labels in jump tables. They, functions, and labels that no jump names have no
    constants.
    """
    jumps = {item.operands[0] for item in code if _jumps(item) and item.operands} - in_tables
    targets = {label for label in jumps if label.startswith(".L")}  # other code can call a function
    at_labels: dict[str, dict[str, int]] = {
        item: {} for item in code if isinstance(item, str) and item not in targets
    }
    while _pass(code, at_labels):
        pass
    return at_labels


def _jumps(item: str | Instruction) -> TypeGuard[Instruction]:
    return not isinstance(item, str) and item.mnemonic[0] == "j"


def _pass(code: Iterable[str | Instruction], at_labels: dict[str, dict[str, int]]) -> bool:
    """Follow the code once, and remove from `at_labels` what a path contradicts.

    Return whether `at_labels` changed.
    """
    constants: Constants | None = None  # None after a jump
    changed = False

    def reach(label: str) -> None:
        nonlocal changed
        if constants is not None and (
            common := constants.common(at_labels.get(label))
        ) != at_labels.get(label):
            at_labels[label] = common
            changed = True

    for item in code:
        if isinstance(item, str):
            reach(item)
            constants = Constants(at_labels[item]) if item in at_labels else None
        elif constants is not None:
            if _jumps(item):
                reach(item.operands[0])
            constants.execute(item)
            if item.mnemonic.startswith(("jmp", "ret")):
                constants = None
    return changed


def divides(factor: int, block: Sequence[Instruction], place: int) -> bool:
    """Return whether the product at `place` of the block, with this constant factor, divides 32
    bits by a constant.
    """
    later, target, upper = block[place + 1 :], block[place].operands[-1], 0
    for shift in later[:3]:
        if (
            shift.mnemonic in ("shrq", "sarq")
            and shift.operands[-1] == target
            and len(shift.operands) == 2
        ):
            upper = _constant(shift.operands[0]) or 0
            break
        if target in shift.operands[-1:] and shift.mnemonic not in ("movq", "movl"):
            return False
    if upper < 32:
        return False
    more = {
        sum(chosen)
        for count in range(3)
        for chosen in combinations(_shifts(later[:_WINDOW]), count)
    }
    # If d is even, gcc may shift x first, and then needs fewer bits of the quotient.
    fewer = max(_shifts(block[max(0, place - _WINDOW) : place]), default=0)
    low = factor % 2**32
    # gcc adds x afterwards if the multiplier needs 33 bits.
    return any(
        _is_reciprocal(value, upper + extra, 31 - fewer)
        for value in (low, low + 2**32)
        for extra in more
    )


def _shifts(instructions: Sequence[Instruction]) -> list[int]:
    """Return the amounts of the 32-bit shifts to the right, without those that extract a sign."""
    amounts = (
        _constant(shift.operands[0]) if len(shift.operands) == 2 else 1
        for shift in instructions
        if shift.mnemonic in ("shrl", "sarl")
    )
    return [amount for amount in amounts if amount is not None and amount <= _MOST_SHIFT]


def _is_reciprocal(multiplier: int, shift: int, bits: int) -> bool:
    """Return whether (x * multiplier) >> shift is x / d for some d above 2 and all x of `bits`
    bits.
    """
    divisor = -(-(2**shift) // multiplier) if multiplier else 0
    return divisor > 2 and multiplier * divisor - 2**shift <= 2 ** (shift - bits)
