"""Latencies of collectives between processes in the form of the OSU micro-benchmarks, by messages,
a pool and a switch.

A case has hosts x ppn processes. On host buffers, the processes run the experiment of ETRI's iMEX:
with `mpi` the collective of the MPI library, or, over an emulated link, a message to every other
process; with `pool` each process writes its data once, all sync, and each process reads; an
allgather without a link does so in chunks. On PE buffers they run the collectives of
`pidcomm.hosts`.

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
from pidcomm._core import LINE_BYTES
from pidcomm.bench import launcher
from pidcomm.bench.osu_cases import LARGE, SMALL, SMALL_BYTES, HostBuffers, OsuCase, PeBuffers
from pidcomm.errors import ArgumentError, shown
from pidcomm.pool import Pool, open_over

__all__ = ["OsuCase", "OsuRow", "measure"]

TIMEOUT_S = 120.0
EMULATED_LINK = "emulated link"


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
    largest = -(-max(*case.sizes, 8 * comm.size) // LINE_BYTES) * LINE_BYTES
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
