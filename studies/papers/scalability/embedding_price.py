"""Price the four clocks of embedding tables on a machine, from the plans of the collectives. All
times are modelled.

The kernel is the run of kernel.c on a few emulated PEs, with the requests of the PEs with the most
indices. Its time does not depend on the contents of the tables, so tables of any height can be
priced.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import NamedTuple

import numpy as np

from pidcomm import MRAM_BYTES, ArgumentError, allocate
from pidcomm.arguments import Array, options_of
from pidcomm.bench import platform
from pidcomm.model import Machine, Prediction, predict
from pidcomm.sizes import format_shape
from pidcomm.tables import WORD_BYTES
from pidcomm_studies.apps import inputs
from pidcomm_studies.apps.embedding import BY_COLUMNS, BY_ROWS, TASKLETS, Clocks, Model
from pidcomm_studies.apps.embedding.bags import GENERATORS, Bags, full_bags
from pidcomm_studies.apps.embedding.layers import Layers
from pidcomm_studies.apps.embedding.parts import Part, part_of, placement_of, requests_of
from pidcomm_studies.apps.stage import KERNEL, Stage
from pidcomm_studies.papers.scalability.paper import PAPERS

MACHINE = "upmem-2560"
LINE_BYTES = 64
BUSIEST = 8
CHOICES = (
    PAPERS,
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
    dtype: str = "int32"
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

    @cached_property
    def kernel(self) -> Kernel:
        """The kernel of the slowest of the `BUSIEST` PEs with the most indices.

        Raises ArgumentError on DIMMs.
        """
        counts = self.requests[:, self.part.bags]
        rows = self.requests[np.argsort(counts, kind="stable")[::-1][:BUSIEST]]
        placement = placement_of(self.part, rows[0].nbytes, self.dtype, self.tasklets)
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

    @property
    def mram_bytes(self) -> int:
        """Bytes of MRAM that a PE needs."""
        return placement_of(
            self.part, self.requests[0].nbytes, self.dtype, self.tasklets, blocks=self.shape[1]
        ).bytes


def clocks(work: Work, path: str, technique: str, machine: Machine) -> Clocks:
    """Return the four clocks of a batch. path, technique: as in a run.

    kernel: without the launch. host: the launch, the split of the indices, the reduction in host
    memory (path `gather`), and the join of the columns. One thread splits and joins; all threads
    reduce. Raises ArgumentError if the tables do not fit in the MRAM of the PEs, and as the plans
    do.
    """
    part, shape, dtype = work.part, work.shape, np.dtype(work.dtype)
    if work.mram_bytes > MRAM_BYTES:
        raise ArgumentError(
            f"a PE of {format_shape(shape)} needs {work.mram_bytes} bytes of MRAM; it has"
            f" {MRAM_BYTES}"
        )
    size = part.pooled_bytes(shape[1])

    def call(collective: str, mask: str, bytes_per_pe: int) -> Prediction:
        options = options_of(technique=technique, scratch=max(WORD_BYTES, 3 * bytes_per_pe))
        return predict(
            collective, shape, mask, bytes=bytes_per_pe, dtype=dtype, machine=machine, **options
        )  # type: ignore[arg-type]

    reduction = 0.0
    if path == "gather":
        to_cpu = call("gather", BY_ROWS, size).seconds
        groups = shape[0] * shape[2]
        reduction = (
            reduction_seconds(machine, groups * shape[1] * size, groups * size)
            if shape[1] > 1
            else 0.0
        )
    elif path == "reduce":
        to_cpu = call("reduce", BY_ROWS, size).seconds
    else:
        to_cpu = (
            call("reduce_scatter", BY_ROWS, size).seconds
            + call("gather", BY_ROWS, size // shape[1]).seconds
        )
    x, _, z = shape
    splits = copy_seconds(machine, len(work.bags.indices), work.requests.nbytes)
    joins = copy_seconds(machine, x * z * part.bags, x * z * size)
    return Clocks(
        kernel=work.kernel.seconds,
        host=1e-6 * machine.launch_us(prod(shape)) + splits + reduction + joins,
        cpu_to_pe=call("broadcast", BY_COLUMNS, work.requests[0].nbytes).seconds,
        pe_to_cpu=to_cpu,
    )


def copy_seconds(machine: Machine, pieces: int, size_bytes: int) -> float:
    """Return the time in which one thread of the host copies pieces in its memory: it reads and
    writes each byte.
    """
    return 1e-9 * (
        pieces * machine["work.piece_ns"] + 2 * size_bytes / machine["memory.thread_gb_s"]
    )


def reduction_seconds(machine: Machine, read_bytes: int, written_bytes: int) -> float:
    """Return the time in which all threads add the partial sums: memory limits them, so that
    additions cost nothing.

    Each thread has a part of the elements, even if all partial sums are of one group.
    """
    threads = machine["host.threads"]
    of_memory = (
        read_bytes / machine["memory.read_gb_s"] + written_bytes / machine["memory.write_gb_s"]
    )
    of_threads = (read_bytes + written_bytes) / (threads * machine["memory.thread_gb_s"])
    return start_seconds(machine) + 1e-9 * max(of_memory, of_threads)


def start_seconds(machine: Machine) -> float:
    """Return the time in which all threads of the host start work."""
    return 1e-6 * (
        machine["call.part_us"] + (machine["host.threads"] - 1) * machine["call.start_us"]
    )


def cpu_seconds(bags: Bags, columns: int, machine: Machine) -> float:
    """Return the time of the look-up on the CPUs alone: all rows cross the memory bus, in lines of
    64 bytes.

    No table is in the caches. Additions cost nothing, because memory limits the look-up. One part
    of a call per batch.
    """
    lines = len(bags.indices) * -(-4 * columns // LINE_BYTES)
    rate = min(machine["memory.read_gb_s"], machine["host.threads"] * machine["memory.thread_gb_s"])
    return start_seconds(machine) + 1e-9 * lines * LINE_BYTES / rate


def layers_seconds(model: Model) -> float:
    """Return the time of the dense layers on the host."""
    layers = Layers.random(np.random.default_rng(1), model.tables, model.columns, 1)
    return 1e-9 * layers.operations * model.batch / LAYERS_GFLOPS
