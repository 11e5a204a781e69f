"""Make the drawings of the documents, as SVGs.

python docs/drawings.py          # writes those that are committed to docs/drawings
python docs/drawings.py FOLDER   # writes all to a folder

The script asks the library, on emulated DIMMs, for the numbers of PEs, groups, blocks and bytes. So
a drawing shows what the library does. Equal versions of Matplotlib write equal files.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, Rectangle
from matplotlib.text import Text

import pidcomm

STYLE = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans", "Verdana"],
    "font.size": 9,
    "svg.hashsalt": "pidcomm",
    "svg.fonttype": "none",
}
FOLDER = Path(__file__).parent / "drawings"
COMMITTED = ("collectives", "hypercube", "paths")

# Light to dark, so that they differ in grey, too.
TINTS = ("#ffffff", "#dcebf7", "#b0d2ea", "#7fb2d9", "#1d4f86")
INK, FAINT = "#222222", "#777777"
MEMBERS = "ABCD"


class Drawing(NamedTuple):
    """A figure, and the labels that have to lie inside a box."""

    figure: Figure
    boxed: list[tuple[Text, Rectangle]]

    @classmethod
    def blank(cls, width: float, height: float) -> tuple[Drawing, Axes]:
        """Return a drawing of so many units, 0.5 inches each, x to the right and y downwards."""
        figure = Figure(figsize=(width / 2, height / 2))
        ax = figure.add_axes((0, 0, 1, 1))
        ax.set_xlim(0, width)
        ax.set_ylim(height, 0)
        ax.set_axis_off()
        return cls(figure, []), ax

    def box(
        self,
        ax: Axes,
        x: float,
        y: float,
        w: float,
        h: float,
        label: str = "",
        tint: int = 0,
        **style: object,
    ) -> None:
        """Draw a box with its label in the middle."""
        size = style.pop("size", 8)
        colour = "white" if tint == len(TINTS) - 1 else INK
        patch = ax.add_patch(
            Rectangle(
                (x, y), w, h, **{"facecolor": TINTS[tint], "edgecolor": INK, "lw": 0.7, **style}
            )
        )
        if label:
            text = ax.text(
                x + w / 2,
                y + h / 2,
                label,
                ha="center",
                va="center",
                size=size,
                color=colour,
                linespacing=1.15,
            )
            self.boxed.append((text, patch))


def say(ax: Axes, x: float, y: float, text: str, **style: object) -> None:
    """Write text; (x, y) is its left end, in the middle of its height."""
    ax.text(x, y, text, **{"ha": "left", "va": "center", "color": INK, **style})


def note(ax: Axes, x: float, y: float, *lines: str) -> None:
    """Write small lines of text, one below the other."""
    for i, text in enumerate(lines):
        say(ax, x, y + 0.45 * i, text, size=8.5)


def arrow(ax: Axes, start: tuple[float, float], end: tuple[float, float], **style: object) -> None:
    """Draw an arrow."""
    ax.add_patch(
        FancyArrowPatch(
            start,
            end,
            **{"arrowstyle": "-|>", "mutation_scale": 11, "color": INK, "lw": 1.1, **style},
        )
    )


@contextmanager
def style() -> Iterator[None]:
    """Make and save drawings with our settings, whatever those of the user or of the process
    are.
    """
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(STYLE)
        yield


def rank() -> Drawing:
    """A rank: 8 chips with 8 banks each, an entangled group, both ways to count, and what a PE
    is.
    """
    drawing, ax = Drawing.blank(20.5, 8.6)
    with pidcomm.allocate(ranks=1) as pes:
        cube = pes.hypercube(pes.pes)
        places = [cube.location(pe)[1:] for pe in range(pes.pes)]
    chosen = 2
    for left, title, number in (
        (0.6, "PE number", lambda chip, bank: places.index((chip, bank))),
        (8.0, "index in DPU_FOREACH", lambda chip, bank: 8 * chip + bank),
    ):
        say(ax, left + 0.8, 0.4, title, weight="bold")
        for chip in range(8):
            say(ax, left + 1.15 + 0.7 * chip, 1.05, str(chip), ha="center", color=FAINT, size=8)
        say(ax, left + 1.15 + 0.7 * 7 + 0.5, 1.05, "chip", color=FAINT, size=8)
        for bank in range(8):
            say(ax, left + 0.55, 1.7 + 0.7 * bank, str(bank), ha="center", color=FAINT, size=8)
            for chip in range(8):
                tint = 3 if bank == chosen else 0
                drawing.box(
                    ax,
                    left + 0.8 + 0.7 * chip,
                    1.35 + 0.7 * bank,
                    0.7,
                    0.7,
                    str(number(chip, bank)),
                    tint,
                )
        say(ax, left + 0.55, 1.7 + 0.7 * 8 - 0.1, "bank", ha="center", color=FAINT, size=8)
    note(
        ax,
        1.4,
        7.75,
        f"dark: the entangled group of bank {chosen}, 8 PEs that share lines; one chip is one lane",
        "all 64 boxes: one rank; a DIMM has two, a channel of the memory bus has two DIMMs",
    )
    say(ax, 15.6, 0.4, "one box: a PE", weight="bold")
    drawing.box(ax, 15.6, 1.35, 4.4, 5.6, tint=1)
    drawing.box(ax, 16.0, 1.75, 3.6, 1.1, "MRAM, 64 MiB\n(the bank)", 0)
    drawing.box(ax, 16.0, 3.75, 3.6, 1.1, "WRAM, 64 KiB\n(scratchpad)", 0)
    drawing.box(ax, 16.0, 5.5, 3.6, 1.1, "DPU\nup to 24 tasklets", 3)
    arrow(ax, (16.8, 2.85), (16.8, 3.75), arrowstyle="<|-|>")
    say(ax, 17.05, 3.3, "DMA", size=8)
    arrow(ax, (16.8, 4.85), (16.8, 5.5), arrowstyle="<|-|>")
    say(ax, 17.05, 5.17, "load, store", size=8)
    return drawing


def line() -> Drawing:
    """A line of 64 bytes in PIM order, and after a domain transfer."""
    drawing, ax = Drawing.blank(20.9, 9.1)
    marked = 3
    for left, title, rows, columns, label in (
        (
            0.4,
            "in PIM order: as the memory bus has it",
            "beat",
            "lane",
            lambda row, column: (column, row),
        ),
        (
            11.0,
            "in host order: after a domain transfer",
            "word",
            "byte",
            lambda row, column: (row, column),
        ),
    ):
        say(ax, left + 1.2, 0.4, title, weight="bold")
        for i in range(8):
            say(ax, left + 1.65 + 0.9 * i, 1.1, str(i), ha="center", color=FAINT, size=8)
            say(ax, left + 0.9, 1.75 + 0.7 * i, str(i), ha="center", color=FAINT, size=8)
            for j in range(8):
                word, byte = label(i, j)
                drawing.box(
                    ax,
                    left + 1.2 + 0.9 * j,
                    1.4 + 0.7 * i,
                    0.9,
                    0.7,
                    f"{word}.{byte}",
                    3 if word == marked else 0,
                )
        say(ax, left + 8.75, 1.1, columns, color=FAINT, size=8)
        say(ax, left + 0.9, 7.2, rows, ha="center", color=FAINT, size=8)
    arrow(ax, (9.35, 4.2), (11.15, 4.2), arrowstyle="<|-|>")
    say(ax, 10.25, 3.85, "8x8 bytes", ha="center", size=8)
    say(ax, 10.25, 4.6, "transposed", ha="center", size=8)
    note(
        ax,
        1.6,
        7.75,
        f"c.r: byte r of the 64-bit word of the PE in lane c; dark: the word of lane {marked}. Rows"
        " lie one after the",
        "other in memory, 8 bytes each. To move every PE's word one lane on, move every byte one"
        " place to the right:",
        "data that only move from PE to PE stay in PIM order.",
    )
    return drawing


def hypercube() -> Drawing:
    """PEs as 4x2x2, and the groups of three masks."""
    shape, masks = (4, 2, 2), ("100", "010", "101")
    drawing, ax = Drawing.blank(22, 8.9)
    with pidcomm.allocate(pes=16) as pes:
        cube = pes.hypercube(*shape)
        for panel, mask in enumerate(masks):
            left = 0.5 + 7.3 * panel
            groups = cube.groups(mask)
            selected = " and ".join(
                axis for axis, bit in zip("xyz", mask, strict=True) if bit == "1"
            )
            say(ax, left, 0.4, f'mask "{mask}": along {selected}', weight="bold")
            say(ax, left, 0.9, f"{groups.groups} groups of {groups.group_pes}", size=8.5)
            for pe in range(cube.pes):
                x, y, z = cube.coords(pe)
                group, member = cube.group_of(pe, mask), cube.member_of(pe, mask)
                tint = group * max(1, 4 // groups.groups) % 4
                label = f"PE {pe}\n{group}.{member}"
                drawing.box(
                    ax, left + 1.62 * x, 1.5 + 1.25 * y + 3.2 * z, 1.4, 1.0, label, tint, size=8.5
                )
            for z in range(shape[2]):
                say(
                    ax,
                    left + 6.45,
                    2.6 + 3.2 * z,
                    f"z = {z}",
                    rotation=90,
                    ha="center",
                    color=FAINT,
                    size=8,
                )
    note(
        ax,
        0.5,
        7.9,
        "x to the right, y downwards. Below the number of a PE: group.member. A tint is a group"
        " (with mask 010 the",
        "lower four groups repeat the tints of the upper ones). PEs 0 to 7 are an entangled group,"
        " 8 to 15 the next.",
    )
    return drawing


def collectives() -> Drawing:
    """What the members of a group of 4 hold before and after each collective, as the library
    moved it.
    """
    drawing, ax = Drawing.blank(21, 16)
    members = len(MEMBERS)
    names = np.array(
        [[1 << (members * p + q) for q in range(members)] for p in range(members)], np.uint64
    )

    def label(value: int) -> str:
        """Name a block: the member it comes from and its number there; a sum of all members' by
        its number.
        """
        parts = [divmod(bit, members) for bit in range(members * members) if value >> bit & 1]
        if len(parts) == 1:
            return f"{MEMBERS[parts[0][0]]}{parts[0][1]}"
        assert [p for p, _ in parts] == list(range(members)), value
        assert len({q for _, q in parts}) == 1, value
        return f"Σ{parts[0][1]}"

    def rows(x: float, y: float, holders: list[str], blocks: np.ndarray) -> None:
        for i, (holder, row) in enumerate(zip(holders, blocks, strict=True)):
            say(ax, x + 0.5, y + 0.32 + 0.72 * i, holder, ha="right", size=8, color=FAINT)
            for j, value in enumerate(row):
                text = label(int(value))
                tint = 4 if text.startswith("Σ") else MEMBERS.index(text[0])
                drawing.box(ax, x + 0.65 + 0.85 * j, y + 0.72 * i, 0.85, 0.64, text, tint)

    with pidcomm.allocate(pes=members) as pes:
        cube = pes.hypercube(members)
        for number, (name, row) in enumerate(pidcomm.COLLECTIVES.items()):
            columns = members if row.per_member_before else 1
            before = (
                names[:, :columns] if row.at_pes_before else names[:1].reshape(1, -1)[:, :columns]
            )
            after = getattr(cube.arrays, name)(before, "1")
            x, y = 0.4 + 10.5 * (number % 2), 0.4 + 3.8 * (number // 2)
            say(ax, x, y, name, weight="bold")
            rows(x, y + 0.4, list("0123") if row.at_pes_before else ["host"], before)
            rows(x + 5.3, y + 0.4, list("0123") if row.at_pes_after else ["host"], after)
            arrow(ax, (x + 4.25, y + 1.75), (x + 5.25, y + 1.75))
    note(
        ax,
        0.4,
        15.6,
        "Left of a row: the member that holds it, or host. A0: block 0 of member 0; B0: of member"
        " 1. Σ0: the reduction of A0, B0, C0, D0.",
    )
    return drawing


def paths() -> Drawing:
    """The way of a byte from PE to PE: none without the host; conventional; tile."""
    size_bytes, pes_count = 4096, 64
    crossings = {}
    with pidcomm.allocate(pes=pes_count) as pes:
        cube = pes.hypercube(8, 8)
        for technique in ("conventional", "tile"):
            trace = cube.alltoall(
                "10", bytes=size_bytes, src=0, dst=size_bytes, technique=technique
            )
            moved = size_bytes * pes_count
            bus = (trace.mram_bytes_read + trace.mram_bytes_written) / moved
            host = (trace.host_bytes_read + trace.host_bytes_written) / moved
            crossings[technique] = (
                f"per byte moved: {bus:g} at the PEs' bus, {host:g} in host memory"
            )
    drawing, ax = Drawing.blank(21, 10.6)
    say(ax, 0.4, 0.4, "PEs have no connection to each other", weight="bold")
    drawing.box(ax, 0.4, 1.2, 2.4, 1.0, "PE a", 1)
    drawing.box(ax, 6.4, 1.2, 2.4, 1.0, "PE b", 1)
    arrow(ax, (2.9, 1.45), (6.3, 1.45), color=FAINT, linestyle=(0, (4, 3)))
    say(ax, 4.6, 1.0, "no such path", ha="center", size=8.5)
    drawing.box(ax, 3.3, 2.6, 2.6, 0.9, "host CPU", 3)
    arrow(ax, (1.6, 2.2), (3.3, 3.0), connectionstyle="angle,angleA=90,angleB=0")
    arrow(ax, (5.9, 3.0), (7.6, 2.2), connectionstyle="angle,angleA=0,angleB=90")
    note(
        ax,
        9.4,
        1.3,
        "A PE has access to its own bank only. Data move only between launches:",
        "the host reads and writes MRAM through the memory bus, in whole lines",
        "of 64 bytes. A byte from PE to PE crosses the bus at least twice: once in, once out.",
    )

    def chain(
        y: float, title: str, figures: str, steps: list[tuple[str, int]], width: float, gap: float
    ) -> None:
        say(ax, 0.4, y, title, weight="bold")
        say(ax, 20.4, y, figures, size=8.5, ha="right")
        for i, (label, tint) in enumerate(steps):
            x = 0.4 + (width + gap) * i
            drawing.box(ax, x, y + 0.5, width, 1.3, label, tint)
            if i:
                arrow(ax, (x - gap, y + 1.15), (x, y + 1.15))

    conventional = [
        ("MRAM,\nlines", 1),
        ("registers:\ndomain\ntransfer", 3),
        ("host\nmemory", 2),
        ("registers:\nrearrange", 3),
        ("host\nmemory", 2),
        ("registers:\ndomain\ntransfer", 3),
        ("MRAM,\nlines", 1),
    ]
    chain(4.5, "conventional", crossings["conventional"], conventional, 2.3, 0.65)
    tile = [
        ("MRAM,\nlines", 1),
        ("registers: exchange lane bits with line bits\n(alltoall: no domain transfer)", 3),
        ("MRAM,\nlines", 1),
    ]
    say(ax, 0.4, 7.4, "tile", weight="bold")
    say(ax, 20.4, 7.4, crossings["tile"], size=8.5, ha="right")
    for (label, tint), x, width in zip(tile, (0.4, 3.35, 18.1), (2.3, 14.1, 2.3), strict=True):
        drawing.box(ax, x, 7.9, width, 1.3, label, tint)
    arrow(ax, (2.7, 8.55), (3.35, 8.55))
    arrow(ax, (17.45, 8.55), (18.1, 8.55))
    note(
        ax,
        0.4,
        9.9,
        "Figures: bytes read plus written, from the traces of an alltoall of "
        f"{size_bytes} bytes per PE on {pes_count} PEs.",
    )
    return drawing


DRAWINGS: dict[str, Callable[[], Drawing]] = {
    function.__name__: function for function in (rank, line, hypercube, collectives, paths)
}


def main(folder: Path = FOLDER) -> None:
    """Write every drawing to a folder; only the committed ones to their own."""
    folder.mkdir(parents=True, exist_ok=True)
    with style():
        for name in COMMITTED if folder == FOLDER else DRAWINGS:
            DRAWINGS[name]().figure.savefig(folder / f"{name}.svg", metadata={"Date": None})


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:2]))
