"""A figure of another paper, repeated here: points by panel and series, beside the statements that
the paper prints.

A module that repeats figures lists them as `Figure` objects; ``pidcomm reproduce`` shows, writes
and draws all of them in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import pidcomm

MEASURED, MODELLED, MIXED, PUBLISHED = "measured", "modelled", "mixed", "published"
SOURCES = (MEASURED, MIXED, MODELLED, PUBLISHED)


@dataclass(frozen=True)
class Panel:
    """A panel of a figure. what: the value and its unit. x: what the horizontal axis shows."""

    name: str
    what: str
    x: str
    is_log: bool = False


@dataclass(frozen=True)
class Point:
    """A value of a series in a panel.

    source: one of `SOURCES`; `mixed` values have measured and modelled parts. on: the machine of
    the value. wrong:
    number of wrong elements in the result behind the value; None if nothing ran.
    """

    panel: str
    series: str
    x: float | str
    value: float
    source: str
    on: str
    wrong: int | None = None


@dataclass(frozen=True)
class Statement:
    """A statement of the paper, the same statement with the values of this project, and whether
    the two agree.
    """

    published: str
    here: str
    agrees: bool


@dataclass(frozen=True)
class Figure:
    """A figure of another paper.

    name: ``paper/figN``. paper: authors, venue and year. model: yields the modelled points.
    measure(iters, step):
    yields the points of runs on this machine, and calls step with a few words before each run; None
    if nothing runs.
    statements: the statements of the paper about the points. note: one paragraph that explains
    differences.
    """

    name: str
    paper: str
    title: str
    panels: Sequence[Panel]
    model: Callable[[], Iterable[Point]]
    statements: Callable[[Sequence[Point]], Iterable[Statement]]
    measure: Callable[[int, Callable[[str], None]], Iterable[Point]] | None = None
    note: str = ""


def series_of(
    points: Iterable[Point], panel: str, series: str, source: str | None = None
) -> dict[float | str, float]:
    """Return the values of a series by x. source: only values with this source."""
    return {
        it.x: it.value
        for it in points
        if (it.panel, it.series) == (panel, series) and source in (None, it.source)
    }


def json_rows(
    figure: Figure, points: Iterable[Point], statements: Iterable[Statement]
) -> Iterator[dict[str, Any]]:
    """Yield the points and the statements for JSON."""
    for point in points:
        yield {"figure": figure.name, **asdict(point), "version": pidcomm.__version__}
    for it in statements:
        yield {"figure": figure.name, **asdict(it), "version": pidcomm.__version__}
