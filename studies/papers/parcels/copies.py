"""Figure 7: the overhead with copies, and copies by size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import fmean

from pidcomm_studies.papers.figure import Figure, Panel, Point, Request, Statement
from pidcomm_studies.papers.parcels.benchmark import (
    LAM,
    MPICH,
    PIM,
    ROWS,
    Results,
    occupancy,
    results_of,
)
from pidcomm_studies.papers.parcels.parts import cycle_points, figure, numbers, point, words
from pidcomm_studies.parcels.build import CACHES, cache_bytes
from pidcomm_studies.parcels.run import BENCHMARK, CONVENTIONAL, OVERHEAD, SIZES, TABLE_1, Run

CATEGORIES = (*OVERHEAD, "copy")
FIRST_CACHE_BYTES, LINE_BYTES = cache_bytes("L1"), CACHES["L1_LINE"]


def _figure_7() -> Figure:
    panels = [
        Panel("a) rendezvous", "overhead and copy cycles", "% posted"),
        Panel("b) eager", "overhead and copy cycles", "% posted"),
        Panel("c) copies", "instructions per cycle of a copy", "KiB"),
    ]

    def model(request: Request) -> Iterator[Point]:
        results = request.shared(results_of)
        for panel, size in ((panels[0], "rendezvous"), (panels[1], "eager")):
            names = (PIM, ROWS, LAM, MPICH)
            yield from cycle_points(results, panel.name, size, names, CATEGORIES)
        for (engine, copied), (instructions, cycles) in results.copies.items():
            name = "conventional processor" if engine == MPICH else "pim, one thread"
            yield point(panels[2].name, name, copied // 1024, instructions / cycles)

    def statements(request: Request, _: Sequence[Point]) -> Iterator[Statement]:
        results = request.shared(results_of)
        yield _judge_shares(results)
        yield from _judge_conventional_copies(results)
        yield _judge_rows(results)

    note = (
        "Copies: travelling threads load and store each word or row, into a parcel and out of it;"
        " the conventional network loads each word of the program's buffer and stores it at the"
        " receiver. Both count as copies here."
    )
    return figure("fig7", "cycles with copies; copies by size", panels, model, statements, note)


def _judge_shares(results: Results) -> Statement:
    shares = {
        (name, size): fmean(
            occupancy(run, ("copy",)) / occupancy(run, CATEGORIES) for run in results.of(name, size)
        )
        for name in (PIM, LAM, MPICH)
        for size in SIZES
    }
    return Statement(
        "copies are a significant part of the time in MPI, mainly for large messages",
        ", ".join(f"{name} {size} {share:.0%}" for (name, size), share in shares.items()),
        all(share > 0.5 for (_, size), share in shares.items() if size == "rendezvous"),
        "copies take less than half of the time",
    )


def _judge_conventional_copies(results: Results) -> Iterator[Statement]:
    copies = {size: copy for (engine, size), copy in results.copies.items() if engine == MPICH}
    rates = {size: instructions / cycles for size, (instructions, cycles) in copies.items()}
    small = [rate for size, rate in rates.items() if size < FIRST_CACHE_BYTES]
    fit = max(size for size in rates if 2 * size <= FIRST_CACHE_BYTES)
    large = {size: rate for size, rate in rates.items() if size > FIRST_CACHE_BYTES}
    instructions, cycles = (value / fit * 8 for value in copies[fit])
    yield Statement(
        "conventional copies below 32 KiB: IPC close to 1.0",
        numbers(small),
        min(small) >= 0.9,
        f"source and target fill the first cache from {fit // 1024} KiB on; before, a word takes"
        f" {instructions:.0f} instructions in {cycles:.0f} cycles: the store waits for the load",
    )
    some = min(large)
    instructions, cycles = (value / some * LINE_BYTES for value in copies[some])
    delay = TABLE_1[CONVENTIONAL]["l2"]
    yield Statement(
        "larger conventional copies: IPC below 0.4",
        numbers(list(large.values())),
        max(large.values()) < 0.4,
        f"a line has {instructions:.0f} instructions, {cycles:.0f} cycles and two misses, which"
        f" table 1's second cache answers in {delay} cycles; {min(large.values()):.2f} where source"
        " and target exceed that cache",
    )


def _judge_rows(results: Results) -> Statement:
    def latency(run: Run, categories: Sequence[str]) -> float:
        return run.total("cycles", categories, BENCHMARK)

    here, parts = [], []
    for size in SIZES:
        for measure, what in ((occupancy, "occupancy"), (latency, "latency")):
            rows, single, engine = (
                sum(measure(run, CATEGORIES) for run in results.of(name, size))
                for name in (ROWS, PIM, MPICH)
            )
            parts.append(1 - rows / single)
            here.append(f"{size} {words(parts[-1])} {what}, {words(1 - rows / engine)} than mpich")
    return Statement(
        "copies of whole rows reduce the time in MPI considerably",
        "; ".join(here),
        min(parts) > 0.1,
        f"the least part is {min(parts):.0%}",
    )


FIGURE_7 = _figure_7()
