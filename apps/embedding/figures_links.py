"""Figure 18 of the paper: reductions over links between PEs against the host, and the same for other collectives."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import prod
from typing import Any, cast

import numpy as np
from pidcomm import apps
from pidcomm.apps.application import Run
from pidcomm.apps.embedding.paper import PAPER, listed
from pidcomm.evaluation.figure import MODELLED, Figure, Panel, Point, Statement, series_of
from pidcomm.model import LINKS, Machine, load_machine, predict, predict_links
from pidcomm.tables import COLLECTIVES, WORD_BYTES

MACHINE = "upmem-2560+links"
SHAPE = (8, 8, 4, 10)  # chips of a rank, banks of a chip, ranks of a domain, domains
DOMAINS = {"8 banks of a chip": "0100", "64 banks of a rank": "1100", "256 banks of 4 ranks": "1110"}
RATIOS = (0.0, 0.1, 0.25, 0.5, 0.75, 1.0)
RATES_GB_S = (0.35, 0.7, 1.4, 2.1, 2.8, 3.5)
SIZES = {"a": 256 << 10, "a, RM2 and batch 16": 2560}
"""Bytes of sums per PE. 2,560 are the 640 sums of one column of RM2 with batch 16."""
HALF = 0.5
BASE, FED = "conventional", "links fed by PEs"
APPLICATION_PES = 256
PAPER_LINKS, FAST_LINKS, FED_LINKS = "gather over links", "reduce by tile over links", "gather over links fed by PEs"


def _rounded(size: float, members: int) -> int:
    """Return a size as a positive multiple of the blocks of whole words."""
    unit = members * WORD_BYTES
    return max(round(size / unit), 1) * unit


def seconds_of(size: int, ratio: float, mask: str, machine: Machine) -> dict[str, float]:
    """Return the seconds of global reduction by way.

    Of `size` bytes of results per group, a share `ratio` has a partial sum on each PE; of the rest, each PE has its
    part. Through the host, as in the paper: a gather by the SDK, and a reduction that costs nothing. With fast
    collectives: reduce by tile, and a gather of the rest. Over links: reduce_scatter, and a gather of
    the results.
    """
    members = prod(length for length, bit in zip(SHAPE, mask, strict=True) if bit == "1")
    partial, rest = _rounded(ratio * size, members), _rounded((1 - ratio) * size, members) // members

    def gather(bytes_per_pe: int, technique: Any) -> float:
        return predict("gather", SHAPE, mask, bytes=bytes_per_pe, machine=machine, technique=technique).seconds

    results = _rounded(size, members) // members
    if ratio == 0:
        return dict.fromkeys((BASE, "tile", LINKS, FED), gather(results, BASE))
    reduced = predict("reduce", SHAPE, mask, bytes=partial, machine=machine).seconds
    free, fed = (
        predict_links("reduce_scatter", SHAPE, mask, bytes=partial, machine=machine, is_fed_by_pes=it).seconds
        for it in (False, True)
    )
    return {
        BASE: gather(partial + (rest if ratio < 1 else 0), BASE),
        "tile": reduced + (gather(rest, "auto") if ratio < 1 else 0.0),
        LINKS: free + gather(results, BASE),
        FED: fed + gather(results, BASE),
    }


def at_rate(machine: Machine, gb_s: float) -> Machine:
    """Return the machine with links of another rate at all levels."""
    return replace(
        machine,
        links={
            level: it._replace(clock_mhz=it.clock_mhz._replace(value=1e3 * gb_s / it.bytes_per_cycle.value))
            for level, it in machine.links.items()
        },
    )


def recorded(runs: Sequence[Run], machine: Machine) -> Iterator[tuple[str, dict[str, float]]]:
    """Return for each run the seconds of all its collectives by way."""
    for run in runs:
        found = dict.fromkeys((BASE, "tile", LINKS, FED), 0.0)
        for call in run.calls:
            request: dict[str, Any] = {
                **{"collective": call.collective, "shape": run.shape, "mask": call.mask, "bytes": call.bytes_per_pe},
                **{"dtype": np.dtype(call.dtype), "op": call.op or "sum", "machine": machine},
            }
            for name in (BASE, "tile"):
                found[name] += predict(**request | {"technique": name}).seconds
            for name, is_fed in ((LINKS, False), (FED, True)):
                found[name] += predict_links(**request, is_fed_by_pes=is_fed).seconds
        yield run.application, found


def _points() -> Iterator[Point]:
    machine = load_machine(MACHINE)
    for panel, size in SIZES.items():
        for domain, mask in DOMAINS.items():
            for ratio in RATIOS:
                it = seconds_of(size, ratio, mask, machine)
                for label, before, after in _gains(domain):
                    yield Point(panel, label, ratio, it[before] / it[after], MODELLED, MACHINE)
    for domain, mask in DOMAINS.items():
        for rate in RATES_GB_S:
            it = seconds_of(SIZES["a"], HALF, mask, at_rate(machine, rate))
            for label, before, after in _gains(domain):
                yield Point("b", label, rate, it[before] / it[after], MODELLED, MACHINE)
    for name in COLLECTIVES:
        mask = DOMAINS["256 banks of 4 ranks"]
        request: dict[str, Any] = {"bytes": SIZES["a"], "machine": machine}
        for technique in (BASE, "tile"):
            seconds = predict(cast("Any", name), SHAPE, mask, **request | {"technique": technique}).seconds
            yield Point("collectives", technique, name, 1e3 * seconds, MODELLED, MACHINE)
        for label, is_fed in ((LINKS, False), (FED, True)):
            seconds = predict_links(cast("Any", name), SHAPE, mask, is_fed_by_pes=is_fed, **request).seconds
            yield Point("collectives", label, name, 1e3 * seconds, MODELLED, MACHINE)
    runs = [apps.run(apps.get(name).make(quick=True), pes=APPLICATION_PES, iters=1) for name in apps.NAMES]
    wrong = {run.application: run.wrong for run in runs}
    for name, by_way in recorded(runs, machine):
        for way, value in by_way.items():
            yield Point("applications", way, name, 1e3 * value, MODELLED, MACHINE, wrong[name] if way == BASE else None)


def _gains(domain: str) -> list[tuple[str, str, str]]:
    """Return the label, the way before and the way after of each gain."""
    return [
        (f"{domain}: {PAPER_LINKS}", BASE, LINKS),
        (f"{domain}: {FED_LINKS}", BASE, FED),
        (f"{domain}: {FAST_LINKS}", "tile", LINKS),
    ]


def _statements(points: Sequence[Point]) -> Iterator[Statement]:
    first = next(iter(DOMAINS))
    of = {
        label: {d: series_of(points, "a", f"{d}: {label}") for d in DOMAINS}
        for label in (PAPER_LINKS, FED_LINKS, FAST_LINKS)
    }
    gains = of[PAPER_LINKS]
    yield Statement(
        "with little global reduction links gain 66%",
        f"at a share of 0.1: {listed({d: it[0.1] for d, it in gains.items()})}",
        1 < gains[first][0.1] < 2.5,
    )
    yield Statement(
        "with global reduction of everything links gain about 6.5x",
        f"at a share of 1: {listed({d: it[1.0] for d, it in gains.items()})}; if PEs feed the links by DMA and add by "
        f"instructions, {listed({d: it[1.0] for d, it in of[FED_LINKS].items()})}; over reduce by tile, "
        f"{listed({d: it[1.0] for d, it in of[FAST_LINKS].items()})}",
        4 < gains[first][1.0] < 9,
    )
    small = {d: series_of(points, "a, RM2 and batch 16", f"{d}: {PAPER_LINKS}")[1.0] for d in DOMAINS}
    yield Statement(
        "links make PIM scale",
        f"for the sums of RM2 and batch 16, where the fixed costs of calls remain, links gain {listed(small)}",
        min(small.values()) > 1,
    )
    rates = {d: series_of(points, "b", f"{d}: {PAPER_LINKS}") for d in DOMAINS}
    yield Statement(
        "even links of 0.35 GB/s gain much",
        f"{listed({d: it[0.35] for d, it in rates.items()})} at 0.35 GB/s, "
        f"{listed({d: it[3.5] for d, it in rates.items()})} at 3.5 GB/s",
        rates[first][0.35] > 1.5,
    )


FIGURE_18 = Figure(
    "scalability/fig18",
    PAPER,
    "reductions over links between PEs, against the host",
    [
        Panel("a", "gain of links over the host, 256 KiB per PE", "share of global reduction"),
        Panel("a, RM2 and batch 16", "gain of links over the host, 2,560 bytes per PE", "share of global reduction"),
        Panel("b", "gain at a share of 0.5", "GB/s of a link"),
        Panel("collectives", "ms, 256 KiB per PE, groups of 256 PEs", "collective", is_log=True),
        Panel(
            "applications", f"ms of all collectives of a quick run, {APPLICATION_PES} PEs", "application", is_log=True
        ),
    ],
    _points,
    _statements,
    note="Links are 64 bits wide at 350 MHz, as in the paper, at all levels (assumed for chips and ranks). The paper "
    "models rates only, and reductions on the host cost nothing; here calls also have their fixed costs, and reduce by "
    "tile contains its reduction. A PE reads MRAM at 0.78 GB/s, so it cannot feed a link "
    "of 2.8 GB/s: the rows `fed by PEs` count its DMA, and the instructions of its additions. Scatter, gather and the "
    "ends of reduce and broadcast stay with the host. DIMM-Link and PIMnet are left out, because no public source with "
    "their link rates was found.",
)
