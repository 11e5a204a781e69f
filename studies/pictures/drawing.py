"""Pictures of collectives: on the left the PEs in the colours of their groups, on the right the
steps of the plan.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from math import ceil
from typing import TYPE_CHECKING, Any, NamedTuple

import pidcomm
from pidcomm.explain import plan as explain
from pidcomm.explain.places import Places, runs
from pidcomm.explain.words import count, used
from pidcomm.sizes import format_size
from pidcomm.tables import BANKS_PER_CHIP, CHIPS_PER_RANK
from pidcomm_studies.pictures import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Colours of group 0, 1, ...; the colours repeat. Neighbouring colours differ in lightness.
COLOURS = ("#fff3b8", "#98c0e8", "#f9cfa8", "#8fbf9f", "#e6d3f2", "#dc8f9d", "#c9e39b", "#93a0bd")
RANK_WORDS = ("rank {}: PEs {}-{}", "rank {}: {}-{}", "{1}-{2}")

# Sizes are in inches, except those named points.
FLOW_INCHES, TITLE_INCHES, GAP_INCHES, EDGE_INCHES = 5.4, 0.75, 0.30, 0.15
RANK_GAP, HEAD, CHANNEL_HEAD, CHANNEL_GAP, AXIS_ROOM = 0.18, 0.17, 0.24, 0.14, 0.42
LARGEST_CELL, SMALLEST_CELL, MACHINE_INCHES = 0.50, 0.15, 9.5
CELL_POINTS = style.SMALL_POINTS
LEGEND_INCHES, LEGEND_COLUMNS = 1.0, 4
FLOW_POINTS, LINE_FACTOR, BOX_PAD, ARROW_INCHES = 7.0, 1.42, 0.09, 0.26
FLOW_EDGE = 0.02
FLOW_CHARACTERS = 76
INDENT = "  "  # indent of the later lines of a broken line
LINE_INCHES = style.SMALL_POINTS * LINE_FACTOR / 72
DIGIT_EMS = 0.64  # width of a digit of the font


class _Box(NamedTuple):
    """A box with a step of the plan: a heading in bold and lines below it."""

    heading: list[str]
    lines: list[str]

    @property
    def inches(self) -> float:
        return len(self.heading + self.lines) * FLOW_POINTS * LINE_FACTOR / 72 + 2 * BOX_PAD


class _Layout(NamedTuple):
    """The layout of channels and ranks. cell: the width of a cell in inches."""

    cell: float
    rank_columns: int
    rank_rows: int
    channel_columns: int
    channel_rows: int
    bank_rows: int

    @property
    def rank(self) -> tuple[float, float]:
        return CHIPS_PER_RANK * self.cell, self.bank_rows * self.cell + HEAD

    @property
    def channel(self) -> tuple[float, float]:
        wide, high = self.rank
        return (
            self.rank_columns * (wide + RANK_GAP) + RANK_GAP,
            self.rank_rows * (high + RANK_GAP) + CHANNEL_HEAD,
        )

    @property
    def size(self) -> tuple[float, float]:
        wide, high = self.channel
        return (
            AXIS_ROOM + self.channel_columns * (wide + CHANNEL_GAP),
            HEAD + self.channel_rows * (high + CHANNEL_GAP),
        )


def draw(places: Places, plan: dict[str, Any]) -> Figure:
    """Return the picture of a plan on its PEs."""
    layout = _lay_out(places)
    boxes = list(_boxes(plan))
    flow_inches = 2 * FLOW_EDGE + sum(box.inches for box in boxes)
    flow_inches += ARROW_INCHES * (len(boxes) - 1)
    legend_inches = GAP_INCHES * (1 + ceil(_coloured(places) / LEGEND_COLUMNS)) + LINE_INCHES * len(
        places.shape
    )
    wide, high = layout.size
    width = wide + FLOW_INCHES + 3 * EDGE_INCHES
    with style.settings():
        op = f" {plan['op']}" if "op" in plan else ""
        conditions = [
            f"{plan['shape']}",
            f"mask {plan['mask']}",
            plan["dtype"],
            f"{format_size(plan['bytes_per_pe'])} per PE",
            f"technique {plan['technique']}",
        ]
        small_print = [
            f"{used(places)} of the emulated machine",
            "planned, nothing moved or measured",
            f"pidcomm {pidcomm.__version__}",
        ]
        drawn_inches = max(high + legend_inches, flow_inches)
        figure, body = style.new_figure(
            width,
            drawn_inches + TITLE_INCHES,
            f"{plan['collective']}{op}: where it runs and how",
            conditions,
            small_print,
        )
        left, right = body.subplots(1, 2, width_ratios=(wide, FLOW_INCHES))
        for axes, size in ((left, wide), (right, FLOW_INCHES)):
            axes.set_axis_off()
            axes.set_xlim(0, size)
            axes.set_ylim(drawn_inches, 0)
        _draw_machine(left, places, layout)
        _draw_groups(left, places, layout)
        _draw_flow(right, boxes)
    return figure


def _text(axes: Axes, x: float, y: float, words: str, **how: Any) -> None:
    """Write words that the layout engine ignores, because there are thousands of words and all
    lie inside the axes.
    """
    axes.text(x, y, words, va="center", in_layout=False, **how)


# ---- the machine


def _lay_out(places: Places) -> _Layout:
    """Return the layout with the largest cells, among layouts of at most about MACHINE_INCHES in
    width and height.
    """
    in_channel = min(max(places.pes_of_rank) + 1, places.ranks_per_channel)
    bank_rows = (
        BANKS_PER_CHIP
        if len(places.pes_of_rank) > 1
        else max(location.bank for location in places.location) + 1
    )
    layouts = []
    for rank_columns in range(1, in_channel + 1):
        for channel_columns in range(1, places.channels + 1):
            rows = ceil(in_channel / rank_columns), ceil(places.channels / channel_columns)
            frame = _Layout(0, rank_columns, rows[0], channel_columns, rows[1], bank_rows).size
            ranks_across, ranks_down = rank_columns * channel_columns, rows[0] * rows[1]
            cell = min(
                LARGEST_CELL,
                (MACHINE_INCHES - frame[0]) / (ranks_across * CHIPS_PER_RANK),
                (MACHINE_INCHES - frame[1]) / (ranks_down * bank_rows),
            )
            spare = (
                rank_columns * rows[0] - in_channel + channel_columns * rows[1] - places.channels
            )
            layout = _Layout(
                max(cell, SMALLEST_CELL), rank_columns, rows[0], channel_columns, rows[1], bank_rows
            )
            layouts.append((cell, -spare, -layout.size[1], layout))
    return max(layouts)[-1]


def _coloured(places: Places) -> int:
    return min(places.groups, len(COLOURS))


def _channel_corner(layout: _Layout, channel: int) -> tuple[float, float]:
    line, column = divmod(channel, layout.channel_columns)
    wide, high = layout.channel
    return AXIS_ROOM + column * (wide + CHANNEL_GAP), HEAD + line * (high + CHANNEL_GAP)


def _rank_corner(places: Places, layout: _Layout, rank: int) -> tuple[float, float]:
    """Return the upper left corner of a rank's cells."""
    left, top = _channel_corner(layout, places.channel(rank))
    line, column = divmod(rank % places.ranks_per_channel, layout.rank_columns)
    wide, high = layout.rank
    return left + RANK_GAP + column * (wide + RANK_GAP), top + CHANNEL_HEAD + line * (
        high + RANK_GAP
    ) + HEAD


