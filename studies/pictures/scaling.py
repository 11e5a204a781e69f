"""Pictures of scaling studies: a row of panels per study and source, a panel per collective, a
line per technique.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pidcomm import ArgumentError
from pidcomm.model.prediction import SOURCE as MODELLED
from pidcomm.sizes import format_size
from pidcomm_studies.models.scaling import STUDIES, Point
from pidcomm_studies.models.stops import stops_of
from pidcomm_studies.pictures import style
from pidcomm_studies.pictures.sweeps import log_scales

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
            f"there is room for {MAX_COLLECTIVES} collectives in a picture, not {len(collectives)}"
        )


def draw(points: Sequence[Point]) -> Figure:
    """Return line charts with logarithmic axes.

    Modelled points show GB/s. Measured points show the percentage of the streaming limit. A ring
    marks the value at which scaling stops. Raises ArgumentError for more than MAX_COLLECTIVES
    collectives.
    """
    collectives = list(dict.fromkeys(point.collective for point in points))
    check_room(collectives)
    kinds = list(dict.fromkeys((point.study, point.source) for point in points))
    techniques = list(dict.fromkeys(point.technique for point in points))
    machines = sorted({point.where for point in points if point.source == MODELLED})
    sources = (
        [f"modelled on {', '.join(machines)}: bytes of the larger side over all PEs, per second"]
        if machines
        else []
    )
    if any(point.source != MODELLED for point in points):
        sources.append(
            "measured on emulated DIMMs: percent of the streaming limit, with the bytes that are"
            " staged"
        )
    with style.settings():
        figure, body = style.new_figure(
            max(PANEL_INCHES * len(collectives), MIN_WIDTH_INCHES),
            HEAD_AND_FOOT_INCHES + PANEL_HEIGHT_INCHES * len(kinds),
            "How collectives scale, and where that stops",
            ["source: " + ", ".join(sorted({point.source for point in points}))],
            [*sources, "rings: from here, doubling gains too little"],
        )
        grid = body.subplots(
            len(kinds), len(collectives), sharex="row", sharey="row", squeeze=False
        )
        for line, (study, source) in zip(grid, kinds, strict=True):
            of_kind = [point for point in points if (point.study, point.source) == (study, source)]
            for panel, collective in zip(line, collectives, strict=True):
                _panel(
                    panel,
                    [point for point in of_kind if point.collective == collective],
                    techniques,
                )
                panel.set_title(f"{collective}, {source}")
                panel.set_xlabel(AXIS_LABELS[STUDIES[study].varies])
            line[0].set_ylabel(
                "throughput (GB/s)" if source == MODELLED else "share of the limit (%)"
            )
            words = format_size if STUDIES[study].varies == "bytes_per_pe" else str
            log_scales(
                line[0],
                [point.value for point in of_kind],
                [point.rate for point in of_kind],
                words,
            )
        from matplotlib.lines import Line2D

        handles = [Line2D([], [], **style.line_of(name), label=name) for name in techniques]
        body.legend(handles=handles, loc="outside lower center", frameon=False, ncols=len(handles))
    return figure


def _panel(panel: Axes, points: Sequence[Point], techniques: Sequence[str]) -> None:
    stops = {stop.technique: stop.stops_at for stop in stops_of(points)}
    for technique in techniques:
        line = sorted(
            (point for point in points if point.technique == technique),
            key=lambda point: point.value,
        )
        panel.plot(
            [point.value for point in line],
            [point.rate for point in line],
            **style.line_of(technique),
            gid=technique,
        )
        for point in line:
            if point.value == stops.get(technique):
                ring = {
                    "markersize": 9,
                    "markerfacecolor": "none",
                    "markeredgecolor": style.LIMIT_INK,
                }
                panel.plot([point.value], [point.rate], "o", **ring, gid=f"stop {technique}")  # type: ignore[arg-type]
    panel.grid(which="major")
    style.clean(panel)
