"""Work and predicted times of plans on other PIM machines. All times are modelled.

Passes run one after another. A pass of the host takes the time of loads and stores, which the
busiest bus, the threads or host memory limit, and then the time of the work on lines: as in the
model of UPMEM, both do not overlap. The busiest buffer decides the time of a pass of the buffers.
The bus, the rate of the engine, or its descriptors decide the time of a pass of an engine.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil

import numpy as np

from pidcomm.arguments import Array
from pidcomm.model.prediction import SOURCE
from pidcomm.notebook import Shown
from pidcomm.sizes import format_duration
from pidcomm.tables import OPS
from pidcomm_studies.machines.plans import BUFFER, ENGINE, HOST, Pass, Places, Plan

HOST_LINE = 64  # bytes of a line of the host, for which its machine has costs


@dataclass(frozen=True)
class Work:
    """The work of a pass, in bytes.

    read, written: of PEs. rows: read or written in host memory. partial: of partial results that
    wait in PEs. combined: inputs of operators beyond the first. transposed: of lines that change
    between the orders of PEs and host. shuffled: of lines whose lanes change places. pes: PEs whose
    memory the pass accesses. items: results.
    """

    pes: int
    items: int
    read: int
    written: int
    rows: int
    partial: int
    combined: int
    transposed: int
    shuffled: int


@dataclass(frozen=True)
class Price(Shown):
    """The predicted time of a plan. All times are modelled.

    seconds: by pass. host_core_seconds: time of host threads, summed over threads. bus_bytes: what
    crosses the buses between host and PEs.
    """

    machine: str
    way: str
    passes: tuple[tuple[str, float], ...]
    host_core_seconds: float
    bus_bytes: int
    source: str = SOURCE

    @property
    def seconds(self) -> float:
        """Return the time of all passes."""
        return sum(seconds for _, seconds in self.passes)

    def __repr__(self) -> str:
        """Report the machine, the way and the time."""
        return f"<Price {self.machine}, {self.way}: {format_duration(self.seconds)} {self.source}>"


def work(step: Pass, plan: Plan) -> Work:
    """Return the work of a pass. A line that the host accesses counts once and wholly, even if the
    pass needs only a part.
    """
    lanes, block = plan.machine.geometry.lanes, step.block_bytes
    accesses = _accesses(step)
    sides = [_of_pes(side, plan) for side in accesses]
    is_host = step.by != BUFFER
    read, written = (
        int(_on_lines(side, step, plan)[1].sum()) if is_host else block * len(side.row)
        for side in sides
    )
    items = int(step.reads.item[-1]) + 1
    combined = block * (len(step.reads.item) - items)
    in_rows = sum(len(side.row) for side in accesses) - sum(len(side.row) for side in sides)
    changes_order = lanes > 1 and (in_rows > 0 or (combined > 0 and not _is_bytewise(plan)))
    shuffled = 0
    if lanes > 1 and is_host:
        lowest, highest = np.full(items, lanes), np.full(items, -1)
        np.minimum.at(lowest, sides[0].item, sides[0].row % lanes)
        np.maximum.at(highest, sides[0].item, sides[0].row % lanes)
        lane, item = sides[1].row % lanes, sides[1].item
        moved = sides[1].only((lowest[item] != lane) | (highest[item] != lane))
        shuffled = int(_on_lines(moved, step, plan)[1].sum())
    return Work(
        pes=len(np.unique(np.concatenate([side.row for side in sides]))),
        items=items,
        read=read,
        written=written,
        rows=block * in_rows,
        partial=block * int((sides[1].byte >= plan.scratch).sum()),
        combined=combined,
        transposed=(read + written) * changes_order,
        shuffled=shuffled,
    )


def _is_bytewise(plan: Plan) -> bool:
    """Return whether each byte of a result depends on the same bytes of the inputs only."""
    problem = plan.problem
    return problem.element.itemsize == 1 or OPS[problem.op].kind == "bits"


def _is_slow(plan: Plan) -> bool:
    """Return whether an operator needs several instructions of AVX-512: products of integers of 1
    or 8 bytes, minima and maxima of floats.
    """
    problem = plan.problem
    if problem.op == "prod":
        return problem.element.kind in "iu" and problem.element.itemsize in (1, 8)
    return problem.op in ("min", "max") and problem.element.kind not in "iu"


def price(plan: Plan) -> Price:
    """Return the predicted time of a plan."""
    passes, core_seconds, bus_bytes = [], 0.0, 0
    for step in plan.passes if plan.problem.bytes else ():
        done = work(step, plan)
        seconds, core = _PRICES[step.by](step, plan, done)
        passes.append((step.by, seconds))
        core_seconds += core
        bus_bytes += (done.read + done.written) * (step.by != BUFFER)
    way = max((step.by for step in plan.passes), key=[HOST, ENGINE, BUFFER].index, default=HOST)
    return Price(plan.machine.name, way, tuple(passes), core_seconds, bus_bytes)


def _by_host(step: Pass, plan: Plan, done: Work) -> tuple[float, float]:
    host = plan.machine.host
    costs = _line_costs(plan)
    combine = "slow_combine_ns" if _is_slow(plan) else "combine_ns"
    work_seconds = (
        1e-9
        / HOST_LINE
        * (
            done.combined * costs[combine]
            + done.transposed * costs["transpose_ns"]
            + done.shuffled * costs["shuffle_ns"]
            + done.read * costs["load_ns"]
            + done.written * costs["store_ns"]
        )
    )
    moved = 1e-9 * (done.read + done.written + done.rows) / host["memory.thread_gb_s"]
    threads, call = host["host.threads"], 1e-6 * host["call.us"]
    loads_and_stores = max(_on_bus(step, plan), moved / threads, _in_rows(plan, done))
    return loads_and_stores + work_seconds / threads + call, moved + work_seconds + call


def _by_buffers(step: Pass, plan: Plan, done: Work) -> tuple[float, float]:
    rows = np.concatenate([step.reads.row, step.writes.row])
    busiest = np.bincount(rows // plan.machine.buffer_pes).max() * step.block_bytes
    start = 1e-6 * plan.machine["buffer.pass_us"]
    return start + 1e-9 * busiest / plan.machine["buffer.gb_s"], start


def _by_engine(step: Pass, plan: Plan, done: Work) -> tuple[float, float]:
    devices, geometry = plan.machine["engine.devices"], plan.machine.geometry
    copied = step.block_bytes * len(step.writes.row)
    in_block = ceil(step.block_bytes * geometry.lanes / geometry.run_bytes)
    descriptors = len(step.writes.row) // geometry.lanes * in_block
    seconds = max(
        _on_bus(step, plan),
        1e-9 * copied / (devices * plan.machine["engine.gb_s"]),
        1e-6 * descriptors * plan.machine["engine.descriptor_us"] / devices,
    )
    # A descriptor has 64 bytes, which a thread writes.
    core = 1e-9 * descriptors * _line_costs(plan)["store_ns"]
    return max(seconds, core / plan.machine.host["host.threads"]), core


_PRICES = {HOST: _by_host, BUFFER: _by_buffers, ENGINE: _by_engine}


def _line_costs(plan: Plan) -> Mapping[str, float]:
    """Return the costs of a line by the last instruction set of the host."""
    prefix = f"isa.{plan.machine.host.isas[-1]}."
    constants = plan.machine.host.constants
    return {
        name.removeprefix(prefix): row.value
        for name, row in constants.items()
        if name.startswith(prefix)
    }


def _in_rows(plan: Plan, done: Work) -> float:
    """Return the time of host memory for the rows."""
    is_read = not plan.problem.before.at_pes
    rate = plan.machine.host["memory.read_gb_s" if is_read else "memory.write_gb_s"]
    return 1e-9 * done.rows / rate


def _on_bus(step: Pass, plan: Plan) -> float:
    """Return the time of the bus of the busiest channel."""
    geometry = plan.machine.geometry
    seconds = np.zeros(1)
    for side, rate in zip(_accesses(step), ("bus.read_gb_s", "bus.write_gb_s"), strict=True):
        pe, moved = _on_lines(_of_pes(side, plan), step, plan)
        size = np.bincount(geometry.channels(pe), moved)
        length = max(len(seconds), len(size))
        seconds = np.pad(seconds, (0, length - len(seconds)))
        seconds[: len(size)] += 1e-9 * size / plan.machine[rate]
    return float(seconds.max())


def _accesses(step: Pass) -> tuple[Places, Places]:
    """Return the reads and writes of a pass. An engine reads a block again for each copy."""
    return (step.reads.only(step.writes.item) if step.by == ENGINE else step.reads), step.writes


def _of_pes(side: Places, plan: Plan) -> Places:
    return side.only(side.row < plan.problem.pes)


def _on_lines(side: Places, step: Pass, plan: Plan) -> tuple[Array, Array]:
    """Return PEs, and for each the bytes of lines that the blocks of one side of a pass touch."""
    geometry, block = plan.machine.geometry, step.block_bytes
    lanes, line = geometry.lanes, geometry.line_bytes
    if lanes > 1:  # a block consists of words, and a line has a word of each lane
        places = np.unique(side.row // lanes * geometry.pe_bytes + side.byte)
        return places // geometry.pe_bytes * lanes, np.full(len(places), block * lanes)
    first, last = side.byte // line, (side.byte + block - 1) // line
    if step.by == ENGINE:  # it copies each block by itself
        return side.row, (last - first + 1) * line
    # Neighbouring blocks share the lines at their ends.
    ends = np.unique(
        np.concatenate([side.row, side.row]) * geometry.pe_bytes + np.concatenate([first, last])
    )
    inner = np.maximum(last - first - 1, 0) * line
    return (
        np.concatenate([ends // geometry.pe_bytes, side.row]),
        np.concatenate([np.full(len(ends), line), inner]),
    )
