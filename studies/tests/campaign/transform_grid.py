"""Number-theoretic transforms: every size, radix, number of steps, operation, number of tasklets
and width of words, in random order.

A run continues where the last run with the same folder stopped, or at its first finding; after the
last case, the next run begins again.
Steps, moduli, shape and technique are random. All elements must be those of the CPU reference; the
polynomial's value at a random root of unity, by Horner's rule, checks the reference. Combinations
that a size does not allow must be refused.
"""

from __future__ import annotations

import random
import sys
from itertools import islice, product
from math import prod
from pathlib import Path

import numpy as np
from attack import Attack

sys.path.append(str(Path(__file__).resolve().parents[1]))
from polynomials import point_of, value_at
from transforms import TECHNIQUES, draw_shape, possible

from pidcomm import ArgumentError, allocate
from pidcomm.arguments import Array, options_of
from pidcomm_studies.apps.application import with_defaults
from pidcomm_studies.apps.ntt import OPERATIONS, TASKLETS_MAX, Ntt, field
from pidcomm_studies.apps.ntt.decomposition import MOST_STEPS, RADIXES, SIZE_MAX, SIZE_MIN, STEP_MAX
from pidcomm_studies.apps.ntt.field import NARROW, WIDE, WORDS, Word
from pidcomm_studies.apps.stage import Stage

PES_MAX = 64
LIMBS_MAX = 4


def draw_moduli(random_numbers: random.Random, word: Word, size: int, count: int) -> list[int]:
    """Return the largest or the smallest primes of a random width, as often the narrowest and the
    widest of the word as others.
    """
    narrowest = NARROW.modulus_bits + 1 if word == WIDE else size.bit_length() + 1
    widths = range(narrowest, word.modulus_bits + 1)
    while True:  # few primes are narrow
        bits = random_numbers.choice((widths[0], widths[-1], random_numbers.choice(widths)))
        largest_first = random_numbers.random() < 0.5
        step, first = 2 * size, (1 << (bits - 1)) // (2 * size) * 2 * size + 1
        candidates = range(first if first >> (bits - 1) else first + step, 1 << bits, step)
        primes = filter(field.is_prime, reversed(candidates) if largest_first else candidates)
        moduli = list(islice(primes, count))
        if len(moduli) == count:
            return moduli


def sentence_of(problem: Ntt, result: Array, random_numbers: random.Random) -> str:
    """Check a result at a random root of unity. Return what is wrong, or nothing."""
    limb, place = (
        random_numbers.randrange(len(problem.moduli)),
        random_numbers.randrange(problem.size),
    )
    q = problem.moduli[limb]
    point = point_of(place, q, problem.size)
    operands = [values[limb] for values in problem.operands]
    if problem.operation == "forward":
        got, expected = int(result[limb, place]), value_at(operands[0], point, q)
    elif problem.operation == "inverse":
        got, expected = value_at(result[limb], point, q), int(operands[0][place])
    else:
        got, expected = (
            value_at(result[limb], point, q),
            prod(value_at(operand, point, q) for operand in operands) % q,
        )
    return (
        ""
        if got == expected
        else f"the value at root {place} of limb {limb} is {got}, not {expected}"
    )


def steps_of(size: int, radix: int, count: int, random_numbers: random.Random) -> str | None:
    """Return random steps, balanced or not; None if there are none."""
    unit = radix.bit_length() - 1
    units, rest = divmod(size.bit_length() - 1, unit)
    every = [
        logs
        for logs in product(range(1, STEP_MAX.bit_length() // unit + 1), repeat=count)
        if sum(logs) == units
    ]
    every = [logs for logs in every if radix ** max(logs) <= STEP_MAX]
    if rest or not every:
        return None
    return "x".join(str(radix**log) for log in random_numbers.choice(every))


def run(attack: Attack, number: int, case: tuple[Word, int, int, int, int]) -> None:
    """Run all operations of a case with one program, which is compiled for products."""
    word, size, radix, count, tasklets = case
    random_numbers = attack.random(number)
    steps = steps_of(size, radix, count, random_numbers)
    what = f"size {size}, radix {radix}, {tasklets} tasklets, {word.bits}-bit words"
    if steps is None:
        try:
            Ntt.make(size=size, limbs=1, radix=radix, steps=str(count), tasklets=tasklets)
        except ArgumentError:
            return
        attack.find(f"{what}: {count} steps are not refused", number=number)
        return
    limbs = random_numbers.randint(1, LIMBS_MAX)
    moduli = draw_moduli(random_numbers, word, size, limbs)
    while True:  # cases with more PEs take long
        shape = draw_shape(
            random_numbers, tuple(map(int, steps.split("x"))), random_numbers.randint(1, limbs)
        )
        if prod(shape) <= PES_MAX:
            break
    technique = possible(random_numbers.choice(TECHNIQUES), shape)
    what += f", steps {steps}, moduli {moduli}, shape {shape}, {technique}"
    values = np.random.default_rng(random_numbers.randrange(2**32))
    bounds = np.array(moduli, np.uint64)[:, None]
    a, b = (values.integers(0, bounds, (limbs, size), np.uint64) for _ in range(2))
    try:
        problems = [
            Ntt(
                moduli,
                a,
                b if operation == "product" else None,
                radix=radix,
                steps=steps,
                operation=operation,
                tasklets=tasklets,
            )
            for operation in OPERATIONS
        ]
        placement = next(each for each in problems if each.operation == "product").place(shape)
        options = with_defaults(options_of(technique=technique))
        with (
            allocate(pes=prod(shape)) as pe_set,
            Stage(pe_set, shape, placement, options, 1) as stage,
        ):
            for problem in problems:
                stage.poison()
                result = problem.run(stage)
                if wrong := problem.wrong(result, problem.reference()):
                    sentence = f"{wrong} wrong elements"
                else:
                    sentence = sentence_of(problem, result, random_numbers)
                if sentence:
                    attack.find(f"{problem.operation}, {what}: {sentence}", number=number)
    except Exception as error:  # of any type is a finding
        attack.find(f"{what}: {type(error).__name__}: {error}", number=number)


def main() -> None:
    """Run the cases from the first that earlier runs left, until the time is over."""
    attack = Attack()
    sizes = [1 << bits for bits in range(SIZE_MIN.bit_length() - 1, SIZE_MAX.bit_length())]
    cases = list(
        product(WORDS, sizes, RADIXES, range(1, MOST_STEPS + 1), range(1, TASKLETS_MAX + 1))
    )
    random.Random(0).shuffle(cases)  # equal for all seeds, so that runs continue each other
    state = attack.folder / "transform_grid.next"
    text = state.read_text() if attack.only is None and state.is_file() else ""
    first = passed = int(text) % len(cases) if text.isdecimal() else 0
    for turn in attack.numbers(len(cases) - first):
        number = turn if attack.only is not None else first + turn
        run(attack, number, cases[number])
        if attack.only is None and not attack.findings:  # the next run repeats the first finding
            passed = number + 1
            state.write_text(str(passed))
    if attack.only is None:
        left = len(cases) - passed
        print(f"left: {left} of {len(cases)} cases" if left else f"complete: all {passed} cases")
    attack.finish()


if __name__ == "__main__":
    main()
