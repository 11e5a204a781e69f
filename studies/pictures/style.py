"""The style of figures.

Colours also differ in lightness, hatch, marker or dash, so that grey prints stay readable.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pidcomm import ArgumentError
from pidcomm.errors import require

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure, SubFigure
    from matplotlib.lines import Line2D

FORMATS = (".svg", ".png")
PNG_DPI = 200
FONT_POINTS = 8.0
SMALL_POINTS = 7.0  # the smallest text
INK = "#1a1a1a"
LIMIT_INK = "#b00020"
LIMIT_GID = "limit"
MODELLED_HATCH, ASSUMED_HATCH = "////", "xxxx"


class Look(NamedTuple):
    """The style of a technique's bars (colour, hatch) and lines (colour, dash, marker)."""

    colour: str
    hatch: str
    dash: str
    marker: str


# The look of every technique in all pictures. The techniques of the ablation go from light to dark.
TECHNIQUE_LOOKS = {
    "baseline": Look("#f3e3b8", "\\\\", ":", "<"),
    "conventional": Look("#e8c56f", "", "--", "s"),
    "pr": Look("#a3c77f", "///", "-.", "^"),
    "pr+im": Look("#5aab9c", "---", ":", "D"),
    "pr+im+cm": Look("#3f7cb4", "xxx", "-.", "v"),
    "tile": Look("#22305c", "", "-", "o"),
    "ring": Look("#cfcfcf", "ooo", "--", "P"),
    "tree": Look("#858585", "...", ":", "X"),
    "auto": Look("#c9709a", "+++", "-", "*"),
}
OTHER_LOOK = Look("#ffffff", "**", ":", "p")
# Colours of the parts of a bar, light to dark. No technique has these colours.
PARTS = ("#f9ddcf", "#eba98d", "#cf7783", "#93508c", "#4a2a5e")
# Colours and hatches of series that are no techniques.
SERIES_COLOURS = (*PARTS[1:], "#6b6b6b", "#000000", "#a08a2e", "#7b4f2a")
SERIES_HATCHES = ("", "//", "..", "xx", "--", "++", "oo", "\\\\")
# Markers and dashes of further lines of one technique.
SERIES_MARKERS = "s^DvPX*<"
SERIES_DASHES = ("--", ":", "-.", "-")

_SETTINGS: Any = {
    "font.family": ["DejaVu Sans", "sans-serif"],
    "font.size": FONT_POINTS,
    "axes.titlesize": FONT_POINTS,
    "axes.labelsize": FONT_POINTS,
    "xtick.labelsize": FONT_POINTS - 1,
    "ytick.labelsize": FONT_POINTS - 1,
    "legend.fontsize": FONT_POINTS - 1,
    "axes.edgecolor": INK,
    "axes.linewidth": 0.6,
    "axes.axisbelow": True,
    "grid.color": "#d5d5d5",
    "grid.linewidth": 0.5,
    "hatch.linewidth": 0.5,
    "text.parse_math": False,
    "svg.fonttype": "none",  # text stays text, which can be searched and read aloud
    "svg.hashsalt": "pidcomm",  # equal figures give equal files
}


@contextmanager
def settings() -> Iterator[None]:
    """Apply the settings of figures in a with block, and restore the old settings after the
    block.
    """
    import matplotlib

    with matplotlib.rc_context(_SETTINGS):
        yield


def new_figure(
    width_inches: float,
    height_inches: float,
    title: str,
    conditions: Sequence[str],
    small_print: Sequence[str],
) -> tuple[Figure, SubFigure]:
    """Return a white figure and its body, the part between the title with the conditions and the
    small print.

    The figure does not need a display or pyplot. height_inches: the height without the small print.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    notes = _wrapped("; ".join(small_print), width_inches, SMALL_POINTS)
    foot_inches = len(notes) * SMALL_POINTS * 1.5 / 72 + 0.06
    figure = Figure(
        figsize=(width_inches, height_inches + foot_inches), layout="constrained", facecolor="white"
    )
    FigureCanvasAgg(figure)
    body, foot = figure.subfigures(
        2, 1, squeeze=False, height_ratios=(height_inches, foot_inches)
    ).flat
    lines = [title, *_wrapped(", ".join(conditions), width_inches, FONT_POINTS + 1)]
    body.suptitle("\n".join(lines), fontsize=FONT_POINTS + 1, linespacing=1.4)
    foot.text(
        0.5, 0.5, "\n".join(notes), fontsize=SMALL_POINTS, color="#444444", ha="center", va="center"
    )
    return figure, body


def characters(width_inches: float, points: float = SMALL_POINTS) -> int:
    """Return how many characters of a text have room in a width."""
    return int(width_inches * 72 / (0.56 * points))


def _wrapped(text: str, width_inches: float, points: float) -> list[str]:
    return textwrap.wrap(text, characters(width_inches, points))


def label_plainly(axis: Axis) -> None:
    """Label the ticks of a logarithmic axis with numbers such as 200, as many as have room."""
    from matplotlib.ticker import LogFormatter

    class Plain(LogFormatter):
        def __call__(self, x: float, pos: int | None = None) -> str:
            return f"{x:g}" if super().__call__(x, pos) else ""

    axis.set_major_formatter(Plain())
    axis.set_minor_formatter(Plain(minor_thresholds=(1.1, 0.5)))


def mark_limit(axes: Axes, xs: Sequence[float], ys: Sequence[float]) -> None:
    """Draw a part of the mark for the limit, with a white edge that is visible on dark bars."""
    from matplotlib.patheffects import withStroke

    axes.plot(
        xs,
        ys,
        color=LIMIT_INK,
        linewidth=1.4,
        solid_capstyle="butt",
        gid=LIMIT_GID,
        path_effects=[withStroke(linewidth=2.8, foreground="white")],
    )


def limit_handle(label: str) -> Line2D:
    """Return the limit's entry in a legend."""
    from matplotlib.lines import Line2D

    return Line2D([], [], color=LIMIT_INK, linewidth=1.4, label=label)


