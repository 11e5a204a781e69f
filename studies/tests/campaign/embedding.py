"""Run embedding tables of random sizes, bags, shapes, paths, techniques and tasklets against NumPy.

Up to all bags of a table are empty, so that many groups of bags have no index on a PE.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path

import numpy as np
from attack import Attack
from transforms import TECHNIQUES, possible

sys.path.append(str(Path(__file__).resolve().parents[1]))
from test_app_embedding import oracle, table_values

from pidcomm import Error
from pidcomm_studies import apps
from pidcomm_studies.apps.embedding import DTYPES, PATHS, TASKLETS_MAX, Embedding, Model
from pidcomm_studies.apps.embedding.bags import bags_of


def draw(dice: random.Random) -> tuple[Embedding, tuple[int, int, int], str]:
    """Return a problem, a shape and a technique."""
    model = Model(
        tables=dice.randint(1, 6),
        rows=dice.choice((1, 7, 64, 1000)),
        columns=dice.choice((1, 2, 3, 8, 17, 32, 64, 65)),
        pooling=dice.choice((1, 2, 5, 40)),
        batch=dice.choice((1, 5, 16, 200)),
    )
    numbers = np.random.default_rng(dice.getrandbits(32))
    counts = numbers.integers(1, 2 * model.pooling, model.batch * model.tables)
    counts[numbers.random(len(counts)) < dice.random()] = 0
    starts = np.concatenate([[0], np.cumsum(counts)])
    indices = numbers.integers(0, model.rows, starts[-1])
    problem = Embedding(
        table_values(model, dice.choice(DTYPES), dice.getrandbits(32)),
        bags_of(model.tables, model.rows, starts, indices),
        path=dice.choice(PATHS),
        tasklets=dice.randint(1, TASKLETS_MAX),
    )
    shape = dice.choice((1, 2, 3, 8)), dice.choice((1, 2, 5, 8, 40)), dice.choice((1, 2, 7, 8))
    return problem, shape, possible(dice.choice(TECHNIQUES), shape)


def main() -> None:
    """Run the attack."""
    attack = Attack()
    for number in attack.numbers():
        problem, shape, technique = draw(attack.random(number))
        case = f"{problem.tables.shape}, {problem.path}, shape {shape}, {technique}"
        try:
            run = apps.run(problem, shape=shape, technique=technique, iters=1)
        except Error as error:
            attack.find(f"{case}: {error}", number=number)
            continue
        right = oracle(problem.tables, problem.bags)
        if wrong := run.wrong + sum(
            problem.wrong(result, right.astype(run.result.dtype))
            for result in (run.result, problem.pooled_plainly())
        ):
            attack.find(f"{wrong} wrong elements: {case}", number=number)
    attack.finish()


if __name__ == "__main__":
    main()
