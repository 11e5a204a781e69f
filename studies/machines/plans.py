"""Plans of collectives on other PIM machines.

A plan is a tuple of passes. A pass has items: an item reads one or more blocks, combines them, and
writes the result to one or more places. On a machine whose only path between PEs is the host, a
collective is one pass of the host: each block streams past the host. If buffers reach groups of
PEs, that pass becomes up to three (PID-Comm, section IX-A): the buffers combine or copy the blocks
of their PEs, the host moves the rest between buffers as between super-PEs, and the buffers copy
what arrived to their other PEs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from pidcomm import ArgumentError
from pidcomm.arguments import Array, as_integer, as_shape
from pidcomm.bench.oracle import Problem, is_defined
from pidcomm.errors import unknown
from pidcomm.sizes import format_shape
from pidcomm.tables import COLLECTIVES, OPS, TYPES, WORD_BYTES
from pidcomm_studies.machines.geometry import COMBINE, COPY, PimMachine, load_pim_machine

if TYPE_CHECKING:
    from pidcomm.tables import CollectiveName, OpName

HOST, BUFFER, ENGINE = "host", "buffer", "engine"
"""Who carries out a pass: threads of the host, the buffers, or the copy engine of the host."""
_HOST_ROW = -1  # a member number: the row of the group in host memory


class Places(NamedTuple):
    """Blocks. item: the item of each block, ascending. row: its PE, or the number of PEs plus the
    group for a host row. byte: its first byte in the memory of the PE or in the host row.
    """

    item: Array
    row: Array
    byte: Array

    def only(self, chosen: Array) -> Places:
        """Return some of the blocks."""
        return Places(*(values[chosen] for values in self))


@dataclass(frozen=True, eq=False)
class Pass:
    """A pass: item i writes the combination of the blocks of `reads` with item i to the places of
    `writes` with item i. Items are numbered from 0 without gaps.

    by: HOST, BUFFER or ENGINE. block_bytes: bytes of every block.
    """

    by: str
    reads: Places
    writes: Places
    block_bytes: int

    @property
    def is_copy(self) -> bool:
        """Return whether no item combines blocks."""
        return len(self.reads.item) == len(np.unique(self.reads.item))


@dataclass(frozen=True, eq=False)
class Plan:
    """A plan: a problem on a machine, and its passes.

    groups: the PEs of each group, in member order. dst, scratch: where these windows begin in the
    memory of each PE; the source begins at 0. end: where the last window ends.
    """

    machine: PimMachine
    problem: Problem
    passes: tuple[Pass, ...]
    groups: Array
    dst: int
    scratch: int
    end: int

    def __repr__(self) -> str:
        """Report the collective, the machine and the passes."""
        shape = format_shape(self.problem.shape)
        who = ", ".join(step.by for step in self.passes)
        return f"<Plan {self.problem.collective} {shape} on {self.machine.name}: {who}>"

    def rows(self, *, is_input: bool) -> Places:
        """Return the places of the input or output rows."""
        pes = self.problem.pes
        at_pes = (self.problem.before if is_input else self.problem.after).at_pes
        row = np.arange(pes) if at_pes else pes + np.arange(len(self.groups))
        return Places(row, row, np.full(len(row), 0 if is_input or not at_pes else self.dst))


def plan(
    collective: CollectiveName,
    shape: Sequence[int],
    mask: str,
    *,
    bytes: int,
    machine: str | PimMachine,
    dtype: DTypeLike = np.int32,
    op: OpName = "sum",
    way: str | None = None,
) -> Plan:
    """Return the plan of a collective. shape, mask, bytes: as for `pidcomm.plan`. way: HOST, BUFFER
    or ENGINE, one of `ways`; by default the last of them.

    Raises ArgumentError for arguments that break a rule, before it makes the plan.
    """
    on = load_pim_machine(machine)
    possible = ways(on)
    way = possible[-1] if way is None else way
    if way not in possible:
        raise ArgumentError(f"way {way!r} does not exist on {on.name}: {', '.join(possible)}")
    problem, block, groups = _checked(collective, shape, mask, bytes, dtype, op, on)
    dst = problem.before.row_bytes * problem.before.at_pes
    scratch = dst + problem.after.row_bytes * problem.after.at_pes
    reads, writes = _moves(collective, groups, block, dst)
    # A PE has at most one partial result for each block of its input.
    end = scratch + dst * (way == BUFFER and problem.row.takes_op)
    on.geometry.cut(problem.pes, end)
    step = Pass(HOST, reads, writes, block)
    passes = (step,)
    if way == BUFFER:
        passes = _by_levels(step, on, problem.pes, scratch)
    elif way == ENGINE and step.is_copy and _moves_lines(step, on, problem.pes):
        passes = (replace(step, by=ENGINE),)
    return Plan(on, problem, passes, groups, dst, scratch, end)


def ways(machine: PimMachine) -> list[str]:
    """Return the ways to carry out a collective: with the host only, with buffers, or with an
    engine for passes that only copy lines.
    """
    return [
        HOST,
        *[BUFFER] * machine.may(BUFFER, COPY),
        *[ENGINE] * machine.may(ENGINE, COPY),
    ]


def _checked(
    collective: str,
    shape: Sequence[int],
    mask: str,
    size: int,
    dtype: DTypeLike,
    op: str,
    machine: PimMachine,
) -> tuple[Problem, int, Array]:
    """Return the problem, the bytes of a block, and the PEs of each group in member order."""
    if not isinstance(collective, str) or collective not in COLLECTIVES:
        raise ArgumentError(unknown("collective", collective, COLLECTIVES))
    lengths = tuple(as_shape(shape))
    try:
        name = np.dtype(dtype).name
    except TypeError:
        name = str(dtype)
    if name not in TYPES:
        raise ArgumentError(unknown("element type", name, TYPES))
    row, pes, size = COLLECTIVES[collective], prod(lengths), as_integer("bytes", size)
    if row.takes_op and (op not in OPS or not is_defined(op, name)):
        raise ArgumentError(f"operator {op!r} is not defined for {name}")
    if not isinstance(mask, str) or len(mask) != len(lengths) or set(mask) - {"0", "1"}:
        raise ArgumentError(
            f"mask {mask!r} must have a 0 or 1 for each axis of {format_shape(lengths)}"
        )
    if pes > machine.geometry.pes:
        raise ArgumentError(
            f"{format_shape(lengths)} has {pes} PEs; {machine.name} has {machine.geometry.pes}, for"
            f" example as {format_shape(machine.geometry.whole_shape)}"
        )
    groups = _groups(lengths, mask)
    blocks = row.blocks_per_pe(groups.shape[1])
    if size % (blocks * WORD_BYTES):
        raise ArgumentError(
            f"bytes ({size}) must be a multiple of {blocks * WORD_BYTES}: {collective} has {blocks}"
            f" blocks of words of {WORD_BYTES} bytes"
        )
    return Problem(row.name, lengths, mask, size, name, op), size // blocks, groups  # type: ignore[arg-type]


def _groups(lengths: Sequence[int], mask: str) -> Array:
    """Return the PEs of each group: a row per group, in member order."""
    pes = np.arange(prod(lengths)).reshape(tuple(reversed(lengths)))
    # The axes of this array are in reverse order: the first axis of the shape varies fastest.
    axes = range(len(lengths))
    order = [axes[-1] - axis for bit in "01" for axis in reversed(axes) if mask[axis] == bit]
    members = prod(length for length, bit in zip(lengths, mask, strict=True) if bit == "1")
    return pes.transpose(order).reshape(-1, members)


def _moves(collective: str, groups: Array, block: int, dst: int) -> tuple[Places, Places]:
    """Return the reads and writes of the one pass of a host that reaches all PEs."""
    count, members = groups.shape
    every = np.arange(members)
    first, second = np.divmod(np.arange(members * members), members)
    # For each read and write of a group: the item, the member, and the block of its row.
    rows: dict[str, tuple[tuple[Any, Any, Any], tuple[Any, Any, Any]]] = {
        "alltoall": ((np.arange(members * members), first, second),) * 2,
        "reduce_scatter": ((first, second, first), (every, every, 0)),
        "allreduce": ((0, every, 0), (0, every, 0)),
        "allgather": ((every, every, 0), (first, second, first)),
        "scatter": ((every, _HOST_ROW, every), (every, every, 0)),
        "gather": ((every, every, 0), (every, _HOST_ROW, every)),
        "reduce": ((0, every, 0), (0, _HOST_ROW, 0)),
        "broadcast": ((0, _HOST_ROW, 0), (0, every, 0)),
    }
    read, write = rows[collective]
    if collective == "alltoall":  # block q of member p becomes block p of member q
        write = (write[0], write[2], write[1])
    items = int(np.max(read[0])) + 1
    pes = groups.size

    def places(item: Any, member: Any, place: Any, window: int) -> Places:
        item, member, place = np.broadcast_arrays(np.atleast_1d(item), member, place)
        group = np.arange(count)[:, None]
        row = np.where(member == _HOST_ROW, pes + group, groups[:, member])
        start = np.where(member == _HOST_ROW, 0, window) + place * block
        return Places(
            (group * items + item).ravel(), row.ravel(), np.broadcast_to(start, row.shape).ravel()
        )

    return places(*read, 0), places(*write, dst)


def _by_levels(step: Pass, machine: PimMachine, pes: int, scratch: int) -> tuple[Pass, ...]:
    """Return the passes that do the work of one pass of the host with the buffers."""
    reads, writes = step.reads, step.writes
    items = int(reads.item[-1]) + 1
    units = pes + items  # numbers of buffers are below
    # The number of the buffer of each block. Host rows have other numbers, one per item.
    of_read, of_write = (
        np.where(side.row < pes, side.row // machine.buffer_pes, units - 1 - side.item)
        for side in (reads, writes)
    )
    is_single = np.bincount(reads.item, minlength=items) == 1
    lowest, highest = np.full(items, units), np.full(items, -1)
    for side, unit in ((reads, of_read), (writes, of_write)):
        np.minimum.at(lowest, side.item, unit)
        np.maximum.at(highest, side.item, unit)
    may_combine = machine.may(BUFFER, COMBINE)
    is_inside = (lowest == highest) & (is_single | may_combine)

    local = _Moves()
    local.add(reads.only(is_inside[reads.item]), writes.only(is_inside[writes.item]))
    outer_reads, outer_writes = (side.only(~is_inside[side.item]) for side in (reads, writes))
    read_keys = (outer_reads.item * units) + of_read[~is_inside[reads.item]]
    write_keys = (outer_writes.item * units) + of_write[~is_inside[writes.item]]

    # Blocks of an item in one buffer become one partial result in the scratch of the first PE.
    keys, first, place, sizes = np.unique(
        read_keys, return_index=True, return_inverse=True, return_counts=True
    )
    is_partial = (sizes > 1) & may_combine
    rows = outer_reads.row[first][is_partial]
    partial = Places(
        keys[is_partial] // units, rows, scratch + _occurrences(rows) * step.block_bytes
    )
    chosen = is_partial[place]
    numbers = np.cumsum(is_partial) - 1
    local.add(
        outer_reads.only(chosen)._replace(item=numbers[place[chosen]]),
        partial._replace(item=np.arange(len(rows))),
    )
    host_reads = _joined(outer_reads.only(~chosen), partial)

    # If a block is only copied, its buffer writes it to its own PEs, without the host.
    source = np.full(items, -1)
    source[outer_reads.item] = read_keys % units
    is_near = is_single[outer_writes.item] & (source[outer_writes.item] == write_keys % units)
    near_items = np.unique(outer_writes.item[is_near])
    local.add(outer_reads.only(np.isin(outer_reads.item, near_items)), outer_writes.only(is_near))

    # The host writes once per buffer; the buffer copies to its other PEs.
    far, far_keys = outer_writes.only(~is_near), write_keys[~is_near]
    _, first, place = np.unique(far_keys, return_index=True, return_inverse=True)
    is_first = np.zeros(len(far_keys), bool)
    is_first[first] = True
    copies = _Moves()
    repeated = np.flatnonzero(np.bincount(place) > 1)
    copies.add(
        far.only(first[repeated])._replace(item=repeated),
        far.only(~is_first)._replace(item=place[~is_first]),
    )
    host = _Moves()
    host.add(host_reads.only(np.isin(host_reads.item, far.item)), far.only(is_first))
    return tuple(
        moves.as_pass(by, step.block_bytes)
        for by, moves in ((BUFFER, local), (HOST, host), (BUFFER, copies))
        if moves.items
    )


class _Moves:
    """Collects the reads and writes of a pass, and numbers the items anew."""

    def __init__(self) -> None:
        self.items = 0
        self._sides: tuple[list[Places], list[Places]] = ([], [])

    def add(self, reads: Places, writes: Places) -> None:
        """Add items. Both sides have the same items, with any numbers."""
        names = np.unique(reads.item)
        for side, kept in zip((reads, writes), self._sides, strict=True):
            kept.append(side._replace(item=self.items + np.searchsorted(names, side.item)))
        self.items += len(names)

    def as_pass(self, by: str, block_bytes: int) -> Pass:
        return Pass(by, *(_joined(*side) for side in self._sides), block_bytes)


def _joined(*sides: Places) -> Places:
    """Return all blocks, by ascending items."""
    joined = Places(*(np.concatenate(values) for values in zip(*sides, strict=True)))
    return joined.only(np.argsort(joined.item, kind="stable"))


def _occurrences(values: Array) -> Array:
    """Return for each value how often it occurs before."""
    order = np.argsort(values, kind="stable")
    _, first, counts = np.unique(values[order], return_index=True, return_counts=True)
    before = np.empty(len(values), np.int64)
    before[order] = np.arange(len(values)) - np.repeat(first, counts)
    return before


def _moves_lines(step: Pass, machine: PimMachine, pes: int) -> bool:
    """Return whether a pass that copies moves whole lines, and no lane to another lane.

    If a line has bytes of one PE only, every copy does. Host rows have another order than lines
    with several lanes.
    """
    lanes = machine.geometry.lanes
    if lanes == 1:
        return True
    source = step.reads.only(step.writes.item)
    rows = np.stack([source.row, step.writes.row])
    if rows.max() >= pes or (rows[0] % lanes != rows[1] % lanes).any():
        return False
    line = np.stack([*(rows // lanes), source.byte, step.writes.byte])
    _, counts = np.unique(line, axis=1, return_counts=True)
    return bool((counts == lanes).all())
