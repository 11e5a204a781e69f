"""The measured and modelled figures in the documents of the studies; see tools/figures.py."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from statistics import geometric_mean
from typing import Any

BENCH = Path(__file__).parent
DOCUMENT = "studies/docs/evaluation.md"
PAPER, OURS, BASE, OPPONENT = "pr+im+cm", "tile", "baseline", "conventional"
COLLECTIVES = {
    "alltoall": "5.19x",
    "reduce_scatter": "4.46x",
    "allreduce": "4.23x",
    "allgather": "",
    "scatter": "",
    "gather": "",
    "reduce": "",
    "broadcast": "1.00x, inferred",
    "geomean": "2.83x",
}
"""The collectives of figure 14, with the published speed-ups as the table has them."""
APPLICATIONS = {
    "bfs": "bfs",
    "cc": "cc",
    "mlp": "mlp, 8192",
    "gnn_rs_ar": "gnn, rs_ar",
    "gnn_ar_ag": "gnn, ar_ag",
    "dlrm": "dlrm, 16 columns",
}
WITH_FLUSHES = ("bfs", "cc", "mlp", "gnn_rs_ar", "dlrm")
Rows = Callable[..., list[dict[str, Any]]]
Text = tuple[str, ...]


def _digits(value: float) -> str:
    """Return a number with three digits."""
    return f"{value:.{max(0, 3 - len(str(int(value))))}f}"


def _ends(values: Iterable[float], digits: int = 2) -> tuple[str, str]:
    numbers = list(values)
    return f"{min(numbers):.{digits}f}", f"{max(numbers):.{digits}f}"


def figures(rows_of: Callable[[Path], Rows]) -> Iterator[Text]:
    """Yield the document, the text, and the numbers of each figure."""
    rows = rows_of(BENCH / "apps")
    yield from _of_applications(rows)
    yield from _of_experiments(rows)
    yield from _of_channels(rows)
    yield from _of_paper_applications(rows)


def _gains(base: dict[str, Any], row: dict[str, Any]) -> tuple[float, float]:
    """Return the gain of the total time, without and with launches and loads."""
    whole = [each["total_us"] + each["assumed_us"] for each in (base, row)]
    return base["total_us"] / row["total_us"], whole[0] / whole[1]


def _of_applications(rows: Rows) -> Iterator[Text]:
    all_gains = []
    for name, label in APPLICATIONS.items():
        base, paper, ours = (rows(name, technique=t)[0] for t in (OPPONENT, PAPER, OURS))
        parts = [each["collectives_us"] + each["reorder_us"] for each in (base, paper, ours)]
        (gain, whole), (our_gain, _) = _gains(base, paper), _gains(base, ours)
        all_gains.append((gain, whole, our_gain))
        numbers = [_digits(us / 1e3) for us in (ours["kernel_us"], *parts)]
        numbers += [f"{n:.2f}" for n in (gain, whole, our_gain, ours["cpu_speed_up"])]
        text = f"| {label} | {{}} | {{}}, {{}}, {{}} | {{}}x ({{}}x), {{}}x | {{}}x |"
        if name in WITH_FLUSHES:
            base, *others = (
                rows(f"{name}_hardware", technique=t)[0] for t in (OPPONENT, PAPER, OURS)
            )
            numbers += [f"{each['communication_speed_up']:.2f}" for each in others]
            text += " {}x, {}x |"
        yield DOCUMENT, text, *numbers
    means = [geometric_mean(column) for column in zip(*all_gains, strict=True)]
    text = "| geometric mean | | | {}x ({}x), {}x |"
    yield DOCUMENT, text, *(f"{mean:.2f}" for mean in means)


def _of_experiments(rows: Rows) -> Iterator[Text]:
    def number(key: str, *, is_modelled: bool, name: str = "collectives") -> float:
        values = [
            row["value"]
            for row in rows(name, statistic=key)
            if row["source"] != "published" and (row["source"] == "modelled") == is_modelled
        ]
        return float(values[0])

    for name, published in COLLECTIVES.items():
        keys = f"fig14.{name}", f"fig14.{name}.{OURS}", f"fig14.{name}.{OPPONENT}"
        numbers = [number(key, is_modelled=there) for key in keys for there in (True, False)]
        label = "geometric mean" if name == "geomean" else name
        cell = f" {published} |" if published else " |"
        text = f"| {label} |{cell} {{}}x, {{}}x | {{}}x, {{}}x | {{}}x, {{}}x |"
        yield DOCUMENT, text, *(f"{n:.2f}" for n in numbers)
    for text, key, digits in (
        ("| fig16: pr over baseline | 1.48x | {}x | {}x |", "fig16.pr", 2),
        ("| fig16: pr+im over pr | 2.03x | {}x | {}x |", "fig16.im", 2),
        (
            "| fig16: pr+im+cm over pr+im (alltoall, allgather) | 1.42x | {}x | {}x |",
            "fig16.cm",
            2,
        ),
        ("| fig17: pr+im over baseline | 2.9x | {}x | {}x |", "fig17.im", 2),
        ("| fig17: share of PE reordering | 4.5% | {}% | {}% |", "fig17.reorder", 1),
    ):
        numbers = [number(key, is_modelled=there) for there in (True, False)]
        yield DOCUMENT, text, *(f"{n:.{digits}f}" for n in numbers)

    def modelled(*keys: str) -> list[float]:
        return [number(key, is_modelled=True, name="modelled") for key in keys]

    text = "| fig18: speed-up at 8 MiB per PE | 2.89x | {}x | |"
    yield DOCUMENT, text, f"{modelled('fig18.largest')[0]:.2f}"
    text = "| fig19: speed-up with 64 and 1024 PEs | 2.36x, 4.20x | {}x, {}x | |"
    yield DOCUMENT, text, *(f"{n:.2f}" for n in modelled("fig19.64", "fig19.1024"))
    names = ("alltoall", "allreduce", "reduce_scatter", "allgather")
    text = (
        f"| fig20: {', '.join(names)}, GB/s | up to 20.6, 12.2, 17.8, 36.1 | {{}}, {{}}, {{}}, {{}}"
        " | |"
    )
    yield DOCUMENT, text, *(f"{n:.1f}" for n in modelled(*(f"fig20.{name}" for name in names)))
    text = (
        "| fig23a: allreduce time of ring, of tree, over pr+im+cm | at most 2.05x, 7.89x | {}x, {}x"
        " | {}x, {}x |"
    )
    numbers = [
        number(f"fig23a.{name}", is_modelled=there)
        for there in (True, False)
        for name in ("ring", "tree")
    ]
    yield DOCUMENT, text, *(f"{n:.2f}" for n in numbers)


def _of_channels(rows: Rows) -> Iterator[Text]:
    def gb_s(figure: str, collective: str, shape: str, technique: str) -> float:
        wanted = rows(
            "modelled",
            figure=f"pidcomm/{figure}",
            panel="calls",
            collective=collective,
            shape=shape,
            bytes_per_pe=8 << 20,
            technique=technique,
        )
        return float(wanted[0]["value"])

    gains = (
        gb_s("fig18", "allgather", shape, PAPER) / gb_s("fig18", "allgather", shape, BASE)
        for shape in ("1024", "32x32")
    )
    text = "where allgather gains nothing (fig18, modelled: {}x; in two dimensions {}x)."
    yield DOCUMENT, text, *(f"{gain:.2f}" for gain in gains)
    growth = {
        name: gb_s("fig19", name, "32x32", BASE) / gb_s("fig19", name, "16x16", BASE)
        for name in ("allgather", "alltoall", "reduce_scatter", "allreduce")
    }
    text = (
        "From 1 to 4 channels, allgather with `baseline` becomes {} times as fast, alltoall and"
        " reductions {} to {} times (fig19, modelled)"
    )
    yield DOCUMENT, text, f"{growth.pop('allgather'):.1f}", *_ends(growth.values(), 1)


def _of_paper_applications(rows: Rows) -> Iterator[Text]:
    def values(figure: str, panel: str, series: str) -> list[float]:
        wanted = rows("applications", figure=f"pidcomm/{figure}", panel=panel, series=series)
        return [row["value"] for row in wanted if row["on"] == "isca24"]

    shares = values("fig4", "time", "communication")
    text = "| share of collectives in the time of `baseline`, mean | 76% | {}% |"
    yield DOCUMENT, text, f"{sum(shares) / len(shares):.0f}"
    most = max(
        value
        for technique in (BASE, PAPER)
        for name in ("gather", "broadcast")
        for value in values("fig13", f"time, {technique}", name)
    )
    yield DOCUMENT, "| share of gather and of broadcast | at most 7% | at most {}% |", f"{most:.1f}"
    gains, ours = (values("fig15", "speed-up", name) for name in (PAPER, OURS))
    text = (
        "| gain over `baseline`: range; geometric mean | 1.20x to 3.99x; 1.99x | {}x to {}x; {}x"
        " (tile {}x) |"
    )
    means = (f"{geometric_mean(each):.2f}" for each in (gains, ours))
    yield DOCUMENT, text, *_ends(gains), *means
    widths = {
        dtype: geometric_mean(
            row["value"]
            for row in rows("applications", figure="pidcomm/fig22", series=PAPER)
            if row["x"].endswith(f" {dtype}")
        )
        for dtype in ("int8", "int32")
    }
    text = "| the same for GNN with 8-bit integers | 1.64x | {}x (32-bit {}x) |"
    yield DOCUMENT, text, *(f"{mean:.2f}" for mean in widths.values())
    over_cpus: dict[str, dict[str, dict[float, float]]] = {BASE: {}, PAPER: {}}
    for row in rows("applications", figure="pidcomm/fig21"):
        if row.get("series") in over_cpus:
            cases = over_cpus[row["series"]]
            cases.setdefault(row["panel"].rpartition(", ")[2], {})[row["x"]] = row["value"]
    means_of = [
        geometric_mean(geometric_mean(of_case.values()) for of_case in cases.values())
        for cases in over_cpus.values()
    ]
    text = "| over CPUs, all numbers of PEs: baseline; pr+im+cm | 2.27x; 4.07x | {}x; {}x |"
    yield DOCUMENT, text, *(f"{mean:.2f}" for mean in means_of)
    best = (
        f"{max(of_case, key=of_case.__getitem__):.0f}"
        for of_case in (over_cpus[PAPER][f"CC {graph}"] for graph in ("LJ", "LG"))
    )
    yield DOCUMENT, "| best number of PEs for cc | 64 | {} (LJ), {} (LG) |", *best
    text = "`pr+im+cm` over `baseline` is {}x in fig21 (paper 1.79x)"
    yield DOCUMENT, text, f"{means_of[1] / means_of[0]:.2f}"
