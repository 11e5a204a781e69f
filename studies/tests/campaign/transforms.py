"""Run number-theoretic transforms and homomorphic multiplications of random sizes against their
references.

A case draws the size, the steps, the radix, the tasklets, the shape and the technique from all that
the applications allow. The CPU references are checked against independent definitions by
studies/tests/test_app_ntt.py and test_app_ckks.py; here, products of one limb are also checked with
FLINT if it is installed.
"""

from __future__ import annotations

import random
import re
import sys
from importlib.util import find_spec
from itertools import pairwise
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from attack import Attack

sys.path.append(str(Path(__file__).resolve().parents[1]))
from polynomials import product_by_flint

from pidcomm import Error
from pidcomm.arguments import Array
from pidcomm_studies import apps
from pidcomm_studies.apps.application import require_technique, with_defaults
from pidcomm_studies.apps.ckks import Ckks
from pidcomm_studies.apps.ntt import OPERATIONS, Ntt
from pidcomm_studies.apps.ntt.decomposition import RADIXES, STEP_MAX

PES_MAX = 2048
TECHNIQUES = ("conventional", "pr+im+cm", "tile")
SHARE_OF_CKKS = 0.2
# The refusals of cases that do not fit into the memory of a PE.
DOES_NOT_FIT = re.compile(r"a PE of \S+ needs .* of MRAM|the program needs \d+ bytes of WRAM")

HAS_FLINT = find_spec("flint") is not None


def draw_steps(dice: random.Random, radix: int) -> tuple[int, ...]:
    """Return random steps, powers of the radix, whose product is an allowed size."""
    unit = radix.bit_length() - 1
    while True:
        bits = [
            unit * dice.randint(1, (STEP_MAX.bit_length() - 1) // unit)
            for _ in range(dice.randint(1, 4))
        ]
        if 8 <= sum(bits) <= 17:
            return tuple(1 << bit for bit in bits)


def draw_shape(dice: random.Random, steps: tuple[int, ...], slices: int) -> tuple[int, ...]:
    """Return a random shape that the steps allow."""
    while True:
        lengths = [1 << dice.randint(0, min(pair).bit_length() - 1) for pair in pairwise(steps)]
        shape = (*lengths, *[1] * (3 - len(lengths)), slices)
        if prod(shape) <= PES_MAX:
            return shape


def draw(dice: random.Random) -> tuple[dict[str, Any], Ntt | Ckks, tuple[int, ...], str]:
    """Return the options of a case, the problem, the shape and the technique."""
    radix = dice.choice(RADIXES)
    steps = draw_steps(dice, radix)
    options: dict[str, Any] = {
        "size": prod(steps),
        "steps": "x".join(map(str, steps)),
        "radix": radix,
        "tasklets": dice.randint(1, 24),
        "generate": f"uniform:seed={dice.randint(0, 1 << 30)}",
    }
    technique = dice.choice(TECHNIQUES)
    if dice.random() < SHARE_OF_CKKS:
        level = dice.randint(2, 23 if prod(steps) <= 2**12 else 5)
        options |= {"level": level, "dnum": dice.randint(1, 3)}
        ckks = Ckks.make(**options)
        *lengths, _ = draw_shape(dice, steps, 1)
        most = min(ckks.most_slices(lengths), PES_MAX // prod(lengths))
        slices = 1 << dice.randint(0, most.bit_length() - 1)
        return options, ckks, (*lengths, slices), technique
    limbs = dice.randint(1, 6)
    bits = dice.choice((dice.randint(26, 30), dice.randint(31, 54)))  # of words of 32 and 64 bits
    options |= {"limbs": limbs, "bits": bits, "operation": dice.choice(OPERATIONS)}
    return options, Ntt.make(**options), draw_shape(dice, steps, dice.randint(1, limbs)), technique


def possible(technique: str, shape: tuple[int, ...]) -> str:
    """Return the technique, or tile if the technique does not have the shape."""
    try:
        require_technique(technique, shape, with_defaults({}))
    except Error:
        return "tile"
    return technique


def is_product(problem: Ntt, result: Array) -> bool:
    """Return whether the first limb is the product by FLINT."""
    a, b = (values[0].tolist() for values in problem.operands)
    wanted = product_by_flint(a, b, problem.moduli[0])
    return bool(np.array_equal(result[0], np.array(wanted, np.uint64)))


def main() -> None:
    """Run the attack."""
    attack = Attack()
    for number in attack.numbers():
        dice = attack.random(number)
        try:
            options, problem, shape, technique = draw(dice)
            technique = possible(technique, shape)
            run = apps.run(problem, shape=shape, technique=technique, iters=1)
        except Error as error:
            if DOES_NOT_FIT.search(str(error)):
                continue
            attack.find(f"case {number}: {error}", number=number)
            continue
        if run.wrong:
            attack.find(
                f"{run.wrong} wrong elements: {options}, shape {shape}, {technique}", number=number
            )
        elif isinstance(problem, Ckks):
            if problem.error(run.result) > problem.parameters.error_bound():
                attack.find(
                    f"the decrypted product is wrong: {options}, shape {shape}", number=number
                )
        elif problem.operation == "product" and HAS_FLINT and not is_product(problem, run.result):
            attack.find(f"FLINT has another product: {options}, shape {shape}", number=number)
    attack.finish()


if __name__ == "__main__":
    main()
