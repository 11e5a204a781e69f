"""Benchmarks of collectives over hosts, which are MPI processes of this machine. Every element is
checked.

`measure_over_hosts` starts the processes, which run this file. `alone` measures the local passes of
one host, with an emulated link in place of the other hosts.
"""

from __future__ import annotations

import ctypes
import json
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

import pidcomm
from pidcomm._rows import CollectiveName, OpName, OverlapName
from pidcomm.arguments import Options, options_of, with_scratch
from pidcomm.bench import launcher
from pidcomm.notebook import Shown
from pidcomm.plans import Plan
from pidcomm.sizes import format_duration, format_shape
from pidcomm.tables import COLLECTIVES

__all__ = ["HostsCase", "alone", "measure_over_hosts"]

DTYPE = np.dtype(np.int32)
OP: OpName = "sum"
# Element i of row r is r * PE_FACTOR + i * ELEMENT_FACTOR.
PE_FACTOR, ELEMENT_FACTOR = (
    2654435761,
    2246822519,
)
TIMEOUT_S = 600.0
EMULATED_LINK = "emulated link"


@dataclass(frozen=True)
class HostsCase:
    """A collective on `shape`, whose last axis is the hosts. link_gb_s: the rate of an emulated
    link, or None.
    """

    collective: CollectiveName
    shape: tuple[int, ...]
    mask: str
    bytes: int
    technique: str
    overlap: OverlapName = "auto"
    link_gb_s: float | None = None

    @property
    def hosts(self) -> int:
        """The number of hosts."""
        return self.shape[-1]

    @property
    def dst(self) -> int:
        """The offset of the result at the PEs."""
        return self.bytes if COLLECTIVES[self.collective].at_pes_after else 0

    @property
    def options(self) -> Options:
        """The options of the call."""
        return with_scratch(options_of(technique=self.technique), 2 * self.bytes)

    def plan(self) -> Plan:
        """Return the plan of host 0. Raises the errors of the call."""
        link = None if self.link_gb_s is None else pidcomm.hosts.Link(self.link_gb_s)
        return pidcomm.hosts.plan(
            self.collective,
            self.shape,
            self.mask,
            bytes=self.bytes,
            dst=self.dst,
            dtype=DTYPE,
            op=OP,
            overlap=self.overlap,
            link=link,
            **self.options,
        )


@dataclass(frozen=True)
class HostsRow(Shown):
    """The times of a case: of the slowest host in each round. wrong: wrong elements on all hosts;
    None if unchecked.

    passes_us, exchange_us: time of the local passes and of the exchanges of host 0 in the median;
    with overlap, their sum is larger than the time. bytes_sent: by host 0. source: measured; or
    mixed, if one host was measured alone and the link was emulated.
    """

    collective: str
    technique: str
    shape: str
    mask: str
    bytes_per_pe: int
    hosts: int
    overlap: str
    link: str
    t_min_us: float
    t_p50_us: float
    t_p99_us: float
    passes_us: float
    exchange_us: float
    bytes_sent: int
    algbw_gb_s: float
    threads: int
    wrong: int | None
    source: str

    def __repr__(self) -> str:
        """Report the case, the time and its source."""
        return (
            f"<HostsRow {self.collective}, {self.technique}, {self.hosts} hosts: "
            f"{format_duration(1e-6 * self.t_p50_us)} {self.source}>"
        )


def measure_over_hosts(cases: Sequence[HostsCase], iters: int, warmup: int = 1) -> list[HostsRow]:
    """Time and check cases with equal numbers of hosts and PEs.

    Raises the error of a call that the library refuses, before any process starts, and Error if the
    processes fail.
    """
    for case in cases:
        case.plan()
    hosts, pes = cases[0].hosts, prod(cases[0].shape[:-1])
    work = {"cases": [asdict(case) for case in cases], "iters": iters, "warmup": warmup}
    return [HostsRow(**row) for row in launcher.run_work(__name__, work, hosts, pes, len(cases))]


def alone(case: HostsCase, iters: int, warmup: int = 1) -> HostsRow:
    """Return a row of one host: its local passes measured with the whole machine, and an
    emulated link.
    """
    local_shape = case.shape[:-1]
    with pidcomm.allocate(pes=prod(local_shape)) as pes:
        transport = _Alone(case.hosts)
        link = pidcomm.hosts.Link(case.link_gb_s) if case.link_gb_s else None
        with pidcomm.hosts.connect(
            pes.hypercube(*local_shape),
            transport,
            overlap=case.overlap,
            link=link,
            timeout=TIMEOUT_S,
        ) as cube:
            trial = _Trial(cube, case)
            seconds, traces = zip(*(trial.timed() for _ in range(warmup + iters)), strict=True)
            return _row(case, np.array(seconds[warmup:]), traces[warmup:], None, "mixed")


