"""Figures 4, 13, 15, 21 and 22 and slide 11 of the PID-Comm paper: its applications."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import fsum

from pidcomm.model.prediction import PAPER_MACHINE
from pidcomm_studies.apps.stage import Cost
from pidcomm_studies.papers.figure import (
    HERE,
    MIXED,
    MODELLED,
    Figure,
    Panel,
    Point,
    Request,
    Statement,
    series_of,
)
from pidcomm_studies.papers.pidcomm.application_runs import (
    CASES,
    CATEGORIES,
    DTYPES,
    KERNEL,
    OTHER,
    WIDTHS,
    Case,
    Priced,
    Runs,
)
from pidcomm_studies.papers.pidcomm.experiments import BASE, ENDS, OURS, PAPER, geomean
from pidcomm_studies.papers.pidcomm.published import PAPER as TITLE

TIMES, PARTS, GAINS = "time", "collectives", "speed-up"
OVER_CPU = "speed-up over the CPUs"
NEAR = 0.25  # the largest error of a statement that agrees
PES, QUICK_PES = 1024, 64
COUNTS, QUICK_COUNTS = (64, 256, 1024), (16, 64)
CC_COUNTS, QUICK_CC_COUNTS = (32, 64, 128, 256, 512, 1024), (8, 16, 64)


def _pes(request: Request) -> int:
    return QUICK_PES if request.quick else PES


def _cases(request: Request, cases: Sequence[Case]) -> Sequence[Case]:
    """Return the cases of a request. Quick runs leave out cases that only differ in their data."""
    if not request.quick:
        return cases
    chosen: list[Case] = []
    for case in cases:
        if all((case.application, case.arguments) != (c.application, c.arguments) for c in chosen):
            chosen.append(case)
    return chosen


def _prices(
    request: Request, cases: Sequence[Case] = CASES
) -> Iterator[tuple[Case, dict[str, Priced]]]:
    """Yield the cases that run here, with their prices for the paper's number of PEs."""
    for case in _cases(request, cases):
        if prices := request.shared(Runs).prices(case, _pes(request)):
            yield case, prices


def _shares(
    panel: str, case: Case, seconds: Mapping[str, float], source: str = MIXED
) -> Iterator[Point]:
    """Yield the shares of parts in a time, in percent."""
    whole = fsum(seconds.values())
    for name, spent in seconds.items():
        if spent:
            yield Point(panel, name, case.label, 100 * spent / whole, source, PAPER_MACHINE)


def _parts(request: Request) -> Iterator[Point]:
    """Yield the parts of figure 4 and slide 11: of the baseline, and of its communication."""
    for case, prices in _prices(request):
        priced = prices[BASE]
        parts = {"communication": priced.communication, KERNEL: priced.kernel, OTHER: priced.other}
        yield from _shares(TIMES, case, parts)
        phases = {category: priced.part(category) for category in CATEGORIES}
        yield from _shares(PARTS, case, phases, MODELLED)


def _of_parts(_: Request, points: Sequence[Point]) -> Iterator[Statement]:
    shares = list(series_of(points, TIMES, "communication").values())
    if not shares:
        return
    mean = fsum(shares) / len(shares)
    yield Statement(
        "communication takes 76% of the time (slide 11)",
        f"{_error(mean, 76, '{:.0f}%')} in the mean, {min(shares):.0f} to {max(shares):.0f}%",
        _is_near(mean, 76),
    )


def _collectives(request: Request) -> Iterator[Point]:
    """Yield the times of figure 13 by collective, for the baseline, the paper's steps and ours."""
    for case, prices in _prices(request):
        for technique, priced in prices.items():
            spent = {name: fsum(phases.values()) for name, phases in priced.collectives.items()}
            parts = {KERNEL: priced.kernel, **spent, OTHER: priced.other}
            yield from _shares(f"{TIMES}, {technique}", case, parts)