def _draw_machine(axes: Axes, places: Places, layout: _Layout) -> None:
    from matplotlib.patches import Rectangle

    for channel in range(places.channels):
        corner = _channel_corner(layout, channel)
        axes.add_patch(
            Rectangle(corner, *layout.channel, fill=False, edgecolor="#777777", linewidth=0.7)
        )
        words = f"channel {channel}"
        _text(
            axes,
            corner[0] + RANK_GAP,
            corner[1] + 0.12,
            words,
            fontsize=style.SMALL_POINTS,
            weight="bold",
        )
    _draw_cells(axes, places, layout)
    _draw_numbers(axes, places, layout)
    words = _rank_words(places, layout)
    wide, high = layout.rank
    for rank, pes in places.pes_of_rank.items():
        x, y = _rank_corner(places, layout, rank)
        axes.add_patch(
            Rectangle((x, y), wide, high - HEAD, fill=False, edgecolor=style.INK, linewidth=0.8)
        )
        _text(axes, x, y - 0.07, words.format(rank, pes[0], pes[-1]), fontsize=style.SMALL_POINTS)
    corners = [_rank_corner(places, layout, rank) for rank in places.pes_of_rank]
    # The space below this rank is free.
    _draw_axes(axes, *max(corners, key=lambda corner: (-corner[0], corner[1])), layout)


