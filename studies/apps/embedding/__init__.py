"""Embedding tables: look-up and pooling on PEs, with tables cut by tables, rows, columns, or two of
these.

Source: Jonatan et al., Scalability Limitations of Processing-in-Memory using Real System
Evaluations (SIGMETRICS 2024), section 4. Axis x of the hypercube cuts the tables, y the rows of a
table, z the columns; each partition of the paper is a shape (`PARTITIONS`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np

from pidcomm import ArgumentError
from pidcomm.arguments import Array, as_integer
from pidcomm.bench.measure import require_bytes
from pidcomm.errors import unknown
from pidcomm_studies.apps import inputs
from pidcomm_studies.apps.application import Application, Run, count_wrong
from pidcomm_studies.apps.dlrm.criteo import CATEGORIES
from pidcomm_studies.apps.embedding.bags import (
    GENERATORS,
    SEED_MAX,
    Bags,
    bags_of,
    clicks,
    full_bags,
)
from pidcomm_studies.apps.embedding.layers import Layers
from pidcomm_studies.apps.embedding.parts import Part, part_of, placement_of, requests_of
from pidcomm_studies.apps.partition import padded
from pidcomm_studies.apps.placement import Placement
from pidcomm_studies.apps.stage import Stage


class Model(NamedTuple):
    """Sizes of a recommendation model (table 3 of the paper)."""

    tables: int
    rows: int
    columns: int
    pooling: int
    batch: int = 16


MODELS = {
    "rm1": Model(10, 16 << 20, 32, 80),
    "rm2": Model(40, 16 << 20, 32, 80),
    "rm3": Model(5, 160 << 20, 32, 20),
    "one": Model(1, 128 << 10, 64, 32, 512),
}
"""RM1, RM2 and RM3 of table 3, and the one table of figures 6 to 9."""
DEFAULT_SCALE, QUICK_SCALE = 256, 1 << 14
PATHS = ("reduce", "reduce_scatter", "gather")
"""Ways of the sums of the parts of a table to the host: reduced on the way, reduced for PEs and
then gathered, or
gathered and then reduced in host memory, as in the paper."""
DTYPES = ("int32", "float32")
TASKLETS_MAX, TASKLETS = 24, 24
ROUNDOFF = 2.0**-24  # of float32
BY_ROWS = "010"  # the mask of the PEs that have parts of the rows of the same tables and columns
BY_COLUMNS = "001"


@dataclass(frozen=True)
class Clocks:
    """The paper's four clocks, in seconds: kernel, host, CPU to PE, and PE to CPU."""

    kernel: float
    host: float
    cpu_to_pe: float
    pe_to_cpu: float

    @property
    def total(self) -> float:
        """Sum of the four clocks."""
        return self.kernel + self.host + self.cpu_to_pe + self.pe_to_cpu


def clocks_of(run: Run) -> Clocks:
    """Return the four clocks of a run, with the assumed costs of launches and loads on DIMMs.

    The launch of the kernel counts as host. In `reduce` and `reduce_scatter`, PE to CPU contains
    the reduction.
    """
    sent, moved = run.costs["broadcast"], run.communication
    to_pes = sent.total + sent.assumed
    return Clocks(
        run.kernel.total,
        run.host.total + run.kernel.assumed,
        to_pes,
        moved.total + moved.assumed - to_pes,
    )


def _two(pes: int, most: int) -> tuple[int, int]:
    """Return the largest divisor of pes that is at most `most`, and the quotient."""
    divisor = next(candidate for candidate in range(min(most, pes), 0, -1) if pes % candidate == 0)
    return divisor, pes // divisor


def _column_row(pes: int, model: Model) -> tuple[int, int, int]:
    columns, rows = _two(pes, model.columns)
    return 1, rows, columns


PARTITIONS: dict[str, Callable[[int, Model], tuple[int, int, int]]] = {
    "table": lambda pes, _: (pes, 1, 1),
    "row": lambda pes, _: (1, pes, 1),
    "column": lambda pes, _: (1, 1, pes),
    "column-row": _column_row,
    "table-row": lambda pes, model: (*_two(pes, model.tables), 1),
}
"""Shapes of the paper's partitions for a number of PEs and a model.

Hybrid ones cut rows into the fewest parts.
"""