class _Alone:
    """A `Transport` of host 0 whose other hosts do nothing: messages arrive at once, and only
    headers have content.

    The hosts agree because each header that arrives is the own header. Time passes on the emulated
    link.
    """

    host, allows_any_thread = 0, True
    _HEADER_BYTES = 512  # larger messages are rows, whose content does not change the time

    def __init__(self, hosts: int) -> None:
        self.hosts = hosts
        self._memory: dict[int, Any] = {}
        self._headers: deque[int] = deque()

    def post(
        self, host: int, is_send: bool, address: int, rows: int, bytes: int, stride: int
    ) -> tuple[bool, int, int]:
        return is_send, address, rows * bytes

    def test(self, handle: tuple[bool, int, int]) -> bool:
        is_send, address, size = handle
        if size != self._HEADER_BYTES:
            return True
        if is_send:
            self._headers.append(address)
            return True
        if not self._headers:
            return False
        ctypes.memmove(address, self._headers.popleft(), size)
        return True

    def abandon(self, handle: object) -> None:
        pass

    def allocate(self, bytes: int) -> int:
        memory = np.zeros(bytes, np.uint8)
        address = int(memory.ctypes.data)
        self._memory[address] = memory
        return address

    def release(self, address: int) -> None:
        del self._memory[address]

    def close(self) -> None:
        self._memory.clear()


def _elements(rows: NDArray[np.uint32], first: int, count: int) -> NDArray[np.uint32]:
    """Return elements first .. first+count-1 of the rows with these numbers, shape (*rows.shape,
    count).
    """
    at = np.arange(first, first + count, dtype=np.uint32) * np.uint32(ELEMENT_FACTOR)
    return rows[..., None] * np.uint32(PE_FACTOR) + at


class _Trial:
    """A case on a cube: its input, its call, and its expected result, computed for one row after
    another.
    """

    def __init__(self, cube: pidcomm.hosts.Cube, case: HostsCase) -> None:
        self.cube, self.case, self.row = cube, case, COLLECTIVES[case.collective]
        grid = np.arange(prod(case.shape), dtype=np.uint32).reshape(case.shape[::-1])
        axes = range(len(case.shape))
        selected, rest = (
            [len(case.shape) - 1 - a for a in axes if case.mask[a] == bit][::-1] for bit in "10"
        )
        self.members = grid.transpose(*rest, *selected).reshape(
            -1, prod(grid.shape[a] for a in selected)
        )
        self.count = case.bytes // DTYPE.itemsize // self.row.blocks_per_pe(self.members.shape[1])
        self.has_rows = cube.has_rows(case.mask)
        self.first_group = 0 if case.mask[-1] == "1" else cube.host * cube.groups(case.mask).groups
        self.groups = cube.groups(case.mask).groups
        self.dst = case.dst
        if self.row.at_pes_before:
            self.host_in = None
            self._write(
                cube.host * cube.pes + np.arange(cube.pes, dtype=np.uint32),
                self._blocks(self.row.per_member_before),
            )
        elif self.has_rows:
            groups = np.arange(self.first_group, self.first_group + self.groups, dtype=np.uint32)
            self.host_in = _elements(groups, 0, self._blocks(self.row.per_member_before)).view(
                DTYPE
            )
        else:
            self.host_in = None
        self.out: NDArray[Any] | None = None
        if not self.row.at_pes_after and self.has_rows:
            self.out = np.zeros((self.groups, self._blocks(self.row.per_member_after)), DTYPE)

    def _blocks(self, per_member: bool) -> int:
        return self.count * (self.members.shape[1] if per_member else 1)

    def _write(self, rows: NDArray[np.uint32], count: int) -> None:
        self.cube.write(_elements(rows, 0, count).view(DTYPE))

    def timed(self) -> tuple[float, Any]:
        """Run the collective once; return its seconds and trace."""
        case = self.case
        trace, _ = self.cube.carry_out(
            case.collective,
            case.mask,
            bytes=case.bytes,
            src=0,
            dst=self.dst,
            dtype=DTYPE,
            op=OP,
            host=self.host_in,
            out=self.out,
            options=case.options,
        )
        return trace.seconds_total, trace

    def wrong(self) -> int:
        """Clear the output, run the collective, and return the number of wrong elements on this
        host.
        """
        out_count = self._blocks(self.row.per_member_after)
        if self.row.at_pes_after:
            self.cube.write(np.full((self.cube.pes, out_count), -1, DTYPE), self.dst)
        elif self.out is not None:
            self.out.fill(-1)
        self.timed()
        got = self.cube.read(out_count, DTYPE, self.dst) if self.row.at_pes_after else self.out
        if got is None:
            return 0
        return sum(
            int(np.count_nonzero(mine.view(np.uint32) != want))
            for mine, want in zip(got, self._expected(), strict=True)
        )

    def _expected(self) -> Iterator[NDArray[np.uint32]]:
        """Yield the rows of the result at this host."""
        if not self.row.at_pes_after:
            for group in range(self.first_group, self.first_group + self.groups):
                yield self._result(group, 0)
            return
        order = np.empty(self.members.size, np.int64)
        order[self.members.reshape(-1)] = np.arange(self.members.size)
        for pe in range(self.cube.host * self.cube.pes, (self.cube.host + 1) * self.cube.pes):
            yield self._result(*divmod(int(order[pe]), self.members.shape[1]))

    def _result(self, group: int, member: int) -> NDArray[np.uint32]:
        row, count = self.row, self.count
        members = self.members[group]
        first = member * count if row.per_member_before else 0
        if not row.at_pes_before:
            return _elements(np.array(group, np.uint32), first, count)
        if not row.takes_op:
            return _elements(members, first, count).reshape(-1)
        at = np.arange(first, first + count, dtype=np.uint32) * np.uint32(ELEMENT_FACTOR)
        return (
            np.sum(members * np.uint32(PE_FACTOR), dtype=np.uint32) + np.uint32(members.size) * at
        )


