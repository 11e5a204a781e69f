"""The choices of the library: collectives, types, operators, techniques, instruction sets and
coherence policies.

The rows come from the library's tables (``tables.h``). This module adds only the block counts of
the collectives.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import ml_dtypes as ml_dtypes  # gives NumPy the dtype bfloat16

from pidcomm import _core
from pidcomm._core import BANKS_PER_CHIP, CHIPS_PER_RANK, PES_PER_RANK, WORD_BYTES
from pidcomm._rows import CollectiveName, IsaName, OpName, TechniqueName

__all__ = [
    "BANKS_PER_CHIP",
    "CHIPS_PER_RANK",
    "COHERENCES",
    "COLLECTIVES",
    "COPY_ORDERS",
    "DEFAULT_ISA",
    "ISAS",
    "OPS",
    "OVERLAPS",
    "PES_PER_RANK",
    "ROWS",
    "SCANS",
    "STATUSES",
    "STATUS_CODES",
    "TECHNIQUES",
    "TRANSPORTS",
    "TYPES",
    "WORD_BYTES",
    "Choice",
    "Collective",
    "CollectiveName",
    "Isa",
    "IsaName",
    "Op",
    "OpName",
    "Technique",
    "TechniqueName",
    "Type",
    "techniques_for",
]


@dataclass(frozen=True, repr=False)
class Choice:
    """Hold the name of a choice and the code of the choice in the library."""

    name: str
    code: int

    def __repr__(self) -> str:
        """Report the kind and the name."""
        return f"<{type(self).__name__} {self.name}>"


@dataclass(frozen=True, repr=False)
class Collective(Choice):
    """Describe a collective: whether it needs an operator, and the place and number of blocks
    before and after it.

    A row belongs to a PE, or to a group on the host. A row has one block, or one block per member
    of the group.
    """

    takes_op: bool
    at_pes_before: bool
    at_pes_after: bool
    per_member_before: bool
    per_member_after: bool
    steps: int  # bits PR 1, IM 2, CM 4: steps of the PID-Comm paper that apply

    def blocks_before(self, group_pes: int) -> int:
        """Return the number of blocks of an input row."""
        return group_pes if self.per_member_before else 1

    def blocks_after(self, group_pes: int) -> int:
        """Return the number of blocks of an output row."""
        return group_pes if self.per_member_after else 1

    def blocks_per_pe(self, group_pes: int) -> int:
        """Return the number of blocks in ``bytes``, the larger of the input and the output of a
        PE.
        """
        before = self.blocks_before(group_pes) if self.at_pes_before else 1
        after = self.blocks_after(group_pes) if self.at_pes_after else 1
        return max(before, after)


@dataclass(frozen=True, repr=False)
class Technique(Choice):
    """Describe a technique: the data path, and the applied steps of the PID-Comm paper.

    path: ``tile``, ``sdk``, ``baseline``, ``paper``, ``ring`` or ``tree``. steps: bits PR 1, IM 2,
    CM 4.
    collectives: a bit set of the supported collectives, bit c for code c. needs_lane_split: whether
    the shape must have a lane split.
    is_for_auto: whether ``auto`` may choose the technique. If no step of a technique applies to a
    collective, the collective runs as ``conventional``.
    """

    path: str
    steps: int
    collectives: int
    needs_lane_split: bool
    is_for_auto: bool

    @property
    def uses_sdk(self) -> bool:
        """Return whether the SDK transfers the data."""
        return self.path in ("sdk", "baseline")

    @property
    def runs_pe_program(self) -> bool:
        """Return whether PEs may reorder blocks (step PR).

        Reordering replaces the loaded program and needs scratch MRAM.
        """
        return bool(self.steps & 1)

    def is_for(self, collective: Collective) -> bool:
        """Return whether the technique supports a collective."""
        return bool(self.collectives >> collective.code & 1)


@dataclass(frozen=True, repr=False)
class Type(Choice):
    """Describe an element type. The name of an element type is the name in NumPy; c_type is its
    name in C.
    """

    size_bytes: int
    is_float: bool
    c_type: str


@dataclass(frozen=True, repr=False)
class Op(Choice):
    """Describe an operator. Operators of kind ``bits`` are for integers only."""

    kind: str


@dataclass(frozen=True, repr=False)
class Isa(Choice):
    """Describe an instruction set.

    The default is the available instruction set with the highest level; level 0 is never the
    default.
    """

    level: int
    is_available: bool


_rows = _core.tables()
COLLECTIVES = {row[0]: Collective(*row) for row in _rows["collectives"]}
"""The eight collectives, by name."""
SCANS = {
    name: replace(COLLECTIVES["allreduce"], name=name, code=code, steps=0)
    for name, code in _core.SCANS.items()
}
"""Scans, by name."""
ROWS = COLLECTIVES | SCANS
"""Collectives and scans, by name."""
TYPES = {row[0]: Type(*row) for row in _rows["types"]}
"""Element types, by their NumPy names."""
OPS = {row[0]: Op(*row) for row in _rows["ops"]}
"""Operators of reductions, by name.

Integers support all operators, floats all except and, or, xor.
"""
TECHNIQUES = {row[0]: Technique(*row) for row in _rows["techniques"]}
"""Techniques that run collectives, by name.

Those with pr, baseline, ring and tree are from the PID-Comm paper; tile is new.
"""
ISAS = {row[0]: Isa(*row) for row in _rows["isas"]}
"""Instruction sets of the host pass, by name. `is_available` marks the instruction sets of this
machine.
"""
COHERENCES = {row[0]: Choice(*row) for row in _rows["coherences"]}
"""Coherence policies, by name: whether the host flushes lines from the caches before loads,
which DIMMs need.
"""
COPY_ORDERS = {row[0]: Choice(*row) for row in _rows["copy_orders"]}
"""Orders in which `Hypercube.stream_limit` visits memory, by name."""
OVERLAPS = {row[0]: Choice(*row) for row in _rows["overlaps"]}
"""Whether exchanges between hosts overlap with local passes, by name."""
TRANSPORTS = {row[0]: Choice(*row) for row in _rows["transports"]}
"""How rows get from host to host, by name."""
STATUS_CODES = {row[0]: row[1] for row in _rows["statuses"]}
"""Codes of the statuses in the library, by name."""
STATUSES = {row[0]: row[2] for row in _rows["statuses"]}
"""Meanings of the values of `Error.status`, by name."""


def techniques_for(collective: str) -> list[str]:
    """Return the names of the techniques that support a collective."""
    row = COLLECTIVES[collective]
    return [name for name, technique in TECHNIQUES.items() if technique.is_for(row)]


DEFAULT_ISA = max(
    (isa for isa in ISAS.values() if isa.is_available), key=lambda isa: isa.level
).name
"""Name of the default instruction set, the best instruction set of this machine."""
