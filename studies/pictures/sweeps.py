"""Line charts against bytes per PE or number of PEs, with a panel per collective."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import ceil, floor, log10, sqrt
from typing import TYPE_CHECKING, Any

from pidcomm import ArgumentError
from pidcomm.sizes import format_size
from pidcomm_studies.pictures import style
from pidcomm_studies.pictures.metrics import METRICS, Metric
from pidcomm_studies.pictures.rows import (
    CONDITIONS,
    SWEPT,
    JsonRow,
    collectives_of,
    split,
    sweep_axis,
    techniques_of,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

PANEL_COLUMNS = 4
MIN_WIDTH_INCHES, PANEL_INCHES, HEAD_AND_FOOT_INCHES = 6.5, 2.4, 1.3
MAX_SERIES = 8
LIMIT = "limit: streaming copy"
MAX_TICKS = 4
# Dashes of the limits of each series.
LIMIT_DASHES = ((1, 1), (4, 1), (4, 1, 1, 1), (8, 1), (4, 1, 1, 1, 1, 1), (1, 3), (4, 3), (8, 3))
LEAST_RANGE = 4.0  # the least ratio of the highest to the lowest value of the logarithmic y axis
# Mantissas of the ticks of the y axis: the first list that gives ENOUGH_TICKS.
MANTISSAS = ((1, 2, 5), (1, 2, 3, 5, 7), (1, 1.5, 2, 3, 4, 5, 6, 8))
ENOUGH_TICKS = 3
AXIS_LABELS = {"bytes_per_pe": "bytes per PE", "pes": "number of PEs"}
TITLES = {"bytes_per_pe": "over bytes per PE", "pes": "over the number of PEs"}


def draw(rows: Sequence[JsonRow], metric_name: str = "bus") -> Figure:
    """Return line charts with logarithmic axes.

    Raises ArgumentError if the rows are not a sweep.
    """
    metric = METRICS[metric_name]
    axis = sweep_axis(rows)
    if axis is None:
        raise ArgumentError(
            "the rows are no sweep: they must have several bytes per PE or numbers of PEs, and one"
            " row for each"
        )
    parts = split(rows, without=SWEPT[axis])
    series = [
        (words, technique)
        for words, part in parts.parts.items()
        for technique in techniques_of(part)
    ]
    if len(series) > MAX_SERIES:
        raise ArgumentError(
            f"the rows make {len(series)} lines per collective; a figure can show {MAX_SERIES}"
        )
    conditions = list(parts.parts)
    collectives = collectives_of(rows)
    lines, columns = style.grid_of(len(collectives), PANEL_COLUMNS)
    with style.settings():
        sources = "source: " + ", ".join(sorted({row["source"] for row in rows}))
        figure, body = style.new_figure(
            max(PANEL_INCHES * columns, MIN_WIDTH_INCHES),
            HEAD_AND_FOOT_INCHES + lines * PANEL_INCHES,
            f"{metric.title}, {TITLES[axis]}",
            parts.title,
            [sources, *parts.small_print],
        )
        grid = body.subplots(lines, columns, sharex=True, sharey=True, squeeze=False)
        for panel, collective in zip(grid.flat, collectives, strict=False):
            for words, technique in series:
                chosen = [
                    r
                    for r in parts.parts[words]
                    if (r["collective"], r["technique"]) == (collective, technique)
                ]
                _lines(panel, chosen, axis, metric, technique, conditions.index(words))
            panel.set_title(collective)
            panel.grid(which="major")
            style.clean(panel)
        for panel in grid.flat[len(collectives) :]:
            panel.remove()
        heights = [
            value
            for row in rows
            for value in (metric.of(row), metric.limit_of(row))
            if value is not None
        ]
        log_scales(
            grid[0, 0], _values(rows, axis), heights, format_size if axis == "bytes_per_pe" else str
        )
        for number in range(len(collectives)):
            line, column = divmod(number, columns)
            if column == 0:
                grid[line, column].set_ylabel(metric.label)
            if number + columns >= len(collectives):
                grid[line, column].set_xlabel(AXIS_LABELS[axis])
                grid[line, column].tick_params(labelbottom=True)
        _legend(body, series, any(row["limit_gb_s"] is not None for row in rows))
    return figure


def _values(rows: Sequence[JsonRow], axis: str) -> list[int]:
    value_of = next(condition.of for condition in CONDITIONS if condition.name == axis)
    return [int(str(value_of(row))) for row in rows]


def _lines(
    panel: Axes, rows: Sequence[JsonRow], axis: str, metric: Metric, technique: str, series: int
) -> None:
    points = sorted(zip(_values(rows, axis), rows, strict=True), key=lambda point: point[0])
    if not points:
        return
    limits = [(x, limit) for x, row in points if (limit := metric.limit_of(row)) is not None]
    if limits:
        panel.plot(
            *zip(*limits, strict=True),
            **_limit_line(series),
            gid=style.LIMIT_GID,
        )
    panel.plot(
        [x for x, _ in points],
        [metric.of(row) for _, row in points],
        **style.line_of(technique, series),
        gid=technique,
    )


def _limit_line(series: int) -> dict[str, Any]:
    """Return the arguments of matplotlib for the limit's line beside the lines of a series."""
    return {"color": style.LIMIT_INK, "linewidth": 1.0, "linestyle": (0, LIMIT_DASHES[series])}


