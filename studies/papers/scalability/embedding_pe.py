"""Figure 5 of the paper: the kernel on one PE."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pidcomm_studies.apps.embedding import Model
from pidcomm_studies.papers.figure import (
    MODELLED,
    Figure,
    Panel,
    Point,
    Request,
    Statement,
    series_of,
)
from pidcomm_studies.papers.scalability.embedding_price import MACHINE, Work
from pidcomm_studies.papers.scalability.paper import PAPER, falls, listed, steady

SMALL = Model(1, 1 << 10, 64, 16, 512)
SWEEPS: dict[str, tuple[str, list[int]]] = {
    "a": ("tasklets", [1, 2, 4, 8, 11, 12, 16, 20, 24]),
    "b": ("columns", [4, 8, 16, 32, 64, 128]),
    "c": ("rows", [1 << 10, 1 << 12, 1 << 14, 1 << 16, 1 << 17]),
    "d": ("pooling", [1, 2, 4, 8, 16, 32, 64, 128]),
}


def _figure_5(_: Request) -> Iterator[Point]:
    for panel, (name, values) in SWEEPS.items():
        works = [
            (
                Work(SMALL, (1, 1, 1), tasklets=value)
                if name == "tasklets"
                else Work(SMALL._replace(**{name: value}), (1, 1, 1))
            )
            for value in values
        ]
        first = works[0].kernel().seconds
        for value, work in zip(values, works, strict=True):
            kernel = work.kernel()
            yield Point(
                panel, "time over the first", value, kernel.seconds / first, MODELLED, MACHINE
            )
            yield Point(panel, "instructions per cycle", value, kernel.per_cycle, MODELLED, MACHINE)
            yield Point(panel, "GB/s from MRAM", value, kernel.read_gb_s, MODELLED, MACHINE)


def _statements_5(_: Request, points: Sequence[Point]) -> Iterator[Statement]:
    times, issued, rates = (
        {panel: series_of(points, panel, name) for panel in SWEEPS}
        for name in ("time over the first", "instructions per cycle", "GB/s from MRAM")
    )
    columns, pooled = times["b"], times["d"]
    after = times["a"][11] / times["a"][24]
    yield Statement(
        "11 tasklets use the pipeline fully; the kernel is bound by compute",
        f"24 tasklets are {after:.2f}x as fast as 11, and 11 are"
        f" {times['a'][1] / times['a'][11]:.1f}x as fast as 1; with 11, the pipeline issues"
        f" {issued['a'][11]:.2f} instructions per cycle",
        after < 1.1 and issued["a"][11] > 0.9,
    )
    gain = rates["a"][24] / rates["a"][11] - 1
    yield Statement(
        "beyond 11 tasklets, the memory bandwidth drops",
        f"24 tasklets: {100 * gain:+.1f}% over 11",
        gain < 0,
        f"with 11 tasklets, {100 * (1 - issued['a'][11]):.1f}% of the cycles are idle; more"
        " tasklets fill them without more instructions per row",
    )
    many, few = columns[128] / columns[16], columns[16] / columns[4]
    yield Statement(
        "time grows in proportion to the columns",
        f"from 16 to 128 columns {many:.1f}x the time, from 4 to 16 columns {few:.1f}x",
        many > 0.8 * 128 / 16,
    )
    per_column = (columns[128] - columns[64]) / 64
    fixed = columns[64] / per_column - 64
    yield Statement(
        "memory bandwidth grows with the columns",
        f"GB/s: {listed(rates['b'])}",
        falls({x: -rate for x, rate in rates["b"].items()}),
        "the pipeline issues close to 1 instruction per cycle from 8 columns on. Of the time of a"
        f" row of 64 columns, only {100 * fixed / (64 + fixed):.1f}% does not grow with the"
        " columns, because floats are added by software",
    )
    yield Statement(
        "the height of the table has no effect",
        f"time over 1k rows: {listed(times['c'])}",
        steady(times["c"], 0.05),
    )
    few, many = pooled[8] / pooled[1], pooled[128] / pooled[16]
    per_row = (pooled[128] - pooled[64]) / 64
    yield Statement(
        "pooling has little effect up to 8, and a large one from 16",
        f"from 1 to 8 {few:.1f}x the time, from 16 to 128 {many:.1f}x (both 8x the pooling)",
        few < many / 2,
        f"the work of a bag besides its further rows takes {pooled[1] / per_row:.2f} of the time of"
        " a row, so time follows pooling. On a linear axis, the time at 8 is"
        f" {100 * pooled[8] / pooled[128]:.0f}% of the time at 128, which looks small",
    )
    yield Statement(
        "memory bandwidth grows with pooling",
        f"GB/s: {listed(rates['d'])}",
        falls({x: -rate for x, rate in rates["d"].items()}),
        "the first row of a bag is copied, each further row is added:"
        f" {issued['d'][1]:.2f} instructions per cycle with pooling 1, {issued['d'][2]:.2f} with 2",
    )


FIGURE_5 = Figure(
    "scalability/fig5",
    PAPER,
    "kernel on one PE by tasklets, columns, rows and pooling",
    [
        Panel(name, f"{x}: time, instructions per cycle, GB/s", x, is_log=True)
        for name, x in zip("abcd", ("tasklets", "columns", "rows", "pooling"), strict=True)
    ],
    _figure_5,
    _statements_5,
    note=(
        "Defaults of the paper: 64 columns, 1k rows, 24 tasklets, pooling 16, batch 512. dpuemu's"
        " pipeline issues at most one instruction per cycle. Elements are floats."
    ),
)
