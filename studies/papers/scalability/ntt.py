"""Figures 12 to 15 of Scalability limitations of processing-in-memory using real system evaluations
(SIGMETRICS 2024).

The paper prints few numbers; `Figure.statements` has these. Kernels run on dpuemu, so their times
are modelled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from math import prod
from typing import NamedTuple

from pidcomm.model import load_machine
from pidcomm_studies.apps.application import reference_seconds
from pidcomm_studies.apps.ntt import Ntt
from pidcomm_studies.apps.ntt.decomposition import RADIXES
from pidcomm_studies.papers.figure import (
    HERE,
    MEASURED,
    MIXED,
    MODELLED,
    Figure,
    Panel,
    Point,
    Request,
    Statement,
    series_of,
)
from pidcomm_studies.papers.scalability.ntt_clocks import COMPLETE, Clocks, clocks, modelled

PAPER = (
    "G. Jonatan et al., Scalability Limitations of Processing-in-Memory using Real System"
    " Evaluations, SIGMETRICS 2024"
)
MACHINE = "upmem-2560"
SIZE, LIMBS, BITS = 2**16, 8, 54
TECHNIQUES = ("conventional", "pr+im+cm", "tile")
BASE, OWN = TECHNIQUES[0], TECHNIQUES[-1]
KERNELS_ON = "dpuemu"
BASELINE = "the CPUs of this host: apps/ntt/cpu.cpp, scalar code of radix 2"
TOLERANCE = 0.2  # a value agrees with a published one if it differs by at most this part of it

SMALL, TASKLETS = 2**8, tuple(range(1, 25))
DIMENSIONS = {
    "2D, 256 PEs": ("256x256", (256, 1, 1, 1)),
    "3D, 1024 PEs": ("32x32x64", (32, 32, 1, 1)),
    "4D, 2048 PEs": ("16x16x16x16", (16, 16, 8, 1)),
}
STEP_SIZES = ("64x1024", "128x512", "256x256", "512x128", "1024x64")
FEW = 64  # PEs that all step sizes allow
PES = (32, 64, 128, 256, 512, 1024, 2048)
LOG_Q = (400, 800, 1200, 1600, 2000, 2400, 2800)
HYBRID_PES = (256, 512, 1024, 2048)


class Case(NamedTuple):
    """A transform on a shape."""

    steps: str
    shape: tuple[int, ...]
    limbs: int = LIMBS
    radix: int | None = None

    def problem(self) -> Ntt:
        """Return the transform, with random polynomials."""
        return _problem(self.limbs, self.steps, self.radix)


@lru_cache(maxsize=1)  # the next case often has the same polynomials
def _problem(limbs: int, steps: str, radix: int | None) -> Ntt:
    return Ntt.make(size=SIZE, limbs=limbs, bits=BITS, steps=steps, radix=radix)


_ran: dict[Case, Clocks] = {}  # runs of this process: kernels are the same for all techniques


def _of_pes(pes: int, limbs: int = LIMBS) -> Case:
    group = min(pes, 256)
    return Case("256x256", (group, 1, 1, pes // group), limbs)


def _here(case: Case, technique: str, request: Request) -> Clocks:
    request.progress.phase(
        f"{case.limbs} limbs, {case.steps} on {prod(case.shape)} PEs, {technique}"
    )
    _ran[case] = measured = clocks(case.problem(), case.shape, technique, request.iters)
    return measured


def _there(case: Case, technique: str) -> Clocks:
    problem = case.problem()
    if case not in _ran:
        _ran[case] = clocks(problem, case.shape, OWN, 1)
    return modelled(problem, case.shape, technique, load_machine(MACHINE), _ran[case])


def _points(panel: str, x: float | str, times: Clocks, source: str) -> Iterator[Point]:
    on = HERE if source == MIXED else MACHINE
    for name, seconds in times.named().items():
        yield Point(panel, name, x, 1e3 * seconds, source, on, times.wrong)


def _is_near(value: float, published: float) -> bool:
    return abs(value - published) <= TOLERANCE * published


def _sources(points: Sequence[Point]) -> list[str]:
    return [
        source
        for source in (MIXED, MODELLED)
        if any(point.source == source and point.on != KERNELS_ON for point in points)
    ]


# ---- figure 12: one PE


def _one_pe(request: Request) -> Iterator[Point]:
    for radix in RADIXES:
        for tasklets in TASKLETS:
            request.progress.phase(f"radix {radix}, {tasklets} tasklets")
            problem = Ntt.make(
                size=SMALL, limbs=1, bits=BITS, steps="1", radix=radix, tasklets=tasklets
            )
            times = clocks(problem, (1, 1, 1, 1), OWN, 1)
            series = f"radix {radix}"
            yield Point(
                "time", series, tasklets, 1e6 * times.kernels[0], MODELLED, KERNELS_ON, times.wrong
            )
            yield Point(
                "pipeline", series, tasklets, times.pipeline_pct, MODELLED, KERNELS_ON, times.wrong
            )


def _statements12(_: Request, points: Sequence[Point]) -> Iterator[Statement]:
    time, use = (
        {r: series_of(points, panel, f"radix {r}") for r in RADIXES}
        for panel in ("time", "pipeline")
    )
    gains = [time[radix][8] / time[radix][11] for radix in (2, 4)]
    later = [time[radix][11] / time[radix][24] for radix in (2, 4)]
    yield Statement(
        "the pipeline begins to saturate at about 11 tasklets with radix 2 and 4",
        f"from 8 to 11 tasklets radix 2 and 4 gain {gains[0]:.2f}x and {gains[1]:.2f}x, from 11 to"
        f" 24 {later[0]:.2f}x and {later[1]:.2f}x; pipeline use at 11 is {use[2][11]:.0f}% and"
        f" {use[4][11]:.0f}%",
        all(gain > 1.05 for gain in gains) and all(gain < 1.15 for gain in later),
    )
    worst = min(range(9, 16), key=lambda tasklets: use[16][tasklets])
    yield Statement(
        "the pipeline use of radix 16 drops before 16 tasklets, because its 16 butterflies are not"
        " divided evenly",
        f"{use[16][8]:.0f}% at 8 tasklets, {use[16][worst]:.0f}% at {worst}, {use[16][16]:.0f}%"
        " at 16",
        use[16][worst] < min(use[16][8], use[16][16]),
    )
    gain = time[2][16] / time[16][16] - 1
    yield Statement(
        "with 16 tasklets, radix 16 is about 8% faster than radix 2",
        f"{100 * gain:.1f}% faster: {time[16][16]:.0f} us and {time[2][16]:.0f} us",
        _is_near(100 * gain, 8),
    )


# ---- figure 13: decompositions of one transform


def _measured13(request: Request) -> Iterator[Point]:
    for technique in (BASE, OWN):
        for x, (steps, shape) in DIMENSIONS.items():
            yield from _points(
                f"dimensions, {technique}",
                x,
                _here(Case(steps, shape, 1, 2), technique, request),
                MIXED,
            )
    for panel, pes in STEP_PANELS.items():
        for steps in STEP_SIZES:
            yield from _points(panel, steps, _here(_of_sizes(steps, pes), OWN, request), MIXED)


def _modelled13(_: Request) -> Iterator[Point]:
    for technique in (BASE, OWN):
        for x, (steps, shape) in DIMENSIONS.items():
            yield from _points(
                f"dimensions, {technique}", x, _there(Case(steps, shape, 1, 2), technique), MODELLED
            )
    for panel, pes in STEP_PANELS.items():
        for steps in STEP_SIZES:
            yield from _points(panel, steps, _there(_of_sizes(steps, pes), OWN), MODELLED)


STEP_PANELS = {"step sizes, most PEs": SIZE, f"step sizes, {FEW} PEs": FEW}
"""The most PEs of each panel; a step size also limits them."""


def _of_sizes(steps: str, most: int) -> Case:
    """Return a case with as many PEs as the smaller step has values, at most `most`.

    Radix 2 fits all steps.
    """
    return Case(steps, (min(most, *map(int, steps.split("x"))), 1, 1, 1), 1, 2)


def _statements13(_: Request, points: Sequence[Point]) -> Iterator[Statement]:
    for source in _sources(points):
        for technique in (BASE, OWN):
            panel = f"dimensions, {technique}"
            total, between = (
                series_of(points, panel, name, source) for name in ("total", "between PEs")
            )
            named = [series_of(points, panel, f"kernel {step}", source) for step in range(1, 5)]
            kernels = {x: sum(series.get(x, 0) for series in named) for x in DIMENSIONS}
            yield Statement(
                "with more dimensions, on more PEs, kernels are shorter and the exchange between"
                " PEs is longer",
                f"{source}, {technique}: "
                + ", ".join(
                    f"{x}: kernels {kernels[x]:.3g} ms, between PEs {between[x]:.3g} ms"
                    for x in DIMENSIONS
                ),
                _is_rising([between[x] for x in DIMENSIONS])
                and _is_rising([-kernels[x] for x in DIMENSIONS]),
            )
            yield Statement(
                "2D is the fastest",
                f"{source}, {technique}: "
                + ", ".join(f"{x}: {total[x]:.3g} ms" for x in DIMENSIONS),
                min(DIMENSIONS, key=lambda x: total[x]) == next(iter(DIMENSIONS)),
            )
        for panel, most in STEP_PANELS.items():
            total = series_of(points, panel, "total", source)
            pes = {steps: prod(_of_sizes(steps, most).shape) for steps in STEP_SIZES}
            yield Statement(
                "balanced steps are the fastest",
                f"{source}: "
                + ", ".join(
                    f"{size} on {pes[size]} PEs: {total[size]:.4g} ms" for size in STEP_SIZES
                ),
                min(STEP_SIZES, key=lambda steps: total[steps]) == "256x256",
            )


def _is_rising(values: Sequence[float]) -> bool:
    return all(one < next_one for one, next_one in pairwise(values))


# ---- figure 14: strong scaling


def _measured14(request: Request) -> Iterator[Point]:
    for technique in TECHNIQUES:
        for pes in PES:
            times = _here(_of_pes(pes), technique, request)
            yield from _points(technique, pes, times, MIXED)
            yield Point("share", technique, pes, times.share_pct, MIXED, HERE, times.wrong)


def _modelled14(_: Request) -> Iterator[Point]:
    for technique in TECHNIQUES:
        for pes in PES:
            times = _there(_of_pes(pes), technique)
            yield from _points(technique, pes, times, MODELLED)
            yield Point("share", technique, pes, times.share_pct, MODELLED, MACHINE, times.wrong)


def _statements14(_: Request, points: Sequence[Point]) -> Iterator[Statement]:
    few, many = PES[0], PES[-1]
    for source in _sources(points):
        for technique in TECHNIQUES:
            first, second, total, complete = (
                series_of(points, technique, name, source)
                for name in ("kernel 1", "kernel 2", "total", COMPLETE)
            )
            kernels = {pes: first[pes] + second[pes] for pes in PES}
            scaled, overall = kernels[few] / kernels[many], total[few] / total[many]
            share = series_of(points, "share", technique, source)[many]
            who = f"{source}, {technique}"
            yield Statement(
                f"from {few} to {many} PEs kernels are 63.5x faster",
                f"{who}: {scaled:.1f}x",
                _is_near(scaled, 63.5),
            )
            omitted = f"; with host {complete[few] / complete[many]:.1f}x" if complete else ""
            yield Statement(
                f"from {few} to {many} PEs the total is 9.7x faster",
                f"{who}: {overall:.1f}x{omitted}",
                _is_near(overall, 9.7),
            )
            omitted = (
                f"; host adds {100 * (complete[many] / total[many] - 1):.0f}% to the total"
                if complete
                else ""
            )
            yield Statement(
                f"at {many} PEs the exchange between PEs takes 40.3% of the time",
                f"{who}: {share:.1f}%{omitted}",
                _is_near(share, 40.3),
            )


# ---- figure 15: log Q


def _limbs(log_q: int) -> int:
    return -(-log_q // BITS)


def _measured15(request: Request) -> Iterator[Point]:
    for log_q in LOG_Q:
        for pes in HYBRID_PES:
            times = _here(_of_pes(pes, _limbs(log_q)), OWN, request)
            yield from _total15(log_q, pes, times, MIXED)
        request.progress.phase(f"log Q {log_q}, CPU")
        seconds = reference_seconds(_of_pes(pes, _limbs(log_q)).problem())
        yield Point(COMPLETE, "CPU", log_q, 1e3 * seconds, MEASURED, BASELINE)


def _modelled15(_: Request) -> Iterator[Point]:
    for log_q in LOG_Q:
        for pes in HYBRID_PES:
            yield from _total15(log_q, pes, _there(_of_pes(pes, _limbs(log_q)), OWN), MODELLED)
            base = _there(_of_pes(pes, _limbs(log_q)), BASE)
            yield Point(
                "share", f"{pes} PEs, {BASE}", log_q, base.share_pct, MODELLED, MACHINE, base.wrong
            )


def _total15(log_q: int, pes: int, times: Clocks, source: str) -> Iterator[Point]:
    on = HERE if source == MIXED else MACHINE
    totals = {name: value for name, value in times.named().items() if name in ("total", COMPLETE)}
    for name, seconds in totals.items():
        yield Point(name, f"{pes} PEs", log_q, 1e3 * seconds, source, on, times.wrong)
    yield Point("share", f"{pes} PEs", log_q, times.share_pct, source, on, times.wrong)


def _statements15(_: Request, points: Sequence[Point]) -> Iterator[Statement]:
    most, last = HYBRID_PES[-1], LOG_Q[-1]
    for source in _sources(points):
        total = {pes: series_of(points, "total", f"{pes} PEs", source) for pes in HYBRID_PES}
        spreads = {
            pes: _spread([total[pes][log_q] / _limbs(log_q) for log_q in LOG_Q])
            for pes in HYBRID_PES
        }
        yield Statement(
            "times are linear in log Q",
            f"{source}: the time per limb differs from its mean by at most "
            + ", ".join(f"{100 * spread:.0f}% on {pes} PEs" for pes, spread in spreads.items()),
            max(spreads.values()) <= TOLERANCE,
        )
        if source == MIXED:  # the CPU's time is complete too
            names = [*(f"{pes} PEs" for pes in HYBRID_PES), "CPU"]
            times = {name: series_of(points, COMPLETE, name) for name in names}
        else:
            times = {f"{pes} PEs": total[pes] for pes in HYBRID_PES}
        fastest = [min(times, key=lambda name: times[name][log_q]) for log_q in LOG_Q]
        yield Statement(
            f"{most} PEs are the fastest for each log Q",
            f"{source}{', with host' if source == MIXED else ''}:"
            f" {', '.join(dict.fromkeys(fastest))}; at log Q {last} "
            + ", ".join(f"{name}: {series[last]:.3g} ms" for name, series in times.items()),
            set(fastest) == {f"{most} PEs"},
        )
        share = series_of(points, "share", f"{most} PEs", source)[last]
        yield Statement(
            f"at {most} PEs and log Q {last}, the exchange between PEs takes 34.9% of the time",
            f"{source}, {OWN}: {share:.1f}%",
            _is_near(share, 34.9),
        )


def _spread(values: Sequence[float]) -> float:
    """Return the largest difference from the mean, as a part of the mean."""
    mean = sum(values) / len(values)
    return max(abs(value - mean) for value in values) / mean


NOTE = (
    "Kernels run on dpuemu, so their times are modelled; collectives are measured here, or"
    f" modelled on the machine. `total` has the five clocks of the paper. `{COMPLETE}` adds the"
    " measured layout of rows in host memory and writes of variables, and assumed launches and"
    " loads of programs; it exists only for runs here. A step multiplies by no separate twiddles,"
    " because the tables of the next step contain them. The paper prints no absolute times, so its"
    " machine's times cannot be compared. Where the paper prints a number, the direction agrees"
    f" only if the numbers differ by at most {TOLERANCE:.0%}."
)
NOTE13 = (
    " The paper extrapolates 3D and 4D, gives no number of PEs for 3D, and neither radixes nor"
    " numbers of PEs for step sizes: 3D on 1,024 PEs, radix 2, and both numbers of PEs per step"
    " size are choices of this project."
)


def _panels(names: Iterable[str], x: str, *more: Panel) -> tuple[Panel, ...]:
    return (*(Panel(name, "ms", x) for name in names), *more)


def _figure(
    number: int,
    title: str,
    panels: Sequence[Panel],
    model: Callable[[Request], Iterable[Point]],
    statements: Callable[[Request, Sequence[Point]], Iterable[Statement]],
    measure: Callable[[Request], Iterable[Point]] | None,
    note: str = "",
) -> Figure:
    return Figure(
        f"scalability/fig{number}", PAPER, title, panels, model, statements, measure, NOTE + note
    )


FIGURE_12 = _figure(
    12,
    "256-point transform on one PE: tasklets and radix",
    [
        Panel("time", "us of the kernel", "tasklets"),
        Panel("pipeline", "instructions in percent of cycles", "tasklets"),
    ],
    _one_pe,
    _statements12,
    None,
)
FIGURE_13 = _figure(
    13,
    "decompositions of a transform of 2^16 coefficients",
    _panels((*(f"dimensions, {technique}" for technique in (BASE, OWN)), *STEP_PANELS), "steps"),
    _modelled13,
    _statements13,
    _measured13,
    NOTE13,
)
FIGURE_14 = _figure(
    14,
    "8 transforms of 2^16 coefficients on 32 to 2048 PEs",
    _panels(
        TECHNIQUES,
        "PEs",
        Panel("share", "exchange between PEs in percent of all clocks", "PEs"),
    ),
    _modelled14,
    _statements14,
    _measured14,
)
FIGURE_15 = _figure(
    15,
    "transforms of 2^16 coefficients for log Q from 400 to 2800",
    _panels(
        ("total", COMPLETE),
        "log Q",
        Panel("share", "exchange between PEs in percent of all clocks", "log Q"),
    ),
    _modelled15,
    _statements15,
    _measured15,
)
