"""Collective communication between the PEs of processing-in-DIMM machines.

An example:

    pes  = pidcomm.allocate(pes=1024)
    cube = pes.hypercube(32, 32)
    cube.write(x)
    cube.allreduce("10", bytes=x.shape[1] * x.itemsize, dst=1 << 20, dtype=x.dtype, op="sum")
    y = cube.read(x.shape[1], x.dtype, offset=1 << 20)
    z = cube.arrays.alltoall(x, "10")

``import pidcomm.model`` adds predictions of the time of a collective.
"""

from __future__ import annotations

from pidcomm import hosts as hosts
from pidcomm import pool as pool
from pidcomm._core import MRAM_BYTES, PES_PER_RANK
from pidcomm._core import version as _version
from pidcomm.arguments import Options
from pidcomm.arrays import ArrayCollectives
from pidcomm.batches import Batch
from pidcomm.buffers import Buffer
from pidcomm.errors import ArgumentError, Error, OutOfMemoryError
from pidcomm.hypercube import Hypercube
from pidcomm.messages import MESSAGE, displacements
from pidcomm.operators import Operator, ScaledSum
from pidcomm.pe_set import PeSet, allocate
from pidcomm.places import Groups, Location
from pidcomm.plans import Plan, plan
from pidcomm.programs import Symbol
from pidcomm.records import Record, Records, recorder
from pidcomm.requests import Request
from pidcomm.streams import Stream, StreamPiece, StreamTrace
from pidcomm.tables import (
    COHERENCES,
    COLLECTIVES,
    COPY_ORDERS,
    DEFAULT_ISA,
    ISAS,
    OPS,
    STATUSES,
    TECHNIQUES,
    TYPES,
)
from pidcomm.trace import Trace

__version__ = _version()
"""Version of the library, as "major.minor.patch"."""

__all__ = [
    "COHERENCES",
    "COLLECTIVES",
    "COPY_ORDERS",
    "DEFAULT_ISA",
    "ISAS",
    "MESSAGE",
    "MRAM_BYTES",
    "OPS",
    "PES_PER_RANK",
    "STATUSES",
    "TECHNIQUES",
    "TYPES",
    "ArgumentError",
    "ArrayCollectives",
    "Batch",
    "Buffer",
    "Error",
    "Groups",
    "Hypercube",
    "Location",
    "Operator",
    "Options",
    "OutOfMemoryError",
    "PeSet",
    "Plan",
    "Record",
    "Records",
    "Request",
    "ScaledSum",
    "Stream",
    "StreamPiece",
    "StreamTrace",
    "Symbol",
    "Trace",
    "__version__",
    "allocate",
    "displacements",
    "plan",
    "recorder",
]


def __dir__() -> list[str]:
    return sorted([*__all__, "hosts", "pool"])
