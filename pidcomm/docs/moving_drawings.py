"""Draws the pictures of design.md: python docs/moving_drawings.py FOLDER."""

import sys
from pathlib import Path

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

matplotlib.rcParams["svg.hashsalt"] = "pidcomm"  # the same file from the same script
matplotlib.rcParams["svg.fonttype"] = "none"  # text stays text
matplotlib.rcParams["font.family"] = "sans-serif"

# Told apart by lightness, too: on paper, in grey, by every eye.
TINTS = ("#ffffff", "#f6d9a8", "#9fc5e8", "#3d6d99")
LINE = "#333333"


def cell(
    axes: Axes, x: float, y: float, text: str, tint: int, width: float = 1, size: float = 8
) -> None:
    axes.add_patch(
        Rectangle((x, -y - 1), width, 1, facecolor=TINTS[tint], edgecolor=LINE, linewidth=0.6)
    )
    axes.text(
        x + width / 2,
        -y - 0.53,
        text,
        ha="center",
        va="center",
        fontsize=size,
        color="white" if tint == 3 else "black",
    )


def label(
    axes: Axes, x: float, y: float, text: str, align: str = "center", size: float = 8
) -> None:
    axes.text(x, -y - 0.53, text, ha=align, va="center", fontsize=size)


def lanes(axes: Axes, x: float, y: float, size: float = 8) -> None:
    for lane in range(8):
        label(axes, x + lane + 0.5, y, str(lane), size=size)


def canvas(width: float, height: float, units: tuple[float, float, float, float]) -> Axes:
    """units: left, right, top, bottom; y grows downwards."""
    _, axes = plt.subplots(figsize=(width, height))
    left, right, top, bottom = units
    axes.set_xlim(left, right)
    axes.set_ylim(-bottom, -top)
    axes.set_aspect("equal")
    axes.axis("off")
    return axes


def draw_butterfly() -> None:
    """The exchange of a lane bit with a line bit, for each lane bit."""
    axes = canvas(8.6, 2.9, (-2.2, 30.2, -2.6, 7.7))
    for bit in range(3):
        x = 10.8 * bit
        label(axes, x + 4, -2.4, f"lane bit {bit}: shift by {8 << bit} bits", size=9)
        lanes(axes, x, -1.1, 7)
        for lane in range(8):
            high = lane >> bit & 1
            cell(axes, x + lane, 0, f"a{lane}", 1, size=7)
            cell(axes, x + lane, 1.3, f"b{lane}", 3, size=7)
            low, up = lane & ~(1 << bit), lane | 1 << bit
            cell(axes, x + lane, 3.4, f"b{low}" if high else f"a{lane}", 3 if high else 1, size=7)
            cell(axes, x + lane, 4.7, f"b{lane}" if high else f"a{up}", 3 if high else 1, size=7)
            axes.add_patch(
                Rectangle(
                    (x + lane, -1 if high else -2.3),
                    1,
                    1,
                    fill=False,
                    edgecolor="black",
                    linewidth=2,
                )
            )
    label(
        axes,
        14.8,
        6.6,
        "thick: the bytes that change places, a's lanes with the bit and b's lanes without it",
    )
    for y, name in ((0, "line a"), (1.3, "line b"), (3.4, "line a'"), (4.7, "line b'")):
        label(axes, -0.3, y, name, "right")


ARROW = {"arrowstyle": "->", "color": LINE, "linewidth": 1.0, "shrinkA": 0, "shrinkB": 0}


def draw_alltoall() -> None:
    """One word of every block of an alltoall among 16 PEs: 16 lines of each of two entangled
    groups.
    """
    axes = canvas(8.6, 8.9, (-3.4, 22.6, -2.4, 37.4))
    for x, title, side in (
        (0, "before: lines by block q", "source"),
        (13, "after: lines by block p", "destination"),
    ):
        label(axes, x + 4, -2.3, title, size=10)
        for eg in range(2):
            top = 19 * eg
            label(axes, x - 0.3, top - 1, "lane", "right")
            lanes(axes, x, top - 1)
            for i in range(16):
                label(
                    axes,
                    x - 0.3,
                    top + i,
                    f"{'q' if side == 'source' else 'p'} = {i:x}",
                    "right",
                    7.5,
                )
                for lane in range(8):
                    p, q = (8 * eg + lane, i) if side == "source" else (i, 8 * eg + lane)
                    cell(axes, x + lane, top + i, f"{p:x}{q:x}", 2 * (q // 8) + p // 8, size=7)
            for half in range(2):
                axes.add_patch(
                    Rectangle(
                        (x, -top - 8 * half - 8), 8, 8, fill=False, edgecolor="black", linewidth=2
                    )
                )
            label(axes, x + 4, top + 16.05, f"entangled group {eg}, word w", size=8.5)
    # A tile keeps its tint: (source EG, destination EG) -> (EG, lines) of the other side,
    # transposed.
    for source, destination in ((0, 0), (0, 1), (1, 0), (1, 1)):
        start = (8.25, -(19 * source + 8 * destination + 4))
        end = (10.6, -(19 * destination + 8 * source + 4))
        axes.annotate("", end, start, arrowprops=ARROW | {"linewidth": 1.6})
    label(
        axes,
        9.8,
        36.3,
        "two digits: member p that has the byte, member q that it is for. One tint: one tile, 8"
        " lines in, 8 lines out.",
    )


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, draw in (("butterfly", draw_butterfly), ("alltoall", draw_alltoall)):
        draw()
        plt.savefig(
            folder / f"moving-{name}.svg",
            bbox_inches="tight",
            pad_inches=0.05,
            metadata={"Date": None},
        )
        plt.close()


main()
