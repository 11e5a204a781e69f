"""Breadth-first search over the PEs of several hosts, checked against the CPU.

pidcomm hosts run -n 4 --pes 64 -- python examples/bfs_over_hosts.py
"""

from typing import Any

import numpy as np
from mpi4py import MPI

import pidcomm
from pidcomm_studies.apps import bfs
from pidcomm_studies.apps.stage import Stage

PES = 64  # of each host
COMM = MPI.COMM_WORLD


# [adapter]
class AllHosts:
    """The PEs of all hosts as the one-dimensional hypercube for which the application is
    written.
    """

    def __init__(self, local: pidcomm.Hypercube) -> None:
        self.cube = pidcomm.hosts.connect(local, COMM)
        self.pes = local.pes * self.cube.hosts
        self.shape = (self.pes,)
        self.own = slice(self.cube.host * local.pes, (self.cube.host + 1) * local.pes)

    def groups(self, mask: str) -> pidcomm.Groups:
        return self.cube.groups(f"{mask}1")

    def write(self, rows: Any, offset: int, **options: Any) -> pidcomm.Trace:
        return self.cube.write(rows[self.own], offset, **options)

    def carry_out(
        self, name: str, mask: str, *, host: Any = None, out: Any = None, **rest: Any
    ) -> Any:
        if host is not None:
            rest["dtype"] = host.dtype
        is_root = self.cube.host == 0
        rest |= {"host": host if is_root else None, "out": out if is_root else None}
        trace, _ = self.cube.carry_out(name, f"{mask}1", **rest)
        if out is not None:
            COMM.Bcast(out)  # every host decides whether the search goes on
        return trace, out


# [end]


class HostsStage(Stage):
    """A stage whose launches take values for the PEs of all hosts."""

    def launch(self, **variables: Any) -> None:
        own = self.cube.own  # type: ignore[attr-defined]
        super().launch(
            **{name: value[own] if np.ndim(value) else value for name, value in variables.items()}
        )


search = bfs.APPLICATION.make(generate="rmat:scale=12")
with pidcomm.allocate(pes=PES) as pes:
    placement = search.place((PES * COMM.size,))
    with HostsStage(pes, (PES,), placement, {"technique": "tile"}) as stage:
        stage.cube = AllHosts(stage.cube)  # type: ignore[assignment]
        levels = search.run(stage)
        exchanged = COMM.allreduce(stage.cube.cube.last_trace.bytes_sent)  # type: ignore[attr-defined]
        stage.cube.cube.close()  # type: ignore[attr-defined]
wrong = int(np.count_nonzero(levels != search.reference()))
if COMM.rank == 0:
    print(
        f"{COMM.size} hosts: {len(levels)} vertices, {levels.max()} levels, {wrong} wrong elements"
    )
raise SystemExit(int(wrong > 0))