class Embedding(Application):
    """Embedding tables: the sum of the rows of each bag, in int32 or float32."""

    name = "embedding"
    about = "Add rows of tables. The shape cuts tables (x), rows (y), columns (z)."
    axes = 3
    data_help = "a Criteo click log (.gz also works); each of its 26 categories has a table"
    generate_help = inputs.describe(GENERATORS)

    def __init__(
        self,
        tables: Array,
        bags: Bags,
        *,
        path: str = "reduce",
        tasklets: int = TASKLETS,
        layers: Layers | None = None,
        facts: Mapping[str, int | str] | None = None,
    ) -> None:
        """Take tables and a batch.

        tables: int32 or float32, shape (tables, rows, columns). bags: from `bags_of`. path: a name
        of `PATHS`. layers:
        of a recommendation model, which the host computes after the look-up (int32 only); the
        result is then its output for each sample. facts: origin and sizes of the input.

        Raises ArgumentError if shapes or types do not agree, and as `bags_of`.
        """
        if tables.ndim != 3 or 0 in tables.shape or tables.dtype.name not in DTYPES:
            raise ArgumentError(
                f"tables of shape {tables.shape} and type {tables.dtype} must have shape (tables,"
                f" rows, columns), all > 0, and type {' or '.join(DTYPES)}"
            )
        self.tables = np.ascontiguousarray(tables)
        if bags.tables != len(tables):
            raise ArgumentError(f"the bags are for {bags.tables} tables; there are {len(tables)}")
        self.bags = bags_of(len(tables), tables.shape[1], bags.starts, bags.indices)
        if path not in PATHS:
            raise ArgumentError(unknown("path", path, PATHS))
        if layers is not None:
            layers.check(self.tables, self.bags.samples)
        self.path, self.layers = path, layers
        self.tasklets = as_integer("tasklets", tasklets, 1, TASKLETS_MAX)
        self._facts = {"input": "arrays", **(facts or {})}

    @classmethod
    def make(
        cls,
        *,
        data: Path | None = None,
        generate: str | None = None,
        quick: bool = False,
        model: Annotated[
            str, f"Model: {', '.join(MODELS)}. Options below replace its sizes."
        ] = "rm1",
        scale: Annotated[
            int | None,
            f"Divisor of the rows (default: {DEFAULT_SCALE}; quick: {QUICK_SCALE}; one: 1).",
        ] = None,
        tables: Annotated[int | None, "Number of tables."] = None,
        rows: Annotated[int | None, "Number of rows of each table."] = None,
        columns: Annotated[int | None, "Number of columns of each table."] = None,
        pooling: Annotated[int | None, "Number of indices of a bag."] = None,
        batch: Annotated[int | None, "Number of samples."] = None,
        dtype: Annotated[str, "Type of the elements: int32 or float32."] = "int32",
        path: Annotated[str, f"Path of the sums to the host: {', '.join(PATHS)}."] = "reduce",
        tasklets: Annotated[int, "Number of tasklets of a PE."] = TASKLETS,
        mlp: Annotated[bool, "Also compute the dense layers on the host."] = False,
        seed: Annotated[int, "Seed of tables and layers."] = 1,
    ) -> Embedding:
        """Return random tables with a batch of generated bags, or with the categories of a click
        log.

        quick: a scale of 16384, unless data or generate are given.
        """
        inputs.one_source(data, generate)
        if model not in MODELS:
            raise ArgumentError(unknown("model", model, MODELS))
        if dtype not in DTYPES:
            raise ArgumentError(unknown("dtype", dtype, DTYPES))
        sizes = MODELS[model]
        is_one = model == "one"
        default = (
            1
            if is_one
            else QUICK_SCALE
            if quick and data is None and generate is None
            else DEFAULT_SCALE
        )
        if rows is not None and scale is not None:
            raise ArgumentError(f"give rows ({rows}) or scale ({scale}), not both")
        divisor = as_integer("scale", default if scale is None else scale, 1, sizes.rows)
        count = as_integer("tables", sizes.tables if tables is None else tables, 1, 2**16)
        if data is not None:
            if tables is not None or pooling is not None:
                raise ArgumentError("a click log sets tables and pooling; leave them out with data")
            count = CATEGORIES
        height = as_integer("rows", sizes.rows // divisor if rows is None else rows, 1, 2**30)
        width = as_integer("columns", sizes.columns if columns is None else columns, 1, 2**12)
        depth = as_integer("pooling", sizes.pooling if pooling is None else pooling, 0, 2**20)
        samples = as_integer("batch", sizes.batch if batch is None else batch, 1, 2**24)
        spec = generate or "uniform"
        draw = inputs.generated(spec, GENERATORS)
        # The tables, their copy in the order of PEs, and the indices with the arrays that make
        # them.
        needed = 8 * count * height * width + 32 * samples * count * depth
        require_bytes(
            needed, f"{count} tables of {height} rows and {width} columns, and {samples} samples,"
        )
        if data is not None:
            bags, source = clicks(data, samples, height), str(data)
        else:
            bags = full_bags(draw(samples, count, height, depth), height)
            source = inputs.canonical(spec, GENERATORS)
        random = np.random.default_rng(as_integer("seed", seed, 0, SEED_MAX))
        shape = (count, height, width)
        values = (
            random.integers(-8, 8, shape, np.int32)
            if dtype == "int32"
            else random.standard_normal(shape, np.float32)
        )
        facts: dict[str, int | str] = {"input": source, "model": model}
        if rows is None and divisor > 1:
            facts["scale"] = f"1/{divisor} of {sizes.rows} rows"
        pooled = {} if data is not None else {"pooling": depth}
        facts |= {
            "tables": count,
            "rows": height,
            "columns": width,
            **pooled,
            "samples": bags.samples,
            "dtype": dtype,
        }
        facts |= {"path": path, "seed": seed}
        layers = Layers.random(random, count, width, bags.samples) if mlp else None
        if layers is not None:
            facts["layers"] = str(layers)
        return cls(values, bags, path=path, tasklets=tasklets, layers=layers, facts=facts)

    @property
    def facts(self) -> Mapping[str, int | str]:
        """The source of the bags, the sizes of the model with the scale of its rows, and the
        path to the host.
        """
        return self._facts

    @classmethod
    def shape_of(cls, pes: int) -> tuple[int, ...]:
        """Return the shape that cuts 32 columns into slices of up to 8 PEs, and then the rows."""
        columns, rows = _two(pes, 8)
        return 1, rows, columns

    def part(self, shape: Sequence[int]) -> Part:
        """Return the part of each PE. PEs with the last x, y or z may have less, or nothing."""
        return part_of(self.tables.shape, self.bags.samples, shape)

    def place(self, shape: Sequence[int]) -> Placement:
        """Return the layout.

        Raises ArgumentError if a bag of a PE does not fit in the WRAM of a tasklet.
        """
        part = self.part(shape)
        size = requests_of(self.bags, part, shape)[0].nbytes
        pooled_bytes = part.pooled_bytes(shape[1])
        rows = 2 * part.table_bytes + pooled_bytes * (2 if self.path == "gather" else 1)
        return placement_of(
            part,
            size,
            str(self.tables.dtype),
            self.tasklets,
            path=self.path,
            blocks=shape[1],
            host_bytes=prod(shape) * rows + 2 * shape[0] * shape[1] * size,
        )

    def run(self, stage: Stage) -> Array:
        """Return the sums, shape (samples, tables, columns), or the outputs of the layers, shape
        (samples,).
        """
        x, y, z = shape = stage.shape
        part = self.part(shape)
        whole = padded(self.tables, (x * part.tables, y * part.rows, z * part.columns))
        cut = whole.reshape(x, part.tables, y, part.rows, z, part.columns).transpose(
            4, 2, 0, 1, 3, 5
        )
        stage.place(
            "tables", padded(cut.reshape(stage.pes, -1), (stage.pes, part.table_bytes // 4))
        )
        requests = stage.host_work(lambda: requests_of(self.bags, part, shape))
        stage.broadcast(BY_COLUMNS, requests, dst="requests")
        stage.launch()
        sums = self._sums(stage, part.pooled_bytes(y))
        pooled = stage.host_work(lambda: self._joined(sums, requests, part, shape))
        layers = self.layers
        return pooled if layers is None else stage.host_work(lambda: layers.outputs(pooled))

    def _sums(self, stage: Stage, size: int) -> Array:
        """Return a row for each x and z, x fastest: the sums over all rows, or for `gather` those
        of each y.
        """
        dtype, y = self.tables.dtype, stage.shape[1]
        if self.path == "reduce":
            return stage.reduce(BY_ROWS, bytes=size, src="pooled", dtype=dtype)
        if self.path == "reduce_scatter":
            stage.reduce_scatter(BY_ROWS, bytes=size, src="pooled", dst="reduced", dtype=dtype)
        src, size = ("pooled", size) if self.path == "gather" else ("reduced", size // y)
        return stage.gather(BY_ROWS, bytes=size, src=src, dtype=dtype)

    def _joined(self, sums: Array, requests: Array, part: Part, shape: Sequence[int]) -> Array:
        """Add the sums of the rows that PEs wrote; put columns and tables side by side."""
        from pidcomm_studies.apps import _apps

        x, y, z = shape
        tables, _, columns = self.tables.shape
        y, group = (y, part.group(self.tasklets)) if self.path == "gather" else (1, 0)
        sizes = x, y, z, self.bags.samples, tables, part.tables, columns, part.columns
        joined = _apps.embedding_joined(sums, requests, *sizes, group)
        return joined.reshape(self.bags.samples, tables, columns)

    def reference(self) -> Array:
        """Compute the result on all CPUs."""
        pooled = self._pooled()
        return pooled if self.layers is None else self.layers.outputs(pooled)

    def wrong(self, result: Array, expected: Array) -> int:
        """Return the number of wrong elements; integers must be equal, floats equal or within
        `bound`.
        """
        if (
            self.tables.dtype != np.float32
            or result.shape != expected.shape
            or result.dtype != expected.dtype
        ):
            return count_wrong(result, expected)
        is_same = (result == expected) | (np.isnan(result) & np.isnan(expected))
        with np.errstate(invalid="ignore"):  # of infinite values, and of bounds of infinite sums
            is_near = np.abs(result.astype(np.float64) - expected) <= self.bound()
        is_finite = np.isfinite(result) & np.isfinite(expected)
        return int(np.count_nonzero(~(is_same | (is_finite & is_near))))

    def bound(self) -> Array:
        """Return the largest difference of two sums of floats in different orders: float64, the
        shape of the result.

        The sum of n floats in any order differs from the exact sum by at most (n - 1) u / (1 - (n -
        1) u) times the sum of absolute values, u = 2^-24 (Higham, Accuracy and Stability of
        Numerical Algorithms, section 4.2). The bound is twice that, plus the rounding of the sum of
        absolute values itself.
        """
        samples, tables = self.bags.samples, len(self.tables)
        steps = np.maximum(self.bags.counts() - 1, 0) * ROUNDOFF
        gamma = (steps / (1 - steps)).reshape(samples, tables, 1)
        bounds: Array = (
            2 * gamma * (1 + 2 * gamma) * self._pooled(is_absolute=True).astype(np.float64)
        )
        return bounds

    def pooled_plainly(self) -> Array:
        """Compute the sums with one thread and without vectors, as a plain loop does: a baseline
        for times.
        """
        return self._pooled(is_plain=True)

    def _pooled(self, *, is_absolute: bool = False, is_plain: bool = False) -> Array:
        from pidcomm_studies.apps import _apps

        tables, rows, columns = self.tables.shape
        flat = self.tables.reshape(tables * rows, columns)
        sums = _apps.embedding(
            flat, tables, self.bags.starts, self.bags.indices, is_absolute, is_plain
        )
        return sums.reshape(self.bags.samples, tables, columns)


APPLICATION = Embedding
