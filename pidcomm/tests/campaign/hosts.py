"""Compare random collectives over hosts with plain MPI: a Cartesian communicator with a process per
PE, and `Cart_sub`.

The first processes are also the hosts of pidcomm. One more axis, over which no call communicates,
gives each process several PEs of the definition.
"""

from __future__ import annotations

import os
import random
import sys
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
from attack import Attack
from mpi import MPI, collective_by_mpi, start_processes

import pidcomm
from pidcomm.programs import MRAM_WINDOW
from pidcomm.tables import OVERLAPS, TRANSPORTS

PROCESSES = 8
POOL_BYTES = 1 << 20, 128 << 10  # a small pool needs several pieces
COUNT_FACTORS = 1, 1, 1, 64  # with the largest, calls have more bytes than the small pool
BATCH = 25  # cases between two broadcasts of whether the run goes on


@dataclass(frozen=True)
class Case:
    """A collective on `shape`, whose last axis is the hosts; the axis `rows_axis` is the one of
    a process' PEs.
    """

    collective: str
    shape: tuple[int, ...]
    mask: str
    rows_axis: int
    count: int  # elements per block
    dtype: str
    op: str
    technique: str
    overlap: str
    link: float | None
    root: int
    waits: bool
    in_place: bool
    seed: int
    transport: str
    pool_bytes: int

    @property
    def row(self) -> Any:
        """The row of the collective."""
        return pidcomm.COLLECTIVES[self.collective]

    @property
    def hosts(self) -> int:
        """The number of hosts."""
        return self.shape[-1]

    @property
    def cart(self) -> tuple[int, ...]:
        """The axes of the processes."""
        return self.shape[: self.rows_axis] + self.shape[self.rows_axis + 1 :]

    @property
    def processes(self) -> int:
        """The number of processes of the definition."""
        return int(np.prod(self.cart))

    @property
    def members(self) -> int:
        """Members of a group."""
        return int(
            np.prod(
                [length for length, bit in zip(self.shape, self.mask, strict=True) if bit == "1"]
            )
        )

    @property
    def pes(self) -> int:
        """PEs of a host."""
        return int(np.prod(self.shape[:-1]))

    def rows_at(self, at_pes: bool, blocks: int) -> tuple[int, int]:
        """The shape of the rows of all PEs, or of all groups."""
        pes = self.pes * self.hosts
        return (pes if at_pes else pes // self.members, blocks * self.count)

    def make_inputs(self) -> Any:
        """Return the input rows of all PEs, or of all groups."""
        rng = np.random.default_rng(self.seed)
        rows = self.rows_at(self.row.at_pes_before, self.row.blocks_before(self.members))
        dtype = np.dtype(self.dtype)
        if "float" in dtype.name:  # sums and products of these values are exact in every order
            return rng.choice([-2, -1, 1, 2], rows).astype(dtype)
        return np.frombuffer(rng.bytes(int(np.prod(rows)) * dtype.itemsize), dtype).reshape(rows)

    def ordered(self, rows: Any, is_of_pes: bool) -> Any:
        """Return rows with an index per axis (for rows of groups, per unselected axis), the last
        axis first.
        """
        lengths = [
            n for n, bit in zip(self.shape, self.mask, strict=True) if is_of_pes or bit == "0"
        ]
        return rows.reshape(*reversed(lengths), -1)


def draw(choices: random.Random) -> Case:
    """Return a random case."""
    collective = choices.choice(list(pidcomm.COLLECTIVES))
    dtype = choices.choice(
        [name for name in pidcomm.TYPES if not name.endswith("float16")]
    )  # MPI has no floats of 16 bits
    ops = ["sum", "prod", "min", "max"] + (["and", "or", "xor"] if "int" in dtype else [])
    hosts = choices.randint(1 if choices.random() < 0.05 else 2, PROCESSES)
    local: list[int] = []
    while (
        len(local) < 4
        and choices.random() < 0.7
        and (most := PROCESSES // (hosts * int(np.prod(local)))) > 0
    ):
        local.append(choices.randint(1, most))
    rows_axis = choices.randint(0, len(local))
    shape = (*local[:rows_axis], choices.choice((1, 2, 3, 4, 5, 8, 9)), *local[rows_axis:], hosts)
    mask = "".join(
        "0" if axis == rows_axis else choices.choice("01") for axis in range(len(shape) - 1)
    )
    return Case(
        collective=collective,
        shape=shape,
        mask=mask + choices.choice("01111"),
        rows_axis=rows_axis,
        count=8 * choices.randint(1, 6) * choices.choice(COUNT_FACTORS),
        dtype=dtype,
        op=choices.choice(ops),
        technique=choices.choice(("tile", "tile", "conventional", "auto")),
        overlap=choices.choice(tuple(OVERLAPS)),
        link=choices.choice((None, None, None, 1.25, 0.0005)),
        root=choices.randrange(hosts),
        waits=choices.random() < 0.75,
        in_place=choices.random() < 0.5,
        seed=choices.getrandbits(32),
        transport=choices.choice(
            os.environ.get("CAMPAIGN_TRANSPORTS", " ".join(TRANSPORTS)).split()
        ),
        pool_bytes=choices.choice(POOL_BYTES),
    )


POOLS: dict[tuple[int, str, int], pidcomm.pool.Pool] = {}


def pool_of(comm: Any, case: Case) -> pidcomm.pool.Pool:
    """Return the pool of these hosts, which stays open for later cases."""
    key = (case.hosts, case.transport, case.pool_bytes)
    if key not in POOLS:
        name = comm.bcast(f"campaign{os.getpid()}-{len(POOLS)}")
        switch = case.transport == "switch"
        POOLS[key] = pidcomm.pool.Pool(
            name, host=comm.rank, hosts=case.hosts, bytes=case.pool_bytes, switch=switch
        )
    return POOLS[key]


def hosts_result(pes: pidcomm.PeSet, comm: Any, case: Case) -> Any:
    """Return the rows that pidcomm leaves at this host, or None."""
    local = pes.hypercube(*case.shape[:-1])
    everywhere, host = case.make_inputs(), comm.rank
    is_selected = case.mask[-1] == "1"
    x = everywhere
    if case.row.at_pes_before or not is_selected:
        x = np.split(everywhere, case.hosts)[host]
    arguments: dict[str, Any] = {"op": case.op} if case.row.takes_op else {}
    if not (case.row.at_pes_before and case.row.at_pes_after):
        arguments["root"] = case.root
    way = comm if case.transport == "mpi" else pool_of(comm, case)
    with pidcomm.hosts.connect(
        local, way, overlap=case.overlap, link=case.link, timeout=60
    ) as cube:
        if case.waits:
            y = getattr(cube.arrays, case.collective)(
                x, case.mask, technique=case.technique, **arguments
            )
            return None if y is None else y.copy()
        # The call without waiting, with windows.
        row, size = case.row, np.dtype(case.dtype).itemsize * case.count
        bytes_per_pe = size * row.blocks_per_pe(case.members)
        window = MRAM_WINDOW * (case.seed % 2)  # without a program, a byte of MRAM is an offset
        src, dst = 64 + window, (64 if case.in_place else 1 << 20) + window
        if row.at_pes_before:
            cube.write(x, src)
            arguments |= {"src": src, "dtype": x.dtype}
        elif is_selected and host != case.root:
            arguments |= {"dtype": x.dtype}
        else:
            arguments |= {"host": x}
        if row.at_pes_after:
            arguments |= {"dst": dst}
        call = getattr(cube, case.collective)
        y = call(
            case.mask, bytes=bytes_per_pe, wait=False, technique=case.technique, **arguments
        ).wait()
        return (
            cube.read(case.count * row.blocks_after(case.members), x.dtype, dst)
            if row.at_pes_after
            else y
        )


def definition(case: Case, cart: Any) -> Any:
    """Return the rows of all PEs, or of all groups, by plain MPI, in every process of the
    Cartesian communicator.
    """
    axes = [axis for axis in range(len(case.shape)) if axis != case.rows_axis]
    group = cart.Sub([case.mask[axis] == "1" for axis in reversed(axes)])
    place = dict(zip(reversed(axes), cart.coords, strict=True))
    row, results = case.row, []

    def index(is_of_pes: bool, number: int) -> tuple[int, ...]:
        place[case.rows_axis] = number
        used = [axis for axis in range(len(case.shape)) if is_of_pes or case.mask[axis] == "0"]
        return tuple(place[axis] for axis in reversed(used))

    inputs = case.ordered(case.make_inputs(), row.at_pes_before)
    for number in range(case.shape[case.rows_axis]):
        mine = np.ascontiguousarray(inputs[index(row.at_pes_before, number)])
        out = collective_by_mpi(case, group, mine)
        if row.at_pes_after or group.rank == 0:
            results.append((index(row.at_pes_after, number), out))
    rows = np.empty(case.rows_at(row.at_pes_after, row.blocks_after(case.members)), case.dtype)
    ordered = case.ordered(rows, row.at_pes_after)
    for part in cart.allgather(results):
        for at, out in part:
            ordered[at] = out
    group.Free()
    return rows


def work() -> None:
    """Run cases in every process; process 0 reports."""
    attack = Attack()
    world = MPI.COMM_WORLD
    firsts = {
        n: world.Split(0 if world.rank < n else MPI.UNDEFINED, world.rank)
        for n in range(1, PROCESSES + 1)
    }
    pes = pidcomm.allocate(pes=128)
    numbers = attack.numbers(
        int(os.environ["CAMPAIGN_CASES"]) if "CAMPAIGN_CASES" in os.environ else None
    )
    while True:
        batch = world.bcast(list(islice(numbers, BATCH)) if world.rank == 0 else None)
        if not batch:
            break
        for number in batch:
            case = draw(attack.random(number))
            sentence = None
            if world.rank < case.processes:
                cart = firsts[case.processes].Create_cart(tuple(reversed(case.cart)))
                want = definition(case, cart)
                cart.Free()
                if world.rank < case.hosts:
                    sentence = compare(pes, firsts[case.hosts], case, want)
            for finding in filter(None, world.gather(sentence) or ()):
                attack.find(finding, number=number)
    if world.rank == 0:
        attack.finish()


def compare(pes: pidcomm.PeSet, comm: Any, case: Case, want: Any) -> str | None:
    """Run the case on this host. Return a sentence if the result is wrong."""
    host = comm.rank
    is_shared = not case.row.at_pes_after and case.mask[-1] == "1"
    mine = want if is_shared else np.split(want, case.hosts)[host]
    try:
        got = hosts_result(pes, comm, case)
    except pidcomm.Error as error:
        return f"{case}: host {host}: {error}"
    if got is None or (is_shared and host != case.root):
        is_right = got is None and is_shared and host != case.root
        return (
            None if is_right else f"{case}: host {host} has {'no rows' if got is None else 'rows'}"
        )
    if np.array_equal(got, mine):
        return None
    at = (
        tuple(int(index[0]) for index in np.nonzero(got != mine))
        if got.shape == mine.shape
        else got.shape
    )
    return f"{case}: host {host}: (row, element) {at} is wrong"


if __name__ == "__main__":
    work() if "CAMPAIGN_MPI_WORKER" in os.environ else sys.exit(start_processes(PROCESSES))
