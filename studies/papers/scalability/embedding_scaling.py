"""Figures 6 and 10 of the paper: partitions of a table over PEs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from statistics import median
from time import perf_counter

from pidcomm.model import load_machine
from pidcomm_studies.apps.application import REFERENCE_RUNS, reference_seconds
from pidcomm_studies.apps.embedding import PARTITIONS, Model
from pidcomm_studies.papers.figure import (
    MODELLED,
    Figure,
    Point,
    Request,
    Statement,
    series_of,
)
from pidcomm_studies.papers.scalability.embedding_cases import (
    CPU_PANEL,
    ONE,
    cases,
    clock_us,
    most_additions,
    one_table,
    panels,
    priced_cases,
    row_ns,
    run_cases,
)
from pidcomm_studies.papers.scalability.embedding_price import (
    AHEAD,
    IMPLIED_PES,
    MACHINE,
    Work,
    cpu_seconds,
    published_row_seconds,
)
from pidcomm_studies.papers.scalability.paper import (
    CLOCKS,
    CPU,
    CPU_NAMES,
    FAST,
    PAPER,
    PAPER_WAY,
    PUBLISHED_CPU,
    WAY_NAMES,
    WAYS,
    crossing,
    falls,
    listed,
    near,
    priced,
    published,
    steady,
)

KERNEL_PCT = 2.3  # published
IMPLIED, ONE_THREAD = (
    f"{PUBLISHED_CPU} by {AHEAD}x at {IMPLIED_PES} PEs",
    "one thread, modelled",
)


def _works_6(counts: Sequence[int]) -> dict[float | str, dict[str, Work]]:
    def make(pes: float | str, partition: str) -> Work | None:
        if partition == "column" and int(pes) > ONE.columns:
            return None
        return Work(ONE, PARTITIONS[partition](int(pes), ONE))

    return cases(counts, make, ("row", "column"))


def _figure_6(_: Request) -> Iterator[Point]:
    works = _works_6([4, 8, 16, 32, 64, 128, 256, 512, 1024])
    yield from priced_cases(works)
    yield published("c kernel", "row", 1024, KERNEL_PCT)
    machine, rows = load_machine(MACHINE), ONE.batch * ONE.pooling
    one_thread = machine.with_values({"host.threads": 1})
    kernel = works[IMPLIED_PES]["row"].kernel().seconds
    for panel in "ab":
        for x in works:
            seconds = rows * published_row_seconds()
            yield Point(panel, PUBLISHED_CPU, x, 1e6 * seconds, MODELLED, MACHINE)
    bags = works[IMPLIED_PES]["row"].bags
    for way, seconds in {
        IMPLIED: rows * published_row_seconds(),
        f"{PUBLISHED_CPU} by the kernel at {IMPLIED_PES} PEs": kernel,
        "all threads, modelled": cpu_seconds(bags, ONE.columns, machine),
        ONE_THREAD: cpu_seconds(bags, ONE.columns, one_thread),
    }.items():
        yield Point("CPU", "ns per row", way, 1e9 * seconds / rows, MODELLED, MACHINE)


def _measure_6(request: Request) -> Iterator[Point]:
    yield from run_cases(_works_6([16, 64, 1024]), request)
    problem, spent = one_table("float32"), []
    for _ in range(max(request.iters, REFERENCE_RUNS)):
        begin = perf_counter()
        problem.pooled_plainly()
        spent.append(perf_counter() - begin)
    yield row_ns("all threads or one, here", reference_seconds(problem))
    yield row_ns("one plain thread here", median(spent))


def _statements_6(_: Request, points: Sequence[Point]) -> Iterator[Statement]:
    each, points = series_of(points, "CPU", "ns per row"), priced(points)
    (row, kernel, fast), (column, columns, fast_columns) = (
        (
            series_of(points, "b", f"{cut}, {PAPER_WAY}"),
            series_of(points, "a", f"{cut}, {PAPER_WAY}"),
            series_of(points, "b", f"{cut}, {FAST}"),
        )
        for cut in ("row", "column")
    )
    shares = {
        cut: {name: series_of(points, f"c {name}", f"{cut}, {PAPER_WAY}") for name in CLOCKS}
        for cut in ("row", "column")
    }
    to_cpu = clock_us(points, "PE to CPU", f"row, {PAPER_WAY}")
    per_row = (
        "ns per row: "
        + ", ".join(f"{value:.3g} ({way})" for way, value in each.items())
        + ". By the first, the published CPU is"
        f" {each[IMPLIED] / each[ONE_THREAD]:.1f}x slower than one thread at the rate of memory"
    )
    yield Statement(
        "the kernel improves with more PEs",
        f"rows, us: {listed(kernel)}",
        falls(kernel),
    )
    for name in (CPU, PUBLISHED_CPU):
        cpu = series_of(points, "a", name)
        at = crossing(kernel, cpu)
        yield Statement(
            "the kernel alone is faster than the CPU with more than 64 PEs",
            f"against {CPU_NAMES[name]}: "
            + (f"from {at} PEs" if at else f"{kernel[1024] / cpu[1024]:.1f}x its time at 1024 PEs"),
            at in (64, 128),
            per_row,
        )
    gaps = {x: time / kernel[x] for x, time in columns.items()}
    works = _works_6([64])[64]
    yield Statement(
        "up to 64 PEs, kernels with columns and rows take about the same time",
        f"columns over rows: {listed(gaps)}",
        all(near(gap, 1) for gap in gaps.values()),
        f"additions of elements on the busiest of 64 PEs: {most_additions(works)}. With rows,"
        " most bags have one row or none on a PE; the host adds these rows later",
    )
    best = {x: min(time, column.get(x, time)) for x, time in row.items()}
    bests = {x: min(time, fast_columns.get(x, time)) for x, time in fast.items()}
    cpu, implied = (series_of(points, "b", name) for name in (CPU, PUBLISHED_CPU))
    yield Statement(
        f"in total the CPU is {AHEAD}x ahead at 64 PEs",
        f"{CPU_NAMES[CPU]} is {best[64] / cpu[64]:.1f}x ahead with {PAPER_WAY},"
        f" {bests[64] / cpu[64]:.1f}x with {FAST}",
        near(best[64] / cpu[64], AHEAD),
        per_row,
    )
    for name, times in ((CPU, cpu), (PUBLISHED_CPU, implied)):
        ahead = {x: best[x] / time for x, time in times.items()}
        given = ""
        if name == PUBLISHED_CPU:
            given = f"; by {ahead.pop(IMPLIED_PES):.3g} at {IMPLIED_PES} PEs by construction"
        yield Statement(
            "in total the CPU is always ahead",
            f"{CPU_NAMES[name]} is ahead by {listed(ahead)}{given}",
            min(ahead.values()) > 1,
        )
    yield Statement(
        "beyond 64 PEs the total with rows grows",
        f"from 64 to 1024 PEs it grows {row[1024] / row[64]:.1f}x with {PAPER_WAY},"
        f" {fast[1024] / fast[64]:.1f}x with {FAST}",
        row[1024] > row[64],
    )
    share = shares["row"]["kernel"]
    fast_share = series_of(points, "c kernel", f"row, {FAST}")[1024]
    total = kernel[1024] / KERNEL_PCT * 100
    yield Statement(
        f"with rows, the kernel is {KERNEL_PCT}% of the total at 1024 PEs",
        f"{share[1024]:.1f}% with {PAPER_WAY}, {fast_share:.1f}% with {FAST}",
        near(share[1024], KERNEL_PCT),
        f"the total must be {total:.0f} us with this kernel of {kernel[1024]:.0f} us; the gather"
        f" alone takes {to_cpu[1024]:.0f} us here",
    )
    yield Statement(
        "the share of the kernel falls with more PEs",
        f"rows, %: {listed(share)}",
        falls(share),
    )
    overhead = shares["row"]["host"][1024] + shares["row"]["PE to CPU"][1024]
    yield Statement(
        "Host and PE to CPU dominate at 1024 PEs",
        f"{overhead:.0f}% of the total with rows",
        overhead > 50,
    )
    yield Statement(
        "PE to CPU grows with rows, because PEs have partial sums",
        f"{to_cpu[1024] / to_cpu[4]:.1f}x from 4 to 1024 PEs",
        to_cpu[1024] > 2 * to_cpu[4],
    )
    most = {cut: max(shares[cut]["CPU to PE"].values()) for cut in shares}
    yield Statement(
        "CPU to PE is negligible",
        f"at most {most['row']:.1f}% with rows, {most['column']:.1f}% with columns",
        max(most.values()) < 10,
        f"each of 64 columns gets all indices, {works['column'].requests[0].nbytes} bytes per PE"
        f" (rows: {works['row'].requests[0].nbytes})",
    )
    launch = load_machine(MACHINE).launch_us(64)
    host = {cut: clock_us(points, "host", f"{cut}, {PAPER_WAY}")[64] - launch for cut in shares}
    yield Statement(
        "Host joins columns, and also reduces with rows",
        f"without the launch, at 64 PEs: {host['column']:.0f} us with columns, {host['row']:.0f} us"
        " with rows",
        host["row"] > host["column"],
    )


FIGURE_6 = Figure(
    "scalability/fig6",
    PAPER,
    "rows and columns of one table over PEs: 64 columns, 128k rows, pooling 32",
    [*panels("PEs"), CPU_PANEL],
    _figure_6,
    _statements_6,
    _measure_6,
    f"The modelled CPU reads all rows at the rate of its memory. '{PUBLISHED_CPU}' is the least"
    f" total with the paper's way at {IMPLIED_PES} PEs here over the published {AHEAD}. The kernel"
    f" at {IMPLIED_PES} PEs is a second estimate of it. The modelled host works with all"
    " threads, at the rate of its memory. With the paper's way, groups of bags without an index on"
    " a PE are neither written nor added.",
)


# ---- figure 10: partitions of a table of 128 MB


WIDE = Model(1, 1 << 18, 128, 32, 512)
CUTS_10 = ("row", "column", "column-row")


def _works_10(counts: Sequence[int]) -> dict[float | str, dict[str, Work]]:
    def make(pes: float | str, partition: str) -> Work | None:
        is_hybrid = int(pes) > WIDE.columns
        if (partition == "column") == is_hybrid and partition != "row":
            return None
        return Work(WIDE, PARTITIONS[partition](int(pes), WIDE))

    return cases(counts, make, CUTS_10)


def _statements_10(_: Request, points: Sequence[Point]) -> Iterator[Statement]:
    points = priced(points)
    row, column = (series_of(points, "a", f"{name}, {PAPER_WAY}") for name in ("row", "column"))
    works = _works_10([4, 128, 2048])
    few, many = (works[x]["row"] for x in (4, 128))
    added = few.additions() / many.additions()
    taken = few.requests[:, few.part.bags].max() / many.requests[:, many.part.bags].max()
    yield Statement(
        "kernel, 4 to 128 PEs: nearly 30x with rows",
        f"{row[4] / row[128]:.1f}x",
        near(row[4] / row[128], 30),
        f"the busiest PE has {taken:.1f}x fewer rows, but {added:.1f}x fewer additions, because the"
        " first row of a bag on a PE is copied",
    )
    whole = [replace(works[x]["column"], dtype="int32").kernel().seconds for x in (4, 128)]
    floats = 100 * (1 - 1e6 * whole[1] / column[128])
    yield Statement(
        "kernel, 4 to 128 PEs: less than 16x with columns",
        f"{column[4] / column[128]:.1f}x",
        column[4] / column[128] < 16,
        f"additions of floats by software scale; with one column per PE, they are {floats:.0f}% of"
        f" the kernel. With integers the gain is {whole[0] / whole[1]:.1f}x",
    )
    totals = {
        (cut, name): series_of(points, "b", f"{cut}, {name}") for cut in CUTS_10 for name in WAYS
    }

    def at(cut: str, *counts: int) -> str:
        """Return the totals of a cut with both ways, in us."""
        return "; ".join(
            f"{name}: {listed({n: totals[cut, name][n] for n in counts})} us" for name in WAYS
        )

    rows, columns, hybrid = (totals[cut, PAPER_WAY] for cut in CUTS_10)
    yield Statement(
        "in total, rows slow down at 64 and 128 PEs",
        at("row", 32, 64, 128),
        rows[32] < rows[64] < rows[128],
    )
    yield Statement(
        "in total, columns keep improving to 128 PEs",
        at("column", 32, 64, 128),
        columns[32] > columns[64] > columns[128],
    )
    sent = {
        cut: {x: x * works[x][cut].part.pooled_bytes(works[x][cut].shape[1]) for x in (4, 128)}
        for cut in ("row", "column")
    }
    yield Statement(
        "with rows, the bytes to the CPU grow in proportion to the PEs; with columns, they do not",
        f"bytes with rows: {listed(sent['row'])}; with columns: {listed(sent['column'])}",
        near(sent["row"][128] / sent["row"][4], 32) and steady(sent["column"], 0.01),
    )
    to_cpu = [
        clock_us(points, "PE to CPU", f"{cut}, {PAPER_WAY}")[2048] for cut in ("row", "column-row")
    ]
    parts = works[2048]["column-row"].shape[1]
    yield Statement(
        "beyond 128 PEs, rows and the hybrid partition degrade alike",
        f"rows: {at('row', 256, 2048)}; hybrid: {at('column-row', 256, 1024, 2048)}",
        rows[256] < rows[2048] and hybrid[256] < hybrid[2048],
        f"the hybrid has {parts} parts of the rows at 2048 PEs, rows have 2048. PE to CPU takes"
        f" {to_cpu[1]:.0f} us with the hybrid, {to_cpu[0]:.0f} us with rows",
    )
    yield Statement(
        "the hybrid performs better than rows",
        f"rows over hybrid: {listed({x: rows[x] / time for x, time in hybrid.items()})}",
        all(time < rows[x] for x, time in hybrid.items()),
    )


FIGURE_10 = Figure(
    "scalability/fig10",
    PAPER,
    "partitions of a table of 128 MB over PEs",
    panels("PEs"),
    lambda _: priced_cases(_works_10([4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048])),
    _statements_10,
    lambda request: run_cases(_works_10([64, 256]), request),
    "128 columns and 256k rows; the paper does not print pooling and batch, 32 and 512 are"
    " assumed. "
    f"{WAY_NAMES}",
)
