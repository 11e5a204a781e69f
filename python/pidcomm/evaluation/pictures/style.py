"""How figures look: what differs, differs in lightness or in a hatch, marker or dash, so that grey suffices."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pidcomm.arguments import AUTO
from pidcomm.errors import ArgumentError, require
from pidcomm.evaluation.ablation import STEPS
from pidcomm.tables import TECHNIQUES

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure
    from matplotlib.lines import Line2D

FORMATS = (".svg", ".png")
PNG_DPI = 200
FONT_POINTS = 8.0
SMALL_POINTS = 6.5
INK = "#1a1a1a"
LIMIT_INK = "#b00020"
LIMIT_GID = "limit"

# From light to dark.
PALETTE = ("#ece2c6", "#b9d3a5", "#7db8a8", "#5590b4", "#5a5f9e", "#22305c")
HATCHES = ("", "///", "---", "xxx", "\\\\\\", "")
OTHERS = (("#d9d9d9", "ooo"), ("#8c8c8c", "..."))  # techniques beside the ablation
AUTO_STYLE = ("#ffffff", "+++")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
DASHES = ("-", "--", "-.", ":")
MODELLED_HATCH, ASSUMED_HATCH = "////", "xxxx"

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
    "svg.fonttype": "none",  # text stays text: it can be searched, and read aloud
    "svg.hashsalt": "pidcomm",  # equal figures are equal files
}


@contextmanager
def settings() -> Iterator[None]:
    """Apply the settings of figures inside a with block; afterwards they are what they were."""
    import matplotlib

    with matplotlib.rc_context(_SETTINGS):
        yield


def new_figure(
    width_inches: float, height_inches: float, title: str, conditions: Sequence[str], small_print: Sequence[str]
) -> tuple[Figure, SubFigure]:
    """Return a white figure with a title, the conditions below it and small print at its foot; and what is between.

    It needs no display and no pyplot. height_inches: of all but the small print.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    notes = _wrapped("; ".join(small_print), width_inches, SMALL_POINTS)
    foot_inches = len(notes) * SMALL_POINTS * 1.5 / 72 + 0.06
    figure = Figure(figsize=(width_inches, height_inches + foot_inches), layout="constrained", facecolor="white")
    FigureCanvasAgg(figure)
    body, foot = figure.subfigures(2, 1, squeeze=False, height_ratios=(height_inches, foot_inches)).flat
    lines = [title, *_wrapped(", ".join(conditions), width_inches, FONT_POINTS + 1)]
    body.suptitle("\n".join(lines), fontsize=FONT_POINTS + 1, linespacing=1.4)
    foot.text(0.5, 0.5, "\n".join(notes), fontsize=SMALL_POINTS, color="#444444", ha="center", va="center")
    return figure, body


def _wrapped(text: str, width_inches: float, points: float) -> list[str]:
    return textwrap.wrap(text, int(width_inches * 72 / (0.6 * points)))


def mark_limit(axes: Axes, xs: Sequence[float], ys: Sequence[float]) -> None:
    """Draw a piece of the limit, with a white edge: it crosses dark bars."""
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


def technique_style(technique: str) -> tuple[str, str]:
    """Return the colour and the hatch of a technique: the later in the ablation, the darker; others are grey."""
    if technique == AUTO:
        return AUTO_STYLE
    others = [name for name in TECHNIQUES if name not in STEPS]
    if technique in others:
        return OTHERS[others.index(technique) % len(OTHERS)]
    index = STEPS.index(technique) if technique in STEPS else len(STEPS) - 1
    at = -1 if index == len(STEPS) - 1 else index
    return PALETTE[at], HATCHES[at]


def check_format(path: Path) -> str:
    """Return the format that a file name asks for. Raises ArgumentError if it is none of FORMATS, or has no folder."""
    if path.suffix.lower() not in FORMATS:
        raise ArgumentError(f"cannot draw {path}: its name must end in {' or '.join(FORMATS)}")
    if not path.parent.is_dir():
        raise ArgumentError(f"cannot write {path}: there is no folder {path.parent}")
    require("matplotlib", f"drawing {path}")
    return path.suffix.lower()[1:]


def save(figure: Figure, path: Path) -> None:
    """Write a figure as SVG or PNG, by the file's extension. Raises ArgumentError if that cannot be done."""
    form = check_format(path)
    metadata = {"Date": None} if form == "svg" else {}
    try:
        with settings():
            figure.savefig(path, format=form, dpi=PNG_DPI, metadata=metadata)
    except OSError as error:
        raise ArgumentError(f"cannot write {path}: {error.strerror}") from None


def grid_of(panels: int, columns: int) -> tuple[int, int]:
    """Return rows and columns for a number of panels, with at most so many columns."""
    columns = min(panels, columns)
    return -(-panels // columns), columns


def clean(axes: Axes) -> None:
    """Leave out the lines that say nothing."""
    axes.spines[["top", "right"]].set_visible(False)
