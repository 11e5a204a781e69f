"""Bar charts with one bar per collective and technique.

A mark shows the streaming limit of each bar.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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
LEAST_WIDTH_INCHES, TECHNIQUE_INCHES = 10.0, 1.45
PANEL_INCHES, SINGLE_INCHES, HEAD_AND_FOOT_INCHES = 1.9, 2.8, 1.2
FRAME_INCHES = 0.5  # part of a panel's height for its title and ticks
CHARACTER_INCHES = 0.6 * style.SMALL_POINTS / 72
MOST_SHARED = 3.0  # panels share the scale if the ratio of their highest values is at most this
HEADROOM = 1.05
LABEL_INCHES = 1.7 * style.SMALL_POINTS / 72  # height of a speed-up with its edges
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
    notes = [f"on the bars: speed-up over {BASE}"] if labels else []
    notes.append("source: " + ", ".join(sorted({row["source"] for row in rows})))
    collectives = collectives_of(rows)
    width_inches = max(LEAST_WIDTH_INCHES, TECHNIQUE_INCHES * len(techniques))
    with style.settings():
        panel_inches = PANEL_INCHES if lines > 1 else SINGLE_INCHES
        figure, body = style.new_figure(
            width_inches,
            HEAD_AND_FOOT_INCHES + lines * panel_inches,
            metric.title,
            parts.title,
            notes + parts.small_print,
        )
        inches = panel_inches - FRAME_INCHES
        width = GROUP_WIDTH / len(techniques)
        text_inches = CHARACTER_INCHES * max(map(len, labels), default=0)
        # A label may reach over a neighbour without a label.
        reach = min(1.5, len(techniques) / max(1, len({*techniques} - {BASE})))
        is_flat = reach * width * (width_inches / columns - 1) / len(collectives) >= text_inches
        label_share = (LABEL_INCHES if is_flat else text_inches + 0.08) / inches
        tops = [_top(part, metric, label_share) for part in parts.parts.values()]
        is_shared = max(tops) <= MOST_SHARED * min(tops)
        grid = body.subplots(lines, columns, sharex=True, sharey=is_shared, squeeze=False)
        shared_top = _top(rows, metric, label_share)
        for number, (words, of_part) in enumerate(parts.parts.items()):
            panel = grid.flat[number]
            _panel(
                panel,
                of_part,
                words,
                collectives,
                techniques,
                metric,
                width_inches / columns,
                width,
                is_flat,
                label_share,
                shared_top if is_shared else tops[number],
            )
            panel.tick_params(axis="x", length=0, labelbottom=number + columns >= len(parts.parts))
        for panel in grid.flat[len(parts.parts) :]:
            panel.remove()
        for panel in grid[:, 0]:
            panel.set_ylabel(metric.label)
        _legend(body, techniques, has_limit=any(row["limit_gb_s"] is not None for row in rows))
    return figure


def _ends(row: JsonRow, metric: Metric) -> list[float]:
    """Return the height of a bar and, if known, the height of its limit."""
    return [end for end in (metric.of(row), metric.limit_of(row)) if end is not None]


def _top(rows: Sequence[JsonRow], metric: Metric, label_share: float) -> float:
    """Return the top of an axis that has room for the bars, their limits and their labels."""
    top = HEADROOM * max(end for row in rows for end in _ends(row, metric))
    labelled = [_ends(row, metric) for row in rows if _label(row)]
    while any(_free_place(ends, label_share * top) > (1 - label_share) * top for ends in labelled):
        top *= HEADROOM
    return top


def _label(row: JsonRow) -> str:
    """Return the text above the bar of a row."""
    gain = row["speed_up"]
    return "" if gain is None or row["technique"] == BASE else format_gain(gain)


def _free_place(edges: Iterable[float], height: float) -> float:
    """Return the lowest place from the foot of a bar where a label of a height covers no edge."""
    ends = sorted(edges)
    return next(at for at in (0.0, *ends) if not any(at < edge < at + height for edge in ends))


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
    label_share: float,
    top: float,
) -> None:
    """Draw the bars of a panel. A label lies on its bar, or above the bar if the bar is too low.

    label_share: height of a label, as a share of the panel's height. top: the top of the axis.
    """
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
                foot = _free_place(_ends(row, metric), label_share * top)
                panel.annotate(
                    label,
                    (centre, foot),
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
    panel.set_ylim(0, top)
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
