"""Draw runs of an application: bars of the time of each phase, and a chart of speed-ups against
the number of PEs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pidcomm
from pidcomm import COLLECTIVES
from pidcomm.bench import info
from pidcomm.sizes import format_gain
from pidcomm_studies.apps.application import BASE
from pidcomm_studies.apps.report import Row, phase_names
from pidcomm_studies.apps.stage import HOST, KERNEL
from pidcomm_studies.pictures import style
from pidcomm_studies.pictures.sweeps import ticks_between

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

WIDTH_INCHES, BAR_INCHES, FRAME_INCHES, HEAD_AND_FOOT_INCHES, LINES_INCHES = (
    8.0,
    0.27,
    0.75,
    1.5,
    2.2,
)
ROOM_FOR_TOTALS = 1.3  # length of the axis, as a multiple of the longest bar
KERNEL_LOOK = ("#f4f4f4", style.MODELLED_HATCH)
REORDER_LOOK = ("#d9d9d9", style.MODELLED_HATCH)
LOOKS = {
    name: (style.PARTS[(at + at // 7) % len(style.PARTS)], "" if at < len(style.PARTS) else "...")
    for at, name in enumerate(COLLECTIVES)
} | {HOST: ("#ffffff", "")}
SOURCES = (
    f"beside the bars: total and speed-up over {BASE}; collectives and host are measured here,"
    " kernels and PE reordering are modelled, totals are mixed; only gains over the CPUs include"
    " launches and reloads of programs"
)


def draw(rows: Sequence[Row]) -> Figure:
    """Draw a stacked bar of time per technique and number of PEs; if the number of PEs varies,
    also draw speed-ups.
    """
    counts = list(dict.fromkeys(row.pes for row in rows))
    has_lines = len(counts) > 1
    first = rows[0]
    conditions = [first.input, *(f"{name} {value}" for name, value in first.facts.items())]
    conditions += [f"policy {first.coherence}", f"{first.threads} threads"]
    with style.settings():
        figure, body = style.new_figure(
            WIDTH_INCHES,
            HEAD_AND_FOOT_INCHES + FRAME_INCHES + len(rows) * BAR_INCHES + has_lines * LINES_INCHES,
            f"{first.application}: where the time goes",
            conditions,
            [SOURCES, f"pidcomm {pidcomm.__version__}, commit {info.commit() or 'unknown'}"],
        )
        heights = [FRAME_INCHES + len(rows) * BAR_INCHES, *([LINES_INCHES] if has_lines else [])]
        panels = body.subplots(len(heights), 1, height_ratios=heights, squeeze=False)[:, 0]
        right = ROOM_FOR_TOTALS * max(row.total_us for row in rows) / 1e3 or 1
        style.draw_stacks(panels[0], [_stack(row, has_lines) for row in rows], right)
        _legend(body, rows)
        if has_lines:
            _lines(panels[1], rows, counts)
    return figure


def _stack(row: Row, has_counts: bool) -> style.Stack:
    """Return the bar of a row; its parts add up to the total."""
    parts = [("modelled", row.kernel_us, KERNEL_LOOK)]
    parts += [
        ("measured", phase.measured_us, LOOKS[phase.name])
        for phase in row.phases
        if phase.name in LOOKS
    ]
    parts.append(("modelled", row.reorder_us, REORDER_LOOK))
    gain = "" if row.speed_up is None or row.technique == BASE else f", {format_gain(row.speed_up)}"
    return style.Stack(
        f"{row.pes} PEs, {row.technique}" if has_counts else row.technique,
        [(gid, us / 1e3, look) for gid, us, look in parts],
        f"{row.total_us / 1e3:.4g} ms{gain}",
    )


def _legend(body: SubFigure, rows: Sequence[Row]) -> None:
    from matplotlib.patches import Patch

    looks = {"kernel (modelled)": KERNEL_LOOK}
    looks |= {name: LOOKS[name] for name in phase_names(rows) if name != KERNEL}
    looks |= {"PE reorder (modelled)": REORDER_LOOK} if any(row.reorder_us for row in rows) else {}
    handles = [
        Patch(**style.box(colour, hatch), label=name) for name, (colour, hatch) in looks.items()
    ]
    body.legend(
        handles=handles, loc="outside lower center", frameon=False, ncols=4, handlelength=2.4
    )


def _lines(panel: Axes, rows: Sequence[Row], counts: Sequence[int]) -> None:
    """Draw a chart of gains: speed-ups over the CPUs if the CPUs were timed, else over the
    conventional technique.
    """
    from matplotlib.ticker import FixedLocator, FuncFormatter

    has_cpu = any(row.cpu_speed_up is not None for row in rows)
    gains = [1.0]
    for technique in dict.fromkeys(row.technique for row in rows):
        of_it = [row for row in rows if row.technique == technique]
        points = [(row.pes, row.cpu_speed_up if has_cpu else row.speed_up) for row in of_it]
        known = [(pes, gain) for pes, gain in points if gain is not None]
        gains += [gain for _, gain in known]
        if known:
            panel.plot(
                *zip(*known, strict=True),
                **style.line_of(technique),
                label=technique,
                gid=technique,
            )
    panel.axhline(1, color=style.INK, linewidth=0.8)
    panel.set_xscale("log", base=2)
    panel.set_yscale("log")
    panel.set_ylim(min(gains) / 1.4, max(gains) * 1.4)
    panel.set_xticks(counts, [str(count) for count in counts])
    panel.yaxis.set_major_locator(FixedLocator(ticks_between(*panel.get_ylim())))
    panel.yaxis.set_major_formatter(FuncFormatter(lambda gain, _: f"{gain:g}x"))
    panel.minorticks_off()
    panel.set_xlabel("number of PEs")
    panel.set_ylabel(f"gain over {'the CPUs' if has_cpu else BASE}")
    panel.grid()
    if len(gains) > 1:
        panel.legend(frameon=False)
    style.clean(panel)
