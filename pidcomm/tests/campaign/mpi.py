"""Compare random collectives with the collectives of an MPI library, one MPI process per member
of a group.
"""

from __future__ import annotations

import os
import random
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
from attack import Attack, skip

import pidcomm

PROCESSES = 8  # members of the largest group
BATCH = 50  # cases between two broadcasts of whether the run goes on
INSTALL = "pip install mpi4py mpich"

try:
    from mpi4py import MPI
except ImportError as error:
    skip(f"{error}; {INSTALL}")

OPS = {
    "sum": MPI.SUM,
    "prod": MPI.PROD,
    "min": MPI.MIN,
    "max": MPI.MAX,
    "and": MPI.BAND,
    "or": MPI.BOR,
    "xor": MPI.BXOR,
}


@dataclass(frozen=True)
class Case:
    """A collective in `groups` groups of `members` PEs; under mask 10 members are neighbours,
    under 01 groups are.
    """

    collective: str
    mask: str
    members: int
    groups: int
    count: int  # elements per block
    dtype: str
    op: str
    technique: str
    seed: int

    @property
    def row(self) -> Any:
        """The row of the collective."""
        return pidcomm.COLLECTIVES[self.collective]

    def make_inputs(self) -> Any:
        """Return the input rows of all members of all groups; at a collective with host rows,
        those of the host.
        """
        rng = np.random.default_rng(self.seed)
        blocks = self.row.blocks_before(self.members)
        rows = (self.groups, self.members if self.row.at_pes_before else 1, blocks * self.count)
        dtype = np.dtype(self.dtype)
        if "float" in dtype.name:  # sums and products of these values are exact in every order
            return rng.choice([-2, -1, 1, 2], rows).astype(dtype)
        return np.frombuffer(rng.bytes(int(np.prod(rows)) * dtype.itemsize), dtype).reshape(rows)

    def at_pes(self, rows: Any) -> Any:
        """Return rows of groups and members in the order of PEs."""
        ordered = rows if self.mask == "10" else rows.transpose(1, 0, 2)
        return np.ascontiguousarray(ordered).reshape(self.members * self.groups, -1)


def draw(choices: random.Random) -> Case:
    """Return a random case."""
    collective = choices.choice(list(pidcomm.COLLECTIVES))
    dtype = choices.choice(
        [name for name in pidcomm.TYPES if not name.endswith("float16")]
    )  # MPI has no floats of 16 bits
    ops = ["sum", "prod", "min", "max"] + (["and", "or", "xor"] if "int" in dtype else [])
    return Case(
        collective=collective,
        mask=choices.choice(("10", "01")),
        members=choices.randint(2, PROCESSES),
        groups=choices.randint(1, 4),
        count=8 * choices.randint(1, 6),
        dtype=dtype,
        op=choices.choice(ops),
        technique=choices.choice(("tile", "tile", "conventional", "auto")),
        seed=choices.getrandbits(32),
    )


def pidcomm_result(pes: pidcomm.PeSet, case: Case) -> Any:
    """Return the result of pidcomm, with rows of groups and members, or of groups."""
    lengths = (case.members, case.groups) if case.mask == "10" else (case.groups, case.members)
    cube = pes.hypercube(*lengths)
    inputs = case.make_inputs()
    x = case.at_pes(inputs) if case.row.at_pes_before else inputs.reshape(case.groups, -1)
    reduction = {"op": case.op} if case.row.takes_op else {}
    y = getattr(cube.arrays, case.collective)(x, case.mask, technique=case.technique, **reduction)
    if not case.row.at_pes_after:
        return y.reshape(case.groups, 1, -1)
    shape = (
        (case.groups, case.members, -1) if case.mask == "10" else (case.members, case.groups, -1)
    )
    return y.reshape(shape) if case.mask == "10" else y.reshape(shape).transpose(1, 0, 2)


def collective_by_mpi(case: Any, group: Any, mine: Any) -> Any:
    """Run the collective of a case by MPI with the row `mine` of this process; return its row of
    the result.
    """
    out = np.empty(case.row.blocks_after(case.members) * case.count, mine.dtype)
    if case.collective == "alltoall":
        group.Alltoall(mine, out)
    elif case.collective == "reduce_scatter":
        group.Reduce_scatter_block(mine, out, OPS[case.op])
    elif case.collective == "allreduce":
        group.Allreduce(mine, out, OPS[case.op])
    elif case.collective == "allgather":
        group.Allgather(mine, out)
    elif case.collective == "scatter":
        group.Scatter(mine if group.rank == 0 else None, out)
    elif case.collective == "gather":
        group.Gather(mine, out if group.rank == 0 else None)
    elif case.collective == "reduce":
        group.Reduce(mine, out if group.rank == 0 else None, OPS[case.op])
    else:
        out[:] = mine if group.rank == 0 else 0
        group.Bcast(out)
    return out


def mpi_result(case: Case, group: Any) -> Any:
    """Return this process' row of the result for each group, or None if the process has no row."""
    rank, rows = group.rank, []
    for inputs in case.make_inputs():
        mine = np.ascontiguousarray(inputs[rank if case.row.at_pes_before else 0])
        rows.append(collective_by_mpi(case, group, mine))
    return np.stack(rows)


def work() -> None:
    """Run cases in every process; process 0 compares."""
    attack = Attack()
    world = MPI.COMM_WORLD
    groups = {
        members: world.Split(0 if world.rank < members else MPI.UNDEFINED)
        for members in range(2, PROCESSES + 1)
    }
    pes = pidcomm.allocate(pes=4 * PROCESSES) if world.rank == 0 else None
    numbers = attack.numbers()
    while True:
        batch = list(islice(numbers, BATCH)) if world.rank == 0 else None
        batch = world.bcast(batch)
        if not batch:
            break
        for number in batch:
            case = draw(attack.random(number))
            if world.rank >= case.members:
                continue
            rows = groups[case.members].gather(mpi_result(case, groups[case.members]))
            if pes is None:
                continue
            want = np.stack(rows, axis=1)[:, : case.members if case.row.at_pes_after else 1]
            try:
                got = pidcomm_result(pes, case)
            except pidcomm.Error as error:
                attack.find(f"{case}: {error}", number=number)
                continue
            if not np.array_equal(got, want):
                at = tuple(int(index[0]) for index in np.nonzero(got != want))
                attack.find(
                    f"{case}: (group, member, element) {at} is {got[at]}, not {want[at]}",
                    number=number,
                )
    if world.rank == 0:
        attack.finish()


def start_processes(processes: int) -> int:
    """Start this program again in processes of MPI; return the exit status.

    MPIEXEC is the command that starts them (default: mpiexec beside Python, or in PATH).
    """
    folders = f"{os.path.dirname(sys.executable)}:{os.environ.get('PATH', '')}"
    mpiexec = shlex.split(os.environ.get("MPIEXEC", "")) or [shutil.which("mpiexec", path=folders)]
    if mpiexec[0] is None:
        skip(f"there is no mpiexec; {INSTALL}")
    command = [*mpiexec, "-n", str(processes), sys.executable, "-u", *sys.argv]
    variables = {"CAMPAIGN_MPI_WORKER": "1", "OMP_NUM_THREADS": "1"}
    return subprocess.run(command, env={**os.environ, **variables}, check=False).returncode


if __name__ == "__main__":
    work() if "CAMPAIGN_MPI_WORKER" in os.environ else sys.exit(start_processes(PROCESSES))
