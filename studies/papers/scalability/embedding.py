"""Figures 5 to 11 and 18 of Jonatan et al. (SIGMETRICS 2024), repeated by runs here and by prices
on a machine.

The paper plots without numbers in its text, with the exceptions that `Statement` objects quote.
Parameters that the paper does not print are chosen here and named in the notes. Nothing is fitted
to a figure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from pidcomm.model import load_machine
from pidcomm_studies import apps
from pidcomm_studies.apps.embedding import MODELS, PARTITIONS, Clocks, Embedding, Model, clocks_of
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
from pidcomm_studies.papers.scalability.embedding_price import MACHINE, Work, clocks, cpu_seconds
from pidcomm_studies.papers.scalability.paper import (
    CLOCKS,
    FAST,
    PAPER,
    PAPER_WAY,
    WAY_NAMES,
    WAYS,
    clock_shares,
    crossing,
    falls,
    listed,
    near,
    priced,
    published,
    steady,
)

ONE = MODELS["one"]
CPU = "CPU"


# ---- figure 5: one PE


SMALL = Model(1, 1 << 10, 64, 16, 512)
SWEEPS: dict[str, tuple[str, list[int]]] = {
    "a": ("tasklets", [1, 2, 4, 8, 11, 12, 16, 20, 24]),
    "b": ("columns", [4, 8, 16, 32, 64, 128]),
    "c": ("rows", [1 << 10, 1 << 12, 1 << 14, 1 << 16, 1 << 17]),
    "d": ("pooling", [1, 2, 4, 8, 16, 32, 64, 128]),
}


def _figure_5(_: Request) -> Iterator[Point]:
    for panel, (name, values) in SWEEPS.items():
        works = [
            (
                Work(SMALL, (1, 1, 1), tasklets=value)
                if name == "tasklets"
                else Work(SMALL._replace(**{name: value}), (1, 1, 1))
            )
            for value in values
        ]
        first = works[0].kernel.seconds
        for value, work in zip(values, works, strict=True):
            kernel = work.kernel
            yield Point(
                panel, "time over the first", value, kernel.seconds / first, MODELLED, MACHINE
            )
            yield Point(panel, "instructions per cycle", value, kernel.per_cycle, MODELLED, MACHINE)
            yield Point(panel, "GB/s from MRAM", value, kernel.read_gb_s, MODELLED, MACHINE)


def _statements_5(_: Request, points: Sequence[Point]) -> Iterator[Statement]:
    times = {panel: series_of(points, panel, "time over the first") for panel in SWEEPS}
    after = times["a"][11] / times["a"][24]
    yield Statement(
        "11 tasklets use the pipeline fully",
        f"24 tasklets are {after:.2f}x as fast as 11, and 11 are"
        f" {times['a'][1] / times['a'][11]:.1f}x as fast as 1",
        after < 1.1,
    )
    yield Statement(
        "the height of the table has no effect",
        f"time over 1k rows: {listed(times['c'])}",
        steady(times["c"], 0.05),
    )
    columns = times["b"]
    many, few = columns[128] / columns[16], columns[16] / columns[4]
    yield Statement(
        "time grows in proportion to the columns",
        f"from 16 to 128 columns {many:.1f}x the time, from 4 to 16 columns {few:.1f}x",
        many > 0.8 * 128 / 16,
    )
    few, many = times["d"][8] / times["d"][1], times["d"][128] / times["d"][16]
    yield Statement(
        "pooling has little effect up to 8, and a large one from 16",
        f"from 1 to 8 {few:.1f}x the time, from 16 to 128 {many:.1f}x (both 8x the pooling)",
        few < many / 2,
    )


FIGURE_5 = Figure(
    "scalability/fig5",
    PAPER,
    "kernel on one PE by tasklets, columns, rows and pooling",
    [
        Panel(name, f"{x}: time, instructions per cycle, GB/s", x, is_log=True)
        for name, x in zip("abcd", ("tasklets", "columns", "rows", "pooling"), strict=True)
    ],
    _figure_5,
    _statements_5,
    note=(
        "Defaults of the paper: 64 columns, 1k rows, 24 tasklets, pooling 16, batch 512. dpuemu's"
        " pipeline issues at most one instruction per cycle. A slice of few columns is limited"
        " by the start of DMA transfers. Per bag, a PE has little work besides the rows, so here"
        " the time follows pooling from 2 on."
    ),
)


# ---- figures 6, 7, 8, 9: one table of 128k rows and 64 columns


def _by_clocks(
    label: str, x: float | str, times: Clocks, source: str, on: str, wrong: int | None = None
) -> list[Point]:
    """Return the points of one case: the kernel, the total, and each clock in percent of the
    total.
    """
    kernel = Point(
        "a", label, x, 1e6 * times.kernel, MODELLED if source == MIXED else source, on, wrong
    )
    return [
        kernel,
        Point("b", label, x, 1e6 * times.total, source, on),
        *clock_shares("c", label, x, times, source, on),
    ]


def _priced(works: dict[float | str, dict[str, Work]], with_cpu: bool = True) -> Iterator[Point]:
    """Price works, by x and partition, with the paper's way and the fast one."""
    machine = load_machine(MACHINE)
    for x, of_x in works.items():
        if with_cpu:
            bags = next(iter(of_x.values())).bags
            seconds = cpu_seconds(bags, next(iter(of_x.values())).model.columns, machine)
            yield Point("a", CPU, x, 1e6 * seconds, MODELLED, MACHINE)
            yield Point("b", CPU, x, 1e6 * seconds, MODELLED, MACHINE)
        for partition, work in of_x.items():
            for name, way in WAYS.items():
                points = _by_clocks(
                    f"{partition}, {name}", x, clocks(work, *way, machine), MODELLED, MACHINE
                )
                yield from points if name == PAPER_WAY else points[1:]  # the kernel is the same


