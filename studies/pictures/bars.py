"""Bar charts with one bar per collective and technique.

A mark shows the streaming limit of each bar.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pidcomm import ArgumentError
from pidcomm.bench.timing import BASE
from pidcomm.sizes import format_gain
from pidcomm_studies.pictures import style
from pidcomm_studies.pictures.metrics import METRICS, Metric
from pidcomm_studies.pictures.rows import JsonRow, collectives_of, index_rows, split, techniques_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

GROUP_WIDTH = 0.84  # width of a group, as a share of the distance between groups
MAX_PANELS = 16
PANEL_COLUMNS = 2
WIDTH_INCHES, PANEL_INCHES, SINGLE_INCHES, HEAD_AND_FOOT_INCHES = 10.0, 1.9, 2.8, 1.2
FRAME_INCHES = 0.5  # part of a panel's height for its title and ticks
CHARACTER_INCHES = 0.6 * style.SMALL_POINTS / 72
MOST_SHARED = 3.0  # panels share the scale if the ratio of their highest values is at most this
# Width and height of a speed-up with "slower" on a second line.
FLAT_LABEL_INCHES, LINES_INCHES = (
    0.42,
    0.3,
)
ROOMY_GROUP_INCHES = 0.9


def draw(rows: Sequence[JsonRow], metric_name: str = "time") -> Figure:
    """Return grouped bars, with one panel per combination of conditions. Raises ArgumentError."""
    metric = METRICS[metric_name]
    parts = split(rows)
    if len(parts.parts) > MAX_PANELS:
        raise ArgumentError(
            f"the rows have {len(parts.parts)} combinations of shape, mask, type and other"
            f" conditions; bars have room for {MAX_PANELS}: plot fewer rows"
        )
    techniques = techniques_of(rows)
    lines, columns = style.grid_of(len(parts.parts), PANEL_COLUMNS)
    labels = [label for row in rows if (label := _label(row))]
    notes = ["over the bars: speed-up over conventional"] if labels else []
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
        tops = [_top(part, metric) for part in parts.parts.values()]
        is_shared = max(tops) <= MOST_SHARED * min(tops)
        grid = body.subplots(lines, columns, sharex=True, sharey=is_shared, squeeze=False)
        inches = panel_inches - FRAME_INCHES
        width = GROUP_WIDTH / len(techniques)
        is_flat = width * (WIDTH_INCHES / columns - 1) / len(collectives) >= FLAT_LABEL_INCHES
        label_inches = (
            LINES_INCHES if is_flat else CHARACTER_INCHES * max(map(len, labels), default=0)
        )
        headroom = inches / (inches - 0.06 - label_inches * bool(labels))
        for number, (words, of_part) in enumerate(parts.parts.items()):
            panel = grid.flat[number]
            _panel(
                panel,
                of_part,
                words,
                collectives,
                techniques,
                metric,
                WIDTH_INCHES / columns,
                width,
                is_flat,
            )
            panel.tick_params(axis="x", length=0, labelbottom=number + columns >= len(parts.parts))
            panel.set_ylim(0, headroom * (max(tops) if is_shared else tops[number]))
        for panel in grid.flat[len(parts.parts) :]:
            panel.remove()
        for panel in grid[:, 0]:
            panel.set_ylabel(metric.label)
        _legend(body, techniques, has_limit=any(row["limit_gb_s"] is not None for row in rows))
    return figure


def _top(rows: Sequence[JsonRow], metric: Metric) -> float:
    """Return the highest value of the metric among the rows and the limits of the rows."""
    return max(
        value
        for row in rows
        for value in (metric.of(row), metric.limit_of(row))
        if value is not None
    )


def _label(row: JsonRow) -> str:
    """Return the text above the bar of a row."""
    gain = row["speed_up"]
    return "" if gain is None or row["technique"] == BASE else format_gain(gain)


def _panel(
    panel: Axes,
    rows: Sequence[JsonRow],
    words: str,
    collectives: Sequence[str],
    techniques: Sequence[str],
    metric: Metric,
    width_inches: float,
    width: float,
    is_flat: bool,
) -> None:
    row_of = index_rows(rows, words or "the same shape, mask, type and so on")
    for at, collective in enumerate(collectives):
        group = [row for technique in techniques if (row := row_of.get((collective, technique)))]
        for slot, row in enumerate(group):
            centre = at + (slot - (len(group) - 1) / 2) * width
            value, limit = metric.of(row), metric.limit_of(row)
            panel.bar(centre, value, width, **style.bar_of(row["technique"]))
            if limit is not None:
                style.mark_limit(panel, [centre - width / 2, centre + width / 2], [limit, limit])
            if label := _label(row):
                panel.annotate(
                    label.replace(" ", "\n") if is_flat else label,
                    (centre, max(value, limit or 0)),
                    xytext=(0, 2),
                    textcoords="offset points",
                    ha="center",
                    va="bottom",
                    fontsize=style.SMALL_POINTS,
                    linespacing=1.0,
                    bbox={"facecolor": "white", "linewidth": 0, "pad": 0.6},
                    rotation=0 if is_flat else 90,
                )
    is_crowded = width_inches / len(collectives) < ROOMY_GROUP_INCHES
    panel.set_xticks(
        range(len(collectives)),
        [name.replace("_", "_\n") for name in collectives] if is_crowded else collectives,
        fontsize=style.SMALL_POINTS if is_crowded else style.FONT_POINTS,
    )
    panel.set_xlim(-0.6, len(collectives) - 0.4)
    panel.set_title(words)
    panel.grid(axis="y")
    style.clean(panel)


def _legend(body: SubFigure, techniques: Sequence[str], has_limit: bool) -> None:
    from matplotlib.patches import Patch

    handles: list[Patch | Line2D] = [
        Patch(**style.bar_of(technique), label=technique) for technique in techniques
    ]
    if has_limit:
        handles.append(style.limit_handle("limit: streaming copy"))
    body.legend(
        handles=handles,
        loc="outside lower center",
        frameon=False,
        ncols=len(handles),
        handlelength=2.4,
    )
