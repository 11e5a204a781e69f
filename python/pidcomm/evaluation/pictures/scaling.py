"""Scaling studies: a row of panels per study and source, a panel per collective, a line per technique."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from typing import TYPE_CHECKING

from pidcomm.errors import ArgumentError
from pidcomm.evaluation.pictures import style
from pidcomm.evaluation.pictures.sweeps import LEAST_RANGE, MAX_TICKS, ticks_between
from pidcomm.evaluation.scaling import STUDIES, Point, stops_of
from pidcomm.model.prediction import SOURCE as MODELLED
from pidcomm.sizes import format_size

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PANEL_INCHES, PANEL_HEIGHT_INCHES, HEAD_AND_FOOT_INCHES, MIN_WIDTH_INCHES = 2.4, 2.1, 1.2, 6.5
MAX_COLLECTIVES = 4
AXIS_LABELS = {
    "pes": "number of PEs",
    "channels": "number of channels",
    "bytes_per_pe": "bytes per PE",
    "group_pes": "PEs per group",
    "hosts": "number of hosts",
}


def check_room(collectives: Sequence[str]) -> None:
    """Raise ArgumentError for more than MAX_COLLECTIVES collectives."""
    if len(collectives) > MAX_COLLECTIVES:
        raise ArgumentError(
            f"there is room for {MAX_COLLECTIVES} collectives beside each other, not {len(collectives)}"
        )


def draw(points: Sequence[Point]) -> Figure:
    """Return lines on logarithmic axes: GB/s of modelled points, percent of the limit of measured ones.

    A ring marks the value at which scaling stops. Raises ArgumentError for more than MAX_COLLECTIVES collectives.
    """
    collectives = list(dict.fromkeys(point.collective for point in points))
    check_room(collectives)
    kinds = list(dict.fromkeys((point.study, point.source) for point in points))
    techniques = list(dict.fromkeys(point.technique for point in points))
    machines = sorted({point.where for point in points if point.source == MODELLED})
    sources = (
        [f"modelled on {', '.join(machines)}: bytes of the larger side over all PEs, per second"] if machines else []
    )
    if any(point.source != MODELLED for point in points):
        sources.append("measured on emulated DIMMs: percent of the streaming limit, with the bytes that are staged")
    with style.settings():
        figure, body = style.new_figure(
            max(PANEL_INCHES * len(collectives), MIN_WIDTH_INCHES),
            HEAD_AND_FOOT_INCHES + PANEL_HEIGHT_INCHES * len(kinds),
            "How collectives scale, and where that stops",
            ["source: " + ", ".join(sorted({point.source for point in points}))],
            [*sources, "rings: from here, doubling gains too little"],
        )
        grid = body.subplots(len(kinds), len(collectives), sharex="row", sharey="row", squeeze=False)
        for line, (study, source) in zip(grid, kinds, strict=True):
            of_kind = [point for point in points if (point.study, point.source) == (study, source)]
            for panel, collective in zip(line, collectives, strict=True):
                _panel(panel, [point for point in of_kind if point.collective == collective], techniques)
                panel.set_title(f"{collective}, {source}")
                panel.set_xlabel(AXIS_LABELS[STUDIES[study].varies])
            line[0].set_ylabel("throughput (GB/s)" if source == MODELLED else "share of the limit (%)")
            _scales(line[0], of_kind)
        from matplotlib.lines import Line2D

        handles = [Line2D([], [], **style.line_of(name), label=name) for name in techniques]
        body.legend(handles=handles, loc="outside lower center", frameon=False, ncols=len(handles))
    return figure


def _panel(panel: Axes, points: Sequence[Point], techniques: Sequence[str]) -> None:
    stops = {stop.technique: stop.stops_at for stop in stops_of(points)}
    for technique in techniques:
        line = sorted((it for it in points if it.technique == technique), key=lambda it: it.value)
        panel.plot([it.value for it in line], [it.rate for it in line], **style.line_of(technique), gid=technique)
        for it in line:
            if it.value == stops.get(technique):
                ring = {"markersize": 9, "markerfacecolor": "none", "markeredgecolor": style.LIMIT_INK}
                panel.plot([it.value], [it.rate], "o", **ring, gid=f"stop {technique}")  # type: ignore[arg-type]
    panel.grid(which="major")
    style.clean(panel)


def _scales(panel: Axes, points: Sequence[Point]) -> None:
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    values = sorted({point.value for point in points})
    panel.set_xscale("log", base=2)
    panel.set_yscale("log")
    panel.xaxis.set_major_locator(FixedLocator(values[:: -(-len(values) // MAX_TICKS)]))
    panel.xaxis.set_minor_locator(NullLocator())
    words = format_size if STUDIES[points[0].study].varies == "bytes_per_pe" else str
    panel.xaxis.set_major_formatter(FuncFormatter(lambda value, _: words(round(value))))
    panel.set_xlim(values[0] / 1.25, values[-1] * 1.25)
    rates = [point.rate for point in points]
    middle, reach = sqrt(min(rates) * max(rates)), max(sqrt(max(rates) / min(rates)) * 1.15, sqrt(LEAST_RANGE))
    panel.set_ylim(middle / reach, middle * reach)
    panel.yaxis.set_major_locator(FixedLocator(ticks_between(middle / reach, middle * reach)))
    panel.yaxis.set_minor_locator(NullLocator())
    panel.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
