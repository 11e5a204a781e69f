"""Table 4 and figure 12 of Scalability limitations of processing-in-memory using real system
evaluations (SIGMETRICS 2024).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise, product

from pidcomm_studies.apps.ntt import Ntt
from pidcomm_studies.apps.ntt.decomposition import RADIXES
from pidcomm_studies.papers.figure import (
    MODELLED,
    Figure,
    Panel,
    Point,
    Request,
    Statement,
    series_of,
)
from pidcomm_studies.papers.scalability.ntt import NOTE_KERNELS, OWN, PAPER, WIDTHS, is_near, listed
from pidcomm_studies.papers.scalability.ntt_clocks import clocks

KERNELS_ON = "dpuemu"
SMALL, TASKLETS = 2**8, tuple(range(1, 25))
TABLE_4 = {2: (128, 1, 7), 4: (64, 4, 3), 16: (16, 32, 1)}
"""Butterflies per stage, their size and the number of synchronisations, by radix."""
FASTER_PCT = 8
SLOWER_STEPS_MAX = 0.25  # of this project: in general, at most this part of the steps is slower
SLOWER = 0.01  # of this project: one more tasklet is slower if it takes this part longer
SMALL_DROP_POINTS = 10  # of this project: a very small drop of the pipeline use


def _points(request: Request) -> Iterator[Point]:
    for (width, word), radix, tasklets in product(WIDTHS.items(), RADIXES, TASKLETS):
        request.progress.phase(f"{width}, radix {radix}, {tasklets} tasklets")
        problem = Ntt.make(
            size=SMALL, limbs=1, bits=word.modulus_bits, steps="1", radix=radix, tasklets=tasklets
        )
        times = clocks(problem, (1, 1, 1, 1), OWN, 1)
        values = {
            "time": 1e6 * times.kernel,
            "pipeline": times.pipeline_pct,
            "instructions": times.instructions,
        }
        for panel, value in values.items():
            yield Point(
                panel, _radix(radix, width), tasklets, value, MODELLED, KERNELS_ON, times.wrong
            )


def _radix(radix: int, width: str) -> str:
    return f"radix {radix}, {width}"


def _stages(radix: int) -> tuple[int, int, int]:
    """Return the butterflies of a stage of the kernel, their butterflies of radix 2, and the
    barriers between two stages.
    """
    problem = Ntt.make(size=SMALL, limbs=1, steps="1", radix=radix)
    levels = problem.radix.bit_length() - 1
    stages = (problem.steps[0].bit_length() - 1) // levels
    return problem.steps[0] // radix, radix // 2 * levels, stages - 1


def _statements12(_: Request, points: Sequence[Point]) -> Iterator[Statement]:
    counts = {radix: _stages(radix) for radix in RADIXES}
    yield Statement(
        f"table 4 (by definition, so not judged), radixes {listed(RADIXES)}: {_columns(TABLE_4)}",
        f"{_columns(counts)}; the kernel also has a barrier after reads, the last stage, the"
        " reduction and writes",
    )
    for width in WIDTHS:
        time, use, instructions = (
            {r: series_of(points, panel, _radix(r, width)) for r in RADIXES}
            for panel in ("time", "pipeline", "instructions")
        )
        yield from _saturation(width, time, use)
        gain = 100 * (time[2][16] / time[16][16] - 1)
        saved = instructions[2][16] - instructions[16][16]
        butterflies = SMALL // 2 * (SMALL.bit_length() - 1)
        yield Statement(
            f"with 16 tasklets, radix 16 is about {FASTER_PCT}% faster than radix 2",
            f"{width}: {gain:.1f}% faster: {time[16][16]:.0f} us and {time[2][16]:.0f} us",
            is_near(gain, FASTER_PCT),
            f"radix 16 saves {saved / butterflies:.1f} of {instructions[2][16] / butterflies:.0f}"
            " instructions per butterfly of radix 2, loads, stores and barriers; the rest are"
            f" mostly products. {FASTER_PCT}% would need a butterfly of"
            f" {saved / butterflies * (1 + 100 / FASTER_PCT):.0f} instructions",
        )
        few, many = TASKLETS[0], TASKLETS[-1]
        slower = {
            radix: [more for less, more in pairwise(TASKLETS) if t[more] > (1 + SLOWER) * t[less]]
            for radix, t in time.items()
        }
        steps = len(TASKLETS) - 1
        part = sum(map(len, slower.values())) / (len(RADIXES) * steps)
        yield Statement(
            f"in general (here: in at least {1 - SLOWER_STEPS_MAX:.0%} of the steps), more"
            " tasklets are not slower",
            f"{width}: from {few} to {many} tasklets "
            + ", ".join(
                f"radix {radix} gains {series[few] / series[many]:.2f}x"
                for radix, series in time.items()
            )
            + f"; {part:.1%} of the steps are over {SLOWER:.0%} slower: "
            + ", ".join(
                f"radix {radix} at {listed(tasklets) or 'no number'}"
                for radix, tasklets in slower.items()
            ),
            part <= SLOWER_STEPS_MAX,
            "butterflies that are not a multiple of the tasklets leave some tasklets idle",
        )
        best = min(RADIXES, key=lambda radix: time[radix][16])
        yield Statement(
            "a higher radix has the highest performance if its butterflies are balanced",
            f"{width}: at 16 tasklets radix {best} is the fastest; "
            + ", ".join(f"radix {radix} {time[radix][16]:.0f} us" for radix in RADIXES),
            best == RADIXES[-1],
            f"radix {best} has the fewest instructions: "
            + ", ".join(f"radix {radix} {instructions[radix][16]:.0f}" for radix in RADIXES),
        )


def _saturation(width: str, time: dict[int, dict], use: dict[int, dict]) -> Iterator[Statement]:
    gains = [time[radix][8] / time[radix][11] for radix in (2, 4)]
    later = [time[radix][11] / time[radix][24] for radix in (2, 4)]
    yield Statement(
        "the pipeline begins to saturate at about 11 tasklets with radix 2 and 4",
        f"{width}: from 8 to 11 tasklets radix 2 and 4 gain {gains[0]:.2f}x and {gains[1]:.2f}x,"
        f" from 11 to 24 {later[0]:.2f}x and {later[1]:.2f}x; pipeline use at 11 is"
        f" {use[2][11]:.0f}% and {use[4][11]:.0f}%",
        all(gain > 1.05 for gain in gains) and all(gain < 1.15 for gain in later),
        f"pipeline use at 24 tasklets is {use[2][24]:.0f}% and {use[4][24]:.0f}%",
    )
    worst = {r: min(range(9, 16), key=lambda tasklets: use[r][tasklets]) for r in RADIXES}
    left = {radix: SMALL // radix % worst[radix] for radix in RADIXES}
    yield Statement(
        "the pipeline use of radix 16 drops before 16 tasklets, because its 16 butterflies are not"
        " divided evenly",
        f"{width}: {use[16][8]:.0f}% at 8 tasklets, {use[16][worst[16]]:.0f}% at {worst[16]},"
        f" {use[16][16]:.0f}% at 16",
        use[16][worst[16]] < min(use[16][8], use[16][16]),
        f"at {worst[16]} tasklets {left[16]} butterflies are left over",
    )
    drops = {radix: use[radix][16] - min(use[radix][t] for t in range(12, 16)) for radix in RADIXES}
    yield Statement(
        f"this effect is very small (here: at most {SMALL_DROP_POINTS} points) for radix 2 and 4",
        f"{width}: from 12 to 15 tasklets, pipeline use is up to "
        + ", ".join(f"{drop:.1f} (radix {radix})" for radix, drop in drops.items())
        + " points lower than at 16",
        max(drops[2], drops[4]) <= SMALL_DROP_POINTS,
        f"at {worst[4]} tasklets, {left[4]} of {SMALL // 4} butterflies of radix 4 are left over",
    )


def _columns(table: dict[int, tuple[int, int, int]]) -> str:
    per_stage, sizes, barriers = (listed(column) for column in zip(*table.values(), strict=True))
    return (
        f"{per_stage} butterflies per stage, of {sizes} butterflies of radix 2, and {barriers}"
        " synchronisations between stages"
    )


FIGURE_12 = Figure(
    "scalability/fig12",
    PAPER,
    "256-point transform on one PE: tasklets and radix",
    [
        Panel("time", "us of the kernel", "tasklets"),
        Panel("pipeline", "instructions in percent of cycles", "tasklets"),
        Panel("instructions", "number", "tasklets"),
    ],
    _points,
    _statements12,
    note=NOTE_KERNELS,
)
