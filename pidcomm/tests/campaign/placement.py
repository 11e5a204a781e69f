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


def draw_shape(choices: random.Random, most: int) -> tuple[int, ...]:
    """Return a shape of at most `most` PEs."""
    first = choices.randint(1, most)
    return (first, choices.randint(1, most // first))


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
        shapes = [(usable,), *(draw_shape(choices, usable) for _ in range(3))]
        ways = [None, *(pes.hypercube(*shape) for shape in shapes)]
        for number, writer in enumerate(ways):
            count = writer.pes if writer else pes.pes
            rows = np.arange(1, pes.pes + 1).reshape(-1, 1) * len(ways) + number
            heap.write(np.zeros_like(rows))
            (writer or heap).write(rows[:count])
            rows[count:] = 0
            for reader in ways:
                got = reader.read(1, np.int64) if reader else heap.read(np.int64, 1)
                if not np.array_equal(got, rows[: len(got)]):
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
