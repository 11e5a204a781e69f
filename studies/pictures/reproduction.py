"""Pictures of statistics: bars of measured and modelled values, and marks of published ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pidcomm_studies.papers.figure import (
    MODELLED,
    PUBLISHED,
    Figure,
    Panel,
    Point,
    format_value,
)
from pidcomm_studies.pictures import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Picture
    from matplotlib.figure import SubFigure
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

WIDTH_INCHES, LINE_INCHES, FRAME_INCHES, HEAD_AND_FOOT_INCHES = 8.0, 0.3, 0.55, 1.2
BAR = 0.36  # width of a bar, as a share of the distance between statistics
ROOM_FOR_VALUES = 1.15  # width of a panel, as a multiple of the longest bar
LABEL_WIDTH = 0.13  # width of the text of a value, as a share of the panel's width
# Words, colour and hatch by source. Bars of numbers from this host have the colour of their
# technique.
LOOKS = {
    "measured": ("measured here, on emulated DIMMs", "#b0b0b0", ""),
    "mixed": ("mixed: host measured here, PEs modelled", "#b0b0b0", "\\\\\\"),
    "modelled": ("modelled", "#ffffff", style.MODELLED_HATCH),
}


@dataclass
class Line:
    """A statistic: its bars, and the published value."""

    what: str
    technique: str
    unit: str
    bars: list[Point] = field(default_factory=list)
    published: Point | None = None


def draw(figure: Figure, points: Sequence[Point], conditions: str | None = None) -> Picture:
    """Return bars of a figure's statistics, with a panel per unit. conditions: of the
    measurements, in words.
    """
    panels = list(_panels(figure.panels, points))
    heights = [FRAME_INCHES + LINE_INCHES * len(lines) for _, lines in panels]
    with style.settings():
        picture, body = style.new_figure(
            WIDTH_INCHES,
            HEAD_AND_FOOT_INCHES + sum(heights),
            f"{figure.name}: {figure.title}",
            [figure.paper],
            [*([conditions] if conditions else []), figure.note],
        )
        grid = body.subplots(len(panels), 1, squeeze=False, height_ratios=heights)
        for axes, (panel, lines) in zip(grid.flat, panels, strict=True):
            _panel(axes, lines)
            axes.set_xlabel(panel.what)
        _legend(body, [line for _, lines in panels for line in lines], figure.paper)
    return picture


def _panels(panels: Sequence[Panel], points: Sequence[Point]) -> Iterator[tuple[Panel, list[Line]]]:
    for panel in panels:
        lines: dict[float | str, Line] = {}
        for point in sorted(points, key=lambda point: point.source != MODELLED):
            if panel.unit is None or point.panel != panel.name:
                continue
            line = lines.setdefault(point.x, Line(str(point.x), point.series, panel.unit))
            if point.source == PUBLISHED:
                line.published = point
            else:
                line.bars.insert(0, point)
        if drawn := [line for line in lines.values() if line.bars]:
            yield panel, drawn


def _bar(line: Line, value: Point) -> dict[str, Any]:
    """Return the arguments of matplotlib for a bar."""
    _, colour, hatch = LOOKS[value.source]
    own = style.look_of(line.technique).colour
    return style.box(colour if value.source == MODELLED else own, hatch)


def _panel(axes: Axes, lines: Sequence[Line]) -> None:
    every = [
        value.value for line in lines for value in (*line.bars, line.published) if value is not None
    ]
    right = ROOM_FOR_VALUES * max(every)
    for at, line in enumerate(lines):
        bars = line.bars
        mark = line.published.value if line.published else 0.0
        for slot, value in enumerate(bars):
            y = at + (slot - (len(bars) - 1) / 2) * BAR
            axes.barh(y, value.value, BAR, **_bar(line, value), gid=value.source)
            is_mark_behind = -0.2 * LABEL_WIDTH * right < mark - value.value < LABEL_WIDTH * right
            is_inside = is_mark_behind and min(value.value, mark) > LABEL_WIDTH * right
            axes.annotate(
                format_value(value.value, line.unit),
                (value.value, y),
                **_label(is_mark_behind, is_inside),
                textcoords="offset points",
                va="center",
                fontsize=style.SMALL_POINTS,
                gid=f"value {value.source}",
            )
        if line.published:
            axes.plot([line.published.value], [at], **_MARK, gid=PUBLISHED)
            axes.annotate(
                f"published {format_value(line.published.value, line.unit)}",
                (1, at),
                xycoords=("axes fraction", "data"),
                xytext=(4, 0),
                textcoords="offset points",
                va="center",
                fontsize=style.SMALL_POINTS,
                color=style.LIMIT_INK,
                gid=f"value {PUBLISHED}",
            )
    axes.set_yticks(range(len(lines)), [line.what for line in lines], fontsize=style.SMALL_POINTS)
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


def _legend(body: SubFigure, lines: Sequence[Line], paper: str) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    bars = [(line, value) for line in lines for value in line.bars]
    used = {value.source for _, value in bars}
    techniques = dict.fromkeys(line.technique for line, value in bars if value.source != MODELLED)
    handles: list[Patch | Line2D] = [
        Patch(**style.box(*look), label=words)
        for source, (words, *look) in LOOKS.items()
        if source in used
    ]
    if any(line.published for line in lines):
        handles.append(Line2D([], [], **_MARK, label=f"published, {paper}"))
    handles += [Patch(**style.box(style.look_of(name).colour), label=name) for name in techniques]
    body.legend(
        handles=handles, loc="outside lower center", frameon=False, ncols=2, handlelength=2.4
    )
