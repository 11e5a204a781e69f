"""Figure 6: the overhead by call and category."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import fmean

from pidcomm_studies.papers.figure import Figure, Point, Request, Statement
from pidcomm_studies.papers.parcels.benchmark import (
    LAM,
    MPICH,
    PIM,
    POSTED,
    REAL,
    REAL_64K,
    Results,
    occupancy,
    overhead,
    results_of,
)
from pidcomm_studies.papers.parcels.parts import (
    COUNTERPARTS,
    TOLERANCE,
    explain_lam,
    figure,
    panels_of,
    percents,
    point,
    words,
)
from pidcomm_studies.parcels.run import BENCHMARK, OVERHEAD, SIZES, Run

CALLS = ("MPI_Probe", "MPI_Send", "MPI_Recv")


def _figure_6() -> Figure:
    panels = panels_of(
        (
            (letter, f"{size} {field}", f"{field} by call and category")
            for letter, (field, size) in zip(
                "abcdef",
                [(f, s) for f in ("cycles", "instructions", "references") for s in SIZES],
                strict=True,
            )
        ),
        "call, category",
    )

    def model(request: Request) -> Iterator[Point]:
        results = request.shared(results_of)
        for panel in panels:
            size, field = panel.name.split()[1:]
            for name in (PIM, LAM, MPICH, REAL, REAL_64K):
                series = "pim, occupancy" if (name, field) == (PIM, "cycles") else name
                runs = results.of(name, size)
                for call in CALLS if runs else ():
                    for category in OVERHEAD:
                        x = f"{call.removeprefix('MPI_')} {category}"
                        value = fmean(_part(run, field, category, [call]) for run in runs)
                        yield point(panel.name, series, x, value, field)

    def statements(request: Request, _: Sequence[Point]) -> Iterator[Statement]:
        results = request.shared(results_of)
        yield _judge_state(results)
        yield from _judge_juggling(results)
        yield _judge_clean_up(results)
        yield _judge_send(results)

    note = (
        "Means over the percentages of posted receives. A call includes the threads that it"
        " started. Cycles of pim: occupancy."
    )
    return figure("fig6", "overhead by call and category", panels, model, statements, note)


def _part(run: Run, field: str, category: str, calls: Sequence[str] = BENCHMARK) -> float:
    if field == "cycles":
        return occupancy(run, (category,), calls)
    return run.total(field, (category,), calls)


def _share(run: Run, field: str) -> float:
    return _part(run, field, "juggling") / overhead(run, field)


def _judge_state(results: Results) -> Statement:
    def state(run: Run) -> float:
        return _part(run, "cycles", "state", CALLS)

    here, parts = [], {}
    for name in (REAL, LAM):
        for size in SIZES:
            pim, other = (sum(map(state, results.of(mpi, size))) for mpi in (PIM, name))
            parts[name, size] = 1 - pim / other
            here.append(f"{size} {words(parts[name, size])} than {name}")
    return Statement(
        "fewer cycles to set up and update state, mainly for rendezvous",
        ", ".join(here),
        min(parts.values()) > 0
        and all(parts[name, "rendezvous"] > parts[name, "eager"] for name in (REAL, LAM)),
        explain_lam(results, "cycles for state", state, dict.fromkeys(SIZES)),
    )


def _judge_juggling(results: Results) -> Iterator[Statement]:
    for engine, low, high in ((LAM, 0.14, 0.60), (MPICH, 0.18, 0.23)):
        name = COUNTERPARTS[engine]
        shares = [_share(run, "instructions") for run in results.of(name)]
        here = f"{percents(shares)} in {name}"
        if engine == MPICH:
            others = [_share(run, "instructions") for run in results.of(engine)]
            here += f", {percents(others)} in the engine mpich"
        yield Statement(
            f"juggling is {low:.0%} to {high:.0%} of the overhead instructions of {engine.upper()}",
            here,
            low - TOLERANCE <= min(shares) and max(shares) <= high + TOLERANCE,
            f"{fmean(shares):.0%} in the mean",
        )
    few, many = (
        {size: _share(results.runs[LAM, size, posted], "instructions") for size in SIZES}
        for posted in (POSTED[0], POSTED[-1])
    )
    yield Statement(
        "LAM's juggling depends on the number of outstanding requests",
        ", ".join(
            f"{size}: {few[size]:.0%} with none, {many[size]:.0%} with all posted" for size in SIZES
        ),
        all(many[size] > few[size] for size in SIZES),
        f"the shares grow by {percents([many[size] - few[size] for size in SIZES])}",
    )
    shares = [_share(run, "references") for run in (*results.of(LAM), *results.of(REAL))]
    yield Statement(
        "juggling tends to require a large number of memory accesses",
        f"{percents(shares)} of the overhead references of lam and {REAL}",
        min(shares) > 0.1,
        f"{fmean(shares):.0%} in the mean",
    )
    shares = [_share(run, "instructions") for run in results.of(PIM)]
    yield Statement(
        "travelling threads do not juggle",
        f"{max(shares):.0%} of their instructions, by definition: no function of the protocol is in"
        " this category",
    )


def _judge_clean_up(results: Results) -> Statement:
    pim, *others = (
        sum(_part(run, "instructions", "cleanup") for run in results.of(name))
        for name in (PIM, LAM, REAL)
    )
    return Statement(
        "travelling threads often need more clean-up instructions",
        f"{pim / others[0]:.2f}x {LAM}, {pim / others[1]:.2f}x {REAL}",
        pim > max(others),
        f"{pim:,.0f} in all cases, against {max(others):,.0f}",
    )


def _judge_send(results: Results) -> Statement:
    def cycles(name: str, call: str) -> float:
        return fmean(occupancy(run, OVERHEAD, [call]) for run in results.of(name, "rendezvous"))

    slower = {
        name: [call for call in CALLS if cycles(name, call) < cycles(PIM, call)]
        for name in (REAL, REAL_64K, MPICH)
    }
    return Statement(
        "rendezvous: MPICH's MPI_Send can outperform travelling threads, by a short cut",
        "; ".join(
            f"{name} needs fewer cycles in {', '.join(calls) or 'no call'}"
            for name, calls in slower.items()
        ),
        slower[REAL] == ["MPI_Send"],
        f"MPI_Send: {cycles(REAL, 'MPI_Send'):,.0f} cycles, as an eager message;"
        f" {cycles(REAL_64K, 'MPI_Send'):,.0f} by rendezvous; pim {cycles(PIM, 'MPI_Send'):,.0f}",
    )


FIGURE_6 = _figure_6()
