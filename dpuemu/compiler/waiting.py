"""Find loops that wait for another tasklet's store, for counting.py, and write the code that lets
other tasklets run.

Such a loop has no calls and no stores, and no register carries a value from one iteration to the
next. So only another tasklet can end it. The other tasklets run once per iteration (`__pe_gate` in
runtime/gate.S); all registers keep their values. A loop that this file does not recognise still
works, because the emulator interrupts its tasklet after a while.
"""

from __future__ import annotations

import re
from itertools import count

from gcc_assembly import registers

_LOAD = re.compile(r"(?:mov[sz]?[bwlq]{0,2}|movabsq|lea[lq]|movs[sd]|cvt\w+|sqrts[sd])$")
_COMPARE = re.compile(r"(?:cmp[bwlq]?|test[bwlq]?|u?comis[sd])$")
_CHANGE = re.compile(
    r"(?:add|sub|and|or|xor|imul|shl|sal|shr|sar|rol|ror|neg|not|inc|dec|cmov\w+?|set\w+?)[bwlq]?$"
)
_CONDITIONAL_JUMP = re.compile(r"j(?!mp)[a-z]+$")
_numbers = count()


class _Region:
    """The code from a label to the current instruction. position: of the label's next line in
    the output.
    """

    def __init__(self, position: int) -> None:
        self.position = position
        self.written: set[str] = set()
        self.read_first: set[str] = set()  # registers that the region reads before it writes them
        self.loads = False

    def add(self, read: set[str], written: set[str], loads: bool) -> None:
        self.read_first |= read - self.written
        self.written |= written
        self.loads = self.loads or loads

    def waits(self) -> bool:
        return self.loads and not self.read_first & self.written


class WaitingLoops:
    """Follows the instructions of a file in order."""

    def __init__(self) -> None:
        """Start without code."""
        self._regions: dict[str, _Region] = {}  # by label: code without calls and stores

    def label(self, name: str, position: int) -> None:
        """Start a region at a label. position: the index of the line after the label in the
        output.
        """
        self._regions[name] = _Region(position)

    def forget(self) -> None:
        """Note code that may store or call."""
        self._regions.clear()

    def add(self, mnemonic: str, operands: list[str]) -> int | None:
        """Note an instruction.

        If it ends a waiting loop, return the position at which the loop starts.
        """
        if not operands or _CONDITIONAL_JUMP.match(mnemonic) or mnemonic == "jmp":
            return self._jump(mnemonic, operands)
        target, sources = operands[-1], operands[:-1]
        in_memory = "(" in target or not target.startswith(("%", "$"))
        read = {register for source in sources for register in registers(source)}
        written = set(registers(target))
        loads = any("(" in source or not source.startswith(("%", "$")) for source in sources)
        if _COMPARE.match(mnemonic):
            self._add(read | written, set(), loads or in_memory)
        elif in_memory:
            self.forget()
        elif _LOAD.match(mnemonic):
            self._add(read, written, loads and not mnemonic.startswith("lea"))
        elif mnemonic.startswith(("xor", "sub")) and sources == [target]:  # writes 0
            self._add(set(), written, False)
        elif _CHANGE.match(mnemonic):
            self._add(read | written, written, loads)
        else:
            self.forget()
        return None

    def _add(self, read: set[str], written: set[str], loads: bool) -> None:
        for region in self._regions.values():
            region.add(read, written, loads)

    def _jump(self, mnemonic: str, operands: list[str]) -> int | None:
        if mnemonic == "nop":
            return None
        if not operands or operands[0].startswith("*"):
            self.forget()
            return None
        region = self._regions.get(operands[0])
        return region.position if region is not None and region.waits() else None


def yielding() -> list[str]:
    """Return code that lets other tasklets run and keeps all registers, the flags and the stack."""
    resume = f".Lresume{next(_numbers)}"
    return [f"\tleaq\t{resume}(%rip), %r11", "\tjmp\t*__pe_gate+8", f"{resume}:"]
