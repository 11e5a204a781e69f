"""Figure 15 of Scalability limitations of processing-in-memory using real system evaluations
(SIGMETRICS 2024).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

from pidcomm.model import load_machine
from pidcomm_studies.apps.application import reference_seconds
from pidcomm_studies.papers.figure import (
    HERE,
    MEASURED,
    MIXED,
    MODELLED,
    Point,
    Request,
    Statement,
    series_of,
)
from pidcomm_studies.papers.scalability import server_cpu
from pidcomm_studies.papers.scalability.ntt import (
    BASE,
    BASELINE,
    CLOCKS_OF,
    MACHINE,
    OWN,
    SIZE,
    TOLERANCE,
    WIDTHS,
    block,
    figure,
    is_near,
    judged,
    listed,
    of_pes,
    panels,
    points_of,
)
from pidcomm_studies.papers.scalability.ntt_clocks import BETWEEN, COMPLETE, TOTAL
from pidcomm_studies.papers.scalability.ntt_factor import faster, times_of, transfers

SHARE_PCT = 34.9
LOG_Q = (400, 800, 1200, 1600, 2000, 2400, 2800)
HYBRID_PES = (256, 512, 1024, 2048)


def _limbs(log_q: int, width: str) -> int:
    return -(-log_q // WIDTHS[width].modulus_bits)


def _breakdown(technique: str, width: str) -> str:
    return f"clocks, {technique}, {width}"


def _place(log_q: int, pes: int) -> str:
    return f"log Q {log_q}, {pes} PEs"


def _points15(request: Request, source: str) -> Iterator[Point]:
    on = HERE if source == MIXED else MACHINE
    for width, log_q in product(WIDTHS, LOG_Q):
        limbs = _limbs(log_q, width)
        for pes, technique in product(HYBRID_PES, (BASE, OWN)):
            times = CLOCKS_OF[source](of_pes(width, pes, limbs), technique, request)
            if log_q in (LOG_Q[0], LOG_Q[-1]):
                panel = _breakdown(technique, width)
                yield from points_of(panel, _place(log_q, pes), times, source)
            for name, seconds in times.named().items():
                if name in (TOTAL, COMPLETE):
                    panel = _panel15(name, technique, width)
                    yield Point(panel, f"{pes} PEs", log_q, 1e3 * seconds, source, on, times.wrong)
        request.progress.phase(f"log Q {log_q}, {width}, CPU")
        for technique in (BASE, OWN):
            if source == MODELLED:
                time = server_cpu.transform_time(
                    limbs, SIZE, WIDTHS[width].bits, load_machine(MACHINE)
                )
                yield Point(
                    _panel15(TOTAL, technique, width),
                    "CPU",
                    log_q,
                    1e3 * time.seconds,
                    MODELLED,
                    server_cpu.SERVER,
                    detail=time.limit,
                )
            else:
                problem = of_pes(width, pes, limbs).problem()
                yield Point(
                    _panel15(COMPLETE, technique, width),
                    "CPU",
                    log_q,
                    1e3 * reference_seconds(problem),
                    MEASURED,
                    BASELINE,
                    detail=f"{problem.cpu_lanes} lanes",
                )


def _panel15(total: str, technique: str, width: str) -> str:
    return f"{total}, {technique}, {width}"


def _statements15(_: Request, points: Sequence[Point]) -> Iterator[Statement]:
    most, fewest, last = HYBRID_PES[-1], HYBRID_PES[0], LOG_Q[-1]
    for source, width in judged(points):
        who = f"{source}, {width}"
        # The time of a CPU is complete, so measured totals have the host's part too.
        total = TOTAL if source == MODELLED else COMPLETE
        times = {
            technique: {
                name: series_of(points, _panel15(total, technique, width), name)
                for name in (*(f"{pes} PEs" for pes in HYBRID_PES), "CPU")
            }
            for technique in (BASE, OWN)
        }
        yield _linear(who, width, source, times[BASE])
        yield _fastest(who, width, source, times)
        parts, own = (
            {
                pes: times_of(points, _breakdown(technique, width), _place(last, pes), source)
                for pes in HYBRID_PES
            }
            for technique in (BASE, OWN)
        )
        here = transfers(points, _breakdown(BASE, width), _place(last, most), source)
        yield Statement(
            f"the exchange between PEs is faster on {most} PEs than on {fewest}",
            f"{who}, log Q {last}: {parts[most].between:.3g} and {parts[fewest].between:.3g} ms;"
            f" {OWN} {own[most].between:.3g} and {own[fewest].between:.3g} ms",
            parts[most].between < parts[fewest].between,
            f"{here}{block(width, most, _limbs(last, width))};"
            f" of {fewest} PEs, {block(width, fewest, _limbs(last, width))}",
        )
        named = {
            point.series: point.value
            for point in points
            if (point.panel, point.x, point.source)
            == (_breakdown(BASE, width), _place(last, most), source)
            and point.series not in (TOTAL, COMPLETE)
        }
        longest = max(named, key=lambda name: named[name])
        yield Statement(
            f"the exchange between PEs dominates on {most} PEs (here: it is the longest clock)",
            f"{who}, log Q {last}: {longest} is the longest; "
            + ", ".join(f"{name} {value:.3g} ms" for name, value in named.items()),
            longest == BETWEEN,
            f"{longest} takes {named[longest] / named[BETWEEN]:.2g} times as long as the exchange;"
            f" the paper prints {SHARE_PCT}% for the exchange, which leaves"
            f" {100 - SHARE_PCT:.1f}% for the other clocks",
        )
        factor = parts[most].factor_of_share(SHARE_PCT)
        yield Statement(
            f"at {most} PEs and log Q {last}, the exchange between PEs takes {SHARE_PCT}% of"
            " the time",
            f"{who}: {parts[most].share_pct():.1f}%; {OWN} {own[most].share_pct():.1f}%",
            is_near(parts[most].share_pct(), SHARE_PCT),
            f"{here}it would be {SHARE_PCT}% {faster(factor)}",
        )


def _places(log_q: int, width: str, name: str) -> int:
    """Return the limbs for which the slices of PEs have time: a slice takes as long as the one with
    the most limbs. name: PEs, or "CPU", which has no slices.
    """
    limbs = _limbs(log_q, width)
    if name == "CPU":
        return limbs
    slices = of_pes(width, int(name.split()[0]), limbs).shape[-1]
    return -(-limbs // slices) * slices


def _linear(who: str, width: str, source: str, times: dict[str, dict]) -> Statement:
    spreads = {
        name: _spread([series[log_q] / _limbs(log_q, width) for log_q in LOG_Q])
        for name, series in times.items()
    }
    worst = max(spreads, key=lambda name: spreads[name])
    few, many = LOG_Q[0], LOG_Q[-1]
    filled = ", ".join(
        f"{_limbs(log_q, width)} limbs take {_places(log_q, width, worst)} places"
        for log_q in LOG_Q
        if _places(log_q, width, worst) > _limbs(log_q, width)
    )
    of_places = {log_q: times[worst][log_q] / _places(log_q, width, worst) for log_q in LOG_Q}
    return Statement(
        "times are linear in log Q",
        f"{who}: the time per limb differs from its mean by at most "
        + ", ".join(f"{100 * spread:.0f}% ({name})" for name, spread in spreads.items()),
        max(spreads.values()) <= TOLERANCE,
        f"{worst}: all slices take as long as the one with the most limbs"
        f" ({filled or 'limbs fill all places'}). Per place, times differ from their mean by at"
        f" most {100 * _spread([*of_places.values()]):.0f}%: from {1e3 * of_places[few]:.3g} us at"
        f" log Q {few} to {1e3 * of_places[many]:.3g} us at {many}"
        + (
            ""
            if worst == "CPU"
            else ". Transfers have costs that do not depend on the number of limbs"
            + ("" if source == MODELLED else ", and so have launches")
        ),
    )


def _fastest(who: str, width: str, source: str, times: dict[str, dict[str, dict]]) -> Statement:
    most, last = f"{HYBRID_PES[-1]} PEs", LOG_Q[-1]
    paper = times[BASE]
    fastest = [min(paper, key=lambda name: paper[name][log_q]) for log_q in LOG_Q]
    slower = max(paper[most][log_q] / paper[fastest[i]][log_q] for i, log_q in enumerate(LOG_Q))
    cause = f"{most} take up to {slower:.2g} times as long as {listed(dict.fromkeys(fastest))}"
    if source == MODELLED:
        machine, word = load_machine(MACHINE), WIDTHS[width]
        needed = max(
            server_cpu.cycles_per_butterfly(
                paper[most][log_q] / 1e3, _limbs(log_q, width), SIZE, machine["host.threads"]
            )
            for log_q in LOG_Q
        )
        limit = server_cpu.transform_time(_limbs(last, width), SIZE, word.bits, machine).limit
        cause += (
            f". They would be the fastest for each log Q if a butterfly took each of"
            f" {machine['host.threads']:.0f} threads more than {needed:.2g} cycles, or one thread"
            f" alone {needed / machine['host.threads']:.2g}; the vectors of this project take"
            f" {server_cpu.BUTTERFLY_CYCLES[word.bits]}, and the CPU is limited by {limit}."
            " The paper does not describe its CPU code"
        )
    return Statement(
        f"{most} are the fastest for each log Q, the CPU included",
        f"{who}{', with host' if source == MIXED else ''}: {listed(dict.fromkeys(fastest))};"
        f" at log Q {last} "
        + "; ".join(
            f"{technique}: "
            + ", ".join(f"{name} {series[last]:.3g} ms" for name, series in by_name.items())
            for technique, by_name in times.items()
        ),
        set(fastest) == {most},
        cause,
    )


def _spread(values: Sequence[float]) -> float:
    """Return the largest difference from the mean, as a part of the mean."""
    mean = sum(values) / len(values)
    return max(abs(value - mean) for value in values) / mean


FIGURE_15 = figure(
    15,
    "transforms of 2^16 coefficients for log Q from 400 to 2800",
    [
        *panels(
            (_panel15(*names) for names in product((TOTAL, COMPLETE), (BASE, OWN), WIDTHS)),
            "log Q",
            "of the CPU: cycles or memory that decide, or lanes that ran",
        ),
        *panels((_breakdown(*names) for names in product((BASE, OWN), WIDTHS)), "log Q and PEs"),
    ],
    _statements15,
    _points15,
    server_cpu.NOTE,
    ("--wide",),
)
