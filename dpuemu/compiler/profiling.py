"""Write the counters of `dpuemu profile` into the assembly of counting.py.

A counter counts the executions of a block, or the instructions whose number only the run knows. It
is a word of 64 bits in the section .pe_counters of the PE. The section .debug_pe_counters has a row
of three words per source line of a block: the addresses of the counter and of the code, and the
instructions per count. Its name lets the linker drop rows of dropped functions: their addresses
become 0. r11 is free at the start of a block (steps.py), and an lea changes no flags.
"""

from __future__ import annotations

import re
from itertools import count

SECTION, ROWS = ".pe_counters", ".debug_pe_counters"

_FIRST = ".Lpe_counters"
_LOC = re.compile(r"\s*\.loc\s+\d+ \d+")


class Counters:
    """The counters of one file of assembly, which follows its lines in order."""

    def __init__(self) -> None:
        """Start without counters."""
        self._numbers = count()
        self._rows: list[str] = []
        self._labels = count()
        self._line = ""  # the directive .loc that holds
        self._block: list[tuple[int, str]] = []  # per instruction: place in the output, .loc

    def note_line(self, line: str) -> None:
        """Follow a directive .loc."""
        if found := _LOC.match(line):
            self._line = found[0]

    def note_instruction(self, place: int) -> None:
        """Follow an instruction of the block, at a place in the output."""
        self._block.append((place, self._line))

    def close_block(self, output: list[str], start: int, done: list[float]) -> None:
        """Count the executions of the block, at the place `start` of the output.

        done: per instruction of the block, the DPU instructions up to its end.
        """
        block, self._block = self._block, []
        counted, first, counter = 0, 0, ""
        for index, (place, line) in enumerate(block):
            is_last = index + 1 == len(block) or block[index + 1][1] != line
            if index == 0 or block[index - 1][1] != line:
                first = place
            weight = int(done[index] + 0.5) - counted
            if not is_last or weight == 0:
                continue
            counter = counter or self._counter()
            output[first] = f"{self._row(counter, weight)}:\n{output[first]}"
            counted += weight
        if counter:
            output[start] = "\n".join([*_add(counter, "1(%r11)"), output[start]])

    def add_constant(self, instructions: int) -> list[str]:
        """Return code that counts instructions here."""
        counter = self._counter()
        return [f"{self._row(counter, instructions)}:", *_add(counter, "1(%r11)")]

    def add_turns(self, instructions: int) -> list[str]:
        """Return code that counts `instructions` per turn in rcx."""
        counter = self._counter()
        return [f"{self._row(counter, 1)}:", *_add(counter, f"(%r11,%rcx,{instructions})")]

    def add_steps(self, steps: list[str], counting: str) -> list[str]:
        """Return the code of `steps` with a counter before the instruction `counting`, which
        counts the steps in r11, and one instruction more. The code may change the flags.
        """
        counter, place = self._counter(), steps.index(counting)
        own = [f"{self._row(counter, 1)}:", f"\taddq\t%r11, {counter}", f"\tincq\t{counter}"]
        return [*steps[:place], *own, *steps[place:]]

    def sections(self) -> list[str]:
        """Return the sections of the counters and of their rows."""
        if not self._rows:
            return []
        return [
            f'\t.section {ROWS},"",@progbits',
            *self._rows,
            f'\t.section {SECTION},"aw",@nobits',
            "\t.balign 8",
            f"{_FIRST}:",
            f"\t.zero {8 * next(self._numbers)}",
        ]

    def _counter(self) -> str:
        return f"{_FIRST}+{8 * next(self._numbers)}"

    def _row(self, counter: str, instructions: int) -> str:
        label = f".Lpe_counted{next(self._labels)}"
        self._rows.append(f"\t.long {counter}, {label}, {instructions}")
        return label


def _add(counter: str, address: str) -> list[str]:
    """Return code that adds to a counter. PeProfile::is_counting (src/profile/pe_profile.cpp)
    recognises these bytes.
    """
    return [
        f"\tmovq\t{counter}, %r11",
        f"\tleaq\t{address}, %r11",
        f"\tmovq\t%r11, {counter}",
    ]
