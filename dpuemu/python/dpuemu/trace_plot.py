"""Plot a trace (SVG): the load over PEs, and the use of pipeline and DMA engine over time."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import pairwise

Use = tuple[float, float, float]
"""A time in us, and the use of the pipeline and of the engine from then on, in percent."""

_WIDTH, _HEIGHT, _LEFT, _GAP = 760, 120, 60, 56  # in pixels
_COLUMNS = 380
_BARS = "#8aa4c8"
_USES = (("pipeline use of the PEs in detail", "#8fbc8f"), ("their DMA engine", "#e9a23b"))


class ModelledTime:
    """Modelled time without the times at which no launch runs."""

    def __init__(self, spans: Sequence[tuple[float, float]]) -> None:
        """Merge the spans of launches."""
        self.spans: list[tuple[float, float]] = []
        for begin, end in sorted(spans):
            if self.spans and begin <= self.spans[-1][1]:
                self.spans[-1] = (self.spans[-1][0], max(end, self.spans[-1][1]))
            else:
                self.spans.append((begin, end))
        self._begins = [begin for begin, _ in self.spans]
        self._sums = [0.0]
        for begin, end in self.spans:
            self._sums.append(self._sums[-1] + end - begin)

    @property
    def length(self) -> float:
        """Return the time in which launches run."""
        return self._sums[-1]

    def at(self, time: float) -> float:
        """Return the modelled time until then."""
        index = bisect_right(self._begins, time) - 1
        if index < 0:
            return 0.0
        begin, end = self.spans[index]
        return self._sums[index] + min(time, end) - begin


def mean_use(
    uses: Sequence[Sequence[Use]], axis: ModelledTime, columns: int
) -> tuple[list[float], list[float]]:
    """Return the mean use of pipeline and engine of PEs (each with its times) in equal parts of the
    modelled time, in percent.
    """
    sums = ([0.0] * columns, [0.0] * columns)
    width = axis.length / columns
    for use in uses if width else ():
        for (begin, *shares), (end, *_) in pairwise(use):
            first, last = axis.at(begin), axis.at(end)
            for column in range(int(first / width), min(int(last / width) + 1, columns)):
                part = min(last, (column + 1) * width) - max(first, column * width)
                for total, share in zip(sums, shares, strict=True):
                    total[column] += max(part, 0.0) * share
    whole = width * len(uses) or 1.0
    return [value / whole for value in sums[0]], [value / whole for value in sums[1]]


def plot(
    pe_times: Sequence[float], spans: Sequence[tuple[float, float]], uses: Sequence[Sequence[Use]]
) -> str:
    """Return the plot. pe_times: of all PEs, in us; spans: of launches; uses: of PEs in detail."""
    axis = ModelledTime(spans)
    means = mean_use(uses, axis, _COLUMNS)
    longest = max(pe_times, default=0.0)
    times = sorted(pe_times, reverse=True)
    shares = [100 * time / longest if longest else 0.0 for time in times]
    mean = sum(times) / len(times) if times else 0.0
    title = (
        f"load: {len(times):,} PEs by modelled time, longest first; longest {longest:,.1f} us,"
        f" mean {mean:,.1f} us"
    )
    below = f"modelled time of launches: 0 to {axis.length:,.1f} us"
    panels = [_panel(0, shares, title, _BARS, "PEs")]
    for index, ((name, colour), values) in enumerate(zip(_USES, means, strict=True), 1):
        text = f"{name}: mean {sum(values) / len(values):.0f}%"
        panels.append(_panel(index, values, text, colour, below))
    height = 3 * (_HEIGHT + _GAP)
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{_LEFT + _WIDTH + 20}"'
            f' height="{height}" font-family="sans-serif" font-size="12">',
            *panels,
            "</svg>",
            "",
        ]
    )


def _panel(index: int, percent: Sequence[float], title: str, colour: str, below: str) -> str:
    top = index * (_HEIGHT + _GAP) + 24
    bottom = top + _HEIGHT
    step = _WIDTH / max(len(percent), 1)
    points = [f"M{_LEFT},{bottom}"]
    for place, value in enumerate(percent):
        y = bottom - _HEIGHT * value / 100
        points.append(f"V{y:.1f}H{_LEFT + (place + 1) * step:.1f}")
    return "\n".join(
        [
            f'<g><text x="{_LEFT}" y="{top - 8}">{title}</text>',
            f'<path d="{"".join(points)}V{bottom}Z" fill="{colour}"/>',
            f'<path d="M{_LEFT},{top}V{bottom}H{_LEFT + _WIDTH}" fill="none" stroke="#444"/>',
            f'<text x="{_LEFT - 8}" y="{top + 10}" text-anchor="end">100%</text>',
            f'<text x="{_LEFT - 8}" y="{bottom}" text-anchor="end">0</text>',
            f'<text x="{_LEFT}" y="{bottom + 16}" fill="#444">{below}</text></g>',
        ]
    )
