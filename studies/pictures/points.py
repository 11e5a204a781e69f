"""Pictures of figures of other papers: a panel per panel of the figure, a line per series."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from math import ceil
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
MAX_LEGEND_COLUMNS, HANDLE_CHARACTERS = 3, 7
HOLLOW_ALPHA = 0.45
AXIS_INCHES = 0.5  # left of a panel
BARS_WIDTH = 0.8  # of the bars at a category, which are a distance of 1 apart


def draw(
    figure: Figure,
    points: Sequence[Point],
    statements: Sequence[Statement] = (),
    conditions: str | None = None,
) -> Picture:
    """Return the picture of a figure: lines over numbers, bars over categories, or marks if the
    axis is logarithmic, because its foot is no zero. Filled marks and bars are measured or mixed;
    hollow marks and light bars are modelled. If the figure compares statistics, the picture has
    their bars only.

    statements: those of the paper, for the small print. conditions: of the measurements, in words.
    """
    if any(panel.unit is not None for panel in figure.panels):
        return reproduction.draw(figure, points, conditions)
    series = list(dict.fromkeys((point.series, point.source) for point in points))
    looks = _looks(points)
    panels = [
        panel for panel in figure.panels if any(point.panel == panel.name for point in points)
    ]
    from matplotlib.legend_handler import HandlerTuple

    lines, columns = style.grid_of(len(panels), COLUMNS)
    width_inches = PANEL_INCHES * (COLUMNS if lines > 1 else max(2, columns))
    label_characters = max(len(f"{name} ({source})") for name, source in series)
    legend_columns = max(
        1,
        min(
            MAX_LEGEND_COLUMNS,
            style.characters(width_inches) // (label_characters + HANDLE_CHARACTERS),
        ),
    )
    legend_inches = LEGEND_LINE_INCHES * -(-len(series) // legend_columns)
    machines = ", ".join(sorted({point.on for point in points if point.source == MODELLED}))
    with style.settings():
        picture, body = style.new_figure(
            width_inches,
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
            has_sources = len({source for _, source in series}) > 1
            _panel(axes, panel, of_panel, looks, has_sources, width_inches / columns)
        for axes in grid.flat[len(panels) :]:
            axes.remove()
        # By label and class: a series may have bars in one panel and marks in another.
        handles: dict[str, dict[type, Any]] = {}
        for axes in grid.flat[: len(panels)]:
            for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
                handles.setdefault(label, {}).setdefault(type(handle), handle)
        body.legend(
            handles=[tuple(by_class.values()) for by_class in handles.values()],
            labels=list(handles),
            handler_map={tuple: HandlerTuple(ndivide=None)},
            loc="outside lower center",
            frameon=False,
            ncols=legend_columns,
            handlelength=2.4,
        )
    return picture


def _looks(points: Sequence[Point]) -> dict[str, style.Look]:
    """Return the look of each series. Series that are only published have the colour of published
    values.
    """
    names = dict.fromkeys(point.series for point in points if point.source != PUBLISHED)
    others = [name for name in names if name not in style.TECHNIQUE_LOOKS]
    only_published = [
        name for name in dict.fromkeys(point.series for point in points) if name not in names
    ]
    return {
        **{name: style.look_of(name) for name in names},
        **{name: style.look_of_series(number) for number, name in enumerate(others)},
        **{
            name: style.look_of_series(number)._replace(colour=style.LIMIT_INK)
            for number, name in enumerate(only_published)
        },
    }


def _panel(
    axes: Axes,
    panel: Panel,
    points: Sequence[Point],
    looks: Mapping[str, style.Look],
    has_sources: bool,
    width_inches: float,
) -> None:
    """Draw a panel. has_sources: whether the labels of the legend have sources. width_inches: of
    the panel with its labels.
    """
    in_order = sorted(points, key=lambda point: point.source == PUBLISHED)
    places = list(dict.fromkeys(point.x for point in in_order))
    has_numbers = all(isinstance(place, (int, float)) for place in places)
    if has_numbers:
        places.sort()
    lines = list(dict.fromkeys((point.series, point.source) for point in points))
    # The series of a category, side by side.
    slots = sorted(
        ((name, source) for name, source in lines if source != PUBLISHED and not has_numbers),
        key=lambda slot: list(looks).index(slot[0]),
    )
    width = BARS_WIDTH / max(1, len(slots))
    for name, source in lines:
        line = sorted(
            (places.index(point.x), point.value)
            for point in points
            if (point.series, point.source) == (name, source)
        )
        look = looks[name]
        # A published mark is in the middle of the slots of its series.
        own = [slot for slot in slots if slot[0] == name and source in (slot[1], PUBLISHED)]
        middle = sum(map(slots.index, own)) / len(own) - (len(slots) - 1) / 2 if own else 0.0
        xs, ys = [x + width * middle for x, _ in line], [y for _, y in line]
        labels = {"label": f"{name} ({source})" if has_sources else name, "gid": f"{source} {name}"}
        if (name, source) in slots and not panel.is_log:
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
            linestyle="" if source == PUBLISHED or slots else look.dash,
            markerfacecolor="white" if source == MODELLED else None,
            markeredgecolor="white" if own and source == PUBLISHED else look.colour,
            **labels,
        )
    words = [f"{x:g}" if isinstance(x, (int, float)) else x for x in places]
    room = style.characters(width_inches - AXIS_INCHES)
    step = 1
    if has_numbers:  # numbers without room for their texts are left out
        step = ceil(sum(len(word) + 1 for word in words) / room)
    axes.set_xticks(range(0, len(places), step), words[::step], fontsize=style.SMALL_POINTS)
    if not has_numbers and len(words) * (1 + max(map(len, words))) > room:
        for label in axes.get_xticklabels():
            label.set(rotation=30, ha="right")
    axes.set_xlabel(panel.x)
    axes.set_title(textwrap.fill(f"{panel.name}: {panel.what}", room), fontsize=style.SMALL_POINTS)
    if panel.is_log:
        axes.set_yscale("log")
        style.label_plainly(axes.yaxis)
    else:
        axes.set_ylim(bottom=0)
        axes.ticklabel_format(axis="y", style="plain", useOffset=False)
    axes.grid(axis="y")
    style.clean(axes)