def _of_collectives(_: Request, points: Sequence[Point]) -> Iterator[Statement]:
    shares = [
        share
        for technique in (BASE, PAPER)
        for name in ("gather", "broadcast")
        for share in series_of(points, f"{TIMES}, {technique}", name).values()
    ]
    if not shares:
        return
    yield Statement(
        "gather and broadcast take at most 7% of the time each",
        f"at most {max(shares):.1f}%",
        max(shares) <= 7,
    )


def _gains(request: Request, cases: Sequence[Case] = CASES) -> Iterator[Point]:
    """Yield the speed-ups over the baseline of figure 15 or 22, modelled."""
    for case, prices in _prices(request, cases):
        for technique in (PAPER, OURS):
            gain = prices[BASE].total / prices[technique].total
            yield Point(GAINS, technique, case.label, gain, MIXED, PAPER_MACHINE)


def _whole(cost: Cost) -> float:
    """Return the seconds of a run with launches and loads."""
    return cost.total + cost.assumed


def _gains_here(request: Request, cases: Sequence[Case] = CASES) -> Iterator[Point]:
    """Yield the speed-ups of runs on this host."""
    for case in _cases(request, cases):
        runs = request.shared(Runs).run(case, min(request.pes, _pes(request)), ENDS)
        for run in runs[1:]:
            gain = _whole(runs[0].total) / _whole(run.total)
            yield Point(GAINS, run.technique, case.label, gain, MIXED, HERE, run.wrong)


def _modelled_gains(points: Sequence[Point]) -> dict[float | str, float]:
    """Return the modelled speed-ups of the paper's steps by case."""
    return series_of((point for point in points if point.on == PAPER_MACHINE), GAINS, PAPER)


def _of_gains(_: Request, points: Sequence[Point]) -> Iterator[Statement]:
    gains = list(_modelled_gains(points).values())
    if not gains:
        return
    yield Statement(
        "speed-ups are 1.20x to 3.99x",
        f"{_error(min(gains), 1.20)} to {_error(max(gains), 3.99)}",
        _is_near(min(gains), 1.20) and _is_near(max(gains), 3.99),
    )
    yield _compared("the geometric mean of the speed-ups is {}x", geomean(gains), 1.99)


def _over_cpu(request: Request) -> Iterator[Point]:
    """Yield the speed-ups of figure 21 over the CPUs of this host, by the number of PEs."""
    runs = request.shared(Runs)
    for case in _cases(request, CASES):
        is_cc = case.application == "cc"
        counts = (
            (QUICK_CC_COUNTS if is_cc else QUICK_COUNTS)
            if request.quick
            else (CC_COUNTS if is_cc else COUNTS)
        )
        for pes in counts:
            for technique, priced in runs.prices(case, pes).items():
                gain = runs.cpu_seconds(case) / priced.total
                panel = f"{OVER_CPU}, {case.label}"
                yield Point(panel, technique, pes, gain, MIXED, PAPER_MACHINE)


def _of_cpu(_: Request, points: Sequence[Point]) -> Iterator[Statement]:
    def gains(technique: str) -> dict[str, dict[float, float]]:
        """Return the speed-ups by case and number of PEs."""
        by_case: dict[str, dict[float, float]] = {}
        for point in points:
            if point.series == technique:
                label = point.panel.removeprefix(f"{OVER_CPU}, ")
                by_case.setdefault(label, {})[float(point.x)] = point.value
        return by_case

    if not points:
        return
    # Each case counts once, because the cases have different numbers of PEs.
    means = {
        name: geomean([geomean(list(of_case.values())) for of_case in gains(name).values()])
        for name in (BASE, PAPER)
    }
    words = f"{PAPER} is 4.07 / 2.27 = 1.79x as fast as {BASE}"
    yield _compared(words, means[PAPER] / means[BASE], 4.07 / 2.27)
    for technique, mean, most in ((BASE, 2.27, 3.18), (PAPER, 4.07, 7.89)):
        words = f"{technique} is {{}}x as fast as the CPUs (geometric mean)"
        yield _compared(words, means[technique], mean)
        for label, of_case in gains(technique).items():
            best_pes, best = max(of_case.items(), key=lambda item: item[1])
            if label.startswith("MLP"):
                words = f"{technique} is at most {{}}x as fast as the CPUs, for MLP"
                yield _compared(words, best, most, "at most {}")
            elif label.startswith("CC"):
                published = f"{label} is fastest with 64 PEs with {technique}"
                yield Statement(published, f"with {best_pes:.0f} PEs", best_pes == 64)
                if technique == PAPER:
                    yield _compared(f"{label} is then {{}}x as fast as the CPUs", best, 2.58)


