"""ETRI's iMEX (2024): allgather on host buffers, n x n messages against a shared CXL memory pool.

The authors measured with the OSU micro-benchmarks on virtual machines, and publish only the largest
and the smallest gains. Here the processes share one machine: measured values use emulated links,
and modelled values the same links on separate hosts. No value is fitted to the published ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from pidcomm.bench.osu import OsuCase, measure
from pidcomm.model import Machine, load_machine
from pidcomm_studies.papers.figure import (
    MEASURED,
    MODELLED,
    PUBLISHED,
    Figure,
    Panel,
    Point,
    Request,
    Statement,
    series_of,
)

PAPER = "ETRI iMEX (2024), experimental results for CXL SHM-based AllGather"
MACHINE = "isca24"
KIB, MIB = 1 << 10, 1 << 20


class Rate(NamedTuple):
    """The link of a host."""

    name: str
    gb_s: float
    latency_us: float


MESSAGES = (Rate("TCP-like", 1.25, 20.0), Rate("100 Gbit/s Ethernet", 12.5, 3.0))
POOLS = (Rate("switched CXL", 32.0, 0.35), Rate("far memory", 100.0, 3.0))
"""Latencies and rates are published (iMEX), except for TCP-like, which has the latency
and rate of the model's network.
"""


PUBLISHED_GAINS = {
    "nodes": {"4 nodes, the least": 6.65, "10 nodes, the most": 16.92},
    "ppn": {"1 process per node, the least": 1.77, "6 processes per node, the most": 10.03},
    "sizes": {"middle sizes, at most": 4.99, "large sizes, at most": 6.65},
}
"""The published gains of the pool over messages, by axis."""
BASE = OsuCase("allgather", "mpi", 4, 1, (MIB,))
AXES: dict[str, Callable[[bool], list[OsuCase]]] = {
    "nodes": lambda is_here: [
        replace(BASE, hosts=n) for n in ((2, 4, 8) if is_here else (2, 4, 8, 10))
    ],
    "ppn": lambda is_here: [
        replace(BASE, hosts=2, ppn=n) for n in ((1, 2, 4) if is_here else (1, 2, 4, 6))
    ],
    "sizes": lambda is_here: [
        replace(BASE, sizes=(512 * KIB, 2 * MIB, (8 if is_here else 32) * MIB))
    ],
}
"""The cases along each axis, measured here or modelled."""


def _point(
    axis: str,
    case: OsuCase,
    size_bytes: int,
    links: tuple[Rate, Rate],
    times_us: tuple[float, float],
    source: str,
    on: str,
    wrong: int | None = None,
) -> Point:
    """Return the gain of a case: its latency with messages over its latency with the pool."""
    facts = {
        "hosts": case.hosts,
        "ppn": case.ppn,
        "size_bytes": size_bytes,
        "messages_us": times_us[0],
        "pool_us": times_us[1],
    }
    x = {"nodes": case.hosts, "ppn": case.ppn, "sizes": size_bytes // KIB}[axis]
    series = f"{links[0].name} over {links[1].name}"
    return Point(axis, series, x, times_us[0] / times_us[1], source, on, wrong, facts)


def measured(request: Request) -> Iterator[Point]:
    """Measure on this machine, with emulated links."""
    for axis, cases in AXES.items():
        for case in cases(True):
            request.progress.describe(f"{axis}: {case.hosts} hosts x {case.ppn} processes")
            base = replace(case, iters=request.iters)
            ways = [
                [
                    measure(
                        [
                            replace(
                                base,
                                transport=way,
                                link_gb_s=timing.gb_s,
                                link_latency_us=timing.latency_us,
                            )
                        ]
                    )
                    for timing in its
                ]
                for way, its in (("mpi", MESSAGES), ("pool", POOLS))
            ]
            for link, slow in zip(MESSAGES, ways[0], strict=True):
                for port, fast in zip(POOLS, ways[1], strict=True):
                    for a, b in zip(slow, fast, strict=True):
                        yield _point(
                            axis,
                            case,
                            a.size_bytes,
                            (link, port),
                            (a.avg_us, b.avg_us),
                            MEASURED,
                            "processes of this machine, emulated links",
                            a.wrong + b.wrong,
                        )


def modelled(machine: Machine) -> Iterator[Point]:
    """Predict for hosts of their own, whose copies are as fast as their links."""
    for axis, cases in AXES.items():
        for case in cases(False):
            for size in case.sizes:
                for link in MESSAGES:
                    for port in POOLS:
                        times = messages_us(case, size, link), pool_us(case, size, port, machine)
                        yield _point(axis, case, size, (link, port), times, MODELLED, MACHINE)


def _model(_: Request) -> Iterator[Point]:
    yield from modelled(load_machine(MACHINE))
    for axis, gains in PUBLISHED_GAINS.items():
        for what, gain in gains.items():
            yield Point("published", "gain", f"{axis}: {what}", gain, PUBLISHED, PAPER)


def messages_us(case: OsuCase, size_bytes: int, link: Rate) -> float:
    """Return the time of n x n messages: each process sends its block to all processes of other
    hosts.
    """
    remote = case.processes - case.ppn
    return remote * (link.latency_us + case.ppn * size_bytes / (1e3 * link.gb_s))


def pool_us(case: OsuCase, size_bytes: int, port: Rate, machine: Machine) -> float:
    """Return the time of one write, a sync, and the read of all blocks by each process of a host.

    The hosts share the devices of the pool, which limits each port if there are many hosts.
    """
    devices = (
        machine["pool.devices"] * machine["pool.device_gb_s"] * port.gb_s / machine["pool.gb_s"]
    )
    rate = min(port.gb_s, devices / case.hosts)
    return 4 * port.latency_us + case.ppn * (1 + case.processes) * size_bytes / (1e3 * rate)


def statements(_: Request, points: Sequence[Point]) -> Iterator[Statement]:
    """Yield, for each axis, source and pair of links, the gains along the axis and whether they
    grow.
    """
    for axis, published in PUBLISHED_GAINS.items():
        lines = []
        for source, series in dict.fromkeys(
            (point.source, point.series) for point in points if point.panel == axis
        ):
            values = list(series_of(points, axis, series, source).values())
            grows = "grows" if values == sorted(values) else "does not grow throughout"
            listed = ", ".join(f"{value:.2f}x" for value in values)
            lines.append(f"{source}, {series}: {listed}; {grows}")
        words = ", ".join(f"{what}: {gain}x" for what, gain in published.items())
        yield Statement(f"{axis}: {words}", "\n".join(lines))


_GAIN = "latency of messages over latency of the pool"
EXPLANATION = (
    "A process receives a block in a message from each process of the other hosts; through the pool"
    " it writes a block and reads those of all processes. So the gain grows with the processes per"
    " host, and with the hosts as long as the devices of the pool serve all ports at full rate, by"
    " assumption up to 4 hosts; more hosts share the devices, and the gain falls. At large sizes it"
    " nears the ratio of the rates. The published gains grow up to 10 hosts: the authors' pool is"
    " memory of one machine, and their messages pass through virtual networks, which cost more."
    " Measured values also have the copies of all processes, which share the CPUs of this machine."
)
ALLGATHER = Figure(
    "imex/allgather",
    PAPER,
    "allgather through a shared memory pool",
    [
        Panel("nodes", _GAIN, "nodes"),
        Panel("ppn", _GAIN, "processes per node"),
        Panel("sizes", _GAIN, "KiB"),
        Panel("published", _GAIN, "case"),
    ],
    _model,
    statements,
    measured,
    EXPLANATION,
)
