"""A figure of a paper, repeated here: points by panel and series, beside the statements that the
paper prints.

The folder of each paper has one list of `Figure` objects; ``pidcomm reproduce`` shows, writes and
draws all of them in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

import pidcomm
from pidcomm import Error

MEASURED, MODELLED, MIXED, PUBLISHED = "measured", "modelled", "mixed", "published"
COUNTED = "counted"
SOURCES = (MEASURED, MIXED, MODELLED, COUNTED, PUBLISHED)
HERE = "emulated DIMMs of this host"

T = TypeVar("T")


@dataclass(frozen=True)
class Panel:
    """A panel of a figure. what: the value and its unit. x: what the horizontal axis shows.

    detail: the meaning of the details of points. unit: if the panel compares the published value
    of each statistic with the values here, the unit of these values; otherwise None.
    """

    name: str
    what: str
    x: str
    is_log: bool = False
    detail: str = ""
    unit: str | None = None


@dataclass(frozen=True)
class Point:
    """A value of a series in a panel.

    source: one of `SOURCES`; `mixed` values have measured and modelled parts. on: the machine of
    the value. wrong: number of wrong elements in the result behind the value; None if nothing ran.
    facts: further fields for JSON. detail: words that the option --wide adds to the value.
    """

    panel: str
    series: str
    x: float | str
    value: float
    source: str
    on: str
    wrong: int | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)
    detail: str = ""


@dataclass(frozen=True)
class Statement:
    """A statement of the paper, the same statement with the values of this project, and whether
    the two agree (None: not judged).

    cause: why they differ, with the computation behind it; shown only if they differ.
    """

    published: str
    here: str
    agrees: bool | None = None
    cause: str = ""


class Progress(Protocol):
    """Reports the progress of a command."""

    def phase(self, text: str, steps: int | None = None) -> None:
        """Begin a phase. steps: the number of steps in the phase, if known."""

    def step(self) -> None:
        """Add 1 to the number of finished steps."""

    def describe(self, text: str) -> None:
        """Change the text beside the number of finished steps."""


class _Silent:
    def phase(self, text: str, steps: int | None = None) -> None:
        pass

    def step(self) -> None:
        pass

    def describe(self, text: str) -> None:
        pass


def _ignore(_: Iterable[object]) -> None:
    pass


@dataclass
class Request:
    """The options of a command that repeats figures, and the data that its figures share.

    figures: the names of all wanted figures. iters: number of timed rounds; 0 measures nothing.
    pes, size_bytes: of measured calls. quick: whether applications have small inputs. latency, pim:
    of the simulated machines, as for `pidcomm_studies.papers.parcels.benchmark.measure`. comment,
    skip: write comments and the errors of skipped cases. conditions: the conditions of the
    measurements, by name of the figure. wrong: a sentence for each wrong result that has no point.
    """

    figures: Sequence[str] = ()
    iters: int = 0
    pes: int = 1024
    size_bytes: int = 1 << 20
    quick: bool = False
    latency: int | None = None
    pim: Mapping[str, int] = field(default_factory=dict)
    progress: Progress = field(default_factory=_Silent)
    comment: Callable[[Iterable[str]], None] = _ignore
    skip: Callable[[Iterable[Error]], None] = _ignore
    conditions: dict[str, str] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)
    _shared: dict[Callable[[Request], Any], Any] = field(default_factory=dict)

    def shared(self, make: Callable[[Request], T]) -> T:
        """Return `make(self)`, which all figures share: only the first use calls make."""
        if make not in self._shared:
            self._shared[make] = make(self)
        shared_value: T = self._shared[make]
        return shared_value


@dataclass(frozen=True)
class Figure:
    """A figure of a paper.

    name: ``paper/figN``. paper: authors, venue and year. model: yields the modelled and published
    points. statements: the statements of the paper about the points. measure: yields the points of
    runs on this machine; None if nothing runs. note: one paragraph that explains differences.
    options: the options of ``pidcomm reproduce`` that change the figure. check: raises an error
    before anything runs if the request is invalid.
    """

    name: str
    paper: str
    title: str
    panels: Sequence[Panel]
    model: Callable[[Request], Iterable[Point]]
    statements: Callable[[Request, Sequence[Point]], Iterable[Statement]] = lambda *_: ()
    measure: Callable[[Request], Iterable[Point]] | None = None
    note: str = ""
    options: tuple[str, ...] = ()
    check: Callable[[Request], object] = lambda _: None

    def points(self, request: Request) -> list[Point]:
        """Return all points; measured points only if the request has rounds."""
        points: list[Point] = []
        if request.iters and self.measure is not None:
            points += self.measure(request)
        request.progress.phase("pricing")
        return [*points, *self.model(request)]


def series_of(
    points: Iterable[Point], panel: str, series: str, source: str | None = None
) -> dict[float | str, float]:
    """Return the values of a series by x. source: only values with this source."""
    return {
        point.x: point.value
        for point in points
        if (point.panel, point.series) == (panel, series) and source in (None, point.source)
    }


def format_value(value: float, unit: str) -> str:
    """Return a value as text with its unit."""
    return f"{value:.2f}x" if unit == "x" else f"{value:.1f} {unit}"


def json_rows(
    figure: Figure, points: Iterable[Point], statements: Iterable[Statement]
) -> Iterator[dict[str, Any]]:
    """Yield the points and the statements for JSON."""
    for point in points:
        fields = {
            key: value for key, value in vars(point).items() if key not in ("facts", "detail")
        }
        yield {"figure": figure.name, **fields, "version": pidcomm.__version__, **point.facts}
    for statement in statements:
        yield {"figure": figure.name, **vars(statement), "version": pidcomm.__version__}