def _row(
    case: HostsCase,
    seconds: NDArray[np.float64],
    traces: Sequence[Any],
    wrong: int | None,
    source: str,
) -> HostsRow:
    median = float(np.median(seconds))
    trace = traces[int(np.argmin(np.abs(seconds - median)))]
    members = prod(n for n, bit in zip(case.shape, case.mask, strict=True) if bit == "1")
    row = COLLECTIVES[case.collective]
    blocks = max(row.blocks_before(members), row.blocks_after(members)) // row.blocks_per_pe(
        members
    )
    pes = prod(case.shape)
    sides = (
        pes * case.bytes
        if row.at_pes_before or row.at_pes_after
        else pes // members * blocks * case.bytes
    )
    return HostsRow(
        collective=case.collective,
        technique=case.technique,
        shape=format_shape(case.shape),
        mask=case.mask,
        bytes_per_pe=case.bytes,
        hosts=case.hosts,
        overlap=case.overlap,
        link=f"{EMULATED_LINK} {case.link_gb_s:g} GB/s"
        if case.link_gb_s
        else "memory of this machine",
        t_min_us=1e6 * float(seconds.min()),
        t_p50_us=1e6 * median,
        t_p99_us=1e6 * float(np.percentile(seconds, 99)),
        passes_us=1e6 * trace.seconds_pass,
        exchange_us=1e6 * trace.seconds_exchange,
        bytes_sent=trace.bytes_sent,
        algbw_gb_s=sides / median / 1e9,
        threads=trace.threads,
        wrong=wrong,
        source=source,
    )


def _work(work: dict[str, Any]) -> None:
    """Measure the cases in every process; process 0 prints the rows."""
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    for fields in work["cases"]:
        case = HostsCase(**{**fields, "shape": tuple(fields["shape"])})
        with pidcomm.allocate(pes=prod(case.shape[:-1])) as pes:
            link = pidcomm.hosts.Link(case.link_gb_s) if case.link_gb_s else None
            local = pes.hypercube(*case.shape[:-1])
            with pidcomm.hosts.connect(
                local, comm, overlap=case.overlap, link=link, timeout=TIMEOUT_S
            ) as cube:
                trial = _Trial(cube, case)
                timed = []
                for _ in range(work["warmup"] + work["iters"]):
                    comm.Barrier()
                    timed.append(trial.timed())
                slowest = np.max(comm.allgather([seconds for seconds, _ in timed]), axis=0)
                wrong = comm.allreduce(trial.wrong())
                if comm.rank == 0:
                    first = work["warmup"]
                    row = _row(
                        case,
                        slowest[first:],
                        [trace for _, trace in timed[first:]],
                        wrong,
                        "measured",
                    )
                    print(launcher.ROW + json.dumps(asdict(row)), flush=True)


if __name__ == "__main__":
    launcher.do_work(_work)
