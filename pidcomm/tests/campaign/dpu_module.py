"""Random transfers of the Python module `dpu` against a model of MRAM: to and from all DPUs, a rank
or a DPU, at once or queued; refused transfers change nothing.

Runs itself with `dpuemu run`, which lets programs find the module.
"""

from __future__ import annotations

import os
import random
import sys
from pathlib import Path
from typing import Any

from attack import Attack

HEAP = "__sys_used_mram_end"
BYTES = 4096  # of each DPU that the transfers use
MOST_DPUS = 100


class Model:
    """A set, and the bytes that its DPUs must have."""

    def __init__(self, dpu: Any, choices: random.Random) -> None:
        """Allocate the set, and fill its DPUs."""
        self.dpu, self.choices = dpu, choices
        self.set = dpu.DpuSet(choices.randint(1, MOST_DPUS))
        self.number = {id(each): number for number, each in enumerate(self.set.dpus())}
        self.mram = [bytearray(choices.randbytes(BYTES)) for _ in self.set.dpus()]
        self.expected: list[tuple[list[Any], list[bytes | None]]] = []
        self.set.copy(HEAP, list(self.mram))

    def close(self) -> None:
        """Free the set, after the queued transfers."""
        self.set.sync()
        self.set.free()

    def draw(self) -> tuple[Any, int, int]:
        """Return a part of the set, an offset and a size."""
        part = self.choices.choice(
            [self.set, self.choices.choice(self.set.ranks()), self.choices.choice(self.set.dpus())]
        )
        size = 8 * self.choices.randint(1, self.choices.choice([16, BYTES // 8]))
        return part, 8 * self.choices.randint(0, (BYTES - size) // 8), size

    def transfer(self) -> None:
        """Carry out a random transfer."""
        part, offset, size = self.draw()
        first = self.number[id(part.dpus()[0])]
        is_queued = self.choices.random() < 0.5
        symbol = self.choices.choice([HEAP, self.dpu.DpuSymbol("heap", (0x08000000, BYTES))])
        kind = self.choices.randrange(3)
        places = range(first, first + len(part))
        if kind == 0:  # one buffer for all DPUs
            sent = self.choices.randbytes(size)
            part.copy(symbol, sent, offset=offset, async_mode=is_queued)
            for place in places:
                self.mram[place][offset : offset + size] = sent
        else:
            takes_part = [self.choices.random() < 0.8 for _ in part]
            takes_part[self.choices.randrange(len(part))] = True
            rows = [
                bytearray(self.choices.randbytes(size)) if is_in else None for is_in in takes_part
            ]
            if kind == 1:
                part.copy(symbol, rows, offset=offset, async_mode=is_queued)
            else:
                part.copy(rows, symbol, offset=offset, async_mode=is_queued)
            for place, row in zip(places, rows, strict=True):
                if row is not None and kind == 1:
                    self.mram[place][offset : offset + size] = row
            if kind == 2:
                own = [bytes(self.mram[place][offset : offset + size]) for place in places]
                self.expected.append((rows, own))
        if not is_queued or self.choices.random() < 0.3:
            self.check()

    def refuse(self) -> None:
        """Try a wrong transfer, which must raise DpuError."""
        part, offset, size = self.draw()
        rows = [bytearray(size) for _ in part]
        wrong = self.choices.choice(
            [
                lambda: part.copy(HEAP, [*rows, bytearray(size)], offset=offset),
                lambda: part.copy(rows, HEAP, offset=offset, size=size + 8),
                lambda: part.copy(HEAP, rows, offset=64 << 20),
                lambda: part.copy([bytes(size)] * len(part), HEAP, offset=offset),
                lambda: part.copy("nothing", rows),
                lambda: part.copy(rows, rows),
            ]
        )
        try:
            wrong()
        except self.dpu.DpuError:
            return self.check()
        raise ValueError(f"a wrong transfer of {size} bytes at {offset} is accepted")

    def check(self) -> None:
        """Wait for queued transfers, and compare all bytes."""
        self.set.sync()
        for rows, own in self.expected:
            for place, (row, bytes_read) in enumerate(zip(rows, own, strict=True)):
                if row is not None and row != bytes_read:
                    raise ValueError(f"a copy of {len(row)} bytes from DPU {place} is wrong")
        self.expected.clear()
        rows = [bytearray(BYTES) for _ in self.mram]
        self.set.copy(rows, HEAP)
        for place, (row, own_bytes) in enumerate(zip(rows, self.mram, strict=True)):
            if row != own_bytes:
                raise ValueError(f"the MRAM of DPU {place} is wrong")


def run_case(dpu: Any, choices: random.Random) -> None:
    """Run a case. Raises ValueError for wrong bytes, DpuError for a refused transfer."""
    model = Model(dpu, choices)
    try:
        for _ in range(choices.randint(1, 20)):
            model.refuse() if choices.random() < 0.2 else model.transfer()
        model.check()
    finally:
        model.close()


def main() -> None:
    """Run cases until the time is over."""
    try:
        import dpu
    except ImportError:
        if "DPUEMU_RUNNING" in os.environ:
            raise
        dpuemu = str(Path(sys.executable).with_name("dpuemu"))
        os.execv(dpuemu, [dpuemu, "run", "--", sys.executable, "-u", *sys.argv])
    attack = Attack()
    for number in attack.numbers():
        try:
            run_case(dpu, attack.random(number))
        except (ValueError, dpu.DpuError) as error:
            attack.find(f"{type(error).__name__}: {error}", number=number)
    attack.finish()


if __name__ == "__main__":
    main()
