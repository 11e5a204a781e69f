"""Pictures of the paper's experiments, with measured, modelled and published numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pidcomm.sizes import format_size
from pidcomm_studies.papers.pidcomm.experiments import (
    PAPER_BYTES,
    PAPER_MACHINE,
    PAPER_PES,
    Experiment,
)
from pidcomm_studies.papers.pidcomm.published import PAPER, SOURCE
from pidcomm_studies.papers.pidcomm.reproduce import Line, Value, format_value
from pidcomm_studies.pictures import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

WIDTH_INCHES, LINE_INCHES, FRAME_INCHES, HEAD_AND_FOOT_INCHES = 8.0, 0.3, 0.55, 1.2
BAR = 0.36  # width of a bar, as a share of the distance between statistics
ROOM_FOR_VALUES = 1.15  # width of a panel, as a multiple of the longest bar
LABEL_WIDTH = 0.1  # width of the text of a value, as a share of the panel's width
# Words, colour and hatch by source. Bars of numbers from this host have the colour of their
# technique.
LOOKS = {
    "measured": ("measured here, on emulated DIMMs", "#b0b0b0", ""),
    "mixed": ("mixed: host measured here, PEs modelled", "#b0b0b0", "\\\\\\"),
    "modelled": (f"modelled on {PAPER_MACHINE}", "#ffffff", style.MODELLED_HATCH),
}

MODELLED = (
    f"modelled: predictions, never measured, for {PAPER_MACHINE} with {PAPER_PES} PEs and"
    f" {format_size(PAPER_BYTES)} per PE where these do not vary"
)


def draw(experiment: Experiment, lines: Sequence[Line], conditions: Sequence[str] = ()) -> Figure:
    """Return bars of an experiment's statistics, with a panel per unit. conditions: of the
    measurements, in words.
    """
    panels = list(_panels(lines))
    heights = [FRAME_INCHES + LINE_INCHES * len(found) for _, found in panels]
    with style.settings():
        figure, body = style.new_figure(
            WIDTH_INCHES,
            HEAD_AND_FOOT_INCHES + sum(heights),
            f"{experiment.name} of {PAPER}: {experiment.title}",
            [],
            [*conditions, MODELLED],
        )
        grid = body.subplots(len(panels), 1, squeeze=False, height_ratios=heights)
        for axes, (unit, found) in zip(grid.flat, panels, strict=True):
            _panel(axes, found)
            axes.set_xlabel("factor" if unit == "x" else unit)
        _legend(body, [line for _, found in panels for line in found])
    return figure


def _panels(lines: Sequence[Line]) -> Iterator[tuple[str, list[Line]]]:
    for unit in dict.fromkeys(line.statistic.unit for line in lines):
        found = [line for line in lines if line.statistic.unit == unit and _bars(line)]
        if found:
            yield unit, found


def _bar(line: Line, value: Value) -> dict[str, Any]:
    """Return the arguments of matplotlib for a bar."""
    _, colour, hatch = LOOKS[value.source]
    own = style.look_of(line.statistic.techniques[0]).colour
    return style.box(colour if value.source == "modelled" else own, hatch)


def _bars(line: Line) -> list[Value]:
    return [value for value in (line.here, line.modelled) if value is not None]


def _panel(axes: Axes, lines: Sequence[Line]) -> None:
    every = [
        value.value
        for line in lines
        for value in (*_bars(line), line.published)
        if value is not None
    ]
    right = ROOM_FOR_VALUES * max(every)
    for at, line in enumerate(lines):
        bars = _bars(line)
        mark = line.published.value if line.published else 0.0
        for slot, value in enumerate(bars):
            y = at + (slot - (len(bars) - 1) / 2) * BAR
            axes.barh(y, value.value, BAR, **_bar(line, value), gid=value.source)
            is_mark_behind = -0.2 * LABEL_WIDTH * right < mark - value.value < LABEL_WIDTH * right
            is_inside = is_mark_behind and min(value.value, mark) > LABEL_WIDTH * right
            axes.annotate(
                format_value(value.value, line.statistic.unit),
                (value.value, y),
                **_label(is_mark_behind, is_inside),
                textcoords="offset points",
                va="center",
                fontsize=style.SMALL_POINTS,
                gid=f"value {value.source}",
            )
        if line.published:
            axes.plot([line.published.value], [at], **_MARK, gid=SOURCE)
            axes.annotate(
                f"published {format_value(line.published.value, line.statistic.unit)}",
                (1, at),
                xycoords=("axes fraction", "data"),
                xytext=(4, 0),
                textcoords="offset points",
                va="center",
                fontsize=style.SMALL_POINTS,
                color=style.LIMIT_INK,
                gid=f"value {SOURCE}",
            )
    axes.set_yticks(
        range(len(lines)), [line.statistic.what for line in lines], fontsize=style.SMALL_POINTS
    )
    axes.set_ylim(len(lines) - 0.5, -0.5)
    axes.set_xlim(0, right)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x")
    style.clean(axes)


def _label(is_mark_behind: bool, is_inside: bool) -> dict[str, Any]:
    """Return the place of a value: right of its bar, or in the bar if a mark is there, or with a
    line to the bar.
    """
    if is_inside:
        return {
            "xytext": (-7, 0),
            "ha": "right",
            "bbox": {"facecolor": "white", "edgecolor": "none", "pad": 0.6},
        }
    if is_mark_behind:
        return {
            "xytext": (34, 0),
            "arrowprops": {"arrowstyle": "-", "linewidth": 0.4, "color": style.INK},
        }
    return {"xytext": (4, 0)}


_MARK: Any = {
    "color": style.LIMIT_INK,
    "marker": "D",
    "markersize": 4.5,
    "linestyle": "",
    "markeredgecolor": "white",
}


def _legend(body: SubFigure, lines: Sequence[Line]) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    bars = [(line, value) for line in lines for value in _bars(line)]
    used = {value.source for _, value in bars}
    techniques = dict.fromkeys(
        line.statistic.techniques[0] for line, value in bars if value.source != "modelled"
    )
    handles: list[Patch | Line2D] = [
        Patch(**style.box(*look), label=words)
        for source, (words, *look) in LOOKS.items()
        if source in used
    ]
    if any(line.published for line in lines):
        handles.append(Line2D([], [], **_MARK, label=f"published, {PAPER}"))
    handles += [Patch(**style.box(style.look_of(name).colour), label=name) for name in techniques]
    body.legend(
        handles=handles, loc="outside lower center", frameon=False, ncols=2, handlelength=2.4
    )