def log_scales(
    panel: Axes, values: Iterable[int], heights: Iterable[float], words: Callable[[int], str]
) -> None:
    """Make both axes of a panel logarithmic. words: returns the text of a value on the x axis."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter, NullLocator

    values, heights = sorted(set(values)), sorted(heights)
    panel.set_xscale("log", base=2)
    panel.set_yscale("log")
    panel.xaxis.set_major_locator(FixedLocator(values[:: -(-len(values) // MAX_TICKS)]))
    panel.xaxis.set_minor_locator(NullLocator())
    panel.xaxis.set_major_formatter(FuncFormatter(lambda value, _: words(round(value))))
    panel.set_xlim(values[0] / 1.25, values[-1] * 1.25)
    low, high = heights[0], heights[-1]
    middle, reach = sqrt(low * high), max(sqrt(high / low) * 1.15, sqrt(LEAST_RANGE))
    panel.set_ylim(middle / reach, middle * reach)
    panel.yaxis.set_major_locator(FixedLocator(ticks_between(middle / reach, middle * reach)))
    panel.yaxis.set_minor_locator(NullLocator())
    panel.yaxis.set_minor_formatter(NullFormatter())
    panel.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def ticks_between(low: float, high: float) -> list[float]:
    """Return round numbers between low and high for a logarithmic axis."""
    for mantissas in MANTISSAS:
        exponents = range(floor(log10(low)), ceil(log10(high)))
        ticks = [
            tick
            for exponent in exponents
            for tick in (m * 10.0**exponent for m in mantissas)
            if low <= tick <= high
        ]
        if len(ticks) >= ENOUGH_TICKS:
            break
    return ticks


def _legend(body: SubFigure, series: Sequence[tuple[str, str]], has_limit: bool) -> None:
    from matplotlib.lines import Line2D

    conditions = list(dict.fromkeys(words for words, _ in series))
    handles = [
        Line2D(
            [],
            [],
            **style.line_of(technique, conditions.index(words)),
            label=f"{technique}, {words}" if words else technique,
        )
        for words, technique in series
    ]
    if has_limit:
        handles += [
            Line2D([], [], **_limit_line(at), label=f"{LIMIT}, {words}" if words else LIMIT)
            for at, words in enumerate(conditions)
        ]
    body.legend(
        handles=handles,
        loc="outside lower center",
        frameon=False,
        ncols=min(len(handles), 4),
        handlelength=3.0,
    )