class Stack(NamedTuple):
    """A bar of time. parts: gid, ms and (colour, hatch) of each part. words: the text beside the
    bar.
    """

    name: str
    parts: Sequence[tuple[str, float, tuple[str, str]]]
    words: str
    limit_ms: float | None = None


def draw_stacks(panel: Axes, stacks: Sequence[Stack], right_ms: float) -> None:
    """Draw horizontal bars on an axis up to right_ms, with the first bar at the top."""
    for at, stack in enumerate(stacks):
        left = 0.0
        for gid, width, look in stack.parts:
            if width > 0:
                panel.barh(at, width, 0.72, left=left, **box(*look), gid=gid)
                left += width
        if stack.limit_ms is not None:
            mark_limit(panel, [stack.limit_ms] * 2, [at - 0.45, at + 0.45])
        panel.annotate(
            stack.words,
            (max(left, stack.limit_ms or 0), at),
            xytext=(3, 0),
            textcoords="offset points",
            va="center",
            fontsize=SMALL_POINTS,
        )
    panel.set_yticks(range(len(stacks)), [stack.name for stack in stacks])
    panel.invert_yaxis()
    panel.set_xlim(0, right_ms)
    panel.set_xlabel("time (ms)")
    panel.tick_params(axis="y", length=0)
    panel.grid(axis="x")
    clean(panel)


def look_of(technique: str) -> Look:
    """Return the look of a technique."""
    return TECHNIQUE_LOOKS.get(technique, OTHER_LOOK)


def look_of_series(number: int) -> Look:
    """Return the look of a series that is no technique."""
    # When the colours repeat, they come with other hatches, dashes and markers.
    again = number // len(SERIES_COLOURS)
    return Look(
        SERIES_COLOURS[number % len(SERIES_COLOURS)],
        SERIES_HATCHES[(number + again) % len(SERIES_HATCHES)],
        SERIES_DASHES[again % len(SERIES_DASHES) - 1],
        SERIES_MARKERS[(number + again) % len(SERIES_MARKERS)],
    )


def bar_of(technique: str) -> dict[str, Any]:
    """Return the arguments of matplotlib for a technique's bars."""
    look = look_of(technique)
    return box(look.colour, look.hatch)


def box(colour: str, hatch: str = "") -> dict[str, Any]:
    """Return the arguments of matplotlib for bars and for their entries in legends."""
    return {"facecolor": colour, "hatch": hatch, "edgecolor": INK, "linewidth": 0.5}


def line_of(technique: str, series: int = 0) -> dict[str, Any]:
    """Return the arguments of matplotlib for a technique's line.

    series: 0 for the first line of the technique, then 1, 2, ...
    """
    look = look_of(technique)
    return {
        "color": look.colour,
        "linestyle": SERIES_DASHES[(series - 1) % len(SERIES_DASHES)] if series else look.dash,
        "linewidth": 1.6,
        "marker": SERIES_MARKERS[(series - 1) % len(SERIES_MARKERS)] if series else look.marker,
        "markersize": 4.5,
        "markerfacecolor": "white" if series else look.colour,
        "markeredgecolor": INK,
        "markeredgewidth": 0.5,
    }


def check_format(path: Path) -> str:
    """Return the format of a file name.

    Raises ArgumentError unless the format is in FORMATS and the folder exists.
    """
    if path.suffix.lower() not in FORMATS:
        raise ArgumentError(f"cannot draw {path}: its name must end in {' or '.join(FORMATS)}")
    if not path.parent.is_dir():
        raise ArgumentError(f"cannot write {path}: there is no folder {path.parent}")
    require("matplotlib", f"drawing {path}")
    return path.suffix.lower()[1:]


def save(figure: Figure, path: Path) -> None:
    """Write a figure as SVG or PNG, by the file's extension.

    Raises ArgumentError if the file cannot be written.
    """
    form = check_format(path)
    metadata = {"Date": None} if form == "svg" else {}
    try:
        with settings():
            figure.savefig(path, format=form, dpi=PNG_DPI, metadata=metadata)
    except OSError as error:
        raise ArgumentError(f"cannot write {path}: {error.strerror}") from None


def grid_of(panels: int, columns: int) -> tuple[int, int]:
    """Return the numbers of rows and columns of a grid of panels with few empty places. columns:
    the largest number of columns.
    """
    columns = min(columns, 2 if panels == 4 else panels)
    return -(-panels // columns), columns


def clean(axes: Axes) -> None:
    """Remove the top and right lines of the frame."""
    axes.spines[["top", "right"]].set_visible(False)
