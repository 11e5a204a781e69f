"""Words and comparisons that the figures of the paper share.

The paper plots without numbers in its text, with the exceptions that `Statement` objects quote.
Parameters that the paper does not print are chosen here and named in the notes. Nothing is fitted
to a figure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, TypeAlias

from pidcomm_studies.apps.embedding import Clocks
from pidcomm_studies.papers.figure import HERE, PUBLISHED, Point

PAPER = (
    "Jonatan et al., Scalability Limitations of Processing-in-Memory using Real System Evaluations"
    " (SIGMETRICS 2024)"
)
SERVER = "the server of the paper"
NEAR = 2.0  # a value agrees with a published number within this factor
PAPER_WAY, FAST = "paper's way", "reduce by tile"
PAPER_CHOICE = ("gather", "conventional")
"""The path and technique of the paper."""
WAYS = {PAPER_WAY: PAPER_CHOICE, FAST: ("reduce", "tile")}
"""The two ways that the figures compare."""
CLOCKS = {"kernel": "kernel", "host": "host", "CPU to PE": "cpu_to_pe", "PE to CPU": "pe_to_cpu"}
"""The paper's clocks, and the fields of `pidcomm_studies.apps.embedding.Clocks`."""
WAY_NAMES = (
    "The paper's way gathers all partial sums by transfers of the SDK, and the host reduces them."
    " The other way reduces them on the way to the host."
)

Series: TypeAlias = Mapping[Any, float]


# The paper prints no times of its CPU; those of PUBLISHED_CPU follow from a published ratio.
CPU, PUBLISHED_CPU = "CPU", "published CPU, implied"
CPU_NAMES = {CPU: "the modelled CPU (all threads)", PUBLISHED_CPU: "the published CPU (implied)"}


def priced(points: Sequence[Point]) -> list[Point]:
    """Return the points that are prices, without those of runs here."""
    return [point for point in points if point.on != HERE]


def published(panel: str, series: str, x: float | str, value: float) -> Point:
    """Return a number that the paper prints."""
    return Point(panel, f"the paper: {series}", x, value, PUBLISHED, SERVER)


def near(value: float, number: float) -> bool:
    """Return whether a value is within a factor of `NEAR` of a published number."""
    return number / NEAR <= value <= number * NEAR


def clock_shares(
    panels: str, label: str, x: float | str, times: Clocks, source: str, on: str
) -> list[Point]:
    """Return each clock in percent of the total, in the panels of the clocks."""
    return [
        Point(f"{panels} {name}", label, x, 100 * getattr(times, key) / times.total, source, on)
        for name, key in CLOCKS.items()
    ]


def crossing(falling: Series, level: Series) -> float | str | None:
    """Return the first x from which a series stays at or below another, or None."""
    crossed_at: float | str | None = None
    for x in falling:
        if falling[x] > level[x]:
            crossed_at = None
        elif crossed_at is None:
            crossed_at = x
    return crossed_at


def flat_from(series: Series, gain: float) -> float | str | None:
    """Return the first x from which each next value gains less than a factor, or None."""
    flat_at: float | str | None = None
    for x, after in pairwise(series):
        if series[x] >= gain * series[after]:
            flat_at = None
        elif flat_at is None:
            flat_at = x
    return flat_at


def steady(series: Series, share: float) -> bool:
    """Return whether all values are within a share of the first."""
    first = next(iter(series.values()))
    return all(abs(value - first) <= share * first for value in series.values())


def falls(series: Series) -> bool:
    """Return whether no value is larger than the one before."""
    values = list(series.values())
    return values == sorted(values, reverse=True)


def listed(series: Series) -> str:
    """Return the values as text, each with its x."""
    return ", ".join(f"{value:.3g} at {x}" for x, value in series.items())