def _run(works: dict[float | str, dict[str, Work]], request: Request) -> Iterator[Point]:
    """Run works here with both ways, and the look-up on the CPUs of this machine."""
    for x, of_x in works.items():
        for number, (partition, work) in enumerate(of_x.items()):
            for name, (path, technique) in WAYS.items():
                request.progress.phase(f"{x}: {partition}, {name}")
                problem = Embedding(
                    work.random_tables(), work.bags, path=path, tasklets=work.tasklets
                )
                is_first = number == 0 and name == PAPER_WAY
                run = apps.run(
                    problem,
                    shape=work.shape,
                    technique=technique,
                    iters=request.iters,
                    with_cpu=is_first,
                )
                label = f"{partition}, {name}"
                yield from _by_clocks(label, x, clocks_of(run), MIXED, HERE, run.wrong)
                if run.cpu_seconds is not None:
                    yield Point("b", CPU, x, 1e6 * run.cpu_seconds, "measured", HERE)


def _cases(
    xs: Iterable[float | str],
    make: Callable[[float | str, str], Work | None],
    partitions: Sequence[str],
) -> dict[float | str, dict[str, Work]]:
    works = {
        x: {name: work for name in partitions if (work := make(x, name)) is not None} for x in xs
    }
    return {x: of_x for x, of_x in works.items() if of_x}


PANELS = (
    Panel("a", "kernel, us", "", is_log=True),
    Panel("b", "total, us", "", is_log=True),
    *(Panel(f"c {name}", "% of the total", "") for name in CLOCKS),
)


def _panels(x: str) -> list[Panel]:
    return [Panel(panel.name, panel.what, x, panel.is_log) for panel in PANELS]


AHEAD, KERNEL_PCT = 2.27, 2.3  # published


def _works_6(counts: Sequence[int]) -> dict[float | str, dict[str, Work]]:
    def make(pes: float | str, partition: str) -> Work | None:
        if partition == "column" and int(pes) > ONE.columns:
            return None
        return Work(ONE, PARTITIONS[partition](int(pes), ONE))

    return _cases(counts, make, ("row", "column"))


