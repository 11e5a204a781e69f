"""How much faster kernels against transfers would make statements of the paper true."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import NamedTuple

from pidcomm_studies.papers.figure import MIXED, MODELLED, Point
from pidcomm_studies.papers.scalability.ntt_clocks import BETWEEN, MACHINE, TOTAL


class Times(NamedTuple):
    """Milliseconds of the kernels, of the exchange and of all other clocks.

    Other machines may have faster kernels: with factor F, the exchange and the other clocks weigh F
    times as much.
    """

    kernels: float
    between: float
    others: float

    def total(self, factor: float = 1) -> float:
        """Return the total in the unit of the kernels."""
        return self.kernels + factor * (self.between + self.others)

    def share_pct(self, factor: float = 1) -> float:
        """Return the share of the exchange."""
        return 100 * factor * self.between / self.total(factor)

    def factor_of_share(self, pct: float) -> float:
        """Return the factor at which the exchange has a share; infinite if it never has."""
        part = pct / 100
        rest = self.between - part * (self.between + self.others)
        return part * self.kernels / rest if rest > 0 else inf


def times_of(points: Sequence[Point], panel: str, x: float | str, source: str) -> Times:
    """Return the clocks of a point."""
    values = {
        point.series: point.value
        for point in points
        if (point.panel, point.x, point.source) == (panel, x, source)
    }
    kernels = sum(value for name, value in values.items() if name.startswith("kernel"))
    return Times(kernels, values[BETWEEN], values[TOTAL] - kernels - values[BETWEEN])


def factor_of_gain(few: Times, many: Times, gain: float) -> float:
    """Return the factor at which `many` has a gain over `few`; infinite if it never has."""
    rest = gain * (many.between + many.others) - few.between - few.others
    kernels = few.kernels - gain * many.kernels
    return kernels / rest if rest > 0 and kernels >= 0 else inf


def faster(factor: float, *, or_more: bool = False) -> str:
    """Return the condition of a factor, or of all from it on, in words."""
    if factor == inf:
        return "with no ratio of the speeds of kernels and transfers"
    faster_part, other = ("kernels", "transfers") if factor >= 1 else ("transfers", "kernels")
    bound = ("at least " if factor >= 1 else "at most ") if or_more else ""
    times = f"{bound}{max(factor, 1 / factor):.2g} times"
    return f"if {faster_part} were {times} as fast and {other} the same"


def transfers(points: Sequence[Point], panel: str, x: float | str, source: str) -> str:
    """Return how much longer transfers take here than on the paper's machine."""
    if source == MODELLED:
        return ""
    here, there = (times_of(points, panel, x, of) for of in (MIXED, MODELLED))
    factor = (here.between + here.others) / (there.between + there.others)
    return f"transfers here take {factor:.2g} times as long as modelled for {MACHINE}; "
