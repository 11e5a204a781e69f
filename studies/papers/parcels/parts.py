"""What figures 4 to 7 have in common: panels, points, comparisons and their words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
    REAL_64K,
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
"""A published percentage agrees with one here that differs by at most 5 percentage points."""


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
    for (name, size_of_case, posted), run in results.runs.items():
        if size_of_case == size and name in names:
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


def explain_lam(
    results: Results,
    what: str,
    measure: Callable[[Run], float],
    published: Mapping[str, float | None],
) -> str:
    """Return the cause of a difference from the engine lam: its size, if that explains it.

    LAM may exceed the engine lam as MPICH 1.2.5 exceeds the engine mpich with the same protocol.
    what: the measure in words. published: by size, the part by which travelling threads are below
    LAM; None: below LAM.
    """
    texts, are_explained = [], []
    for size, expected in published.items():
        real = REAL if size == "eager" else REAL_64K
        pim, lam, mpich, mpich_here = (
            sum(map(measure, results.of(name, size))) for name in (PIM, LAM, real, MPICH)
        )
        factor = mpich / mpich_here
        part = 1 - pim / (factor * lam)
        are_explained.append(part > 0 if expected is None else abs(part - expected) <= TOLERANCE)
        texts.append(f"{size} {factor:.2f} times, so {words(part)}")
    return ("" if all(are_explained) else "unexplained; ") + (
        "the engine lam is the smallest program that behaves as LAM. If LAM exceeds it in"
        f" {what} as MPICH 1.2.5 exceeds the engine mpich: {', '.join(texts)}"
    )


def ipc(run: Run) -> float:
    """Return the instructions per cycle of the overhead."""
    return overhead(run, "instructions") / overhead(run, "cycles")
