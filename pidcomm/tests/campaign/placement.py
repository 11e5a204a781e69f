"""Write rows through a symbol or a hypercube of a set with missing PEs, and read them through all
others: row p belongs to PE p.
"""

from __future__ import annotations

import random

import numpy as np
from attack import Attack

import dpuemu
import pidcomm

HEAP = "__sys_used_mram_end"
MOST_MISSING = 12


def draw_cube(choices: random.Random, pes: pidcomm.PeSet) -> pidcomm.Hypercube:
    """Return a hypercube of any shape that begins at any PE."""
    first = 8 * choices.randrange((pes.usable_pes + 7) // 8)
    most = pes.usable_pes - first
    length = choices.randint(1, most)
    return pes.hypercube(length, choices.randint(1, most // length), first=first)


def run_case(choices: random.Random) -> str:
    """Run a case. Return a sentence if a row is at a wrong PE, else an empty str."""
    ranks = choices.randint(1, 3)
    missing = [
        (choices.randrange(ranks), choices.randrange(8), choices.randrange(8))
        for _ in range(choices.randint(0, MOST_MISSING))
    ]
    dpuemu.machine(ranks=ranks, disabled=missing)
    with pidcomm.allocate() as pes:
        heap, usable = pes.symbol(HEAP), pes.usable_pes
        ways = [None, pes.hypercube(usable), *(draw_cube(choices, pes) for _ in range(3))]
        for number, writer in enumerate(ways):
            rows = np.zeros((pes.pes, 1), np.int64)
            heap.write(rows)
            written = slice(writer.first, writer.first + writer.pes) if writer else slice(None)
            rows[written] = np.arange(1, pes.pes + 1).reshape(-1, 1)[written] * len(ways) + number
            (writer or heap).write(rows[written])
            for reader in ways:
                got = reader.read(1, np.int64) if reader else heap.read(np.int64, 1)
                first = reader.first if reader else 0
                if not np.array_equal(got, rows[first : first + len(got)]):
                    return (
                        f"{ranks} ranks without {missing}: {reader or heap} reads other rows than"
                        f" {writer or heap} wrote"
                    )
    return ""


def main() -> None:
    """Run cases until the time is over."""
    attack = Attack()
    for number in attack.numbers():
        sentence = run_case(attack.random(number))
        if sentence:
            attack.find(sentence, number=number)
    attack.finish()


if __name__ == "__main__":
    main()