def _statements_6(_: Request, points: Sequence[Point]) -> Iterator[Statement]:
    points = priced(points)
    cpu = series_of(points, "b", CPU)
    kernel, total = (
        series_of(points, "a", f"row, {PAPER_WAY}"),
        series_of(points, "b", f"row, {PAPER_WAY}"),
    )
    fast = series_of(points, "b", f"row, {FAST}")
    at = crossing(kernel, cpu)
    yield Statement(
        "the kernel alone is faster than the CPU with more than 64 PEs",
        (
            f"the kernel is as fast as the CPU from {at} PEs"
            if at
            else (
                f"the kernel stays slower than the CPU: {kernel[64] / cpu[64]:.1f}x its time at 64"
                f" PEs, {kernel[1024] / cpu[1024]:.1f}x at 1024"
            )
        ),
        at is not None,
    )
    columns = series_of(points, "b", f"column, {PAPER_WAY}")
    best = min(total[64], columns[64]) / cpu[64]
    ours = min(fast[64], series_of(points, "b", f"column, {FAST}")[64]) / cpu[64]
    yield Statement(
        f"in total the CPU is always ahead, {AHEAD}x at 64 PEs",
        f"the CPU is {best:.1f}x ahead at 64 PEs with {PAPER_WAY}, {ours:.1f}x with {FAST}",
        near(best, AHEAD) and all(min(total[x], columns.get(x, total[x])) > cpu[x] for x in cpu),
    )
    yield Statement(
        "beyond 64 PEs the total with rows grows",
        f"from 64 to 1024 PEs it grows {total[1024] / total[64]:.1f}x with {PAPER_WAY},"
        f" {fast[1024] / fast[64]:.1f}x with {FAST}",
        total[1024] > total[64],
    )
    share, ours = (
        series_of(points, "c kernel", f"row, {name}")[1024] for name in (PAPER_WAY, FAST)
    )
    yield Statement(
        f"with rows, the kernel is {KERNEL_PCT}% of the total at 1024 PEs",
        f"{share:.1f}% with {PAPER_WAY}, {ours:.1f}% with {FAST}",
        near(share, KERNEL_PCT),
    )


FIGURE_6 = Figure(
    "scalability/fig6",
    PAPER,
    "rows and columns of one table over PEs: 64 columns, 128k rows, pooling 32",
    _panels("PEs"),
    lambda _: [
        *_priced(_works_6([4, 8, 16, 32, 64, 128, 256, 512, 1024])),
        published("c kernel", "row", 1024, KERNEL_PCT),
    ],
    _statements_6,
    lambda request: _run(_works_6([16, 64, 1024]), request),
    "The modelled CPU reads all rows at the full rate of its memory, so kernels pass it later than"
    " the published CPU, which reaches less. With rows, each PE also writes the sums of all bags,"
    " empty or not, which bounds its kernel from below. The modelled host reduces with all threads,"
    " at the rate of its memory.",
)

BIASED = (0, 16, 32, 48, 64)
HOT = ONE.rows // 64  # rows of one of 64 PEs
DEEP = ONE._replace(pooling=64)


def _works_7(biased: Sequence[int]) -> dict[float | str, dict[str, Work]]:
    def make(x: float | str, partition: str) -> Work:
        spec = f"skewed:biased={str(x).partition(':')[0]},hot={HOT}"
        return Work(DEEP, PARTITIONS[partition](64, DEEP), spec)

    return _cases([f"{x}:{64 - x}" for x in biased], make, ("row", "column"))


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
    _panels("x:y"),
    lambda _: _priced(_works_7(BIASED), with_cpu=False),
    _statements_7,
    lambda request: _run(_works_7((0, 64)), request),
    "The biased indices lie in the first 2,048 rows, those of the first of 64 PEs. Fast transfers"
    " shrink the other clocks, so imbalance costs a larger share of the total.",
)

POOLINGS = (1, 2, 4, 8, 16, 32, 64, 128)


def _works_8(poolings: Sequence[int]) -> dict[float | str, dict[str, Work]]:
    def make(x: float | str, partition: str) -> Work:
        model = ONE._replace(pooling=int(x))
        return Work(model, PARTITIONS[partition](64, model))

    return _cases(poolings, make, ("row", "column"))


