"""Values at which collectives stop scaling in a study, and the phases that explain why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise, takewhile
from math import log2

from pidcomm.model.prediction import SOURCE as MODELLED
from pidcomm.sizes import format_size
from pidcomm_studies.models.scaling import MEANINGS, STUDIES, Point

# The least gain per doubling that counts as scaling; or the largest loss if the rate should stay
# constant.
GAIN = 0.10


@dataclass(frozen=True)
class Stop:
    """The value at which a collective stops scaling in a study, and the reason.

    stops_at: the first value from which the step to the next value gains less than GAIN per
    doubling. If the throughput should stay constant, it is the first value from which the step
    loses more than GAIN. It is None if the collective scales to the end. next_at: the value after
    stops_at, or the last value. gain_pct: the gain of the step to next_at.
    phase: the phase whose time in this step exceeds ideal scaling by most; if the collective scales
    to the end, the longest phase at next_at. phase_pct: the share of the phase in the time at
    next_at. source: the source of the points.

    The next three are None if there is no such value. resumes_at: the value from which the
    collective scales again.
    regained_at: if the rate falls, the first later value with at least the rate at stops_at.
    ends_at: the value at which the collective, after it has scaled again, stops scaling until the
    end.
    """

    study: str
    collective: str
    technique: str
    where: str
    varies: str
    stops_at: int | None
    next_at: int
    gain_pct: float
    phase: str
    phase_pct: float
    resumes_at: int | None
    regained_at: int | None
    ends_at: int | None
    source: str

    def __str__(self) -> str:
        """Return a sentence about the stop."""
        head = f"{self.collective}, {self.technique} ({self.source}):"
        show = format_size if self.varies == "bytes_per_pe" else str
        what = self.varies.replace("_", " ")
        meaning = MEANINGS[self.phase].partition(",")[0]
        why = f"{self.phase} ({meaning}) takes {self.phase_pct:.0f}% of the time"
        if self.stops_at is None:
            return f"{head} scales to the end, where {why}"
        step = (
            "doubling" if self.next_at == 2 * self.stops_at else f"the step to {show(self.next_at)}"
        )
        change = f"{step} {'gains' if self.gain_pct >= 0 else 'costs'} {abs(self.gain_pct):.0f}%"
        tail = "".join(
            f"; {words} {show(value)}"
            for words, value in (
                ("scales again from", self.resumes_at),
                ("back at the same rate at", self.regained_at),
                ("finally stops at", self.ends_at),
            )
            if value is not None
        )
        return (
            f"{head} stops at {what} {show(self.stops_at)}: {change}, because {why} after it{tail}"
        )


def stops_of(points: Sequence[Point]) -> list[Stop]:
    """Return the stop of each series of points.

    A series has one study, collective, technique, source and machine.
    """
    series: dict[tuple[str, ...], list[Point]] = {}
    for point in points:
        series.setdefault(
            (point.study, point.collective, point.technique, point.source, point.where), []
        ).append(point)
    return [
        _stop(sorted(of_series, key=lambda point: point.value))
        for of_series in series.values()
        if len(of_series) > 1
    ]


def _stop(points: Sequence[Point]) -> Stop:
    study = STUDIES[points[0].study]
    # Emulated PEs share one memory: more PEs are not faster, but limit% should stay constant.
    grows = study.grows and not (study.varies == "pes" and points[0].source != MODELLED)
    steps = [(*pair, _is_enough(*pair, grows)) for pair in pairwise(points)]
    before, after, scales = next((step for step in steps if not step[2]), steps[-1])
    stops_at, resumes_at, regained_at, ends_at = None, None, None, None
    phase = after.longest
    if not scales:
        stops_at = before.value
        phase = _culprit(before, after, after.value / before.value if grows else 1.0)
        later = [step for step in steps if step[0].value > stops_at]
        resumes_at = next((start.value for start, _, again in later if grows and again), None)
        if after.rate < before.rate:
            regained_at = next((end.value for _, end, _ in later if end.rate >= before.rate), None)
        if resumes_at is not None:
            last = [
                start.value for start, _, _ in takewhile(lambda step: not step[2], reversed(later))
            ]
            ends_at = last[-1] if last else None
    return Stop(
        study=study.name,
        collective=after.collective,
        technique=after.technique,
        where=after.where,
        varies=study.varies,
        stops_at=stops_at,
        next_at=after.value,
        gain_pct=100 * (after.rate / before.rate - 1),
        phase=phase,
        phase_pct=after.share_pct(phase),
        resumes_at=resumes_at,
        regained_at=regained_at,
        ends_at=ends_at,
        source=after.source,
    )


def _is_enough(before: Point, after: Point, grows: bool) -> bool:
    """Return whether a step gains enough per doubling, or loses little if the rate should stay
    constant.

    If a step is less than a doubling, its loss is not extrapolated to a doubling.
    """
    doublings = log2(after.value / before.value)
    least = (1 + GAIN) ** doublings if grows else (1 - GAIN) ** max(1.0, doublings)
    return bool(after.rate / before.rate >= least)


def _culprit(before: Point, after: Point, wanted: float) -> str:
    """Return the phase with the largest excess over its allowed time. wanted: the factor of the
    expected growth.
    """
    # rate * seconds is the work: bytes if modelled, bytes at the streaming limit if measured.
    allowed = after.seconds * after.rate / (before.seconds * before.rate) / wanted
    return max(after.phases, key=lambda name: after.phases[name] - allowed * before.phases[name])
