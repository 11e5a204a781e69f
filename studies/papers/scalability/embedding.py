"""Figures 7, 8 and 9 of the paper: imbalance, pooling and types, for the table of figure 6."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from pidcomm.model import load_machine
from pidcomm_studies.apps.application import reference_seconds
from pidcomm_studies.apps.embedding import DTYPES, PARTITIONS
from pidcomm_studies.papers.figure import Figure, Point, Request, Statement, series_of
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
from pidcomm_studies.papers.scalability.embedding_price import MACHINE, Work, published_row_seconds
from pidcomm_studies.papers.scalability.paper import (
    CLOCKS,
    CPU,
    FAST,
    PAPER,
    PAPER_WAY,
    WAYS,
    Series,
    crossing,
    falls,
    flat_from,
    listed,
    near,
    priced,
    steady,
)

BIASED = (0, 16, 32, 48, 64)
HOT = ONE.rows // 64  # rows of one of 64 PEs
DEEP = ONE._replace(pooling=64)


def _works_7(biased: Sequence[int]) -> dict[float | str, dict[str, Work]]:
    def make(x: float | str, partition: str) -> Work:
        spec = f"skewed:biased={str(x).partition(':')[0]},hot={HOT}"
        return Work(DEEP, PARTITIONS[partition](64, DEEP), spec)

    return cases([f"{x}:{64 - x}" for x in biased], make, ("row", "column"))


def _statements_7(_: Request, points: Sequence[Point]) -> Iterator[Statement]:
    points = priced(points)
    row, column = (series_of(points, "a", f"{name}, {PAPER_WAY}") for name in ("row", "column"))
    total, fast = (series_of(points, "b", f"row, {name}") for name in WAYS)
    yield Statement(
        "columns: imbalance has no effect",
        f"64:0 over 0:64: {column['64:0'] / column['0:64']:.2f}x",
        steady(column, 0.1),
    )
    yield Statement(
        "rows: the kernel takes longer with imbalance",
        f"64:0 over 0:64: kernel {row['64:0'] / row['0:64']:.1f}x, total"
        f" {total['64:0'] / total['0:64']:.1f}x with {PAPER_WAY},"
        f" {fast['64:0'] / fast['0:64']:.1f}x with {FAST}",
        falls({x: -value for x, value in row.items()}) and row["64:0"] > 2 * row["0:64"],
    )


FIGURE_7 = Figure(
    "scalability/fig7",
    PAPER,
    "imbalance: x of 64 indices in the rows of one PE, 64 PEs",
    panels("x:y"),
    lambda _: priced_cases(_works_7(BIASED), with_cpu=False),
    _statements_7,
    lambda request: run_cases(_works_7((0, 64)), request),
    "The biased indices lie in the first 2,048 rows, those of the first of 64 PEs. Fast transfers"
    " shrink the other clocks, so imbalance costs a larger share of the total.",
)

POOLINGS = (1, 2, 4, 8, 16, 32, 64, 128)
FEW = (1, 2, 4, 8)  # small pooling
MUCH = 2.0  # "much": at least this factor in every case


def _works_8(poolings: Sequence[int]) -> dict[float | str, dict[str, Work]]:
    def make(x: float | str, partition: str) -> Work:
        model = ONE._replace(pooling=int(x))
        return Work(model, PARTITIONS[partition](64, model))

    return cases(poolings, make, ("row", "column"))


def _statements_8(_: Request, points: Sequence[Point]) -> Iterator[Statement]:
    points = priced(points)
    row, column = (series_of(points, "a", f"{name}, {PAPER_WAY}") for name in ("row", "column"))
    totals = {
        name: [series_of(points, "b", f"{partition}, {name}") for partition in ("row", "column")]
        for name in WAYS
    }
    rows, columns = totals[PAPER_WAY]
    gaps = {x: column[x] / row[x] for x in POOLINGS}
    yield Statement(
        "time grows with pooling",
        f"total, us: rows {listed(rows)}; columns {listed(columns)}",
        all(
            falls({x: -time for x, time in times.items()}) for times in (row, column, rows, columns)
        ),
    )
    yield Statement(
        "for small pooling, the kernel with rows is much faster than with columns",
        f"columns over rows: {listed({x: gaps[x] for x in FEW})}; much is {MUCH:g}x for all",
        min(gaps[x] for x in FEW) >= MUCH,
        f"with pooling 1, PEs only copy rows: {row[1]:.0f} us with rows, {column[1]:.0f} us with"
        f" columns. Pooling 2 adds {row[2] - row[1]:.0f} us with rows, where one tasklet adds"
        f" {ONE.columns} columns, and {column[2] - column[1]:.0f} us with columns, where all"
        f" tasklets share {_works_8((2,))[2]['column'].additions()} additions of elements",
    )
    widest = max(gaps, key=lambda x: gaps[x])
    busy = "; ".join(
        f"pooling {x}: {most_additions(of_x)}" for x, of_x in _works_8((1, 4, widest, 128)).items()
    )
    yield Statement(
        "the gap closes with larger pooling",
        f"columns over rows: {listed(gaps)}",
        falls(gaps),
        f"it closes from pooling {widest} on. The first row of a bag on a PE is copied, not added."
        f" Additions of elements on the busiest PE: {busy}",
    )
    at = {name: crossing(dict(rows), columns) for name, (rows, columns) in totals.items()}
    words = (
        f"{name}: rows win from pooling {x}" if x else f"{name}: columns win throughout"
        for name, x in at.items()
    )
    later = {
        name: clock_us(points, name, f"row, {PAPER_WAY}")[POOLINGS[-1]]
        - clock_us(points, name, f"column, {PAPER_WAY}")[POOLINGS[-1]]
        for name in CLOCKS
    }
    yield Statement(
        "in total, rows lose to columns by the reduction on the host",
        "; ".join(words),
        at[PAPER_WAY] is None,
        f"rows minus columns at pooling {POOLINGS[-1]}, us: "
        + ", ".join(f"{name} {time:+.0f}" for name, time in later.items())
        + ". The kernel with columns adds more elements, and its part of the total grows with"
        " pooling",
    )
    cpu, each = series_of(points, "b", CPU), published_row_seconds()
    added = 1e6 * each * ONE.batch * (POOLINGS[-1] - POOLINGS[0])
    yield Statement(
        "the time of the CPU hardly depends on pooling (footnote 1)",
        f"{cpu[128] / cpu[1]:.1f}x from pooling 1 to 128",
        cpu[128] < 2 * cpu[1],
        f"the CPU reads 128 times the rows. At the {1e9 * each:.0f} ns per row that figure 6"
        " implies, these rows"
        f" take {added:.0f} us more; at the rate of memory,"
        f" they take {cpu[128] - cpu[1]:.0f} us",
    )


FIGURE_8 = Figure(
    "scalability/fig8",
    PAPER,
    "pooling of one table on 64 PEs",
    panels("pooling"),
    lambda _: priced_cases(_works_8(POOLINGS)),
    _statements_8,
    lambda request: run_cases(_works_8((1, 16, 128)), request),
    "With one column per PE, a look-up is a DMA transfer of 8 bytes, whose start costs"
    f" {load_machine(MACHINE)['pe.dma_cycles']:.0f} cycles; with rows it is 256 bytes for 64"
    " columns. With the paper's way, groups of bags without an index on a PE are neither written"
    " nor added.",
)


FLAT = 1.25  # times are flat where twice the PEs gain less than this factor


def _works_9(counts: Sequence[int]) -> dict[float | str, dict[str, Work]]:
    return {
        pes: {name: Work(ONE, PARTITIONS["row"](pes, ONE), dtype=name) for name in DTYPES}
        for pes in counts
    }


def _doubled(times: Series) -> dict[float | str, float]:
    """Return the gain from one number of PEs to the next, by the next."""
    return {after: times[before] / times[after] for before, after in pairwise(times)}


def _statements_9(_: Request, points: Sequence[Point]) -> Iterator[Statement]:
    measured_points, points = points, priced(points)
    whole, real = (series_of(points, "a", f"{name}, {PAPER_WAY}") for name in DTYPES)
    yield Statement(
        "integers take much less kernel time than floats",
        f"floats over integers: {real[4] / whole[4]:.1f}x at 4 PEs, {real[64] / whole[64]:.1f}x"
        " at 64",
        all(real[pes] >= MUCH * whole[pes] for pes in whole),
    )
    works = {pes: of_pes["int32"] for pes, of_pes in _works_9((16, 32, 64)).items()}
    yield Statement(
        "the integer kernel stops improving at about 16 or 32 PEs",
        f"twice the PEs gain {listed(_doubled(whole))} PEs; flat is less than {FLAT:g}x",
        flat_from(whole, FLAT) in (16, 32),
        "the work of a PE still falls. Additions of elements on the busiest PE:"
        f" {listed({pes: work.additions() for pes, work in works.items()})} PEs",
    )
    total, fast = (series_of(points, "b", f"int32, {name}") for name in WAYS)
    flat = {name: flat_from(times, FLAT) for name, times in ((PAPER_WAY, total), (FAST, fast))}
    others = {pes: total[pes] - whole[pes] for pes in total}
    yield Statement(
        "the total with integers flattens at about 8 PEs",
        f"twice the PEs gain {listed(_doubled(total))} PEs with {PAPER_WAY}; the total is flat"
        f" (less than {FLAT:g}x) from {flat[PAPER_WAY]} PEs with {PAPER_WAY}, from {flat[FAST]}"
        f" with {FAST}",
        flat[PAPER_WAY] == 8,
        f"us: the kernel takes {listed({pes: whole[pes] for pes in (8, 16)})} PEs, the other clocks"
        f" {listed({pes: others[pes] for pes in (8, 16, 32)})} PEs",
    )
    each = series_of(measured_points, "CPU", "ns per row")
    ratio = each["float32"] / each["int32"] if each else None
    yield Statement(
        "integers and floats take about the same time on the CPU",
        f"floats over integers: {ratio:.2f}x, measured here" if ratio else "not measured",
        near(ratio, 1) if ratio else None,
        f"ns per row: {listed(each)}" if each else "",
    )


def _measure_9(request: Request) -> Iterator[Point]:
    yield from run_cases(_works_9([8, 64]), request)
    for dtype in DTYPES:
        yield row_ns(dtype, reference_seconds(one_table(dtype)))


FIGURE_9 = Figure(
    "scalability/fig9",
    PAPER,
    "int32 against float32 over PEs, tables cut by rows",
    [*panels("PEs"), CPU_PANEL],
    lambda _: priced_cases(_works_9([1, 2, 4, 8, 16, 32, 64])),
    _statements_9,
    _measure_9,
    "Floats on PEs are software; dpuemu counts its instructions. Results with floats are checked"
    " within the bound of Embedding.bound. The paper does not print the partition; rows are"
    " assumed.",
)
