"""Figures 7, 8 and 9 of the paper: imbalance, pooling and types, for the table of figure 6."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pidcomm.model import load_machine
from pidcomm_studies.apps.application import reference_seconds
from pidcomm_studies.apps.embedding import DTYPES, PARTITIONS
from pidcomm_studies.papers.figure import Figure, Point, Request, Statement, series_of
from pidcomm_studies.papers.scalability.embedding_cases import (
    CPU_PANEL,
    ONE,
    cases,
    most_additions,
    one_table,
    panels,
    priced_cases,
    row_ns,
    run_cases,
)
from pidcomm_studies.papers.scalability.embedding_price import MACHINE, Work, published_row_seconds
from pidcomm_studies.papers.scalability.paper import (
    CPU,
    FAST,
    PAPER,
    PAPER_WAY,
    WAYS,
    crossing,
    falls,
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
        f"columns over rows: {listed({x: gaps[x] for x in (1, 2, 4, 8)})}",
        min(gaps[x] for x in (1, 2, 4, 8)) > 1,
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
    yield Statement(
        "in total, rows lose to columns by the reduction on the host",
        "; ".join(words),
        at[PAPER_WAY] != 1,
    )
    cpu, each = series_of(points, "b", CPU), published_row_seconds()
    added = 1e6 * each * ONE.batch * (POOLINGS[-1] - POOLINGS[0])
    yield Statement(
        "the time of the CPU hardly depends on pooling (footnote 1)",
        f"{cpu[128] / cpu[1]:.1f}x from pooling 1 to 128",
        cpu[128] < 2 * cpu[1],
        f"the CPU reads 128 times the rows. At {1e9 * each:.0f} ns per row (figure 6), these rows"
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


def _works_9(counts: Sequence[int]) -> dict[float | str, dict[str, Work]]:
    return {
        pes: {name: Work(ONE, PARTITIONS["row"](pes, ONE), dtype=name) for name in DTYPES}
        for pes in counts
    }


def _statements_9(_: Request, points: Sequence[Point]) -> Iterator[Statement]:
    measured_points, points = points, priced(points)
    whole, real = (series_of(points, "a", f"{name}, {PAPER_WAY}") for name in DTYPES)
    yield Statement(
        "integers take much less kernel time than floats",
        f"floats over integers: {real[4] / whole[4]:.1f}x at 4 PEs, {real[64] / whole[64]:.1f}x"
        " at 64",
        real[4] > 2 * whole[4],
    )
    flat = next((pes for pes in whole if whole[pes] < 2 * whole[64]), None)
    yield Statement(
        "the integer kernel stops improving at about 16 or 32 PEs",
        f"from {flat} PEs, the integer kernel is within 2x of its time at 64; floats gain"
        f" {real[16] / real[64]:.1f}x from 16 to 64, integers {whole[16] / whole[64]:.1f}x",
        real[16] / real[64] > whole[16] / whole[64],
    )
    total, fast = (series_of(points, "b", f"int32, {name}") for name in WAYS)
    best, ours = (min(times, key=lambda pes: times[pes]) for times in (total, fast))
    yield Statement(
        "the total with integers flattens at about 8 PEs",
        f"the least total is at {best} PEs with {PAPER_WAY}, at {ours} with {FAST}",
        near(float(best), 8),
    )
    each = series_of(measured_points, "CPU", "ns per row")
    ratio = each["float32"] / each["int32"] if each else None
    yield Statement(
        "integers and floats take about the same time on the CPU",
        f"floats over integers: {ratio:.2f}x, measured here" if ratio else "not measured",
        near(ratio, 1) if ratio else None,
        f"ns per row: {listed(each)}",
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
