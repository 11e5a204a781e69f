"""Bars: what every collective and technique reaches, beside its limit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pidcomm.bench import BASE
from pidcomm.errors import ArgumentError
from pidcomm.pictures import style
from pidcomm.pictures.metrics import METRICS, Metric
from pidcomm.pictures.rows import JsonRow, collectives_of, index_rows, split, techniques_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

GROUP_WIDTH = 0.84  # of the distance between groups
MAX_PANELS = 16
PANEL_COLUMNS = 2
WIDTH_INCHES, PANEL_INCHES = 10.0, 2.4
FLAT_LABEL_INCHES = 0.34  # what a speed-up needs side by side with others
MAX_SOURCES = 4  # techniques to be named in the small print


def draw(rows: Sequence[JsonRow], metric_name: str = "bus") -> Figure:
    """Return grouped bars, a panel for all that differs but collective and technique. Raises ArgumentError."""
    metric = METRICS[metric_name]
    parts = split(rows)
    if len(parts.parts) > MAX_PANELS:
        raise ArgumentError(
            f"the rows differ in {len(parts.parts)} combinations of shape, mask, type and so on; "
            f"bars have room for {MAX_PANELS}: plot fewer rows"
        )
    techniques = techniques_of(rows)
    lines, columns = style.grid_of(len(parts.parts), PANEL_COLUMNS)
    with style.settings():
        figure = style.new_figure(WIDTH_INCHES, 1.2 + max(lines * PANEL_INCHES, 2.8))
        grid = figure.subplots(lines, columns, sharey=True, squeeze=False)
        for panel, (words, of_part) in zip(grid.flat, parts.parts.items(), strict=False):
            _panel(panel, of_part, words, techniques, metric, WIDTH_INCHES / columns)
        for panel in grid.flat[len(parts.parts) :]:
            panel.remove()
        for panel in grid[:, 0]:
            panel.set_ylabel(metric.label)
        top = max(metric.of(row) for row in rows)
        limits = [limit for row in rows if (limit := metric.limit_of(row)) is not None]
        grid[0, 0].set_ylim(0, 1.22 * max([top, *limits]))
        _legend(figure, techniques, has_limit=bool(limits))
        notes = ["over the bars: speed-up over conventional"] if any(row["speed_up"] for row in rows) else []
        sources = "source: " + ", ".join(sorted({row["source"] for row in rows}))
        style.add_titles(figure, metric.title, parts.title, [*notes, sources, *parts.small_print])
    return figure


def _panel(
    panel: Axes, rows: Sequence[JsonRow], words: str, techniques: Sequence[str], metric: Metric, width_inches: float
) -> None:
    found = index_rows(rows, words or "the same shape, mask, type and so on")
    collectives = collectives_of(rows)
    width = GROUP_WIDTH / len(techniques)
    bar_inches = width * (width_inches - 1) / len(collectives)
    for at, collective in enumerate(collectives):
        for slot, technique in enumerate(techniques):
            row = found.get((collective, technique))
            if row is None:
                continue
            centre = at + (slot - (len(techniques) - 1) / 2) * width
            colour, hatch = style.technique_style(technique)
            value, limit = metric.of(row), metric.limit_of(row)
            panel.bar(centre, value, width, color=colour, hatch=hatch, edgecolor=style.INK, linewidth=0.5)
            if limit is not None:
                sides = [centre - width / 2, centre + width / 2]
                panel.plot(sides, [limit, limit], color=style.LIMIT_INK, linewidth=1.4, solid_capstyle="butt")
            if row["speed_up"] is not None and technique != BASE:
                panel.annotate(
                    f"{row['speed_up']:.2f}x",
                    (centre, max(value, limit or 0)),
                    xytext=(0, 2),
                    textcoords="offset points",
                    ha="center",
                    va="bottom",
                    fontsize=style.SMALL_POINTS,
                    rotation=0 if bar_inches >= FLAT_LABEL_INCHES else 90,
                )
    is_crowded = width_inches / len(collectives) < 1.0
    panel.set_xticks(
        range(len(collectives)),
        collectives,
        rotation=28 if is_crowded else 0,
        ha="right" if is_crowded else "center",
        rotation_mode="anchor" if is_crowded else "default",
    )
    panel.tick_params(axis="x", length=0)
    panel.set_xlim(-0.6, len(collectives) - 0.4)
    panel.set_title(words)
    panel.grid(axis="y")
    style.clean(panel)


def _legend(figure: Figure, techniques: Sequence[str], has_limit: bool) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles: list[Patch | Line2D] = []
    for technique in techniques:
        colour, hatch = style.technique_style(technique)
        handles.append(Patch(facecolor=colour, hatch=hatch, edgecolor=style.INK, linewidth=0.5, label=technique))
    if has_limit:
        handles.append(Line2D([], [], color=style.LIMIT_INK, linewidth=1.4, label="limit (streaming copy)"))
    figure.legend(handles=handles, loc="outside right upper", frameon=False, handlelength=2.4, handleheight=1.2)
