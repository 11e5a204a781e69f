"""Random collectives on the machines of this package, for the tests and the campaign."""

from __future__ import annotations

import random
from math import prod

from pidcomm.bench.oracle import Verdict, is_defined
from pidcomm.tables import COLLECTIVES, OPS, TYPES, WORD_BYTES
from pidcomm_studies.machines import PimMachine, Plan, plan, run, ways

MOST_PES = 128
LENGTHS = (1, 2, 2, 3, 4, 4, 5, 7, 8, 16)
WORDS = (0, 1, 1, 2, 3, 5, 8, 33)
MOST_WORDS = 1 << 14  # of a row


def draw(machine: PimMachine, choice: random.Random) -> Plan:
    """Return the plan of a random collective."""
    most = min(machine.geometry.pes, MOST_PES)
    shape = [choice.choice([length for length in LENGTHS if length <= most])]
    while len(shape) < choice.randint(1, 4):
        shape.append(choice.choice(LENGTHS))
        if prod(shape) > most:
            shape.pop()
            break
    mask = "".join(choice.choice("01") for _ in shape)
    members = prod(length for length, bit in zip(shape, mask, strict=True) if bit == "1")
    row = COLLECTIVES[choice.choice(list(COLLECTIVES))]
    dtype = choice.choice(list(TYPES))
    op = choice.choice([name for name in OPS if is_defined(name, dtype)])
    words = choice.choice([count for count in WORDS if count * members <= MOST_WORDS])
    return plan(
        row.name,  # type: ignore[arg-type]
        shape,
        mask,
        bytes=words * WORD_BYTES * row.blocks_per_pe(members),
        machine=machine,
        dtype=dtype,
        op=op,
        way=choice.choice(ways(machine)),
    )


def check(case: Plan, seed: int) -> Verdict:
    """Carry out a plan; compare every element with the oracle."""
    before = case.problem.payload(seed)
    return case.problem.check(before, run(case, before))
