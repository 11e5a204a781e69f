"""What figures 4 to 7 have in common: panels, points, comparisons and their words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from statistics import fmean

from pidcomm_studies.papers.figure import (
    MEASURED,
    MIXED,
    MODELLED,
    Figure,
    Panel,
    Point,
    Request,
    Statement,
)
from pidcomm_studies.papers.parcels.benchmark import (
    LAM,
    MPICH,
    PIM,
    POSTED,
    REAL,
    Results,
    occupancy,
    overhead,
)
from pidcomm_studies.parcels.run import BENCHMARK, SIZES, Run

PAPER = (
    "Rodrigues, Murphy, Kogge, Brockman, Brightwell, Underwood: Implications of a PIM Architectural"
    " Model for MPI"
)
COUNTERPARTS = {LAM: LAM, MPICH: REAL}
"""The MPI here that stands for each published one."""
TOLERANCE = 0.05
"""A published percentage agrees with one here that differs by at most this part."""


def figure(
    name: str,
    title: str,
    panels: Sequence[Panel],
    model: Callable[[Request], Iterable[Point]],
    statements: Callable[[Request, Sequence[Point]], Iterable[Statement]],
    note: str,
) -> Figure:
    """Return a figure of the paper."""
    options = ("--latency", "--pim")
    return Figure(
        f"parcels/{name}", PAPER, title, panels, model, statements, note=note, options=options
    )


def panels_of(what: Iterable[tuple[str, str, str]], x: str = "% posted") -> list[Panel]:
    """Return panels with the given letters, names and values."""
    return [Panel(f"{letter}) {name}", text, x) for letter, name, text in what]


def point(panel: str, name: str, x: float | str, value: float, field: str = "cycles") -> Point:
    """Return a point of an MPI. All of MPICH 1.2.5 was counted, except its cycles."""
    if not name.startswith(REAL):
        return Point(panel, name, x, value, MODELLED, "the simulated machine", 0)
    return Point(panel, name, x, value, MIXED if field == "cycles" else MEASURED, "x86-64")


def cycle_points(
    results: Results, panel: str, size: str, names: Sequence[str], categories: Sequence[str]
) -> Iterator[Point]:
    """Yield the cycles of categories; of travelling threads by both measures."""
    for (name, of, posted), run in results.runs.items():
        if of == size and name in names:
            cycles = run.total("cycles", categories, BENCHMARK)
            if run.engine == PIM:
                yield point(panel, f"{name}, occupancy", posted, occupancy(run, categories))
                name += ", latency"
            yield point(panel, name, posted, cycles)


def less(results: Results, size: str, name: str, field: str) -> float:
    """Return by how much travelling threads are below another MPI: the mean over the percentages,
    as a fraction.
    """
    return 1 - fmean(
        overhead(results.runs[PIM, size, posted], field)
        / overhead(results.runs[name, size, posted], field)
        for posted in POSTED
    )


def words(part: float) -> str:
    """Return "10% less" for 0.1."""
    return f"{abs(part):.0%} {'less' if part >= 0 else 'more'}"


def means(results: Results, name: str, field: str) -> str:
    """Return in words by how much travelling threads are below another MPI."""
    sizes = [size for size in SIZES if results.of(name, size)]
    return ", ".join(f"{size} {words(less(results, size, name, field))}" for size in sizes)


def numbers(values: Sequence[float]) -> str:
    """Return the range of numbers."""
    return f"{min(values):.2f} to {max(values):.2f}"


def percents(values: Sequence[float]) -> str:
    """Return the range of parts."""
    return f"{min(values):.0%} to {max(values):.0%}"


def size_of_lam(results: Results, what: str, measure: Callable[[Run], float]) -> str:
    """Return the cause of a difference from the engine lam: its size.

    what: the measure in words.
    """
    factor, *ratios = (
        fmean(
            measure(results.runs[over, size, posted]) / measure(results.runs[under, size, posted])
            for size in sizes
            for posted in POSTED
        )
        for over, under, sizes in (
            (REAL, MPICH, SIZES),
            *((PIM, LAM, [size]) for size in SIZES),
        )
    )
    parts = [
        f"{size} {words(1 - ratio / factor)}" for size, ratio in zip(SIZES, ratios, strict=True)
    ]
    return (
        f"the engine lam is the smallest program that behaves as LAM; MPICH 1.2.5 has {factor:.2f}"
        f" times the {what} of the engine mpich. If LAM had that, too: {', '.join(parts)}"
    )


def ipc(run: Run) -> float:
    """Return the instructions per cycle of the overhead."""
    return overhead(run, "instructions") / overhead(run, "cycles")
