"""Figure 18 of the paper: reductions over links between PEs against the host, and the same for
other collectives.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import prod
from typing import Any, cast

import numpy as np

from pidcomm import COLLECTIVES
from pidcomm.model import Machine, load_machine, predict
from pidcomm_studies import apps
from pidcomm_studies.apps.application import Run
from pidcomm_studies.models import LINKS, predict_links
from pidcomm_studies.papers.figure import (
    MODELLED,
    Figure,
    Panel,
    Point,
    Request,
    Statement,
    series_of,
)
from pidcomm_studies.papers.scalability.paper import PAPER, listed, near, published

MACHINE = "upmem-2560+links"
SHAPE = (8, 8, 4, 10)  # chips of a rank, banks of a chip, ranks of a domain, domains
DOMAINS = {
    "8 banks of a chip": "0100",
    "64 banks of a rank": "1100",
    "256 banks of 4 ranks": "1110",
}
RATIOS = (0.0, 0.1, 0.25, 0.5, 0.75, 1.0)
RATES_GB_S = (0.35, 0.7, 1.4, 2.1, 2.8, 3.5)
SIZES = {"a": 240 << 10, "a, RM2 and batch 256": 40 << 10}
"""Bytes of sums per PE: whole words for each of 256 members at every share. 40 KiB are one
column of RM2, batch 256.
"""
HALF = 0.5
BASE, FED = "conventional", "links fed by PEs"
APPLICATION_PES = 256
PAPER_LINKS, FED_LINKS = (
    "gain over conventional gather",
    "gain over conventional gather, links fed by PEs",
)
REDUCE_LINKS, FAST_LINKS = "gain over conventional reduce", "gain over reduce by tile"
REDUCE = "conventional reduce"
LITTLE = 0.1  # the share of a small amount of global reduction; the paper prints none
LITTLE_GAIN, GAIN = 1.66, 6.5  # published; the paper does not print the domain


def seconds_of(size: int, ratio: float, mask: str, machine: Machine) -> dict[str, float]:
    """Return the seconds of global reduction by way.

    Of `size` bytes of results per group, a share `ratio` has a partial sum on each PE; of the rest,
    each PE has its part. Through the host, as in the paper: a gather by the SDK, and a reduction
    that costs nothing. With collectives that reduce: reduce, and a gather of the rest. Over links:
    reduce_scatter, and a gather of the results. Raises ArgumentError if the shares are no whole
    words for each member.
    """
    members = prod(length for length, bit in zip(SHAPE, mask, strict=True) if bit == "1")
    partial, rest = round(ratio * size), round((1 - ratio) * size) // members

    def gather(bytes_per_pe: int, technique: Any) -> float:
        return predict(
            "gather", SHAPE, mask, bytes=bytes_per_pe, machine=machine, technique=technique
        ).seconds

    results = size // members
    if ratio == 0:
        return dict.fromkeys((BASE, REDUCE, "tile", LINKS, FED), gather(results, BASE))
    techniques: tuple[Any, ...] = (BASE, "tile")
    slow, fast = (
        predict("reduce", SHAPE, mask, bytes=partial, machine=machine, technique=candidate).seconds
        for candidate in techniques
    )
    free, fed = (
        predict_links(
            "reduce_scatter", SHAPE, mask, bytes=partial, machine=machine, is_fed_by_pes=is_fed
        ).seconds
        for is_fed in (False, True)
    )
    return {
        BASE: gather(partial + (rest if ratio < 1 else 0), BASE),
        REDUCE: slow + (gather(rest, BASE) if ratio < 1 else 0.0),
        "tile": fast + (gather(rest, "auto") if ratio < 1 else 0.0),
        LINKS: free + gather(results, BASE),
        FED: fed + gather(results, BASE),
    }


def at_rate(machine: Machine, gb_s: float) -> Machine:
    """Return the machine with links of another rate at all levels."""
    return replace(
        machine,
        links={
            level: link._replace(
                clock_mhz=link.clock_mhz._replace(value=1e3 * gb_s / link.bytes_per_cycle.value)
            )
            for level, link in machine.links.items()
        },
    )


def recorded(runs: Sequence[Run], machine: Machine) -> Iterator[tuple[str, dict[str, float]]]:
    """Return for each run the seconds of all its collectives by way."""
    for run in runs:
        seconds = dict.fromkeys((BASE, "tile", LINKS, FED), 0.0)
        for call in run.calls:
            request: dict[str, Any] = {
                **{
                    "collective": call.collective,
                    "shape": run.shape,
                    "mask": call.mask,
                    "bytes": call.bytes_per_pe,
                },
                **{"dtype": np.dtype(call.dtype), "op": call.op or "sum", "machine": machine},
            }
            for name in (BASE, "tile"):
                seconds[name] += predict(**request | {"technique": name}).seconds
            for name, is_fed in ((LINKS, False), (FED, True)):
                seconds[name] += predict_links(**request, is_fed_by_pes=is_fed).seconds
        yield run.application, seconds


def _points(_: Request) -> Iterator[Point]:
    machine = load_machine(MACHINE)
    yield published("a", "gain", LITTLE, LITTLE_GAIN)
    yield published("a", "gain", 1.0, GAIN)
    for panel, size in SIZES.items():
        for domain, mask in DOMAINS.items():
            for ratio in RATIOS:
                times = seconds_of(size, ratio, mask, machine)
                for label, before, after in _gains(domain):
                    yield Point(
                        panel, label, ratio, times[before] / times[after], MODELLED, MACHINE
                    )
    for domain, mask in DOMAINS.items():
        for rate in RATES_GB_S:
            times = seconds_of(SIZES["a"], HALF, mask, at_rate(machine, rate))
            for label, before, after in _gains(domain):
                yield Point("b", label, rate, times[before] / times[after], MODELLED, MACHINE)
    for name in COLLECTIVES:
        mask = DOMAINS["256 banks of 4 ranks"]
        request: dict[str, Any] = {"bytes": SIZES["a"], "machine": machine}
        for technique in (BASE, "tile"):
            seconds = predict(
                cast("Any", name), SHAPE, mask, **request | {"technique": technique}
            ).seconds
            yield Point("collectives", technique, name, 1e3 * seconds, MODELLED, MACHINE)
        for label, is_fed in ((LINKS, False), (FED, True)):
            seconds = predict_links(
                cast("Any", name), SHAPE, mask, is_fed_by_pes=is_fed, **request
            ).seconds
            yield Point("collectives", label, name, 1e3 * seconds, MODELLED, MACHINE)
    runs = [
        apps.run(apps.get(name).make(quick=True), pes=APPLICATION_PES, iters=1)
        for name in apps.NAMES
    ]
    wrong = {run.application: run.wrong for run in runs}
    for name, by_way in recorded(runs, machine):
        for way, value in by_way.items():
            yield Point(
                "applications",
                way,
                name,
                1e3 * value,
                MODELLED,
                MACHINE,
                wrong[name] if way == BASE else None,
            )


def _gains(domain: str) -> list[tuple[str, str, str]]:
    """Return the label, the way before and the way after of each gain."""
    return [
        (f"{domain}: {PAPER_LINKS}", BASE, LINKS),
        (f"{domain}: {FED_LINKS}", BASE, FED),
        (f"{domain}: {REDUCE_LINKS}", REDUCE, LINKS),
        (f"{domain}: {FAST_LINKS}", "tile", LINKS),
    ]


def _bytes_over_the_bus(ratio: float, gain: float) -> str:
    """Return how many times the bytes cross the bus without links, by domain, and which of these
    factors are near a gain.
    """
    factors = {
        domain: 1
        - ratio
        + ratio * prod(length for length, bit in zip(SHAPE, mask, strict=True) if bit == "1")
        for domain, mask in DOMAINS.items()
    }
    close = [domain for domain, factor in factors.items() if near(factor, gain)]
    return (
        f"without links, more bytes cross the bus: {listed(factors)}. The factor is near {gain} for"
        f" {' and '.join(close) or 'no domain'}; the paper does not print its domain"
    )


def _statements(_: Request, points: Sequence[Point]) -> Iterator[Statement]:
    def gains(panel: str, label: str, x: float) -> dict[float | str, float]:
        """Return the gain at x by domain."""
        return {d: series_of(points, panel, f"{d}: {label}")[x] for d in DOMAINS}

    little, whole = (gains("a", PAPER_LINKS, x) for x in (LITTLE, 1.0))
    yield Statement(
        "with little global reduction links gain 66%",
        f"at a share of {LITTLE}: {listed(little)}",
        all(near(gain - 1, LITTLE_GAIN - 1) for gain in little.values()),
        _bytes_over_the_bus(LITTLE, LITTLE_GAIN),
    )
    others = {
        label: listed(gains("a", label, 1.0)) for label in (FED_LINKS, REDUCE_LINKS, FAST_LINKS)
    }
    yield Statement(
        f"with global reduction of everything links gain about {GAIN}x",
        f"at a share of 1: {listed(whole)}; "
        + "; ".join(f"{label}: {gain}" for label, gain in others.items()),
        all(near(gain, GAIN) for gain in whole.values()),
        _bytes_over_the_bus(1.0, GAIN),
    )
    small = gains("a, RM2 and batch 256", PAPER_LINKS, 1.0)
    yield Statement(
        "links make PIM scale",
        f"for the sums of RM2 and batch 256, links gain {listed(small)}; a gain of {LITTLE_GAIN} or"
        " less in a domain counts as disagreement",
        min(small.values()) > LITTLE_GAIN,
        f"the least gain is {min(small.values()):.3g}",
    )
    slow, fast = (gains("b", PAPER_LINKS, rate) for rate in (RATES_GB_S[0], RATES_GB_S[-1]))
    yield Statement(
        f"even links of {RATES_GB_S[0]} GB/s gain much",
        f"{listed(slow)} at {RATES_GB_S[0]} GB/s, {listed(fast)} at {RATES_GB_S[-1]} GB/s; a gain"
        f" of {LITTLE_GAIN} or less in a domain counts as disagreement",
        min(slow.values()) > LITTLE_GAIN,
        f"the least gain is {min(slow.values()):.3g}",
    )


LINKED = load_machine(MACHINE)
FIGURE_18 = Figure(
    "scalability/fig18",
    PAPER,
    "reductions over links between PEs, against the host",
    [
        Panel(
            "a",
            "gain of links over the host, 240 KiB per PE",
            "share of global reduction",
            is_log=True,
        ),
        Panel(
            "a, RM2 and batch 256",
            "gain of links over the host, 40 KiB per PE",
            "share of global reduction",
            is_log=True,
        ),
        Panel("b", "gain at a share of 0.5", "GB/s of a link", is_log=True),
        Panel("collectives", "ms, 240 KiB per PE, groups of 256 PEs", "collective", is_log=True),
        Panel(
            "applications",
            f"ms of all collectives of a quick run, {APPLICATION_PES} PEs",
            "application",
            is_log=True,
        ),
    ],
    _points,
    _statements,
    note=(
        "Links are 64 bits wide at 350 MHz, as in the paper, at all levels (assumed for chips and"
        " ranks). The paper models rates only, and reductions on the host cost nothing; here calls"
        " also have their fixed costs, links one launch per call, and both kinds of reduce contain"
        " their reduction (conventional: at the rate work.combine_gb_s, taken from another"
        f" host). The sizes and the share of {LITTLE} for little reduction are ours; every domain"
        " must agree. The paper normalises to the host at a share of 1; a gain here is over the"
        " host at the same share. A PE reads MRAM at"
        f" {LINKED['pe.clock_mhz'] / LINKED['pe.dma_cycles_per_byte'] / 1e3:.2g} GB/s, so it cannot"
        " feed a link of 2.8 GB/s: the rows `fed by PEs` count its DMA, and the instructions of"
        " its additions. Scatter, gather and the ends of reduce and broadcast stay with the host."
        " For the rates of DIMM-Link and PIMnet, see the machines upmem-2560+dimm-link and"
        " upmem-2560+pimnet."
    ),
)
