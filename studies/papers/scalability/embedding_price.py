"""Price the four clocks of embedding tables on a machine, from the plans of the collectives. All
times are modelled.

The kernel is the run of kernel.c on a few emulated PEs, with the requests of the PEs with the most
indices. Its time does not depend on the contents of the tables, so tables of any height can be
priced.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from math import prod
from typing import NamedTuple

import numpy as np

from pidcomm import MRAM_BYTES, ArgumentError, allocate
from pidcomm.arguments import Array, options_of
from pidcomm.bench import platform
from pidcomm.model import Machine, Prediction, load_machine, predict
from pidcomm.sizes import format_shape
from pidcomm.tables import WORD_BYTES
from pidcomm_studies.apps import inputs
from pidcomm_studies.apps.embedding import (
    BY_COLUMNS,
    BY_ROWS,
    MODELS,
    PARTITIONS,
    TASKLETS,
    Clocks,
    Model,
)
from pidcomm_studies.apps.embedding.bags import GENERATORS, Bags, full_bags
from pidcomm_studies.apps.embedding.layers import Layers
from pidcomm_studies.apps.embedding.parts import Part, part_of, placement_of, requests_of
from pidcomm_studies.apps.stage import KERNEL, Stage
from pidcomm_studies.papers.scalability.paper import PAPER_CHOICE

MACHINE = "upmem-2560"
LINE_BYTES, ELEMENT_BYTES = 64, 4
LINE_WORDS = LINE_BYTES // ELEMENT_BYTES
BUSIEST, ISSUE_CYCLES = 8, 11
AHEAD, IMPLIED_PES = 2.27, 64  # published: the CPU over the total of figure 6, at these PEs
CHOICES = (
    PAPER_CHOICE,
    *(
        (path, name)
        for path in ("reduce", "reduce_scatter")
        for name in ("conventional", "pr+im+cm", "tile")
    ),
)
"""Paths and techniques side by side."""
# Assumed rate of the host for dense layers; equal for PEs and CPUs, so it only dilutes speed-ups.
LAYERS_GFLOPS = 200.0


class Kernel(NamedTuple):
    """Modelled counters of the kernel: time of the slowest PE, instructions per cycle and bytes
    per second of a PE.
    """

    seconds: float
    per_cycle: float
    read_bytes_per_second: float

    @property
    def read_gb_s(self) -> float:
        """GB/s from MRAM to WRAM."""
        return self.read_bytes_per_second / 1e9


@dataclass(frozen=True)
class Work:
    """A batch for a model on PEs of a shape. spec: the generator of the indices, as for
    ``--generate``.
    """

    model: Model
    shape: tuple[int, int, int]
    spec: str = "uniform"
    dtype: str = "float32"
    tasklets: int = TASKLETS

    @cached_property
    def bags(self) -> Bags:
        """The bags of the batch."""
        model = self.model
        draw = inputs.generated(self.spec, GENERATORS)
        return full_bags(draw(model.batch, model.tables, model.rows, model.pooling), model.rows)

    @cached_property
    def part(self) -> Part:
        """The part of each PE."""
        return part_of(
            (self.model.tables, self.model.rows, self.model.columns), self.model.batch, self.shape
        )

    @cached_property
    def requests(self) -> Array:
        """The requests of PEs."""
        return requests_of(self.bags, self.part, self.shape)

    def kernel(self, path: str = PAPER_CHOICE[0]) -> Kernel:
        """Return the kernel of the slowest of the `BUSIEST` PEs with the most indices, and of as
        many with the most additions.

        Raises ArgumentError on DIMMs.
        """
        group, bags = self.part.group(self.tasklets), self.part.bags
        added = self._rows_added()
        turns = -(-bags // (group * self.tasklets))
        of_tasklets = (
            np.pad(added, ((0, 0), (0, turns * group * self.tasklets - bags)))
            .reshape(len(added), turns, self.tasklets, group)
            .sum(axis=(1, 3))
        )
        # A tasklet issues an instruction in 11 cycles, a PE one per cycle.
        additions = np.maximum(added.sum(axis=1), ISSUE_CYCLES * of_tasklets.max(axis=1))
        busiest = {
            int(pe)
            for load in (self.requests[:, bags], additions)
            for pe in np.argsort(load, kind="stable")[::-1][:BUSIEST]
        }
        rows = self.requests[sorted(busiest)]
        placement = placement_of(self.part, rows[0].nbytes, self.dtype, self.tasklets, path=path)
        shape = (1, len(rows), 1)
        with (
            allocate(pes=len(rows)) as pe_set,
            Stage(pe_set, shape, placement, options_of(technique="tile")) as stage,
        ):
            stage.broadcast(BY_COLUMNS, np.ascontiguousarray(rows), dst="requests")
            stage.launch()
            counters = platform.launch_counters(pe_set)
            seconds = stage.costs[KERNEL].modelled
        return Kernel(
            seconds,
            counters["instructions"] / counters["cycles"],
            counters["dma_read_bytes"] / len(rows) / seconds,
        )

    def random_tables(self, seed: int = 1) -> Array:
        """Return tables with random values, for a run."""
        random, shape = (
            np.random.default_rng(seed),
            (self.model.tables, self.model.rows, self.model.columns),
        )
        if self.dtype == "float32":
            return random.standard_normal(shape, np.float32)
        return random.integers(-8, 8, shape, np.int32)

    def mram_bytes(self, path: str) -> int:
        """Return the bytes of MRAM that a PE needs."""
        size, blocks = self.requests[0].nbytes, self.shape[1]
        return placement_of(
            self.part, size, self.dtype, self.tasklets, path=path, blocks=blocks
        ).bytes

    def written(self) -> tuple[int, int]:
        """Return the number of runs of groups of bags with indices, over the parts of the rows and
        tables, and the bytes of the lines of host memory that have their sums.
        """
        part = self.part
        group = part.group(self.tasklets)
        edges = np.append(np.arange(0, part.bags, group), part.bags)
        has_indices = np.diff(self.requests[:, edges].astype(np.int64)) > 0
        begins = has_indices & ~np.pad(has_indices, ((0, 0), (1, 0)))[:, :-1]
        # Line n has words of the groups lows[n] to highs[n] - 1.
        words = group * part.columns
        line = np.arange(0, part.bags * part.columns, LINE_WORDS)
        lows, highs = line // words, -(-(line + LINE_WORDS) // words)
        before = np.pad(np.cumsum(has_indices, axis=1), ((0, 0), (1, 0)))
        lines = before[:, np.minimum(highs, len(edges) - 1)] > before[:, lows]
        return int(np.count_nonzero(begins)), LINE_BYTES * int(np.count_nonzero(lines))

    def _rows_added(self) -> Array:
        """Return the rows of each bag that each PE adds: the first is copied."""
        counts = np.diff(self.requests[:, : self.part.bags + 1].astype(np.int64))
        added: Array = np.maximum(counts - 1, 0)
        return added

    def additions(self) -> int:
        """Return the additions of elements of the PE that has most."""
        return int(self._rows_added().sum(axis=1).max()) * self.part.columns


def clocks(work: Work, path: str, technique: str, machine: Machine) -> Clocks:
    """Return the four clocks of a batch. path, technique: as in a run.

    kernel: without the launch. host: the launch, the split of the indices, and the join of columns
    and tables, which for the path `gather` adds the sums that PEs wrote. Raises ArgumentError if
    the tables do not fit in the MRAM of the PEs, and as the plans do.
    """
    part, model, shape, dtype = work.part, work.model, work.shape, np.dtype(work.dtype)
    if (mram_bytes := work.mram_bytes(path)) > MRAM_BYTES:
        raise ArgumentError(
            f"a PE of {format_shape(shape)} needs {mram_bytes} bytes of MRAM; it has {MRAM_BYTES}"
        )
    size = part.pooled_bytes(shape[1])

    def call(collective: str, mask: str, bytes_per_pe: int) -> Prediction:
        options = options_of(technique=technique, scratch=max(WORD_BYTES, 3 * bytes_per_pe))
        return predict(
            collective, shape, mask, bytes=bytes_per_pe, dtype=dtype, machine=machine, **options
        )  # type: ignore[arg-type]

    x, _, z = shape
    pieces, read_bytes = x * z * part.bags, x * z * size
    written_bytes = ELEMENT_BYTES * model.batch * model.tables * model.columns
    if path == "gather":
        to_cpu = call("gather", BY_ROWS, size).seconds
        runs, run_bytes = work.written()
        pieces, read_bytes = pieces + z * runs, z * run_bytes
    elif path == "reduce":
        to_cpu = call("reduce", BY_ROWS, size).seconds
    else:
        to_cpu = (
            call("reduce_scatter", BY_ROWS, size).seconds
            + call("gather", BY_ROWS, size // shape[1]).seconds
        )
    split = host_seconds(
        machine, len(work.bags.indices), work.bags.indices.nbytes, work.requests.nbytes
    )
    return Clocks(
        kernel=work.kernel(path).seconds,
        host=1e-6 * machine.launch_us(prod(shape))
        + split
        + host_seconds(machine, pieces, read_bytes, written_bytes),
        cpu_to_pe=call("broadcast", BY_COLUMNS, work.requests[0].nbytes).seconds,
        pe_to_cpu=to_cpu,
    )


def host_seconds(machine: Machine, pieces: int, read_bytes: int, written_bytes: int) -> float:
    """Return the time in which threads of the host copy or add pieces in its memory: the least over
    the number of threads.

    Memory or the threads limit the bytes, so that additions cost nothing.
    """
    of_memory = (
        read_bytes / machine["memory.read_gb_s"] + written_bytes / machine["memory.write_gb_s"]
    )
    of_thread = (read_bytes + written_bytes) / machine["memory.thread_gb_s"]

    def seconds(threads: int) -> float:
        start = machine["call.part_us"] + (threads - 1) * machine["call.start_us"]
        copies = pieces * machine["work.piece_ns"] / threads + max(of_memory, of_thread / threads)
        return 1e-6 * start + 1e-9 * copies

    return min(map(seconds, range(1, int(machine["host.threads"]) + 1)))


def cpu_seconds(bags: Bags, columns: int, machine: Machine) -> float:
    """Return the time of the look-up on the CPUs alone: all rows cross the memory bus, in lines of
    64 bytes.

    No table is in the caches. Additions cost nothing, because memory limits the look-up.
    """
    lines = len(bags.indices) * -(-ELEMENT_BYTES * columns // LINE_BYTES)
    return host_seconds(machine, 0, lines * LINE_BYTES, 0)


@cache
def published_row_seconds() -> float:
    """Return the time of the published CPU for each row: the least total of `IMPLIED_PES` PEs here
    with the paper's way, divided by the published advantage of the CPU.

    So the published advantage holds at `IMPLIED_PES` PEs by construction.
    """
    one, machine = MODELS["one"], load_machine(MACHINE)
    totals = (
        clocks(Work(one, PARTITIONS[cut](IMPLIED_PES, one)), *PAPER_CHOICE, machine).total
        for cut in ("row", "column")
    )
    return min(totals) / AHEAD / (one.batch * one.pooling)


def layers_seconds(model: Model) -> float:
    """Return the time of the dense layers on the host."""
    layers = Layers.random(np.random.default_rng(1), model.tables, model.columns, 1)
    return 1e-9 * layers.operations * model.batch / LAYERS_GFLOPS
