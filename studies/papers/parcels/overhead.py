"""Figures 4 and 5: instructions, references and cycles of the overhead."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from statistics import fmean, median

from pidcomm_studies.papers.figure import Figure, Point, Request, Statement
from pidcomm_studies.papers.parcels.benchmark import (
    LAM,
    MPICH,
    PIM,
    POSTED,
    REAL,
    REAL_64K,
    ROWS,
    Results,
    memory_cycles,
    occupancy,
    overhead,
    results_of,
)
from pidcomm_studies.papers.parcels.parts import (
    COUNTERPARTS,
    TOLERANCE,
    cycle_points,
    figure,
    ipc,
    less,
    means,
    numbers,
    panels_of,
    percents,
    point,
    size_of_lam,
    words,
)
from pidcomm_studies.parcels.host import OUTER
from pidcomm_studies.parcels.run import CONVENTIONAL, OVERHEAD, SIZES, TABLE_1, Run

PUBLISHED = {
    ("eager", MPICH): 0.57,
    ("eager", LAM): 0.42,
    ("rendezvous", MPICH): 0.58,
    ("rendezvous", LAM): 0.78,
}
"""By how much the overhead cycles of travelling threads are below another MPI."""


def _figure_4() -> Figure:
    panels = panels_of(
        (letter, size, f"overhead {field}")
        for letter, field, size in zip(
            "abcd",
            ("instructions", "instructions", "references", "references"),
            (*SIZES, *SIZES),
            strict=True,
        )
    )

    def model(request: Request) -> Iterator[Point]:
        results = request.shared(results_of)
        for panel in panels:
            field = panel.what.split()[1]
            for (name, size, posted), run in results.runs.items():
                if size == panel.name[3:] and name != ROWS:
                    yield point(panel.name, name, posted, overhead(run, field), field)

    def statements(request: Request, _: Sequence[Point]) -> Iterator[Statement]:
        results = request.shared(results_of)
        for field, engine, text in (
            ("instructions", LAM, "fewer than LAM"),
            ("instructions", MPICH, "usually fewer than MPICH"),
            ("references", LAM, "fewer than LAM"),
            ("references", MPICH, "fewer than MPICH"),
        ):
            name = COUNTERPARTS[engine]
            fewer = [
                overhead(results.runs[PIM, size, posted], field)
                < overhead(results.runs[name, size, posted], field)
                for size in SIZES
                for posted in POSTED
            ]
            here = f"fewer in {sum(fewer)} of {len(fewer)} cases; {means(results, name, field)}"
            yield Statement(
                f"overhead {field}: {text}",
                here + (_bounds(results, field) if engine == MPICH else ""),
                sum(fewer) > len(fewer) / 2 if "usually" in text else all(fewer),
                size_of_lam(results, field, partial(overhead, field=field)),
            )

    note = (
        "Engines lam and mpich: the smallest programs that behave as each MPI does. MPICH 1.2.5:"
        " counted in one run of `pidcomm parcels bench` (papers/parcels/mpich.jsonl). It polls, so"
        " two runs differ by up to 3%. As released, it sends 80 KiB eagerly: its limit is 128,000"
        " bytes."
    )
    title = "overhead instructions and memory references"
    return figure("fig4", title, panels, model, statements, note)


def _bounds(results: Results, field: str) -> str:
    """Return the comparisons with MPICH 1.2.5 with another limit and without its outer functions,
    and with the smallest program.
    """
    parts = []
    for size in SIZES:
        ratios = []
        for posted in POSTED:
            rows = results.rows[REAL, size, posted]
            inner = sum(getattr(row, field) for row in rows if row.category != OUTER)
            ratios.append(overhead(results.runs[PIM, size, posted], field) / inner)
        parts.append(f"{size} {words(1 - fmean(ratios))}")
    return (
        f" than {REAL}; {', '.join(parts)} without its functions that also check arguments;"
        f" {means(results, REAL_64K, field)} than {REAL_64K};"
        f" {means(results, MPICH, field)} than the engine mpich"
    )


def _figure_5() -> Figure:
    panels = panels_of(
        (letter, size, "overhead cycles") for letter, size in zip("ab", SIZES, strict=True)
    )
    names = (PIM, LAM, MPICH, REAL, REAL_64K)

    def model(request: Request) -> Iterator[Point]:
        results = request.shared(results_of)
        for panel, size in zip(panels, SIZES, strict=True):
            yield from cycle_points(results, panel.name, size, names, OVERHEAD)

    def statements(request: Request, _: Sequence[Point]) -> Iterator[Statement]:
        results = request.shared(results_of)
        for (size, engine), published in PUBLISHED.items():
            yield _of_cycles(results, size, engine, published)
        yield from _of_conventional_ipc(results)
        yield _of_ipc(results)
        yield _of_all_cycles(results)
        yield _of_memory(results)

    note = (
        "Occupancy: the cycles that other threads of the node lose. A travelling thread occupies an"
        " issue slot per instruction, a single-threaded MPI all its cycles. Latency: the elapsed"
        " cycles; a lone thread issues every fourth cycle and waits for its references. MPICH"
        " 1.2.5: the counted instructions at the issue rate of the engine mpich, and the counted"
        " misses and mispredictions at table 1's delays. Percentages agree within"
        f" {TOLERANCE:.0%}."
    )
    return figure("fig5", "overhead cycles", panels, model, statements, note)


def _of_cycles(results: Results, size: str, engine: str, published: float) -> Statement:
    name = COUNTERPARTS[engine]
    part = less(results, size, name, "occupancy")
    here = f"{words(part)} occupancy, {words(less(results, size, name, 'cycles'))} latency"
    cause = size_of_lam(results, "occupancy", occupancy)
    if engine == MPICH:
        here += f" than {name}"
        for other in (REAL_64K, MPICH):
            if results.of(other, size):
                here += f"; {words(less(results, size, other, 'occupancy'))} occupancy than {other}"
        rate = fmean(map(ipc, results.of(name, size)))
        cause = (
            f"MPICH 1.2.5 has an IPC of {rate:.2f} here ({_delays(results, size)}); the published"
            f" part needs {rate * (1 - published) / (1 - part):.2f}"
        )
    return Statement(
        f"{size}: {published:.0%} less overhead cycles than {engine.upper()}",
        here,
        abs(part - published) <= TOLERANCE,
        cause,
    )


def _delays(results: Results, size: str) -> str:
    """Return the cycles of an instruction of MPICH 1.2.5 in words."""
    rows = [row for case, of in results.rows.items() if case[:2] == (REAL, size) for row in of]
    instructions = sum(row.instructions for row in rows)
    cycles = sum(overhead(run, "cycles") for run in results.of(REAL, size)) / instructions
    misses = sum(map(memory_cycles, rows)) / instructions
    wrong = sum(row.mispredictions for row in rows) * TABLE_1[CONVENTIONAL]["depth"] / instructions
    return (
        f"{cycles - misses - wrong:.2f} cycles of issue, {misses:.2f} of misses and {wrong:.2f} of"
        " mispredictions per instruction"
    )


def _of_conventional_ipc(results: Results) -> Iterator[Statement]:
    rates = [
        sum(row.mispredictions for row in rows) / sum(row.branches for row in rows)
        for rows in results.rows.values()
    ]
    yield Statement(
        "MPICH has a high branch misprediction rate, up to 20%",
        f"{percents(rates)} in MPICH 1.2.5",
        abs(max(rates) - 0.2) <= TOLERANCE,
        f"callgrind predicts {1 - max(rates):.0%} of the branches or more",
    )
    by_size = {size: [ipc(run) for run in results.of(REAL, size)] for size in SIZES}
    rates = [rate for of_size in by_size.values() for rate in of_size]
    yield Statement(
        "MPICH's IPC is usually below 0.6",
        ", ".join(f"{size} {numbers(of_size)}" for size, of_size in by_size.items())
        + f" in MPICH 1.2.5; {numbers([ipc(run) for run in results.of(MPICH)])} in the engine",
        sum(rate < 0.6 for rate in rates) > len(rates) / 2,
        "; ".join(f"{size}: {_delays(results, size)}" for size in SIZES),
    )
    eager, long = ([ipc(run) for run in results.of(LAM, size)] for size in SIZES)
    yield Statement(
        "LAM's IPC is high for eager messages; for longer ones it misses the data cache",
        f"{numbers(eager)} for eager messages, {numbers(long)} for rendezvous",
        fmean(eager) > fmean(long),
        f"a long copy costs the engine lam {fmean(eager) - fmean(long):.2f} in IPC",
    )


def _of_ipc(results: Results) -> Statement:
    rates = [ipc(run) for run in results.of(PIM)]
    depth = TABLE_1[PIM]["depth"]
    waits = numbers([_reference_cycles(run) for run in results.of(PIM)])
    return Statement(
        "the IPC of travelling threads tends to be high",
        f"{numbers(rates)} by latency, 1.00 by occupancy",
        median(rates) > 0.6,
        f"a lone thread has one of {depth} stages, so its IPC is {1 / depth} at most, and a"
        f" reference takes {waits} cycles; the IPC is high only if other threads fill the pipeline",
    )


def _reference_cycles(run: Run) -> float:
    """Return the mean cycles of a reference of lone travelling threads, as in machine/pim.c."""
    issue = TABLE_1[PIM]["depth"] * overhead(run, "instructions")
    return 1 + (overhead(run, "cycles") - issue) / overhead(run, "references")


def _of_all_cycles(results: Results) -> Statement:
    is_less = [
        occupancy(run) < occupancy(results.runs[name, size, posted])
        for (pim, size, posted), run in results.runs.items()
        for name in COUNTERPARTS.values()
        if pim == PIM
    ]
    return Statement(
        "the overall cycle count is lower than those of the conventional MPIs",
        f"less occupancy in {sum(is_less)} of {len(is_less)} cases",
        all(is_less),
        size_of_lam(results, "occupancy", occupancy),
    )


def _of_memory(results: Results) -> Statement:
    """Judge the time of references. A reference of the conventional machine takes a cycle and the
    delays of its misses.
    """
    here, served, is_less = [], [], []
    for size in SIZES:
        pim = fmean(
            overhead(run, "references") * _reference_cycles(run) for run in results.of(PIM, size)
        )
        rows = [row for case, of in results.rows.items() if case[:2] == (REAL, size) for row in of]
        references = sum(row.references for row in rows)
        real = (references + sum(map(memory_cycles, rows))) / len(POSTED)
        served.append(1 - sum(row.cache_misses for row in rows) / references)
        here.append(f"{size} {pim:,.0f} cycles, in MPICH 1.2.5 {real:,.0f}")
        is_less.append(pim < real)
    return Statement(
        "fewer and faster references: significantly less time for memory accesses",
        "; ".join(here),
        all(is_less),
        f"the first caches serve {percents(served)} of MPICH's references in a cycle; a reference"
        f" on a PIM node takes {TABLE_1[PIM]['open_page']} cycles or more",
    )


FIGURE_4 = _figure_4()
FIGURE_5 = _figure_5()
