"""ETRI's iMEX (2024): allgather on host buffers, n x n messages against a shared CXL memory pool.

The authors measured with the OSU micro-benchmarks on virtual machines, and publish only the largest
and the smallest gains. Here the processes share one machine: measured values use emulated links,
and modelled values the same links on separate hosts. No value is fitted to the published ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

from pidcomm.bench.osu import OsuCase, measure
from pidcomm.model import Machine, load_machine

import pidcomm

NAME = "imex"
TITLE = "allgather through a shared memory pool (ETRI iMEX, 2024)"
SOURCE = "ETRI iMEX (2024), experimental results for CXL SHM-based AllGather"
MACHINE = "isca24"
KIB, MIB = 1 << 10, 1 << 20


class Rate(NamedTuple):
    """The link of a host."""

    name: str
    gb_s: float
    latency_us: float


MESSAGES = (Rate("TCP-like", 1.25, 20.0), Rate("100 Gbit/s Ethernet", 12.5, 3.0))
POOLS = (Rate("switched CXL", 32.0, 0.35), Rate("far memory", 100.0, 3.0))
"""Latencies and rates are published (iMEX), with the exception of TCP-like: that of the model of
a network.
"""


@dataclass(frozen=True)
class Published:
    """A published gain of the pool over messages."""

    axis: str
    what: str
    gain: float


PUBLISHED = (
    Published("nodes", "4 nodes, the least", 6.65),
    Published("nodes", "10 nodes, the most", 16.92),
    Published("ppn", "1 process per node, the least", 1.77),
    Published("ppn", "6 processes per node, the most", 10.03),
    Published("sizes", "middle sizes, at most", 4.99),
    Published("sizes", "large sizes, at most", 6.65),
)
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


@dataclass(frozen=True)
class Gain:
    """The latencies of one case with messages and with the pool."""

    axis: str
    hosts: int
    ppn: int
    size_bytes: int
    messages: str
    pool: str
    messages_us: float
    pool_us: float
    source: str
    wrong: int | None = None

    @property
    def gain(self) -> float:
        """Return the latency with messages over the latency with the pool."""
        return self.messages_us / self.pool_us


def measured(iters: int, step: Callable[[str], None]) -> Iterator[Gain]:
    """Measure on this machine, with emulated links."""
    for axis, cases in AXES.items():
        for case in cases(True):
            step(f"{axis}: {case.hosts} hosts x {case.ppn} processes")
            base = replace(case, iters=iters)
            ways = [
                [
                    measure(
                        [
                            replace(
                                base,
                                transport=way,
                                link_gb_s=it.gb_s,
                                link_latency_us=it.latency_us,
                            )
                        ]
                    )
                    for it in its
                ]
                for way, its in (("mpi", MESSAGES), ("pool", POOLS))
            ]
            for link, slow in zip(MESSAGES, ways[0], strict=True):
                for port, fast in zip(POOLS, ways[1], strict=True):
                    for a, b in zip(slow, fast, strict=True):
                        wrong = a.wrong + b.wrong
                        where = (axis, case.hosts, case.ppn, a.size_bytes, link.name, port.name)
                        yield Gain(*where, a.avg_us, b.avg_us, "measured, emulated links", wrong)


def modelled(machine: Machine | None = None) -> Iterator[Gain]:
    """Predict for hosts of their own, whose copies are as fast as their links."""
    on = load_machine(MACHINE) if machine is None else machine
    for axis, cases in AXES.items():
        for case in cases(False):
            for size in case.sizes:
                for link in MESSAGES:
                    for port in POOLS:
                        times = messages_us(case, size, link), pool_us(case, size, port, on)
                        where = (axis, case.hosts, case.ppn, size, link.name, port.name)
                        yield Gain(*where, *times, "modelled")


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


def json_rows(gains: list[Gain]) -> Iterator[dict[str, Any]]:
    """Yield the gains and the published values for JSON."""
    for gain in gains:
        yield {"figure": NAME, **asdict(gain), "gain": gain.gain, "version": pidcomm.__version__}
    for value in PUBLISHED:
        yield {
            "figure": NAME,
            **asdict(value),
            "source": f"published: {SOURCE}",
            "version": pidcomm.__version__,
        }


def statements(gains: list[Gain]) -> Iterator[str]:
    """Yield, for each axis and each pair of links, the gains along the axis and whether they
    grow.
    """
    for axis in AXES:
        for pair in dict.fromkeys((gain.messages, gain.pool) for gain in gains):
            along = [
                gain for gain in gains if gain.axis == axis and (gain.messages, gain.pool) == pair
            ]
            values = [gain.gain for gain in along]
            if not values:
                continue
            grows = "grows" if values == sorted(values) else "does not grow throughout"
            yield (
                f"{axis}: {pair[0]} over {pair[1]}:"
                f" {', '.join(f'{value:.2f}x' for value in values)}; {grows}"
            )


EXPLANATION = (
    "A process receives a block in a message from each process of the other hosts; through the pool"
    " it writes a block and reads those of all processes. So the gain grows with the processes per"
    " host, and with the hosts as long as the devices of the pool serve all ports at full rate, by"
    " assumption up to 4 hosts; more hosts share the devices, and the gain falls. At large sizes it"
    " nears the ratio of the rates. The published gains grow up to 10 hosts: the authors' pool is"
    " memory of one machine, and their messages pass through virtual networks, which cost more."
    " Measured values also have the copies of all processes, which share the CPUs of this machine."
)
