"""Pictures of figures of other papers: a panel per panel of the figure, a line per series."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pidcomm_studies.papers.figure import MODELLED, PUBLISHED, Figure, Panel, Point, Statement
from pidcomm_studies.pictures import reproduction, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Picture

COLUMNS, PANEL_INCHES, PANEL_HEIGHT_INCHES, HEAD_AND_FOOT_INCHES, LEGEND_LINE_INCHES = (
    3,
    3.2,
    2.3,
    1.1,
    0.16,
)
LEGEND_COLUMNS, MAX_LEVEL = 3, 6  # longer words are turned
HOLLOW_ALPHA = 0.45
BARS_WIDTH = 0.8  # of the bars at a category, which are a distance of 1 apart


def draw(
    figure: Figure,
    points: Sequence[Point],
    statements: Sequence[Statement] = (),
    conditions: str | None = None,
) -> Picture:
    """Return the picture of a figure: lines over numbers, bars over categories. Filled marks and
    bars are measured or mixed; hollow marks and light bars are modelled. If the figure compares
    statistics, the picture has their bars only.

    statements: those of the paper, for the small print. conditions: of the measurements, in words.
    """
    if any(panel.unit is not None for panel in figure.panels):
        return reproduction.draw(figure, points, conditions)
    series = list(dict.fromkeys((point.series, point.source) for point in points))
    names = list(dict.fromkeys(point.series for point in points))
    panels = [
        panel for panel in figure.panels if any(point.panel == panel.name for point in points)
    ]
    lines, columns = style.grid_of(len(panels), COLUMNS)
    legend_inches = LEGEND_LINE_INCHES * -(-len(series) // LEGEND_COLUMNS)
    machines = ", ".join(sorted({point.on for point in points if point.source == MODELLED}))
    with style.settings():
        picture, body = style.new_figure(
            PANEL_INCHES * (COLUMNS if lines > 1 else max(2, columns)),
            HEAD_AND_FOOT_INCHES + legend_inches + PANEL_HEIGHT_INCHES * lines,
            f"{figure.name}: {figure.title}",
            [figure.paper],
            ["source: " + ", ".join(sorted({point.source for point in points}))]
            + [
                f"published: {words}"
                for words in dict.fromkeys(statement.published for statement in statements)
            ]
            + ([f"modelled values are predictions for {machines}"] if machines else []),
        )
        grid = body.subplots(lines, columns, squeeze=False)
        for axes, panel in zip(grid.flat, panels, strict=False):
            of_panel = [point for point in points if point.panel == panel.name]
            _panel(axes, panel, of_panel, names, len({source for _, source in series}) > 1)
        for axes in grid.flat[len(panels) :]:
            axes.remove()
        handles: dict[str, Any] = {}
        for axes in grid.flat[: len(panels)]:
            for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
                handles.setdefault(label, handle)
        body.legend(
            handles=list(handles.values()),
            labels=list(handles),
            loc="outside lower center",
            frameon=False,
            ncols=LEGEND_COLUMNS,
            handlelength=2.4,
        )
    return picture


def _panel(
    axes: Axes, panel: Panel, points: Sequence[Point], names: Sequence[str], has_sources: bool
) -> None:
    """Draw a panel. has_sources: whether the labels of the legend have sources."""
    places = list(dict.fromkeys(point.x for point in points))
    has_numbers = all(isinstance(place, (int, float)) for place in places)
    if has_numbers:
        places.sort()
    lines = list(dict.fromkeys((point.series, point.source) for point in points))
    bars = sorted(
        ((name, source) for name, source in lines if source != PUBLISHED and not has_numbers),
        key=lambda bar: names.index(bar[0]),
    )
    width = BARS_WIDTH / max(1, len(bars))
    for name, source in lines:
        line = sorted(
            (places.index(point.x), point.value)
            for point in points
            if (point.series, point.source) == (name, source)
        )
        look = style.look_of_series(name, names.index(name))
        # A published mark is in the middle of the bars of its series.
        own = [bar for bar in bars if bar[0] == name and source in (bar[1], PUBLISHED)]
        middle = sum(map(bars.index, own)) / len(own) - (len(bars) - 1) / 2 if own else 0.0
        xs, ys = [x + width * middle for x, _ in line], [y for _, y in line]
        labels = {"label": f"{name} ({source})" if has_sources else name, "gid": f"{source} {name}"}
        if (name, source) in bars:
            fill = (look.colour, HOLLOW_ALPHA if source == MODELLED else 1.0)
            axes.bar(
                xs, ys, width, fc=fill, edgecolor=style.INK, lw=0.5, hatch=look.hatch, **labels
            )
            continue
        axes.plot(
            xs,
            ys,
            color=look.colour,
            marker=look.marker,
            markersize=4.5,
            linestyle="" if source == PUBLISHED else look.dash,
            markerfacecolor="white" if source == MODELLED else None,
            markeredgecolor="white" if own else look.colour,
            **labels,
        )
    axes.set_xticks(
        range(len(places)),
        [f"{x:g}" if isinstance(x, (int, float)) else x for x in places],
        fontsize=style.SMALL_POINTS,
    )
    if any(isinstance(x, str) and len(x) > MAX_LEVEL for x in places):
        for label in axes.get_xticklabels():
            label.set(rotation=30, ha="right")
    axes.set_xlabel(panel.x)
    axes.set_title(f"{panel.name}: {panel.what}", fontsize=style.SMALL_POINTS)
    if panel.is_log:
        axes.set_yscale("log")
        style.label_plainly(axes.yaxis)
    else:
        axes.set_ylim(bottom=0)
    axes.grid(axis="y")
    style.clean(axes)