def _statements_8(_: Request, points: Sequence[Point]) -> Iterator[Statement]:
    points = priced(points)
    row, column = (series_of(points, "a", f"{name}, {PAPER_WAY}") for name in ("row", "column"))
    totals = {
        name: [series_of(points, "b", f"{partition}, {name}") for partition in ("row", "column")]
        for name in WAYS
    }
    yield Statement(
        "for small pooling, the kernel with rows is much faster than with columns; the gap closes",
        f"columns over rows: {column[4] / row[4]:.1f}x at pooling 4, {column[32] / row[32]:.1f}x at"
        f" 32, {column[128] / row[128]:.1f}x at 128",
        column[4] > row[4],
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


FIGURE_8 = Figure(
    "scalability/fig8",
    PAPER,
    "pooling of one table on 64 PEs",
    _panels("pooling"),
    lambda _: _priced(_works_8(POOLINGS)),
    _statements_8,
    lambda request: _run(_works_8((1, 16, 128)), request),
    "With one column per PE, a look-up is a DMA transfer of 8 bytes, whose start costs"
    f" {load_machine(MACHINE)['pe.dma_cycles']:.0f} cycles; with rows it is 256 bytes for 64"
    " columns. With rows, each PE also writes the sums of all bags, which does not depend on"
    " pooling.",
)


def _works_9(counts: Sequence[int]) -> dict[float | str, dict[str, Work]]:
    return {
        pes: {
            name: Work(ONE, PARTITIONS["row"](pes, ONE), dtype=name)
            for name in ("int32", "float32")
        }
        for pes in counts
    }


def _statements_9(_: Request, points: Sequence[Point]) -> Iterator[Statement]:
    points = priced(points)
    whole, real = (series_of(points, "a", f"{name}, {PAPER_WAY}") for name in ("int32", "float32"))
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


FIGURE_9 = Figure(
    "scalability/fig9",
    PAPER,
    "int32 against float32 over PEs, tables cut by rows",
    _panels("PEs"),
    lambda _: _priced(_works_9([1, 2, 4, 8, 16, 32, 64])),
    _statements_9,
    lambda request: _run(_works_9([8, 64]), request),
    "Floats on PEs are software; dpuemu counts its instructions. Results with floats are checked"
    " within the bound of Embedding.bound. The paper does not print the partition; rows are"
    " assumed.",
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

    return _cases(counts, make, CUTS_10)


def _statements_10(_: Request, points: Sequence[Point]) -> Iterator[Statement]:
    points = priced(points)
    row, column = (series_of(points, "a", f"{name}, {PAPER_WAY}") for name in ("row", "column"))
    gains = row[4] / row[128], column[4] / column[128]
    yield Statement(
        "kernel, 4 to 128 PEs: nearly 30x with rows, less than 16x with columns",
        f"{gains[0]:.1f}x with rows, {gains[1]:.1f}x with columns",
        near(gains[0], 30) and gains[1] < 16,
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
    yield Statement(
        "beyond 128 PEs, rows and the hybrid partition degrade alike",
        f"rows: {at('row', 256, 2048)}; hybrid: {at('column-row', 256, 1024, 2048)}",
        rows[256] < rows[2048] and hybrid[256] < hybrid[2048],
    )


FIGURE_10 = Figure(
    "scalability/fig10",
    PAPER,
    "partitions of a table of 128 MB over PEs",
    _panels("PEs"),
    lambda _: _priced(_works_10([4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048])),
    _statements_10,
    lambda request: _run(_works_10([64, 256]), request),
    "128 columns and 256k rows; the paper does not print pooling and batch, 32 and 512 are"
    " assumed. Columns send all indices to every PE, which the modelled transfers of the SDK make"
    " slower with more PEs. With rows, each PE also writes the sums of all bags, which more PEs do"
    " not shorten, so its kernel gains less. The hybrid partition has only PEs / 128 parts of"
    f" rows, so its partial sums stay few. {WAY_NAMES}",
)
