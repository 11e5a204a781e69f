"""What the instructions of a DPU for tasklets, DMA and time do, for the tests of the emulator.

A machine executes one instruction after another, each of a tasklet that the caller chooses. It uses
nothing of the emulator; isa_definition.py defines the other instructions.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace

import isa_definition as isa
from isa_definition import Instruction, State

TASKLETS, RUN_BITS = 24, 64
DMA = {"ldma": 0, "ldmai": 1, "sdma": 2}
RUN = {"read_run": 0, "clr_run": 1, "resume": 2, "boot": 3}
MUTEX = ("acquire", "release")
TIME = {"time": 24, "time_cfg": 25}
NAMES = [*DMA, *RUN, *MUTEX, *TIME, "stop", "fault", "tell", "nop"]
KEEP, CYCLES, INSTRUCTIONS, NOTHING = range(4)  # what a counter counts: time_cfg, from bit 1 on


def conditions_of(name: str) -> Mapping[int, str]:
    """Return the conditions of jumps by their codes. acquire and release always have one."""
    if name == "acquire":
        return {code: isa.BASIC[code] for code in (1, 2, 3)}
    if name == "release":
        return {0: "nz"}
    return {} if name in DMA or name in ("fault", "tell", "nop") else isa.BASIC


def encode(it: Instruction) -> int:
    """Return the word of an instruction."""
    name, number = it.name, it.immediate
    if name not in NAMES or name == "nop":
        return isa.encode(it)
    word, head = it.a << 34, 0x1F << 42
    if name in DMA:
        assert it.b is not None
        return 7 << 44 | word | isa._b(it.b) | (number & 0xFF) << 24 | DMA[name]
    if name == "fault":
        return head | 4 << 39 | isa.ZERO << 34 | 3 << 32 | 1 << 29 | isa._low_bits(number)
    if name == "tell":
        return head | word | 3 << 32 | isa._low_bits(it.offset)
    word |= it.code << 24 | it.target
    if name in TIME:
        b = 0 if it.b is None else isa._b(it.b)
        head = isa._arithmetic_head(it.to, it.c, 0)
        return word | head | TIME[name] << 34 | b | 2 << 28 | 8 << 20
    if name == "stop":
        return head | word | 5 << 39 | isa.ID << 34 | 3 << 32 | 1 << 29
    word |= head | isa._byte(number)
    if name in MUTEX:
        return word | (number >> 13 & 7) << 39 | 7 << 31 | (number >> 8 & 31) << 26
    return word | RUN[name] << 39 | 3 << 32 | (3 << 28 if name == "read_run" else 1 << 29)


class Machine:
    """A DPU. fault: the tasklet and the number of an executed `fault`. known: instructions that a
    ldmai may load, besides those of the program.
    """

    def __init__(
        self,
        program: Sequence[Instruction],
        wram: bytes,
        mram: bytes,
        known: Sequence[Instruction] = (),
    ) -> None:
        self.iram = dict(enumerate(program))
        self.wram, self.mram = bytearray(wram), bytearray(mram)
        self.by_word = {encode(each): each for each in (*program, *known)}
        self.tasklets = [
            State((0,) * isa.GENERAL_REGISTERS, 0, 0, 0, b"", tasklet)
            for tasklet in range(TASKLETS)
        ]
        self.run, self.locked = 1, set[int]()
        self.instructions, self.first, self.frozen, self.mode = 0, 0, 0, NOTHING
        self.fault: tuple[int, int] | None = None

    def run_all(self, rng: random.Random, most: int) -> None:
        """Execute tasklets in random order until all have stopped, or one is in fault."""
        while self.fault is None and (running := self.run & (1 << TASKLETS) - 1):
            assert self.instructions < most, "the program does not end"
            tasklet = rng.choice([t for t in range(TASKLETS) if running >> t & 1])
            for _ in range(rng.choice([1, 3, 40])):
                if self.fault is None and self.run >> tasklet & 1:
                    self.step(tasklet)

    def step(self, tasklet: int) -> None:
        """Execute one instruction of a tasklet."""
        before = self.tasklets[tasklet]
        it = self.iram[before.pc]
        self.instructions += 1
        if it.name not in NAMES or it.name == "nop":
            is_access = it.name in isa.LOADS or it.name in isa.STORES
            after = isa.execute(it, replace(before, wram=bytes(self.wram) if is_access else b""))
            assert isinstance(after, State), f"{it} of tasklet {tasklet}: {after}"
            if it.name in isa.STORES:
                self.wram = bytearray(after.wram)
        elif it.name in DMA:
            self._transfer(it, before)
            after = replace(before, pc=before.pc + 1)
        elif it.name == "fault":
            self.fault, after = (tasklet, it.immediate), before
        elif it.name == "tell":
            after = replace(before, pc=before.pc + 1)
        else:
            value = self._value(it, before)
            registers = list(before.registers)
            if it.name in TIME:
                isa._write(registers, it, value)
            result = isa._Result(value, 0, value, before.carry, before.zero, int(value == 0))
            jumps = conditions_of(it.name)
            is_taken = it.code in jumps and result.holds(jumps[it.code])
            after = replace(
                before,
                registers=tuple(registers),
                zero=result.is_zero,
                pc=it.target if is_taken else before.pc + 1,
            )
        self.tasklets[tasklet] = after

    def _transfer(self, it: Instruction, before: State) -> None:
        """Copy 8 bytes times the immediate and the highest byte of register a, plus 1."""
        assert it.b is not None
        a, b = before.register(it.a), before.register(it.b)
        size = 8 * ((it.immediate + (a >> 24)) % 256 + 1)
        place, there = a & 0xFFFFF8, b & 0x3FFFFF8
        if it.name == "ldma":
            self.wram[place : place + size] = self.mram[there : there + size]
        elif it.name == "sdma":
            self.mram[there : there + size] = self.wram[place : place + size]
        else:
            for at in range(0, size, 8):
                word = int.from_bytes(self.mram[there + at : there + at + 8], "little")
                self.iram[(place + at) // 8] = self.by_word[word]

    def _value(self, it: Instruction, before: State) -> int:
        """Return what the condition tests: the mutex or the bit of RUN as it was, 0 of a stop, or
        the counter.
        """
        address = before.register(it.a) + it.immediate & isa.MASK
        if it.name in MUTEX:
            mutex = (address ^ address >> 8) & 0xFF
            was = int(mutex in self.locked)
            (self.locked.add if it.name == "acquire" else self.locked.discard)(mutex)
            return was
        if it.name == "stop":
            self.run &= ~(1 << before.tasklet)
            return 0
        if it.name in TIME:
            return self._time(it, before)
        bit = address % RUN_BITS
        was = self.run >> bit & 1
        if it.name == "clr_run":
            self.run &= ~(1 << bit)
        elif it.name != "read_run":
            self.run |= 1 << bit
            if it.name == "boot" and not was and bit < TASKLETS:
                self.tasklets[bit] = replace(self.tasklets[bit], pc=0)
        return was

    def _time(self, it: Instruction, before: State) -> int:
        """Return the counter without its low four bits. A single tasklet issues one instruction in
        11 cycles. time_cfg with bit 0 starts the counter from 0.
        """
        passed = self.instructions - self.first
        if self.mode != NOTHING:
            self.frozen = passed * (11 if self.mode == CYCLES else 1)
        value = self.frozen
        if it.name == "time_cfg":
            assert it.b is not None
            configuration = before.register(it.b)
            mode, resets = configuration >> 1, configuration & 1
            assert resets or mode == KEEP, "not defined here"
            if resets:
                self.first, self.frozen = self.instructions, 0
            self.mode = mode or self.mode
        return value >> 4 & isa.MASK
