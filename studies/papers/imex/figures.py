"""ETRI's iMEX (2024): allgather on host buffers, n x n messages against a shared CXL memory pool.

The authors measured with the OSU micro-benchmarks on virtual machines of one host, and publish only
the largest and the smallest gains. Measured values here use emulated links between processes of
this machine, modelled values the same links. No value is fitted to the published ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from pidcomm import ArgumentError
from pidcomm.bench.osu import OsuCase, OsuRow, measure
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


TCP, ETHERNET = Rate("TCP-like", 1.25, 20.0), Rate("100 Gbit/s Ethernet", 12.5, 3.0)
CXL, FAR_MEMORY = Rate("switched CXL", 32.0, 0.35), Rate("far memory", 100.0, 3.0)
"""Latencies and rates are published (iMEX), except for TCP-like, which has the latency
and rate of the model's network.
"""


class Media(NamedTuple):
    """What carries messages and what leads to the pool.

    is_one_machine: whether the hosts are guests of one machine: one medium carries the messages of
    all hosts, and each process copies to and from the pool on another CPU, at the rate of
    `pool`. Otherwise each host has a link, and a port that the processes of the host share.
    """

    messages: Rate
    pool: Rate
    is_one_machine: bool = False

    @property
    def name(self) -> str:
        """The name of the series."""
        if self.is_one_machine:
            return ONE_MACHINE
        return f"{self.messages.name} over {self.pool.name}"

    def message_gb_s(self, case: OsuCase) -> float:
        """Return the rate at which a host sends messages while all hosts do."""
        return self.messages.gb_s / (case.hosts if self.is_one_machine else 1)

    def pool_gb_s(self, case: OsuCase) -> float:
        """Return the rate at which the processes of a host reach the pool."""
        return self.pool.gb_s * (case.ppn if self.is_one_machine else 1)


ONE_MACHINE = "one machine, equal rates"
ONE_MEDIUM = Media(TCP, Rate("memory", TCP.gb_s, 0.1), is_one_machine=True)
"""The medium is as fast as the copies of one process, so its gains show only how the bytes of
messages and of the pool grow; their ratio of rates is not published.
"""
MEDIA = (
    ONE_MEDIUM,
    *(Media(messages, pool) for messages in (TCP, ETHERNET) for pool in (CXL, FAR_MEMORY)),
)

PUBLISHED_GAINS = {
    "nodes": {"4": 6.65, "10": 16.92},
    "ppn": {"1": 1.77, "6": 10.03},
    "sizes": {"middle": 4.99, "large": 6.65},
}
"""The published gains of the pool over messages, by axis: the smallest and the largest; of sizes
the largest of two classes, whose limits are not published (here: 2 MiB and 32 MiB).
"""
PLACES = {"nodes": (4, 10), "ppn": (1, 6), "sizes": (2 * KIB, 32 * KIB)}
"""Where the published gains are along each axis."""
POOL_ACCESSES = 1 + 2 + 2
"""Latencies of a call of the pool: of the write, of the sync, and of reads before and behind the
block of this process.
"""
NEAR = 0.2  # growths agree within this share
BASE = OsuCase("allgather", "mpi", 4, 1, (MIB,))
AXES = {
    "nodes": [replace(BASE, hosts=n) for n in (2, 4, 8, 10)],
    "ppn": [replace(BASE, hosts=2, ppn=n) for n in (1, 2, 4, 6)],
    "sizes": [replace(BASE, sizes=(size,)) for size in (512 * KIB, 2 * MIB, 32 * MIB)],
}
"""The cases along each axis. The number of nodes of "ppn" and "sizes" is not published."""


def _point(
    axis: str,
    case: OsuCase,
    media: Media,
    times_us: tuple[float, float],
    source: str,
    on: str,
    wrong: int | None = None,
) -> Point:
    """Return the gain of a case: its latency with messages over its latency with the pool."""
    (size_bytes,) = case.sizes
    facts = {
        "hosts": case.hosts,
        "ppn": case.ppn,
        "size_bytes": size_bytes,
        "messages_us": times_us[0],
        "pool_us": times_us[1],
    }
    x = {"nodes": case.hosts, "ppn": case.ppn, "sizes": size_bytes // KIB}[axis]
    return Point(axis, media.name, x, times_us[0] / times_us[1], source, on, wrong, facts)


def measured(request: Request) -> Iterator[Point]:
    """Measure on this machine, with emulated links; skip cases for which it lacks memory."""
    timed: dict[OsuCase, OsuRow] = {}

    def time(case: OsuCase) -> OsuRow:
        if case not in timed:
            (timed[case],) = measure([case])
        return timed[case]

    for axis, cases in AXES.items():
        for case in cases:
            request.progress.describe(f"{axis}: {case.hosts} hosts x {case.ppn} processes")
            try:
                for media in MEDIA:
                    by_messages, by_pool = (
                        time(
                            replace(
                                case,
                                transport=transport,
                                link_gb_s=gb_s,
                                link_latency_us=rate.latency_us,
                                iters=request.iters,
                            )
                        )
                        for transport, rate, gb_s in (
                            ("mpi", media.messages, media.message_gb_s(case)),
                            ("pool", media.pool, media.pool_gb_s(case)),
                        )
                    )
                    yield _point(
                        axis,
                        case,
                        media,
                        (by_messages.avg_us, by_pool.avg_us),
                        MEASURED,
                        "processes of this machine, emulated links",
                        by_messages.wrong + by_pool.wrong,
                    )
            except ArgumentError as error:
                request.skip([error])


def modelled(machine: Machine) -> Iterator[Point]:
    """Predict the gains from the bytes and the links."""
    for axis, cases in AXES.items():
        for case in cases:
            for media in MEDIA:
                times = messages_us(case, media), pool_us(case, media, machine)
                yield _point(axis, case, media, times, MODELLED, MACHINE)


def _model(_: Request) -> Iterator[Point]:
    yield from modelled(load_machine(MACHINE))
    for axis, gains in PUBLISHED_GAINS.items():
        for what, gain in gains.items():
            yield Point("published", "gain", f"{axis}: {what}", gain, PUBLISHED, PAPER)


def message_count(case: OsuCase) -> int:
    """Return the number of messages between hosts: each process sends its block to all processes of
    other hosts.
    """
    return case.processes * (case.processes - case.ppn)


def messages_us(case: OsuCase, media: Media) -> float:
    """Return the time of the messages of a host, which it sends while all others send theirs."""
    (size_bytes,) = case.sizes
    host_bytes = message_count(case) // case.hosts * size_bytes
    latencies = message_count(case) // case.processes
    return latencies * media.messages.latency_us + host_bytes / (1e3 * media.message_gb_s(case))


def pool_us(case: OsuCase, media: Media, machine: Machine) -> float:
    """Return the time of one write, a sync, and the read of the blocks of all others by each
    process of a host.

    The hosts share the devices of a pool with ports, which limits each port if there are many
    hosts.
    """
    (size_bytes,) = case.sizes
    rate = media.pool_gb_s(case)
    if not media.is_one_machine:
        devices = machine["pool.devices"] * machine["pool.device_gb_s"] * rate
        rate = min(rate, devices / machine["pool.gb_s"] / case.hosts)
    host_bytes = case.ppn * case.processes * size_bytes
    return POOL_ACCESSES * media.pool.latency_us + host_bytes / (1e3 * rate)


def _latency_share(case: OsuCase) -> float:
    """Return the larger share of latencies in the modelled times on one machine: the times of one
    element over those of the case.
    """
    machine, element = load_machine(MACHINE), replace(case, sizes=(4,))
    return max(
        messages_us(element, ONE_MEDIUM) / messages_us(case, ONE_MEDIUM),
        pool_us(element, ONE_MEDIUM, machine) / pool_us(case, ONE_MEDIUM, machine),
    )


def statements(_: Request, points: Sequence[Point]) -> Iterator[Statement]:
    """Yield how much the gains grow along each axis, and which media the gains fit."""
    spreads: dict[str, list[float]] = {media.name: [] for media in MEDIA}
    latency_share = _latency_share(AXES["sizes"][1])
    for axis, published in PUBLISHED_GAINS.items():
        first, last = published.values()
        lines, growths = [], {}
        for source, name in dict.fromkeys(
            (point.source, point.series) for point in points if point.panel == axis
        ):
            series = series_of(points, axis, name, source)
            listed = ", ".join(f"{value:.2f}x" for value in series.values())
            if not all(x in series for x in PLACES[axis]):  # a case was skipped
                continue
            start, end = (series[x] for x in PLACES[axis])
            if axis != "sizes" and source == MODELLED:
                spreads[name] += [first / start, last / end]
            growths[source, name] = end / start
            lines.append(f"{source}, {name}: {listed}; grows {end / start:.2f}x")
        ours, theirs = growths[MODELLED, ONE_MACHINE], last / first
        words = " to ".join(f"{gain}x ({what})" for what, gain in published.items())
        yield Statement(
            f"{axis}: the gain grows {theirs:.2f}x, from {words}",
            "\n".join(lines),
            abs(ours / theirs - 1) <= NEAR,
            f"modelled, {ONE_MACHINE}: {ours:.2f}x, because latencies are at most"
            f" {latency_share:.1%} of the times, and all bytes grow alike; the published growth is"
            " unexplained",
        )
    shares = {name: max(ratios) / min(ratios) for name, ratios in spreads.items()}
    yield Statement(
        "the nodes are guests of one machine (their number along ppn is not published)",
        "published over modelled gains, of nodes and ppn together, differ by a factor of "
        + ", ".join(f"{share:.2f} ({name})" for name, share in shares.items())
        + f"; on one machine, each of the four needs pool copies {min(spreads[ONE_MACHINE]):.2f} to"
        f" {max(spreads[ONE_MACHINE]):.2f} times as fast as the medium",
        min(shares, key=shares.__getitem__) == ONE_MACHINE,
        "a link per host fits the four gains better",
    )
    case = AXES["nodes"][-1]
    yield Statement(
        "allgather takes n^2 messages, or n writes to the pool",
        f"by definition of both: {message_count(case)} messages between {case.hosts} nodes, or"
        f" {case.processes} writes",
    )


_GAIN = "latency of messages over latency of the pool"
EXPLANATION = (
    "A process receives a block in a message from each process of the other hosts; through the pool"
    " it writes a block and reads those of the others. With P processes, all messages have about"
    " P^2 blocks, and the copies of a process P: if one medium carries all messages, while each"
    " process copies on another CPU, the gain grows with P, as published. With a link and a"
    " port per host, both sides grow alike, and more than 4 hosts share the devices of the pool (by"
    " assumption). The verdicts are on one machine, as the authors' nodes; a growth agrees within"
    f" {NEAR:.0%}. Measured values also have the copies of all processes, which share the CPUs of"
    " this machine."
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
