"""Find the jumps that end loops of unknown length, for counting.py.

Such a loop loads from WRAM through a register, contains no call and no other loop, steps a register
by a constant and compares it with a value that is not a constant.
"""

from __future__ import annotations

import re

from gcc_assembly import register_of
from instructions import Cost

_COMPARE = re.compile(r"cmp[lq]$")
_STEP = re.compile(r"(?:add|sub)[lq]$")
_CONDITIONAL_JUMP = re.compile(r"j(?!mp)[a-z]+$")
_KEEPS_FLAGS = re.compile(r"(?:mov|lea|set|cmov|j|push|pop)")
_ELEMENT = re.compile(r"[^:]*\((?!%rip|%[er]sp)[^)]*%.*")
# The sum of a constant and a register: the end of an array of known length.
_KNOWN_END = re.compile(r"[\w.+$-]+\(%\w+\)")


class UnknownLengths:
    """Follows the instructions of a section in order. A place is a number of instructions."""

    def __init__(self) -> None:
        """Start without code."""
        self.forget()

    def forget(self) -> None:
        """Start a section."""
        self._place = 0
        self._labels: dict[str, int] = {}
        self._steps: dict[str, int] = {}  # by register: place of its last step
        self._known_ends: set[str] = set()  # registers
        self._compared: list[str] = []  # operands that the flags describe
        self._load = 0  # place of the last load
        self._call = 0  # place of the last call, or jump back

    def label(self, name: str) -> None:
        """Note a label."""
        self._labels[name] = self._place

    def ends(self, cost: Cost) -> bool:
        """Note an instruction; return whether it ends a loop of unknown length."""
        self._place += 1
        name, operands = cost.mnemonic, cost.operands
        if _CONDITIONAL_JUMP.match(name):
            return operands[0] in self._labels and self._jumps_back(self._labels[operands[0]])
        if name == "call":
            self._call = self._place
        if not name.startswith("lea") and any(map(_ELEMENT.fullmatch, operands)):
            self._load = self._place
        if _COMPARE.match(name):
            self._compared = operands
            return False
        if not _KEEPS_FLAGS.match(name):
            self._compared = []
        if (target := register_of(operands[-1]) if operands else None) is not None:
            is_constant = operands[0].startswith("$")
            if is_constant and _STEP.match(name):
                self._steps[target] = self._place
            elif (is_constant and name.startswith("mov")) or (
                name.startswith("lea") and _KNOWN_END.fullmatch(operands[0])
            ):
                self._known_ends.add(target)
            else:
                self._known_ends.discard(target)
        return False

    def _jumps_back(self, start: int) -> bool:
        is_inner = self._call <= start < self._load
        self._call = self._place
        if not is_inner or not self._compared or self._compared[0].startswith("$"):
            return False
        registers = [register_of(operand) or "" for operand in self._compared]
        limits = [register for register in registers if self._steps.get(register, 0) <= start]
        return len(limits) < len(registers) and not self._known_ends.intersection(limits)
