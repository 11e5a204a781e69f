"""Latencies of collectives between processes in the form of the OSU micro-benchmarks, by messages,
a pool and a switch.

A case has hosts x ppn processes. On host buffers, the processes run the experiment of ETRI's iMEX:
with `mpi` the collective of the MPI library, or, over an emulated link, a message to every other
process; with `pool` each process writes its data once, all sync, and each process reads. On PE
buffers they run the collectives of `pidcomm.hosts`.

The rules are those of the OSU micro-benchmarks: per size 1000 iterations after 100 to warm up,
above 8 KiB 100 after 10; a barrier before each iteration; a latency per process, averaged over the
iterations; then the average, minimum and maximum over the processes.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

import pidcomm
from pidcomm.arguments import MAX_COUNT, as_integer, as_number, as_sizes, row_of
from pidcomm.bench import launcher
from pidcomm.bench.osu_buffers import DTYPE, HostBuffers, PeBuffers
from pidcomm.errors import ArgumentError, shown
from pidcomm.hosts import Link
from pidcomm.pool import Pool, open_over
from pidcomm.tables import TRANSPORTS

__all__ = ["OsuCase", "OsuRow", "measure"]

COLLECTIVES = ("allgather", "reduce_scatter", "allreduce", "alltoall")
SMALL_BYTES, SMALL, LARGE = 8192, (1000, 100), (100, 10)
"""The largest small size; iterations and warm-up of small and of large sizes."""
TIMEOUT_S = 120.0
EMULATED_LINK = "emulated link"


@dataclass(frozen=True)
class OsuCase:
    """A collective over hosts x ppn processes with one transport. pes: PEs of a process, or 0 for
    host buffers.

    link_gb_s, link_latency_us: of the emulated link or pool port of a host, which its processes
    share; 0: none. iters: at most this number of iterations. Raises ArgumentError for values of
    other types, unknown names and numbers out of range.
    """

    collective: str
    transport: str
    hosts: int
    ppn: int
    sizes: tuple[int, ...]
    pes: int = 0
    link_gb_s: float = 0.0
    link_latency_us: float = 0.0
    iters: int = SMALL[0]

    def __post_init__(self) -> None:
        """Check the fields."""
        row_of(
            {name: pidcomm.COLLECTIVES[name] for name in COLLECTIVES}, "collective", self.collective
        )
        row_of(TRANSPORTS, "transport", self.transport)
        fields = {
            name: as_integer(name, getattr(self, name), low, MAX_COUNT)
            for name, low in (("hosts", 1), ("ppn", 1), ("pes", 0), ("iters", 1))
        } | {
            name: as_number(name, getattr(self, name), 0)
            for name in ("link_gb_s", "link_latency_us")
        }
        sizes = as_sizes("sizes", self.sizes)
        for size in sizes:
            if size % DTYPE.itemsize:
                raise ArgumentError(
                    f"sizes ({size} bytes) must be whole elements of {DTYPE.itemsize} bytes"
                )
        for name, value in {**fields, "sizes": sizes}.items():
            object.__setattr__(self, name, value)  # the class is frozen

    @property
    def processes(self) -> int:
        """The number of processes."""
        return self.hosts * self.ppn

    @property
    def data_bytes(self) -> int:
        """Memory that the data of all processes need."""
        copies = PeBuffers.copies if self.pes else HostBuffers.copies
        return self.processes * max(self.sizes) * copies(self.processes, self.pes)

    @property
    def link(self) -> Link | None:
        """The emulated link of a process: its share of the link of its host."""
        has_link = self.link_gb_s > 0 or self.link_latency_us > 0
        return Link(self.link_gb_s / self.ppn, self.link_latency_us) if has_link else None


@dataclass(frozen=True)
class OsuRow:
    """The latency of one size.

    size_bytes: of the call: the wanted size in whole blocks, at least one; of the input of a
    process on host buffers, and per PE as in a call on PE buffers. copied: bytes that a process
    copies between its memory and the pool, over the size.

    wrong: wrong elements in all processes. source: measured, or mixed on host buffers with a
    switch: a process of this machine reduces, and its time is replaced by the time of reading all
    rows at `switch.gb_s` of the machine file.
    On PE buffers the time of the switch is measured at the speed of this machine.
    """

    collective: str
    transport: str
    hosts: int
    ppn: int
    buffers: str
    size_bytes: int
    avg_us: float
    min_us: float
    max_us: float
    iterations: int
    copied: float | None
    wrong: int
    link: str
    source: str = "measured"


def measure(cases: Sequence[OsuCase]) -> list[OsuRow]:
    """Time and check cases, each with its own processes. Raises Error if the processes fail,
    ArgumentError for a case that is no OsuCase, or that lacks CPUs or memory (`require_room`).
    """
    if not isinstance(cases, (list, tuple)):
        raise ArgumentError(f"cases ({shown(cases)}) must be a list or tuple of OsuCase")
    rows = []
    for case in cases:
        if not isinstance(case, OsuCase):
            raise ArgumentError(f"the case {shown(case)} must be an OsuCase")
        work = asdict(case)
        rows += [
            OsuRow(**row)
            for row in launcher.run_work(
                __name__, work, case.processes, case.pes or 8, len(case.sizes), case.data_bytes
            )
        ]
    return rows


def schedule(size_bytes: int, most: int) -> tuple[int, int]:
    """Return the iterations and the warm-up of a size, at most `most` iterations."""
    iters, warmup = SMALL if size_bytes <= SMALL_BYTES else LARGE
    return (iters, warmup) if iters <= most else (most, max(1, warmup * most // iters))


def _work(fields: dict[str, Any]) -> None:
    """Measure the sizes of a case in every process; process 0 prints the rows."""
    case = OsuCase(**{**fields, "sizes": tuple(fields["sizes"])})
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    largest = max(*case.sizes, 8 * comm.size)
    shared = 2 * comm.size * largest
    pool: Pool | None = None
    if case.transport != "mpi":
        needed = (shared if not case.pes else 2 * comm.size * (largest + (1 << 16))) + (1 << 20)
        pool = open_over(comm, -(-needed // 4096) * 4096, case.transport == "switch", TIMEOUT_S)
    trials: Callable[[int], Any]
    if case.pes:
        cube = pidcomm.hosts.connect(
            pidcomm.allocate(pes=case.pes).hypercube(case.pes),
            pool or comm,
            link=case.link,
            timeout=TIMEOUT_S,
        )
        trials = lambda size: PeBuffers(case, cube, size)  # noqa: E731
    else:
        offset = pool.allocate(shared) if pool else 0
        trials = lambda size: HostBuffers(case, comm, pool, size, offset)  # noqa: E731
    for size in case.sizes:
        iters, warmup = schedule(size, case.iters)
        trial = trials(size)
        seconds = 0.0
        for n in range(warmup + iters):
            if n == warmup:
                trial.correction_s = 0.0
            comm.Barrier()
            begin = time.perf_counter()
            trial.run()
            if n >= warmup:
                seconds += time.perf_counter() - begin
        latencies = np.array(comm.allgather(1e6 * seconds / iters)) + comm.bcast(
            1e6 * trial.correction_s / iters
        )
        wrong = comm.allreduce(trial.wrong())
        if comm.rank == 0:
            row = OsuRow(
                collective=case.collective,
                transport=case.transport,
                hosts=case.hosts,
                ppn=case.ppn,
                buffers="PE" if case.pes else "host",
                size_bytes=trial.bytes,
                avg_us=float(latencies.mean()),
                min_us=float(latencies.min()),
                max_us=float(latencies.max()),
                iterations=iters,
                copied=trial.copied,
                wrong=wrong,
                source="mixed" if trial.correction_s else "measured",
                link=f"{EMULATED_LINK} {case.link_gb_s:g} GB/s, {case.link_latency_us:g} us"
                if case.link
                else "none",
            )
            print(launcher.ROW + json.dumps(asdict(row)), flush=True)


if __name__ == "__main__":
    launcher.do_work(_work)
