"""Carries out plans on the bytes of a machine.

The memory of all PEs is one array in the order of the host's addresses. Every access goes through
the address map of the machine.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pidcomm import ArgumentError, Error
from pidcomm.arguments import Array
from pidcomm_studies.machines.plans import BUFFER, ENGINE, Pass, Places, Plan

OPERATORS: dict[str, Any] = {
    "sum": np.add,
    "prod": np.multiply,
    "min": np.minimum,
    "max": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}
"""The operators of reductions, by name."""


def run(plan: Plan, before: Array) -> Array:
    """Return the output rows of a plan for input rows, as bytes: a row per PE, or per group for
    rows in host memory.

    Raises ArgumentError if the rows have another shape, and Error if a buffer or an engine cannot
    carry out a pass.
    """
    problem = plan.problem
    if before.shape != problem.before.shape or before.dtype != np.uint8:
        raise ArgumentError(
            f"input rows have shape {before.shape} and type {before.dtype};"
            f" {problem.collective} needs {problem.before.shape} of uint8"
        )
    memory = _Memory(plan)
    memory.store(plan.rows(is_input=True), before)
    for step in plan.passes if problem.bytes else ():
        if step.by == ENGINE:
            memory.copy_lines(step)
            continue
        if step.by == BUFFER:
            _check_reach(step, plan)
        values = memory.load(step.reads, step.block_bytes)
        starts = np.flatnonzero(np.diff(step.reads.item, prepend=-1))
        if len(starts) < len(values):
            values = OPERATORS[str(problem.op)].reduceat(
                values.view(problem.element), starts, axis=0, dtype=problem.element
            )
        memory.store(step.writes, values.view(np.uint8)[step.writes.item])
    return memory.load(plan.rows(is_input=False), problem.after.row_bytes)


class _Memory:
    """The memory of a machine that is just large enough for a plan, and the host rows."""

    def __init__(self, plan: Plan) -> None:
        problem = plan.problem
        self.pes = problem.pes
        self.geometry = plan.machine.geometry.cut(problem.pes, plan.end)
        self.bytes = np.zeros(self.geometry.address_bytes, np.uint8)
        sides = [side for side in (problem.before, problem.after) if not side.at_pes]
        most = max((side.row_bytes for side in sides), default=0)
        self.rows = np.zeros((len(plan.groups), most), np.uint8)

    def load(self, places: Places, count: int) -> Array:
        """Return `count` bytes from each place, a row each."""
        at, is_row = places.byte[:, None] + np.arange(count), places.row >= self.pes
        values = np.empty(at.shape, np.uint8)
        values[~is_row] = self.bytes[self.addresses(places.only(~is_row), count)]
        values[is_row] = self.rows[places.row[is_row, None] - self.pes, at[is_row]]
        return values

    def store(self, places: Places, values: Array) -> None:
        """Write a row of bytes to each place."""
        count = values.shape[1]
        at, is_row = places.byte[:, None] + np.arange(count), places.row >= self.pes
        self.bytes[self.addresses(places.only(~is_row), count)] = values[~is_row]
        self.rows[places.row[is_row, None] - self.pes, at[is_row]] = values[is_row]

    def addresses(self, places: Places, count: int) -> Array:
        """Return the host addresses of `count` bytes of PEs from each place."""
        return self.geometry.addresses(places.row[:, None], places.byte[:, None] + np.arange(count))

    def copy_lines(self, step: Pass) -> None:
        """Copy as an engine does: bytes that it neither reorders nor combines.

        If a line has several lanes, the engine copies whole lines.
        """
        if not step.is_copy:
            raise Error("an engine does not combine blocks")
        source, line = step.reads.only(step.writes.item), self.geometry.line_bytes
        if self.geometry.lanes == 1:
            self.store(step.writes, self.load(source, step.block_bytes))
            return
        pairs = np.stack(
            [self.addresses(side, step.block_bytes).ravel() for side in (source, step.writes)]
        )
        if (pairs[0] % line != pairs[1] % line).any():
            raise Error("an engine does not move a lane to another lane")
        here, there = np.unique(pairs // line, axis=1)
        if len(here) * line != pairs.shape[1]:
            raise Error("an engine copies whole lines only")
        lines = self.bytes.reshape(-1, line)
        lines[there] = lines[here]


def _check_reach(step: Pass, plan: Plan) -> None:
    """Raise Error if an item has blocks beyond the reach of one buffer."""
    buffers = np.full(int(step.reads.item[-1]) + 1, -1)
    buffers[step.reads.item] = step.reads.row // plan.machine.buffer_pes
    for side in (step.reads, step.writes):
        is_far = (side.row >= plan.problem.pes) | (
            side.row // plan.machine.buffer_pes != buffers[side.item]
        )
        if is_far.any():
            raise Error(f"a buffer does not reach row {side.row[is_far][0]} of its pass")