def _draw_axes(axes: Axes, x: float, y: float, layout: _Layout) -> None:
    """Draw the axes of a rank: lanes across and banks down."""
    cell, high = layout.cell, layout.bank_rows * layout.cell
    how: dict[str, Any] = {"fontsize": style.SMALL_POINTS, "ha": "center", "color": "#444444"}
    for name, end, at, turn in (
        (
            "lane (chip)",
            (CHIPS_PER_RANK * cell, high + 0.26),
            (CHIPS_PER_RANK * cell / 2, high + 0.33),
            0,
        ),
        ("bank", (-0.26, high), (-0.33, high / 2), 90),
    ):
        start = (0.0, end[1]) if turn == 0 else (end[0], 0.0)
        arrow = {
            "arrowstyle": "-|>",
            "color": "#444444",
            "linewidth": 0.7,
            "shrinkA": 0,
            "shrinkB": 0,
        }
        axes.annotate(
            "", (x + end[0], y + end[1]), xytext=(x + start[0], y + start[1]), arrowprops=arrow
        )
        _text(axes, x + at[0], y + at[1], name, rotation=turn, **how)
    step = 1 if cell * 72 >= style.SMALL_POINTS + 3 else CHIPS_PER_RANK - 1
    for lane in range(0, CHIPS_PER_RANK, step):
        _text(axes, x + (lane + 0.5) * cell, y + high + 0.1, f"{lane}", **how)
    for bank in range(0, layout.bank_rows, step):
        _text(axes, x - 0.1, y + (bank + 0.5) * cell, f"{bank}", **how)


def _cells(places: Places, layout: _Layout) -> Iterator[tuple[int, float, float]]:
    """Yield every PE with the corner of its cell."""
    for rank, pes in places.pes_of_rank.items():
        x, y = _rank_corner(places, layout, rank)
        for pe in pes:
            location = places.location[pe]
            yield pe, x + location.chip * layout.cell, y + location.bank * layout.cell


