"""Bars: what every collective and technique reaches, beside its limit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pidcomm.errors import ArgumentError
from pidcomm.evaluation.bench import BASE
from pidcomm.evaluation.pictures import style
from pidcomm.evaluation.pictures.metrics import METRICS, Metric
from pidcomm.evaluation.pictures.rows import JsonRow, collectives_of, index_rows, split, techniques_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

GROUP_WIDTH = 0.84  # of the distance between groups
MAX_PANELS = 16
PANEL_COLUMNS = 2
WIDTH_INCHES, PANEL_INCHES, SINGLE_INCHES, HEAD_AND_FOOT_INCHES = 10.0, 1.9, 2.8, 1.2
FRAME_INCHES = 0.5  # of a panel's height, for its title and ticks
LABEL_INCHES = 0.55  # above the highest bar, for the longest speed-up on end
BARE_HEADROOM = 1.06  # where nothing stands over the bars
ROOMY_GROUP_INCHES = 0.9
FLAT_LABEL_INCHES = 0.34  # what a speed-up needs side by side with others


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
    limits = [limit for row in rows if (limit := metric.limit_of(row)) is not None]
    has_speed_ups = any(row["speed_up"] is not None for row in rows)
    notes = ["over the bars: speed-up over conventional"] if has_speed_ups else []
    notes.append("source: " + ", ".join(sorted({row["source"] for row in rows})))
    collectives = collectives_of(rows)
    with style.settings():
        panel_inches = PANEL_INCHES if lines > 1 else SINGLE_INCHES
        figure, body = style.new_figure(
            WIDTH_INCHES,
            HEAD_AND_FOOT_INCHES + lines * panel_inches,
            metric.title,
            parts.title,
            notes + parts.small_print,
        )
        grid = body.subplots(lines, columns, sharex=True, sharey=True, squeeze=False)
        for number, (words, of_part) in enumerate(parts.parts.items()):
            panel = grid.flat[number]
            _panel(panel, of_part, words, collectives, techniques, metric, WIDTH_INCHES / columns)
            panel.tick_params(axis="x", length=0, labelbottom=number + columns >= len(parts.parts))
        for panel in grid.flat[len(parts.parts) :]:
            panel.remove()
        for panel in grid[:, 0]:
            panel.set_ylabel(metric.label)
        inches = panel_inches - FRAME_INCHES
        headroom = inches / (inches - LABEL_INCHES) if has_speed_ups else BARE_HEADROOM
        grid[0, 0].set_ylim(0, headroom * max([*(metric.of(row) for row in rows), *limits]))
        _legend(body, techniques, has_limit=bool(limits))
    return figure


def _panel(
    panel: Axes,
    rows: Sequence[JsonRow],
    words: str,
    collectives: Sequence[str],
    techniques: Sequence[str],
    metric: Metric,
    width_inches: float,
) -> None:
    found = index_rows(rows, words or "the same shape, mask, type and so on")
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
                style.mark_limit(panel, sides, [limit, limit])
            if row["speed_up"] is not None and technique != BASE:
                panel.annotate(
                    f"{row['speed_up']:.2f}x",
                    (centre, max(value, limit or 0)),
                    xytext=(0, 2),
                    textcoords="offset points",
                    ha="center",
                    va="bottom",
                    fontsize=style.SMALL_POINTS,
                    bbox={"facecolor": "white", "linewidth": 0, "pad": 0.6},
                    rotation=0 if bar_inches >= FLAT_LABEL_INCHES else 90,
                )
    is_crowded = width_inches / len(collectives) < ROOMY_GROUP_INCHES
    panel.set_xticks(
        range(len(collectives)),
        [name.replace("_", "_\n") for name in collectives] if is_crowded else collectives,
        fontsize=style.SMALL_POINTS - 0.7 if is_crowded else style.FONT_POINTS - 0.5,
    )
    panel.set_xlim(-0.6, len(collectives) - 0.4)
    panel.set_title(words)
    panel.grid(axis="y")
    style.clean(panel)


def _legend(body: SubFigure, techniques: Sequence[str], has_limit: bool) -> None:
    from matplotlib.patches import Patch

    handles: list[Patch | Line2D] = []
    for technique in techniques:
        colour, hatch = style.technique_style(technique)
        handles.append(Patch(facecolor=colour, hatch=hatch, edgecolor=style.INK, linewidth=0.5, label=technique))
    if has_limit:
        handles.append(style.limit_handle("limit (streaming copy)"))
    body.legend(handles=handles, loc="outside lower center", frameon=False, ncols=len(handles), handlelength=2.4)
