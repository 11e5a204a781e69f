"""The cases of `pidcomm.bench.osu`: collectives, each with its data and a check of all elements."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import pidcomm
from pidcomm._core import LINE_BYTES
from pidcomm.arguments import MAX_COUNT, as_integer, as_number, as_sizes, row_of
from pidcomm.errors import ArgumentError
from pidcomm.hosts import Link
from pidcomm.model import load_machine
from pidcomm.pool import Pool
from pidcomm.tables import TRANSPORTS, WORD_BYTES

SLEEP_ERROR_S = 1e-4
PAGE_BYTES = 4096
CHUNK_LINES = (512 << 10) // LINE_BYTES
DTYPE = np.dtype(np.int32)
MACHINE = "emulated-host"  # its switch.gb_s
COLLECTIVES = ("allgather", "reduce_scatter", "allreduce", "alltoall")
SMALL_BYTES, SMALL, LARGE = 8192, (1000, 100), (100, 10)
"""The largest small size; iterations and warm-up of small and of large sizes."""


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


class _Payment:
    """Time on the emulated link of this process."""

    def __init__(self, link: Link | None) -> None:
        self._link = link

    def __call__(self, begin: float, bytes: int, accesses: int = 1) -> None:
        """Wait until a use of the link that began at `begin` would end."""
        if self._link is None:
            return
        rate = bytes / (1e9 * self._link.gb_s) if self._link.gb_s else 0.0
        end = begin + 1e-6 * self._link.latency_us * accesses + rate
        while (rest := end - time.perf_counter()) > 0:
            if rest > SLEEP_ERROR_S:
                time.sleep(rest - SLEEP_ERROR_S)


def _aligned(count: int) -> NDArray[Any]:
    """Return zeros at the start of a page, as those of the OSU micro-benchmarks."""
    memory = np.zeros(count * DTYPE.itemsize + PAGE_BYTES, np.uint8)
    begin = -memory.ctypes.data % PAGE_BYTES
    return memory[begin : begin + count * DTYPE.itemsize].view(DTYPE)


class HostBuffers:
    """A collective on host buffers: `x` of this process, and `out`."""

    copied: float | None = None
    correction_s = 0.0
    """Modelled less measured time of the switch, on process 0."""

    def __init__(
        self, case: OsuCase, comm: Any, pool: Pool | None, size_bytes: int, offset: int
    ) -> None:
        self.case, self.comm, self.pool, self.offset = case, comm, pool, offset
        self.pay = _Payment(case.link)
        parts = comm.size if case.collective in ("reduce_scatter", "alltoall") else 1
        step = math.lcm(parts, WORD_BYTES // DTYPE.itemsize)  # `Pool.reduce` takes whole words
        self.count = max(size_bytes // DTYPE.itemsize // step, 1) * step
        self.bytes = self.count * DTYPE.itemsize
        self.x = _aligned(self.count)
        self.x[:] = self.input_of(comm.rank)
        row = pidcomm.COLLECTIVES[case.collective]
        self.out = _aligned(
            self.count // row.blocks_before(comm.size) * row.blocks_after(comm.size)
        )
        self.switch_s = comm.size * self.bytes / (1e9 * load_machine(MACHINE)["switch.gb_s"])
        self.turn = 0
        lines = min(-(-self.bytes // LINE_BYTES), CHUNK_LINES)
        self.area_bytes = 2 * comm.size * lines * LINE_BYTES  # of an allgather
        self.run: Callable[[], None] = getattr(
            self, f"{'mpi' if pool is None else 'pool'}_{case.collective}"
        )

    @staticmethod
    def copies(processes: int, _: int) -> int:
        """Return the memory of a process in sizes: input, input in a wider type (2), messages,
        expected result, two slots of the pool; and the results of all processes.
        """
        return 7 + processes

    def input_of(self, rank: int) -> NDArray[Any]:
        """Return the data of a process."""
        return (np.arange(self.count, dtype=np.int64) * 7 + rank * 1009).astype(DTYPE)

    def wrong(self) -> int:
        """Clear the output, run, and return the number of wrong elements."""
        self.out.fill(-1)
        self.comm.Barrier()
        self.run()
        rank, size, name = self.comm.rank, self.comm.size, self.case.collective
        rows = map(self.input_of, range(size))
        if name in ("allgather", "alltoall"):
            wanted = (row if name == "allgather" else np.split(row, size)[rank] for row in rows)
            return sum(
                int(np.count_nonzero(block != want))
                for block, want in zip(np.split(self.out, size), wanted, strict=True)
            )
        total = np.zeros(self.count, DTYPE)
        for row in rows:
            total += row
        want = total if name == "allreduce" else np.split(total, size)[rank]
        return int(np.count_nonzero(self.out != want))

    # ---- messages: the MPI library, or a message to each process, which pays for the processes of
    # other hosts

    def _exchange(self, sent: Sequence[NDArray[Any]], received: Sequence[NDArray[Any]]) -> None:
        begin, rank, size = time.perf_counter(), self.comm.rank, self.comm.size
        requests = [
            request
            for n in range(1, size)
            for request in (
                self.comm.Irecv(received[(rank - n) % size], (rank - n) % size),
                self.comm.Isend(sent[(rank + n) % size], (rank + n) % size),
            )
        ]
        while not all([request.Test() for request in requests]):
            time.sleep(2e-5)
        remote = size - self.case.ppn
        self.pay(begin, remote * sent[0].nbytes, remote)

    def mpi_allgather(self) -> None:
        if self.case.link is None:
            self.comm.Allgather(self.x, self.out)
            return
        blocks = np.split(self.out, self.comm.size)
        blocks[self.comm.rank][:] = self.x
        self._exchange([self.x] * self.comm.size, blocks)

    def mpi_alltoall(self) -> None:
        if self.case.link is None:
            self.comm.Alltoall(self.x, self.out)
            return
        parts, blocks = np.split(self.x, self.comm.size), np.split(self.out, self.comm.size)
        blocks[self.comm.rank][:] = parts[self.comm.rank]
        self._exchange(parts, blocks)

    def _reduced_part(self) -> NDArray[Any]:
        received = np.empty((self.comm.size, self.count // self.comm.size), DTYPE)
        parts = np.split(self.x, self.comm.size)
        received[self.comm.rank] = parts[self.comm.rank]
        self._exchange(parts, list(received))
        return np.asarray(np.add.reduce(received, axis=0, dtype=DTYPE))

    def mpi_reduce_scatter(self) -> None:
        if self.case.link is None:
            self.comm.Reduce_scatter_block(self.x, self.out)
        else:
            self.out[:] = self._reduced_part()

    def mpi_allreduce(self) -> None:
        if self.case.link is None:
            self.comm.Allreduce(self.x, self.out)
        elif self.count % self.comm.size:  # too small for parts
            received = np.empty((self.comm.size, self.count), DTYPE)
            received[self.comm.rank] = self.x
            self._exchange([self.x] * self.comm.size, list(received))
            np.add.reduce(received, axis=0, out=self.out)
        else:
            blocks = np.split(self.out, self.comm.size)
            blocks[self.comm.rank][:] = self._reduced_part()
            self._exchange([blocks[self.comm.rank]] * self.comm.size, blocks)

    # ---- the pool; two slots in turn, so that one sync per call is enough

    def _slot(self) -> int:
        self.turn += 1
        return self.offset + self.turn % 2 * int(self.comm.size) * self.x.nbytes

    def _write(self, offset: int, x: NDArray[Any], out: NDArray[Any] | None = None) -> None:
        begin = time.perf_counter()
        self.pool.write(offset, x, out=out)  # type: ignore[union-attr]
        self.pay(begin, x.nbytes)

    def _read(self, offset: int, out: NDArray[Any]) -> NDArray[Any]:
        begin = time.perf_counter()
        self.pool.read(offset, out.size, DTYPE, out=out)  # type: ignore[union-attr]
        self.pay(begin, out.nbytes)
        return out

    def _sync(self) -> None:
        self.pool.sync()  # type: ignore[union-attr]
        self.pay(time.perf_counter(), 0, 2)

    def pool_allgather(self) -> None:
        rank, size = self.comm.rank, self.comm.size
        self.copied = size
        if self.case.link is None:
            self.pool.allgather(  # type: ignore[union-attr]
                self.offset, self.area_bytes, self.x, out=self.out
            )
            return
        blocks = self.out.reshape(size, -1)
        slot = self._slot()
        self._write(slot + rank * self.x.nbytes, self.x, blocks[rank])
        self._sync()
        for other in range(rank + 1 - size, rank):
            self._read(slot + other % size * self.x.nbytes, blocks[other])

    def pool_alltoall(self) -> None:
        slot = self._slot()
        self._write(slot + self.comm.rank * self.x.nbytes, self.x)
        self._sync()
        for rank, block in enumerate(np.split(self.out, self.comm.size)):
            self._read(slot + rank * self.x.nbytes + self.comm.rank * block.nbytes, block)
        self.copied = 2

    def _reduce(self, slot: int, first: int, out: NDArray[Any]) -> None:
        """Reduce the elements of all processes from `first` on into out."""
        part = np.empty_like(out)
        for rank in range(self.comm.size):
            self._read(slot + rank * self.x.nbytes + first * DTYPE.itemsize, part if rank else out)
            if rank:
                np.add(out, part, out=out)

    def _on_switch(self, slot: int) -> None:
        if self.comm.rank == 0:
            begin = time.perf_counter()
            self.pool.reduce(slot, self.comm.size, self.count, DTYPE)  # type: ignore[union-attr]
            self.correction_s += self.switch_s - (time.perf_counter() - begin)
            self.pay(begin, 0, 2)  # the request and its answer
        self._sync()

    def pool_reduce_scatter(self) -> None:
        slot, first = self._slot(), self.comm.rank * self.out.size
        self._write(slot + self.comm.rank * self.x.nbytes, self.x)
        self._sync()
        if self.case.transport == "switch":
            self._on_switch(slot)
            self._read(slot + first * DTYPE.itemsize, self.out)
            self.copied = 1 + 1 / self.comm.size
        else:
            self._reduce(slot, first, self.out)
            self.copied = 2

    def pool_allreduce(self) -> None:
        slot = self._slot()
        self._write(slot + self.comm.rank * self.x.nbytes, self.x)
        self._sync()
        if self.case.transport == "switch":
            self._on_switch(slot)
            self.copied = 2
        else:
            first, end = (self.count * (self.comm.rank + n) // self.comm.size for n in (0, 1))
            part = np.empty(end - first, DTYPE)
            self._reduce(slot, first, part)
            self._write(slot + first * DTYPE.itemsize, part)
            self._sync()
            self.copied = 3 + 1 / self.comm.size
        self._read(slot, self.out)


class PeBuffers:
    """A collective of `pidcomm.hosts` along all PEs of all processes; size_bytes per PE as in a
    call.
    """

    copied: float | None = None
    correction_s = 0.0

    def __init__(self, case: OsuCase, cube: pidcomm.hosts.Cube, size_bytes: int) -> None:
        self.cube, self.name = cube, case.collective
        members = cube.pes * cube.hosts
        self.bytes = max(size_bytes // (8 * members), 1) * 8 * members
        row = pidcomm.COLLECTIVES[case.collective]
        count = (
            self.bytes // DTYPE.itemsize // row.blocks_per_pe(members) * row.blocks_before(members)
        )
        rows = cube.host * cube.pes + np.arange(cube.pes)
        self.x = (rows[:, None] * 1009 + np.arange(count)[None] * 7).astype(DTYPE)
        self.everything = (np.arange(members)[:, None] * 1009 + np.arange(count)[None] * 7).astype(
            DTYPE
        )
        self.dst, self.after = self.bytes, row.blocks_after(members)
        cube.write(self.x)

    @staticmethod
    def copies(processes: int, pes: int) -> int:
        """Return the memory of a process in sizes: for each PE of all processes, the input, the
        input in a wider type while it is made (4), MRAM, result and expected result.
        """
        return 8 * processes * pes

    def run(self) -> None:
        self.cube.carry_out(
            self.name,
            "11",
            bytes=self.bytes,
            src=0,
            dst=self.dst,
            dtype=DTYPE,
            op="sum",
            host=None,
            out=None,
            options={},
        )

    def wrong(self) -> int:
        """Clear the result, run, and return the number of wrong elements."""
        self.cube.write(np.full((self.cube.pes, self.bytes // DTYPE.itemsize), -1, DTYPE), self.dst)
        self.run()
        if self.name == "allgather":
            want = np.broadcast_to(
                self.everything.reshape(-1), (self.cube.pes, self.everything.size)
            )
        elif self.name == "alltoall":
            members = self.cube.pes * self.cube.hosts
            blocks = (
                self.everything.reshape(members, members, -1).swapaxes(0, 1).reshape(members, -1)
            )
            want = np.split(blocks, self.cube.hosts)[self.cube.host]
        else:
            want = np.broadcast_to(
                self.everything.sum(0, dtype=DTYPE), (self.cube.pes, self.everything.shape[1])
            )
            if self.name == "reduce_scatter":
                want = np.split(
                    want[0].reshape(self.cube.pes * self.cube.hosts, -1), self.cube.hosts
                )[self.cube.host]
        return int(np.count_nonzero(self.cube.read(want.shape[1], DTYPE, self.dst) != want))