def _draw_cells(axes: Axes, places: Places, layout: _Layout) -> None:
    """Draw the cells of each colour as one shape. A file then has 8 shapes instead of 2560."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    size = layout.cell
    corners: dict[int, list[tuple[float, float]]] = {}
    for pe, x, y in _cells(places, layout):
        square = [(x, y), (x + size, y), (x + size, y + size), (x, y + size), (x, y)]
        corners.setdefault(places.group[pe] % len(COLOURS), []).extend(square)
    codes = [Path.MOVETO, *[Path.LINETO] * 3, Path.CLOSEPOLY]
    for colour, points in corners.items():
        path = Path(points, codes * (len(points) // len(codes)))
        look = {"facecolor": COLOURS[colour], "edgecolor": "#8a8a8a", "linewidth": 0.35}
        axes.add_patch(PathPatch(path, **look, gid=f"colour{colour}", clip_on=False))


def _draw_numbers(axes: Axes, places: Places, layout: _Layout) -> None:
    """Write PE and group into each cell.

    If a cell has no room for two numbers, write only the group.
    """
    has_pes = _has_pes(places, layout)
    if not has_pes and not _fits(places.groups - 1, layout):
        return
    how: dict[str, Any] = {"fontsize": CELL_POINTS, "ha": "center", "linespacing": 1.15}
    for pe, x, y in _cells(places, layout):
        group = places.group[pe]
        words = f"{pe}\ng{group}" if has_pes else f"{group}"
        _text(axes, x + layout.cell / 2, y + layout.cell / 2, words, **how)


def _fits(number: int, layout: _Layout) -> bool:
    return 0.9 * layout.cell * 72 >= max(len(str(number)), 2) * DIGIT_EMS * CELL_POINTS


def _has_pes(places: Places, layout: _Layout) -> bool:
    """Return whether cells have room for the numbers of PE and group."""
    return _fits(places.pes - 1, layout) and layout.cell * 72 >= 2 * CELL_POINTS * LINE_FACTOR + 3


def _rank_words(places: Places, layout: _Layout) -> str:
    """Return the longest words that fit above the last rank, which has the largest numbers."""
    last, pes = max(places.pes_of_rank.items())
    room_points = (layout.rank[0] + RANK_GAP) * 72
    fitting = [
        words
        for words in RANK_WORDS
        if len(words.format(last, pes[0], pes[-1])) * DIGIT_EMS * style.SMALL_POINTS < room_points
    ]
    return fitting[0] if fitting else RANK_WORDS[-1]


def _draw_groups(axes: Axes, places: Places, layout: _Layout) -> None:
    """Draw the legend: the axes of the hypercube, and the groups of each colour."""
    from matplotlib.patches import Rectangle

    shown = _coloured(places)
    wide, top = layout.size
    y = top + 0.16
    for line in _axis_lines(places):
        _text(axes, AXIS_ROOM, y, line, fontsize=style.SMALL_POINTS)
        y += LINE_INCHES
    words = f"{count(places.groups, 'group')} of {count(places.group_pes, 'PE')}"
    words += f"; colours repeat after {shown} groups" if shown < places.groups else ""
    words += "; in cells: PE and group" if _has_pes(places, layout) else ""
    words += (
        "; in cells: group"
        if not _has_pes(places, layout) and _fits(places.groups - 1, layout)
        else ""
    )
    y += 0.05
    _text(axes, AXIS_ROOM, y, words, fontsize=style.SMALL_POINTS)
    columns = max(1, min(LEGEND_COLUMNS, int((wide - AXIS_ROOM) / LEGEND_INCHES)))
    for group in range(shown):
        row, column = divmod(group, columns)
        at = AXIS_ROOM + column * LEGEND_INCHES, y + 0.14 + row * 0.22
        axes.add_patch(
            Rectangle(at, 0.24, 0.15, facecolor=COLOURS[group], edgecolor="#555555", linewidth=0.4)
        )
        words = (
            f"{group}, {group + shown}, .." if group + shown < places.groups else f"group {group}"
        )
        _text(axes, at[0] + 0.29, at[1] + 0.08, words, fontsize=style.SMALL_POINTS)


def _axis_lines(places: Places) -> Iterator[str]:
    """Yield a line per axis of the hypercube, with the PEs along the axis."""
    distance = 1
    for number, (length, bit) in enumerate(zip(places.shape, places.mask, strict=True)):
        name = "xyz"[number] if len(places.shape) <= 3 else str(number)
        along = ", ".join(runs(range(0, length * distance, distance)))
        yield f"axis {name}: PEs {along}" + ("; members of a group" if bit == "1" else "")
        distance *= length


# ---- the plan


def _boxes(plan: dict[str, Any]) -> Iterator[_Box]:
    heading, *rest = explain.summary(plan)
    yield _Box(_wrap([heading]), _wrap(rest))
    for number, (first, *lines) in enumerate(explain.stages(plan), 1):
        yield _Box(_wrap([f"{number}. {first}"]), _wrap(lines))


def _wrap(lines: Sequence[str]) -> list[str]:
    return [
        part
        for line in lines
        for part in textwrap.wrap(_plain(line), FLOW_CHARACTERS, subsequent_indent="   ")
    ]


def _plain(line: str) -> str:
    """Return a line of a plan without padding: "  outer     source x4" becomes "outer: source
    x4".
    """
    return ": ".join(line.split(maxsplit=1)) if line.startswith("  ") else line


def _draw_flow(axes: Axes, boxes: Sequence[_Box]) -> None:
    from matplotlib.patches import FancyBboxPatch

    wide = FLOW_INCHES - 0.1
    y = FLOW_EDGE
    for number, box in enumerate(boxes):
        if number:
            axes.annotate(
                "",
                (wide / 2, y),
                xytext=(wide / 2, y - ARROW_INCHES),
                arrowprops={
                    "arrowstyle": "-|>",
                    "color": style.INK,
                    "linewidth": 0.9,
                    "shrinkA": 0,
                    "shrinkB": 0,
                },
            )
        axes.add_patch(
            FancyBboxPatch(
                (0.05, y),
                wide - 0.05,
                box.inches,
                boxstyle="round,pad=0,rounding_size=0.05",
                facecolor="#ffffff" if number else "#f1f1f1",
                edgecolor=style.INK,
                linewidth=0.7,
            )
        )
        text_y = y + BOX_PAD
        step = FLOW_POINTS * LINE_FACTOR / 72
        for line_number, line in enumerate([*box.heading, *box.lines]):
            _text(
                axes,
                0.05 + BOX_PAD * (2 if line.startswith(INDENT) else 1),
                text_y + (line_number + 0.5) * step,
                line.strip(),
                fontsize=FLOW_POINTS,
                weight="bold" if line_number < len(box.heading) else "normal",
            )
        y += box.inches + ARROW_INCHES
