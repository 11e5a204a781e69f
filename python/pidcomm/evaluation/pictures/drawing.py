"""A collective as a picture: the machine with its PEs and their groups, and beside it the plan as a flow."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from math import ceil
from typing import TYPE_CHECKING, Any, NamedTuple

import pidcomm
from pidcomm._core import BANKS_PER_CHIP, CHIPS_PER_RANK
from pidcomm.evaluation import explain
from pidcomm.evaluation.pictures import style
from pidcomm.evaluation.pictures.places import Places
from pidcomm.evaluation.pictures.words import count, used
from pidcomm.sizes import format_size

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MAX_HIGHLIGHTED = 8
COLOURS = ("#f7edb8", "#f5c597", "#a3d9c2", "#98c0e8", "#cbb0e2", "#dc97a4", "#9ab668", "#8aa0bd")
HATCHES = ("", "///", "\\\\\\", "..", "xxx", "oo", "---", "+++")
PLAIN = "#fafafa"
RANK_WORDS = ("rank {}: PEs {}-{}", "rank {}: {}-{}", "{1}-{2}")

# Inches, except points.
FLOW_INCHES, TITLE_INCHES, GAP_INCHES, EDGE_INCHES = 5.4, 0.75, 0.30, 0.15
RANK_GAP, HEAD, CHANNEL_HEAD, CHANNEL_GAP, AXIS_ROOM = 0.16, 0.17, 0.24, 0.14, 0.34
LARGEST_CELL, SMALLEST_CELL, MACHINE_INCHES = 0.50, 0.105, 9.5
CELL_POINTS, LEAST_POINTS = 6.5, 4.5
LEGEND_INCHES, LEGEND_COLUMNS = 1.0, 4
FLOW_POINTS, LINE_FACTOR, BOX_PAD, ARROW_INCHES = 6.8, 1.42, 0.09, 0.26
FLOW_CHARACTERS = 78
INDENT = "  "  # of what is carried over to the next line
DIGIT_EMS = 0.64  # width of a digit of the font


class _Box(NamedTuple):
    """A part of the flow: its first lines are its heading."""

    heading: list[str]
    lines: list[str]

    @property
    def inches(self) -> float:
        return len(self.heading + self.lines) * FLOW_POINTS * LINE_FACTOR / 72 + 2 * BOX_PAD


class _Layout(NamedTuple):
    """How channels and ranks are laid out, in inches."""

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
    flow_inches = sum(box.inches for box in boxes) + ARROW_INCHES * (len(boxes) - 1)
    legend_inches = GAP_INCHES * (1 + ceil(_highlighted(places) / LEGEND_COLUMNS))
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
    """Write words of which the layout need not be asked: there are thousands, and all lie inside."""
    axes.text(x, y, words, va="center", in_layout=False, **how)


# ---- the machine


def _lay_out(places: Places) -> _Layout:
    """Return the layout with the largest cells that is no wider than MACHINE_INCHES, and about as high."""
    in_channel = min(max(places.pes_of_rank) + 1, places.ranks_per_channel)
    bank_rows = BANKS_PER_CHIP if len(places.pes_of_rank) > 1 else max(it.bank for it in places.location) + 1
    found = []
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
            spare = rank_columns * rows[0] - in_channel + channel_columns * rows[1] - places.channels
            layout = _Layout(max(cell, SMALLEST_CELL), rank_columns, rows[0], channel_columns, rows[1], bank_rows)
            found.append((layout.cell, -spare, -layout.size[1], layout))
    return max(found)[-1]


def _highlighted(places: Places) -> int:
    return min(places.groups, MAX_HIGHLIGHTED)


def _channel_corner(layout: _Layout, channel: int) -> tuple[float, float]:
    line, column = divmod(channel, layout.channel_columns)
    wide, high = layout.channel
    return AXIS_ROOM + column * (wide + CHANNEL_GAP), HEAD + line * (high + CHANNEL_GAP)


def _rank_corner(places: Places, layout: _Layout, rank: int) -> tuple[float, float]:
    """Return where the cells of a rank begin."""
    left, top = _channel_corner(layout, places.channel(rank))
    line, column = divmod(rank % places.ranks_per_channel, layout.rank_columns)
    wide, high = layout.rank
    return left + RANK_GAP + column * (wide + RANK_GAP), top + CHANNEL_HEAD + line * (high + RANK_GAP) + HEAD


def _draw_machine(axes: Axes, places: Places, layout: _Layout) -> None:
    from matplotlib.patches import Rectangle

    points = _cell_points(places, layout)
    for channel in range(places.channels):
        corner = _channel_corner(layout, channel)
        axes.add_patch(Rectangle(corner, *layout.channel, fill=False, edgecolor="#777777", linewidth=0.7))
        words = f"channel {channel}"
        _text(axes, corner[0] + RANK_GAP, corner[1] + 0.12, words, fontsize=style.SMALL_POINTS, weight="bold")
    _draw_cells(axes, places, layout, has_hatches=not _has_groups(layout, points))
    if points is not None:
        _draw_numbers(axes, places, layout, points)
    words = _rank_words(places, layout)
    wide, high = layout.rank
    for rank, pes in places.pes_of_rank.items():
        x, y = _rank_corner(places, layout, rank)
        axes.add_patch(Rectangle((x, y), wide, high - HEAD, fill=False, edgecolor=style.INK, linewidth=0.8))
        _text(axes, x, y - 0.07, words.format(rank, pes[0], pes[-1]), fontsize=style.SMALL_POINTS)
    x, y = _rank_corner(places, layout, 0)
    _text(axes, x, 0.07, "a rank: across, lanes (chips); down, banks", fontsize=style.SMALL_POINTS)
    if layout.cell * 72 >= 2 * LEAST_POINTS:
        how: dict[str, Any] = {"fontsize": style.SMALL_POINTS - 1, "ha": "right", "color": "#444444"}
        for bank in range(layout.bank_rows):
            _text(axes, x - RANK_GAP - 0.04, y + (bank + 0.5) * layout.cell, f"{bank}", **how)


def _cells(places: Places, layout: _Layout) -> Iterator[tuple[int, float, float]]:
    """Yield every PE with the corner of its cell."""
    for rank, pes in places.pes_of_rank.items():
        x, y = _rank_corner(places, layout, rank)
        for pe in pes:
            it = places.location[pe]
            yield pe, x + it.chip * layout.cell, y + it.bank * layout.cell


def _draw_cells(axes: Axes, places: Places, layout: _Layout, has_hatches: bool) -> None:
    """Draw the cells of each highlighted group, and of all others, as one shape: a file has 9 of them, not 2560."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    size = layout.cell
    corners: dict[int, list[tuple[float, float]]] = {}
    for pe, x, y in _cells(places, layout):
        shown = min(places.group[pe], MAX_HIGHLIGHTED)
        corners.setdefault(shown, []).extend([(x, y), (x + size, y), (x + size, y + size), (x, y + size), (x, y)])
    square = [Path.MOVETO, *[Path.LINETO] * 3, Path.CLOSEPOLY]
    for shown, points in corners.items():
        is_group = shown < MAX_HIGHLIGHTED
        axes.add_patch(
            PathPatch(
                Path(points, square * (len(points) // len(square))),
                facecolor=COLOURS[shown] if is_group else PLAIN,
                hatch=HATCHES[shown] if is_group and has_hatches else None,
                edgecolor="#8a8a8a",
                linewidth=0.35,
                gid=f"group{shown}" if is_group else "others",
                clip_on=False,
            )
        )


def _draw_numbers(axes: Axes, places: Places, layout: _Layout, points: float) -> None:
    has_groups = _has_groups(layout, points)
    for pe, x, y in _cells(places, layout):
        group = places.group[pe]
        has_hatch = not has_groups and group < MAX_HIGHLIGHTED and HATCHES[group]
        _text(
            axes,
            x + layout.cell / 2,
            y + layout.cell / 2,
            f"{pe}\ng{group}" if has_groups else f"{pe}",
            fontsize=points,
            ha="center",
            linespacing=1.15,
            bbox=_plate(group) if has_hatch else None,
        )


def _cell_points(places: Places, layout: _Layout) -> float | None:
    """Return the size of PE numbers in cells; None if they do not fit."""
    digits = max(len(str(places.pes - 1)), 2)
    points = min(CELL_POINTS, 0.9 * layout.cell * 72 / (digits * DIGIT_EMS))
    return points if points >= LEAST_POINTS else None


def _has_groups(layout: _Layout, points: float | None) -> bool:
    """Return whether cells have room for the number of the group, too; hatches are then not needed."""
    return points is not None and layout.cell * 72 >= 2 * points * LINE_FACTOR + 3


def _rank_words(places: Places, layout: _Layout) -> str:
    """Return the longest form of words for ranks that fits above the last, which has the largest numbers."""
    last, pes = max(places.pes_of_rank.items())
    room_points = (layout.rank[0] + RANK_GAP) * 72
    fitting = [
        words
        for words in RANK_WORDS
        if len(words.format(last, pes[0], pes[-1])) * DIGIT_EMS * style.SMALL_POINTS < room_points
    ]
    return fitting[0] if fitting else RANK_WORDS[-1]


def _plate(group: int) -> dict[str, Any]:
    """Return what keeps a hatch from a number."""
    return {"facecolor": COLOURS[group], "linewidth": 0, "pad": 0.3}


def _draw_groups(axes: Axes, places: Places, layout: _Layout) -> None:
    from matplotlib.patches import Rectangle

    shown = _highlighted(places)
    wide, top = layout.size
    has_groups = _has_groups(layout, _cell_points(places, layout))
    words = f"{count(places.groups, 'group')} of {count(places.group_pes, 'PE')}"
    words += f"; the first {shown} are coloured, the others are white" if shown < places.groups else ""
    y = top + 0.16
    _text(axes, AXIS_ROOM, y, words, fontsize=style.FONT_POINTS - 1)
    columns = max(1, min(LEGEND_COLUMNS, int((wide - AXIS_ROOM) / LEGEND_INCHES)))
    for group in range(shown):
        line, column = divmod(group, columns)
        at = AXIS_ROOM + column * LEGEND_INCHES, y + 0.14 + line * 0.22
        axes.add_patch(
            Rectangle(
                at,
                0.24,
                0.15,
                facecolor=COLOURS[group],
                hatch=None if has_groups else HATCHES[group],
                edgecolor="#555555",
                linewidth=0.4,
            )
        )
        _text(
            axes,
            at[0] + 0.29,
            at[1] + 0.08,
            f"g{group}: group {group}" if has_groups else f"group {group}",
            fontsize=style.SMALL_POINTS,
        )


# ---- the plan


def _boxes(plan: dict[str, Any]) -> Iterator[_Box]:
    heading, *rest = explain.summary(plan)
    yield _Box(_wrap([heading]), _wrap(rest))
    for number, (first, *lines) in enumerate(explain.stages(plan), 1):
        yield _Box(_wrap([f"{number}. {first}"]), _wrap(lines))


def _wrap(lines: Sequence[str]) -> list[str]:
    return [part for line in lines for part in textwrap.wrap(_plain(line), FLOW_CHARACTERS, subsequent_indent="   ")]


def _plain(line: str) -> str:
    """Return a line of a plan without its columns: "  outer     source x4" is "outer: source x4"."""
    return ": ".join(line.split(maxsplit=1)) if line.startswith("  ") else line


def _draw_flow(axes: Axes, boxes: Sequence[_Box]) -> None:
    from matplotlib.patches import FancyBboxPatch

    wide = FLOW_INCHES - 0.1
    y = 0.02
    for number, box in enumerate(boxes):
        if number:
            axes.annotate(
                "",
                (wide / 2, y),
                xytext=(wide / 2, y - ARROW_INCHES),
                arrowprops={"arrowstyle": "-|>", "color": style.INK, "linewidth": 0.9, "shrinkA": 0, "shrinkB": 0},
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
