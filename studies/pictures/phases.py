"""Ablations as stacked bars, with the parts of each technique's time and the source of each
part.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pidcomm import ArgumentError
from pidcomm_studies.pictures import style
from pidcomm_studies.pictures.rows import JsonRow, collectives_of, index_rows, split, techniques_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

PANEL_COLUMNS = 2
WIDTH_INCHES, BAR_INCHES, FRAME_INCHES, HEAD_AND_FOOT_INCHES = 10.0, 0.27, 0.75, 1.4
ROOM_FOR_TOTALS = 1.42  # width of a panel, as a multiple of the longest bar
MAX_PANELS = 16
SOURCES = (
    "host phases measured, PE reorder modelled, launches and loads assumed; the medians of the"
    " phases need not add up to the median of the total"
)


@dataclass(frozen=True)
class Phase:
    """A part of `total_us`. source: measured, modelled or assumed."""

    name: str
    us_of: Callable[[JsonRow], float]
    colour: str
    hatch: str
    source: str = "measured"


def _rest_us(row: JsonRow) -> float:
    """Return the time of the pass over memory: the host time minus all host phases outside the
    pass.

    Medians make the result inexact.
    """
    return max(
        0.0,
        float(
            row["host_us"]
            - sum(row[name] for name in ("outside_us", "from_us", "work_us", "to_us"))
        ),
    )


PHASES = (
    Phase("from the PEs", lambda row: float(row["from_us"]), style.PARTS[0], ""),
    Phase("work in host memory", lambda row: float(row["work_us"]), style.PARTS[1], "---"),
    Phase("to the PEs", lambda row: float(row["to_us"]), style.PARTS[2], ""),
    Phase("pass over memory", _rest_us, style.PARTS[4], ""),
    Phase("rest of the call", lambda row: float(row["outside_us"]), style.PARTS[3], "\\\\\\"),
    Phase(
        "PE reorder", lambda row: float(row["pe_us"]), "#f4f4f4", style.MODELLED_HATCH, "modelled"
    ),
    Phase(
        "launches and loads",
        lambda row: float(row["launch_us"] + row["load_us"]),
        "#ffffff",
        style.ASSUMED_HATCH,
        "assumed",
    ),
)


def draw(rows: Sequence[JsonRow]) -> Figure:
    """Return stacked bars of time, with one panel per collective and conditions.

    Raises ArgumentError.
    """
    parts = split(rows)
    panels = [(words, name) for words, part in parts.parts.items() for name in collectives_of(part)]
    if len(panels) > MAX_PANELS:
        raise ArgumentError(
            f"the rows need {len(panels)} panels, and there is room for {MAX_PANELS}: plot fewer"
            " rows"
        )
    lines, columns = style.grid_of(len(panels), PANEL_COLUMNS)
    most = max(len(techniques_of(part)) for part in parts.parts.values())
    with style.settings():
        figure, body = style.new_figure(
            WIDTH_INCHES,
            HEAD_AND_FOOT_INCHES + lines * (FRAME_INCHES + most * BAR_INCHES),
            "Where each technique spends its time, end to end",
            parts.title,
            [SOURCES, *parts.small_print],
        )
        grid = body.subplots(lines, columns, squeeze=False)
        for panel, (words, name) in zip(grid.flat, panels, strict=False):
            of_panel = [row for row in parts.parts[words] if row["collective"] == name]
            index_rows(of_panel, words or "the same shape, mask, type and so on")
            _panel(panel, of_panel)
            panel.set_title(f"{name}, {words}" if words else name)
        for panel in grid.flat[len(panels) :]:
            panel.remove()
        _legend(body)
    return figure


def _panel(panel: Axes, rows: Sequence[JsonRow]) -> None:
    by_technique = {row["technique"]: row for row in rows}
    bars = []
    for technique in techniques_of(rows):
        row = by_technique[technique]
        parts = [
            (phase.source, phase.us_of(row) / 1e3, (phase.colour, phase.hatch)) for phase in PHASES
        ]
        words = f"{row['total_us'] / 1e3:.4g} ms ({row['source']})"
        bars.append(style.Stack(technique, parts, words, row["bus_us"] / 1e3))
    style.draw_stacks(panel, bars, ROOM_FOR_TOTALS * max(row["total_us"] for row in rows) / 1e3)


def _legend(body: SubFigure) -> None:
    from matplotlib.patches import Patch

    handles: list[Patch | Line2D] = [
        Patch(
            **style.box(phase.colour, phase.hatch),
            label=phase.name if phase.source == "measured" else f"{phase.name} ({phase.source})",
        )
        for phase in PHASES
    ]
    handles.append(style.limit_handle("limit: streaming copy"))
    body.legend(
        handles=handles, loc="outside lower center", frameon=False, ncols=4, handlelength=2.4
    )
