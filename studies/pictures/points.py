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


def draw(
    figure: Figure,
    points: Sequence[Point],
    statements: Sequence[Statement] = (),
    conditions: str | None = None,
) -> Picture:
    """Return the picture of a figure. Filled marks are measured or mixed, hollow marks are
    modelled. If the figure compares statistics, the picture has their bars only.

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
            max(PANEL_INCHES * columns, 2 * PANEL_INCHES),
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
            _panel(axes, panel, [point for point in points if point.panel == panel.name], names)
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


def _panel(axes: Axes, panel: Panel, points: Sequence[Point], names: Sequence[str]) -> None:
    places = list(dict.fromkeys(point.x for point in points))
    if all(isinstance(place, (int, float)) for place in places):
        places.sort()
    for name, source in dict.fromkeys((point.series, point.source) for point in points):
        line = sorted(
            (places.index(point.x), point.value)
            for point in points
            if (point.series, point.source) == (name, source)
        )
        number = names.index(name)
        axes.plot(
            [x for x, _ in line],
            [y for _, y in line],
            color=style.PARTS[number % (len(style.PARTS) - 1) + 1],
            marker=style.SERIES_MARKERS[number % len(style.SERIES_MARKERS)],
            markersize=4.5,
            linestyle=""
            if source == PUBLISHED
            else style.SERIES_DASHES[
                number // (len(style.PARTS) - 1) % len(style.SERIES_DASHES) - 1
            ],
            markerfacecolor="none" if source == MODELLED else None,
            label=f"{name} ({source})",
            gid=f"{source} {name}",
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
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    else:
        axes.set_ylim(bottom=0)
    axes.grid(axis="y")
    style.clean(axes)