def _of_widths(_: Request, points: Sequence[Point]) -> Iterator[Statement]:
    of_dtype = {
        dtype: [
            gain
            for label, gain in _modelled_gains(points).items()
            if str(label).endswith(f" {dtype}")
        ]
        for dtype in DTYPES
    }
    if not all(of_dtype.values()):
        return
    means = {dtype: geomean(gains) for dtype, gains in of_dtype.items()}
    others = ", ".join(f"{dtype} {means[dtype]:.2f}x" for dtype in DTYPES[1:])
    yield Statement(
        "GNN with 8-bit integers gains 1.64x (geometric mean), more than with longer integers",
        f"{_error(means['int8'], 1.64)}; {others}",
        _is_near(means["int8"], 1.64) and means["int8"] == max(means.values()),
    )


def _compared(words: str, value: float, published: float, here: str = "{}") -> Statement:
    """Return a statement about a number. words: with {} for the published number. here: with {} for
    the value and its error.
    """
    error = here.format(_error(value, published))
    return Statement(words.format(published), error, _is_near(value, published))


def _error(value: float, published: float, form: str = "{:.2f}x") -> str:
    return f"{form.format(value)} ({100 * (value / published - 1):+.0f}%)"


def _is_near(value: float, published: float) -> bool:
    return abs(value / published - 1) <= NEAR


_NOTE = (
    f"The model of {PAPER_MACHINE} prices collectives and launches, kernels take the cycles that"
    " the emulator counts, and the host's other work takes the time measured here. Inputs are"
    " generated; graphs, features and batches differ from the paper's. A statement agrees if its"
    f" error is at most {NEAR:.0%}. The applications run also with --no-measure."
)


def _figure(
    name: str,
    title: str,
    panels: Sequence[Panel],
    model: Callable[[Request], Iterator[Point]],
    statements: Callable[[Request, Sequence[Point]], Iterator[Statement]],
    measure: Callable[[Request], Iterator[Point]] | None = None,
    note: str = "",
) -> Figure:
    options = ("--quick", *(("--pes",) if measure else ()))
    note = f"{_NOTE} {note}".strip()
    return Figure(
        f"pidcomm/{name}", TITLE, title, panels, model, statements, measure, note, options
    )


_GAINS_PANEL = Panel(GAINS, f"speed-up over {BASE}", "application")
FIGURE_4 = _figure(
    "fig4",
    f"Time of applications with {BASE} (also slide 11)",
    [
        Panel(TIMES, "% of the time", "application"),
        Panel(PARTS, "% of the time of collectives", "application"),
    ],
    _parts,
    _of_parts,
)
FIGURE_13 = _figure(
    "fig13",
    "Time of applications by collective",
    [Panel(f"{TIMES}, {technique}", "% of the time", "application") for technique in ENDS],
    _collectives,
    _of_collectives,
)
FIGURE_15 = _figure(
    "fig15", "Speed-up of applications", [_GAINS_PANEL], _gains, _of_gains, _gains_here
)
FIGURE_21 = _figure(
    "fig21",
    "Speed-up over the CPUs by number of PEs",
    [Panel(f"{OVER_CPU}, {case.label}", "speed-up", "PEs", is_log=True) for case in CASES],
    _over_cpu,
    _of_cpu,
    note="The CPUs are those of this host, and run our vectorised references, not the paper's"
    " programs: this changes the speed-ups of all techniques by the same factor.",
)
FIGURE_22 = _figure(
    "fig22",
    "Speed-up of GNN by the width of its integers",
    [_GAINS_PANEL],
    lambda request: _gains(request, WIDTHS),
    _of_widths,
    lambda request: _gains_here(request, WIDTHS),
)
