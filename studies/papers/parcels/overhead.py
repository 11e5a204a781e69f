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
    data_miss_cycles,
    misprediction_cycles,
    miss_cycles,
    occupancy,
    overhead,
    results_of,
)
from pidcomm_studies.papers.parcels.parts import (
    COUNTERPARTS,
    TOLERANCE,
    cycle_points,
    explain_lam,
    figure,
    ipc,
    less,
    means,
    numbers,
    panels_of,
    percents,
    point,
    words,
)
from pidcomm_studies.parcels.host import ENTRY
from pidcomm_studies.parcels.run import OVERHEAD, SIZES, TABLE_1, Run

PUBLISHED = {
    ("eager", MPICH): 0.57,
    ("eager", LAM): 0.42,
    ("rendezvous", MPICH): 0.58,
    ("rendezvous", LAM): 0.78,
}
"""By how much the overhead cycles of travelling threads are below another MPI."""
HIGH_IPC = 0.6
"""The paper calls an IPC low that is below this."""


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
                explain_lam(results, field, partial(overhead, field=field), dict.fromkeys(SIZES))
                if engine == LAM
                else "unexplained",
            )

    note = (
        "Engines lam and mpich: the smallest programs that behave as each MPI does. MPICH 1.2.5:"
        " counted by `pidcomm parcels bench` (papers/parcels/benchmark.py). It polls, so two runs"
        " differ: by up to 3% on an idle computer. As released, it sends 80 KiB eagerly: its limit"
        " is 128,000 bytes."
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
            inner = sum(getattr(row, field) for row in rows if row.category != ENTRY)
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
            yield _judge_cycles(results, size, engine, published)
        yield from _judge_conventional_ipc(results)
        yield _judge_ipc(results)
        yield _judge_all_cycles(results)
        yield _judge_memory(results)

    note = (
        "Occupancy: the cycles that other threads of the node lose. A travelling thread occupies an"
        " issue slot per instruction, a single-threaded MPI all its cycles. Latency: the elapsed"
        " cycles; a lone thread issues every fourth cycle and waits for its references. MPICH"
        " 1.2.5: the counted instructions at the issue rate of the engine mpich, and the counted"
        " misses and mispredictions at table 1's delays. Percentages agree within"
        f" {100 * TOLERANCE:.0f} percentage points."
    )
    return figure("fig5", "overhead cycles", panels, model, statements, note)


def _judge_cycles(results: Results, size: str, engine: str, published: float) -> Statement:
    name = COUNTERPARTS[engine]
    part = less(results, size, name, "occupancy")
    here = f"{words(part)} occupancy, {words(less(results, size, name, 'cycles'))} latency"
    if engine == LAM:
        cause = explain_lam(results, "occupancy", occupancy, {size: published})
    else:
        here += f" than {name}"
        for other in (REAL_64K, MPICH):
            if results.of(other, size):
                here += f"; {words(less(results, size, other, 'occupancy'))} occupancy than {other}"
        cause = _explain_mpich(results, size, published)
    return Statement(
        f"{size}: {published:.0%} less overhead cycles than {engine.upper()}",
        here,
        abs(part - published) <= TOLERANCE,
        cause,
    )


def _explain_mpich(results: Results, size: str, published: float) -> str:
    """Return the cause of a difference from MPICH 1.2.5: where its cycles come from, and whether
    rows of memory that are closed explain the published part.
    """
    pim = sum(map(occupancy, results.of(PIM, size)))
    here, closed = (
        1 - pim / sum(_parts_of_mpich(results, size, page).values())
        for page in ("open_page", "closed_page")
    )
    parts = _parts_of_mpich(results, size)
    total = sum(parts.values())
    text = (
        f"{', '.join(f'{name} {cycles / total:.0%}' for name, cycles in parts.items())} of MPICH's"
        f" cycles; without misses of data {words(1 - pim / (total - parts['misses of data']))},"
        f" without those of code {words(1 - pim / (total - parts['misses of code']))}"
    )
    if here <= published <= closed:
        return (
            "open rows answer all misses to memory here; if all rows were closed,"
            f" {words(closed)}. {text}"
        )
    return f"unexplained; {text}"


def _parts_of_mpich(results: Results, size: str, page: str = "open_page") -> dict[str, float]:
    """Return the overhead cycles of MPICH 1.2.5 by cause. page: of its misses to memory."""
    rows = results.rows_of(REAL, size)
    open_delays = sum(miss_cycles(row) for row in rows)
    mispredictions = sum(map(misprediction_cycles, rows))
    cycles = sum(overhead(run, "cycles") for run in results.of(REAL, size))
    return {
        "issue": cycles - open_delays - mispredictions,
        "misses of data": sum(data_miss_cycles(row, page) for row in rows),
        "misses of code": sum(miss_cycles(row, page) - data_miss_cycles(row, page) for row in rows),
        "mispredictions": mispredictions,
    }


def _judge_conventional_ipc(results: Results) -> Iterator[Statement]:
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
    rates = [rate for rates_of_size in by_size.values() for rate in rates_of_size]
    yield Statement(
        f"MPICH's IPC is usually below {HIGH_IPC}",
        ", ".join(f"{size} {numbers(some)}" for size, some in by_size.items())
        + f" in MPICH 1.2.5; {numbers([ipc(run) for run in results.of(MPICH)])} in the engine",
        sum(rate < HIGH_IPC for rate in rates) > len(rates) / 2,
        _explain_ipc(results),
    )
    eager, long = ([ipc(run) for run in results.of(LAM, size)] for size in SIZES)
    few, many = (_miss_rate_of_lam(results, size) for size in SIZES)
    yield Statement(
        "LAM's IPC is high for eager messages; for longer ones it misses the data cache",
        f"{numbers(eager)} for eager messages, {numbers(long)} for rendezvous; misses of"
        f" data and code take {few:.2f} and {many:.2f} cycles per instruction",
        min(eager) > HIGH_IPC and many > few,
        "unexplained",
    )


def _explain_ipc(results: Results) -> str:
    """Return the IPC of MPICH 1.2.5 if all rows of memory were closed."""
    rates = {}
    for size in SIZES:
        rates[size] = []
        for posted in POSTED:
            run, rows = results.runs[REAL, size, posted], results.rows[REAL, size, posted]
            open_cycles, closed_cycles = (
                sum(miss_cycles(row, page) for row in rows) for page in ("open_page", "closed_page")
            )
            cycles = overhead(run, "cycles") - open_cycles + closed_cycles
            rates[size].append(overhead(run, "instructions") / cycles)
    some = [rate for rates_of_size in rates.values() for rate in rates_of_size]
    is_explained = sum(rate < HIGH_IPC for rate in some) > len(some) / 2
    return ("" if is_explained else "unexplained; ") + (
        "open rows answer all misses to memory here; if all rows were closed:"
        f" {', '.join(f'{size} {numbers(some)}' for size, some in rates.items())}"
    )


def _miss_rate_of_lam(results: Results, size: str) -> float:
    """Return the cycles of misses per instruction, by runs with and without their delays."""
    cycles = sum(overhead(run, "cycles") for run in results.of(LAM, size))
    ideal = [run for case, run in results.ideal.items() if case[:2] == (LAM, size)]
    return (cycles - sum(overhead(run, "cycles") for run in ideal)) / sum(
        overhead(run, "instructions") for run in ideal
    )


def _judge_ipc(results: Results) -> Statement:
    rates = [ipc(run) for run in results.of(PIM)]
    depth = TABLE_1[PIM]["depth"]
    waits = numbers([_reference_cycles(run) for run in results.of(PIM)])
    return Statement(
        "the IPC of travelling threads tends to be high",
        f"{numbers(rates)} by latency; by occupancy 1 by definition",
        median(rates) > HIGH_IPC,
        f"a lone thread has one of {depth} stages, so its IPC is {1 / depth} at most, and a"
        f" reference takes {waits} cycles; the IPC is high only if other threads fill the pipeline",
    )


def _reference_cycles(run: Run) -> float:
    """Return the mean cycles of a reference of lone travelling threads, as in machine/pim.c."""
    issue = TABLE_1[PIM]["depth"] * overhead(run, "instructions")
    return 1 + (overhead(run, "cycles") - issue) / overhead(run, "references")


def _judge_all_cycles(results: Results) -> Statement:
    """Judge the number of all cycles by occupancy, the measure of the published percentages."""
    here, are_less = [], []
    for field, what in (("occupancy", "occupancy"), ("cycles", "latency")):
        parts = [
            1 - overhead(run, field) / overhead(results.runs[(name, *case)], field)
            for (pim, *case), run in results.runs.items()
            for name in COUNTERPARTS.values()
            if pim == PIM
        ]
        here.append(
            f"less {what} in {sum(part > 0 for part in parts)} of {len(parts)} cases"
            f" ({words(min(parts))} to {words(max(parts))})"
        )
        are_less.append(min(parts) > 0)
    return Statement(
        "the overall cycle count is lower than those of the conventional MPIs",
        ", ".join(here),
        are_less[0],
        "unexplained",
    )


def _judge_memory(results: Results) -> Statement:
    """Judge the time of references. A reference of the conventional machine takes a cycle and the
    delays of its misses of data. Instruction fetches of travelling threads are free.
    """
    here, causes, is_less = [], [], []
    for size in SIZES:
        runs, rows = results.of(PIM, size), results.rows_of(REAL, size)
        pim_references = sum(overhead(run, "references") for run in runs)
        pim = sum(overhead(run, "references") * _reference_cycles(run) for run in runs)
        references = sum(row.references for row in rows)
        real = references + sum(map(data_miss_cycles, rows))
        hits = 1 - sum(row.data_misses or 0 for row in rows) / references
        here.append(
            f"{size} {pim / len(POSTED):,.0f} cycles, in MPICH 1.2.5 {real / len(POSTED):,.0f}"
        )
        causes.append(
            f"{size} {pim_references / references:.2f} times the references, each in"
            f" {pim / pim_references:.2f} cycles; in MPICH {real / references:.2f}, as the first"
            f" cache serves {hits:.0%}"
        )
        is_less.append(pim < real)
    return Statement(
        "fewer and faster references: significantly less time for memory accesses",
        "; ".join(here),
        all(is_less),
        "; ".join(causes),
    )


FIGURE_4 = _figure_4()
FIGURE_5 = _figure_5()
