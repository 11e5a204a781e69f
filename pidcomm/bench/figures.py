"""The measured figures in the documents of pidcomm; see tools/figures.py."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

BENCH = Path(__file__).parent
COLLECTIVES = (
    *("alltoall", "reduce_scatter", "allreduce", "allgather"),
    *("scatter", "gather", "reduce", "broadcast"),
)
REDUCTIONS = ("reduce_scatter", "allreduce", "reduce")
SHAPES = ("shapes", "shapes_63x40_7x9x16", "shapes_10x100", "shapes_33x31")
PERFORMANCE = "pidcomm/docs/performance.md"
DOCUMENT = "pidcomm/docs/collectives.md"
Rows = Callable[..., list[dict[str, Any]]]
Text = tuple[str, ...]


def _ends(values: Iterable[float], digits: int = 0) -> tuple[str, str]:
    """Return the least and the largest value."""
    numbers = list(values)
    return f"{min(numbers):.{digits}f}", f"{max(numbers):.{digits}f}"


def figures(rows_of: Callable[[Path], Rows]) -> Iterator[Text]:
    """Yield the document, the text, and the numbers of each figure."""
    yield from _of_collectives(rows_of(BENCH / "reference"))
    yield from _of_cases(rows_of(BENCH / "cases"))
    yield from _of_times(rows_of(BENCH / "times"))


def _of_collectives(rows: Rows) -> Iterator[Text]:
    def limits(name: str, *collectives: str, **fields: Any) -> list[float]:
        return [
            row["limit_pct"]
            for collective in collectives
            for row in rows(name, collective=collective, technique="tile", **fields)
        ]

    def us(name: str, collective: str, technique: str = "tile") -> float:
        [row] = rows(name, collective=collective, technique=technique)
        return float(row["t_p50_us"])

    def speed_up(name: str, collective: str) -> float:
        [row] = rows(name, collective=collective, technique="tile")
        return float(row["speed_up"])

    for name in COLLECTIVES:
        tile, other = (us("collectives", name, technique) for technique in ("tile", "conventional"))
        times = f"{tile / 1e3:.1f}", f"{other / 1e3:.1f}", f"{speed_up('collectives', name):.2f}"
        yield "pidcomm/README.md", f"| {name} | {{}} | {{}} | {{}}x |", *times
    text = (
        "Over all masks of 32x32 and 16x8x8, alltoall and reductions reach {} to {}% of the"
        " streaming limit, gather {} to {}%"
    )
    busy = _ends(limits("masks", "alltoall", *REDUCTIONS))
    yield PERFORMANCE, text, *busy, *_ends(limits("masks", "gather"))
    spread = max(
        max(limits("sizes", name))
        - min(
            row["limit_pct"]
            for row in rows("sizes", collective=name)
            if row["bytes_per_pe"] >= 256 << 10
        )
        for name in COLLECTIVES
    )
    text = "`limit%` of each collective is within {} points of the collective's best"
    yield PERFORMANCE, text, f"{spread:.0f}"
    apart = median(
        limits("isas", name, isa="avx512bw")[0] - limits("isas", name, isa="avx2")[0]
        for name in COLLECTIVES
    )
    text = "In the median of the collectives, `limit%` of AVX2 and AVX-512BW differ by {} points"
    yield PERFORMANCE, text, f"{abs(apart):.1f}"
    [small] = rows("sizes", collective="alltoall", bytes_per_pe=8 << 10)
    text = "a call takes about {} us in addition to the pass over memory: alltoall takes {} us and"
    text += " reaches {}% of the limit"
    numbers = small["outside_us"], small["t_p50_us"], small["limit_pct"]
    yield PERFORMANCE, text, *(f"{number:.0f}" for number in numbers)
    ratios = (speed_up("collectives_hardware", name) for name in COLLECTIVES)
    header = "|---|---|---|---|---|---|---|---| "
    yield PERFORMANCE, f"{header}| {' | '.join(['{}'] * 8)} |", *(f"{r:.2f}" for r in ratios)
    added = [row["pe_us"] / 1e3 for row in rows("ablation", technique="pr+im+cm")]
    text = "PE reordering adds a modelled time of {} to {} ms"
    yield PERFORMANCE, text, *_ends(added, 1)


def _of_cases(rows: Rows) -> Iterator[Text]:
    def shares(*names: str) -> Iterator[str]:
        """Yield the least and the median share of alltoall, reductions and the others."""
        for collectives in (
            ("alltoall",),
            REDUCTIONS,
            ("allgather", "scatter", "gather", "broadcast"),
        ):
            part = [
                row["limit_pct"]
                for name in names
                for row in rows(name, technique="tile")
                if row["collective"] in collectives
            ]
            yield from (f"{min(part):.0f}", f"{median(part):.0f}")

    shapes = {row["shape"] for name in SHAPES for row in rows(name)}
    text = (
        "On {} other shapes, alltoall reaches at least {}% of the limit ({}% in the median),"
        " reductions {}% ({}%), the others {}% ({}%)"
    )
    yield PERFORMANCE, text, f"{len(shapes)}", *shares(*SHAPES)
    text = (
        "On an Intel Xeon of family 6, model 207, 32x32 reaches at least {}% ({}%) in alltoall,"
        " {}% ({}%) in reductions and {}% ({}%) in the others"
    )
    yield PERFORMANCE, text, *shares("xeon")
    large, few, many = (
        _ends(
            row["limit_pct"]
            for row in rows("pes", bytes_per_pe=kib << 10)
            if least <= math.prod(map(int, row["shape"].split("x"))) <= most
        )[0]
        for kib, least, most in ((960, 64, 2560), (80, 64, 256), (80, 512, 2560))
    )
    text = (
        "From 64 to 2560 PEs (masks 10 and 01), all collectives reach at least {}% of the limit"
        " with 960 KiB per PE. With 80 KiB, the data of up to 256 PEs fit in the caches, which are"
        " faster: at least {}%, and {}% with more PEs"
    )
    yield PERFORMANCE, text, large, few, many
    gain = min(
        row["speed_up"]
        for name in SHAPES
        for collective in ("broadcast", "allgather")
        for row in rows(name, collective=collective, technique="tile")
    )
    text = (
        "where `conventional` can take {} of the time of `tile`, `auto` chose a technique over 5%"
    )
    text += " slower than the faster one in {} of {} cases"
    losses = [loss for name in SHAPES for loss in _losses_of_auto(name, rows)]
    yield (
        PERFORMANCE,
        text,
        f"{gain:.2f}",
        f"{sum(loss > 1.05 for loss in losses)}",
        f"{len(losses)}",
    )


def _losses_of_auto(name: str, rows: Rows) -> Iterator[float]:
    """Yield, for each case, the speed-up of the faster technique over the one that auto took."""
    for row in rows(name, technique="auto"):
        case = {key: row[key] for key in ("collective", "shape", "mask", "bytes_per_pe")}
        gains = {other["technique"]: other["speed_up"] for other in rows(name, **case)}
        yield max(gains["tile"], gains["conventional"]) / gains[row["carried_out"]]


def _of_times(rows: Rows) -> Iterator[Text]:
    ratios = [row["ratio"] for row in rows("order")]
    text = "so that calls take {} to {} times as long (`python bench/order.py`)"
    yield DOCUMENT, text, *_ends(ratios, 1)

    def shares(start: str) -> list[float]:
        return [row["limit_pct"] for row in rows("movements") if row["name"].startswith(start)]

    planes = [*shares("halo along z"), *shares("halo along y"), *shares("halo along x")]
    uneven = [row for row in rows("movements") if "over_alltoall" in row]
    text = (
        "Shifts reach {} to {}% of the limit, halos {} to {}% (272-byte runs {}%, 8-byte runs {}%)."
        " alltoallv takes {} to {} times as long as alltoall, with new counts up to {} times"
    )
    yield (
        DOCUMENT,
        text,
        *_ends(shares("shift")),
        *_ends(planes[:2]),
        *(f"{share:.0f}" for share in planes[2:]),
        *_ends((row["over_alltoall"] for row in uneven), 1),
        _ends((row["new_counts_over_alltoall"] for row in uneven), 1)[1],
    )

    def of(name: str, **fields: str) -> list[dict[str, Any]]:
        return rows("operators", name=name, **fields)

    slower = (
        avg["ms"] / added["ms"]
        for avg, added in zip(
            of("allreduce", op="avg", dtype="f4"),
            of("allreduce", op="sum", dtype="f4"),
            strict=True,
        )
    )
    compiled = [*of("allreduce", op="sum in C"), *of("reduce_scatter", op="sum in C")]
    averages = [
        *of("allreduce", op="avg", dtype="i4"),
        *of("allreduce", op="avg", dtype="bfloat16"),
    ]
    text = (
        "`avg` of float32 takes at most {} times as long as sum. C functions on float32 reach {} to"
        " {}% of the limit, scans {} to {}%, averages of integers and 16-bit floats {} to {}%,"
        " argmax {} to {}%"
    )
    yield (
        DOCUMENT,
        text,
        f"{max(slower):.1f}",
        *(
            number
            for group in (compiled, of("scan"), averages, of("allreduce", op="argmax"))
            for number in _ends(row["limit_pct"] for row in group)
        ),
    )
    times = {
        name: [
            rows("prepared", name=name, way=way)[0]["us"] for way in ("call", "prepared", "batch")
        ]
        for name in ("allreduce", "shift")
    }
    text = (
        "an allreduce takes {} us, prepared {} us, and in a batch of 16 calls {} us; a shift takes"
        " {}, {} and {} us"
    )
    yield DOCUMENT, text, *(f"{us:.0f}" for name in times for us in times[name])
