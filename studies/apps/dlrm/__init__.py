"""DLRM: the forward pass of a deep learning recommendation model for a batch of clicks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import prod
from pathlib import Path
from typing import Annotated, ClassVar

import numpy as np

from pidcomm import ArgumentError
from pidcomm.arguments import MAX_COUNT, Array, as_integer
from pidcomm.bench.measure import require_bytes
from pidcomm.sizes import format_shape
from pidcomm_studies.apps import inputs
from pidcomm_studies.apps.application import Application
from pidcomm_studies.apps.dlrm.criteo import CATEGORIES, Criteo, read
from pidcomm_studies.apps.dlrm.layers import int32_words, parse_widths, random_layers, widths_of
from pidcomm_studies.apps.dlrm.part import Part
from pidcomm_studies.apps.partition import padded, round_up, share
from pidcomm_studies.apps.placement import Placement
from pidcomm_studies.apps.stage import Stage

GENERATORS = {"criteo": Criteo}
DEFAULT_SAMPLES, DEFAULT_ROWS = 16384, 65536
QUICK_SAMPLES, QUICK_ROWS = 512, 4096
SAMPLES_MAX, ROWS_MAX, SEED_MAX = 2**24, 2**24, 2**32 - 1
SAMPLE_BYTES = 1024  # approximate memory of the generator per sample
FEATURES_MAX = 256  # limit of the dense features, which one transfer reads
COLUMNS_MAX = 64  # limit for an embedding: two of its rows fit in a tasklet's buffer
NO_ROW = np.uint32(2**32 - 1)  # the row number in padded samples and tables; no PE has this row

TASKLETS = 16
STACK_BYTES = 768
BUFFER_BYTES = 1024  # size of the buffer of each tasklet
# Of the 64 KiB of WRAM; the remainder is for the other variables of the program.
WRAM_BYTES = 60 * 1024
PHASES = {"ARRANGE": 0, "LOOK_UP": 1, "PREDICT": 2}  # values of `phase` in kernel.c


class Dlrm(Application):
    """Deep learning recommendation model: embedding tables, dot products and dense layers, in
    32-bit integers.
    """

    name = "dlrm"
    about = (
        "Deep learning recommendation model: embedding tables, dot products of pairs, dense layers."
    )
    axes: int = 3
    data_help: ClassVar[str] = (
        "a Criteo click log (.gz also works): each line has a label, 13 numbers and 26 categories,"
        " separated by tabs"
    )
    generate_help = inputs.describe(GENERATORS)

    def __init__(
        self,
        tables: Array,
        rows: Array,
        dense: Array,
        bottom: Sequence[Array],
        top: Sequence[Array],
        source: str = "arrays",
        seed: int | None = None,
        heights: Array | None = None,
        replicas: int = 1,
        chunks: int = 1,
    ) -> None:
        """Take a model and a batch.

        tables: int32, shape (tables, rows, columns), or with heights, the number of rows of each
        table, the tables one after another: shape (sum of heights, columns). rows: shape (samples,
        tables), the row of each table that a sample uses. dense: int32, shape (samples, features).
        bottom, top: layers, int32, each of shape (outputs, inputs + 1); the last column is the
        bias. The last layer of bottom has an output for each column of a table. The inputs of the
        first layer of top are these outputs and a dot product for each pair of vectors. The last
        layer of top has one output. source: origin of the samples, for `facts`. seed: seed of the
        model, for `facts`. replicas: number of copies of the model, each on its own PEs and with
        its own samples; the number of PEs along a fourth axis. chunks: number of parts of the
        batch, one after another.

        Raises ArgumentError if shapes do not agree or a row is not in its table.
        """
        tables, self.dense = int32_words("tables", tables), int32_words("dense features", dense)
        self.bottom = [int32_words("a bottom layer", layer) for layer in bottom]
        self.top = [int32_words("a top layer", layer) for layer in top]
        indices = np.asarray(rows)
        if heights is None:
            if tables.ndim != 3 or 0 in tables.shape:
                raise ArgumentError(
                    f"tables of shape {tables.shape} must have shape (tables, rows, columns),"
                    " all > 0"
                )
            heights = np.full(len(tables), tables.shape[1])
            tables = tables.reshape(-1, tables.shape[2])
        self.heights = np.asarray(heights).astype(np.int64)
        if (
            self.heights.ndim != 1
            or not self.heights.size
            or self.heights.min() < 1
            or tables.ndim != 2
            or len(tables) != self.heights.sum()
        ):
            raise ArgumentError(
                f"tables of shape {tables.shape} must have shape (sum of heights, columns); the"
                " heights must be positive"
            )
        self._all_tables = tables
        self._starts = np.concatenate([[0], np.cumsum(self.heights)])
        count, columns = len(self.heights), tables.shape[1]
        if columns % 2 or columns > COLUMNS_MAX:
            raise ArgumentError(
                f"an embedding of {columns} columns must be even and at most {COLUMNS_MAX}"
            )
        if indices.ndim != 2 or indices.shape[1] != count or not len(indices):
            raise ArgumentError(
                f"rows of shape {indices.shape} must have shape (samples, {count}), one column per"
                " table"
            )
        if (
            self.dense.ndim != 2
            or len(self.dense) != len(indices)
            or not 1 <= self.dense.shape[1] <= FEATURES_MAX
        ):
            raise ArgumentError(
                f"dense features of shape {self.dense.shape} must have shape ({len(indices)}, 1 to"
                f" {FEATURES_MAX})"
            )
        is_outside = (indices.min(axis=0) < 0) | (indices.max(axis=0) >= self.heights)
        if indices.dtype.kind not in "iu" or is_outside.any():
            last = self.heights[is_outside.argmax()] - 1
            raise ArgumentError(f"rows must be integers from 0 to {last}, the last row of a table")
        self.rows = indices.astype(np.uint32)
        vectors = count + 1
        self.bottom_widths = widths_of("bottom", self.bottom, self.dense.shape[1], columns)
        self.top_widths = widths_of("top", self.top, columns + vectors * (vectors - 1) // 2, 1)
        self.source, self.seed = source, seed
        self.replicas = as_integer("replicas", replicas, 1, MAX_COUNT)
        self.axes = 3 if replicas == 1 else 4
        self.chunks = as_integer("chunks", chunks, 1, len(self.rows))

    @classmethod
    def make(
        cls,
        *,
        data: Path | None = None,
        generate: str | None = None,
        quick: bool = False,
        batch: Annotated[
            int | None,
            f"Number of samples; with --data, the first samples of the file "
            f"(default: {DEFAULT_SAMPLES}; quick: {QUICK_SAMPLES}).",
        ] = None,
        embedding: Annotated[
            int, "Number of columns of the tables; the paper uses 16 and 32."
        ] = 16,
        rows: Annotated[
            int | None,
            f"Number of rows of each table (default: {DEFAULT_ROWS}; quick: {QUICK_ROWS}).",
        ] = None,
        max_height: Annotated[
            int | None,
            "Instead of --rows: a row for each category in the data, at most this many.",
        ] = None,
        bottom: Annotated[str, "Outputs of each hidden layer before the dot products."] = "64,32",
        top: Annotated[str, "Outputs of each hidden layer after the dot products."] = "64,32",
        seed: Annotated[int, "Seed of random tables and layers."] = 1,
        replicas: Annotated[int, "Copies of the model on separate PEs."] = 1,
        chunks: Annotated[int, "Parts of the batch, run in turn."] = 1,
    ) -> Dlrm:
        """Return the model with random tables and layers, and a batch of clicks.

        quick: 512 samples and tables of 4096 rows, unless batch, rows, data or generate are given.
        """
        inputs.one_source(data, generate)
        is_quick = quick and data is None and generate is None
        default_samples, default_rows = (
            (QUICK_SAMPLES, QUICK_ROWS) if is_quick else (DEFAULT_SAMPLES, DEFAULT_ROWS)
        )
        samples = as_integer("batch", default_samples if batch is None else batch, 1, SAMPLES_MAX)
        table_rows = as_integer("rows", default_rows if rows is None else rows, 1, ROWS_MAX)
        if max_height is not None:
            if rows is not None:
                raise ArgumentError(f"give rows ({rows}) or max_height ({max_height}), not both")
            most = as_integer("max_height", max_height, 1, ROWS_MAX)
            table_rows = min(most, samples + 1)
        columns = as_integer("embedding", embedding, 2, COLUMNS_MAX)
        hidden = {
            name: parse_widths(name, text) for name, text in (("bottom", bottom), ("top", top))
        }
        rng = np.random.default_rng(as_integer("seed", seed, 0, SEED_MAX))
        spec = generate or "criteo"
        generator = inputs.generated(spec, GENERATORS)
        require_bytes(
            4 * CATEGORIES * table_rows * columns + (samples * SAMPLE_BYTES if data is None else 0),
            f"{CATEGORIES} tables of {table_rows} rows and {columns} columns, and {samples}"
            " samples,",
        )
        if data is not None:
            clicks, source = read(data, samples), str(data)
        else:
            clicks, source = generator.clicks(samples), inputs.canonical(spec, GENERATORS)
        dense = clicks.dense()
        if max_height is None:
            indices, heights = clicks.rows(table_rows), np.full(CATEGORIES, table_rows)
        else:
            indices, heights = clicks.numbered(most)
        vectors = CATEGORIES + 1
        return cls(
            tables=rng.integers(-8, 8, (heights.sum(), columns), np.int32),
            heights=heights,
            rows=indices,
            dense=dense,
            bottom=random_layers(rng, [dense.shape[1], *hidden["bottom"], columns]),
            top=random_layers(rng, [columns + vectors * (vectors - 1) // 2, *hidden["top"], 1]),
            source=source,
            seed=seed,
            replicas=replicas,
            chunks=chunks,
        )

    @property
    def tables(self) -> list[Array]:
        """The tables, each of shape (rows, columns)."""
        return np.split(self._all_tables, self._starts[1:-1])

    @property
    def facts(self) -> Mapping[str, int | str]:
        """The source of the samples, the sizes of the model, and the seed of a random model."""
        least, most = int(self.heights.min()), int(self.heights.max())
        return {
            "input": self.source,
            "samples": len(self.rows),
            "tables": len(self.heights),
            "rows": most if least == most else f"{least} to {most}",
            "embedding": self._all_tables.shape[1],
            "bottom": "-".join(map(str, self.bottom_widths)),
            "top": "-".join(map(str, self.top_widths)),
            "replicas": self.replicas,
            "chunks": self.chunks,
            **({} if self.seed is None else {"seed": self.seed}),
        }

    def shape_of(self, pes: int) -> tuple[int, ...]:
        """Return axis lengths.

        Factors of 2 of the PEs of a replica go to x, y, z, x, y, ..., up to x = 16 and z = 8. The
        remaining factors go to y. Several replicas are a fourth axis.
        """
        if pes % self.replicas:
            raise ArgumentError(f"{self.replicas} replicas must divide the {pes} PEs")
        lengths, most = [1, 1, 1], (16, pes, 8)
        rest, axis = pes // self.replicas, 0
        while rest % 2 == 0:
            if lengths[axis] < most[axis]:
                lengths[axis] *= 2
                rest //= 2
            axis = (axis + 1) % 3
        lengths[1] *= rest
        return (*lengths, self.replicas)[: self.axes]

    def place(self, shape: Sequence[int]) -> Placement:
        """Return the layout.

        Raises ArgumentError if slices of columns are not words, or if WRAM is too small.
        """
        x, y, z = self._of_replica(shape)
        pes = prod(shape)
        part = self._part(shape)
        all_tables, embedding = len(self.heights), self._all_tables.shape[1]
        dense = self.dense.shape[1]
        widest = max([dense, *self.bottom_widths[1:-1], *self.top_widths[1:]])
        resident = {
            "tables": 4 * sum(part.rows) * part.columns,
            "weights": self._layers().nbytes,
        }
        return Placement(
            source=Path(__file__).parent / "kernel.c",
            resident=resident,
            windows={
                "dense": 4 * part.samples * round_up(dense, 2),
                "wanted": part.wanted_bytes,
                "indices": part.index_bytes,
                "requests": part.index_bytes,
                "lookups": y * part.vector_bytes,
                "sums": part.vector_bytes,
                "vectors": part.vector_bytes,
                "outputs": 4 * part.samples,
            },
            tasklets=TASKLETS,
            stack_bytes=STACK_BYTES,
            defines={
                **PHASES,
                **{"PES_X": x, "PES_Y": y, "PES_Z": z, "SAMPLES": part.samples},
                **{"TABLES": part.tables, "COLUMNS": part.columns},
                **{"ROWS": _joined(part.rows), "PLACES": _joined(part.places.flat)},
                **{"ALL_TABLES": all_tables, "EMBEDDING": embedding, "DENSE": dense},
                **{
                    "BOTTOM": _joined(self.bottom_widths),
                    "TOP": _joined(self.top_widths),
                    "WIDEST": widest,
                },
                **{"GROUP": self._group(widest, part.samples), "BUFFER_BYTES": BUFFER_BYTES},
            },
            host_bytes=max(
                x * y * z * (resident["tables"] + 4 * part.rows[0] * part.columns),
                pes * 2 * part.wanted_bytes,
                pes * resident["weights"],
            ),
        )

    def run(self, stage: Stage) -> Array:
        """Compute the forward pass; return int32, shape (samples,)."""
        part = self._part(stage.shape)
        stage.place("tables", self._parts_of_tables(stage.shape, part))
        stage.place("weights", np.tile(self._layers(), (stage.pes, 1)))
        each = self._samples
        outputs = [
            self._run_chunk(stage, part, slice(first, first + each))
            for first in range(0, len(self.rows), each)
        ]
        stage.wait()
        return np.concatenate([row[0, :each] for row in outputs])[: len(self.rows)]

    def _run_chunk(self, stage: Stage, part: Part, chunk: slice) -> Array:
        """Return the outputs of some samples, shape (1, samples of all PEs)."""
        x, y, _ = self._of_replica(stage.shape)
        slices, pes, samples = stage.shape[-1], stage.pes, part.samples
        places, all_rows, all_dense = part.places.ravel(), self.rows[chunk], self.dense[chunk]
        is_table = places < len(self.heights)

        def fill_dense(own: slice, filled: Array) -> None:
            numbers = filled.reshape(self._dense_shape(len(filled) * pes // slices * samples))
            dense = all_dense[own.start * pes // slices * samples :][: len(numbers)]
            numbers[: len(dense), : dense.shape[1]] = dense

        def fill_wanted(own: slice, filled: Array) -> None:
            wanted = np.full((len(filled) * pes // slices * samples, places.size), NO_ROW)
            rows = all_rows[own.start * pes // slices * samples :][: len(wanted)]
            wanted[: len(rows), is_table] = rows[:, places[is_table]]
            by_x = filled.reshape(-1, x, samples, part.tables)
            by_x[...] = wanted.reshape(-1, samples, x, part.tables).swapaxes(1, 2)

        every = "1" * self.axes
        for window, dtype, fill, words in (
            ("dense", np.int32, fill_dense, prod(self._dense_shape(samples))),
            ("wanted", np.uint32, fill_wanted, part.wanted_bytes // 4),
        ):
            rows = stage.lay_out(np.empty((slices, pes // slices * words), dtype), fill)
            stage.scatter(every, rows.reshape(1, -1), dst=window)

        stage.launch(phase=PHASES["ARRANGE"], own_y=np.arange(pes) // x % y)

        of_xyz, of_y, of_xz = (mask.ljust(self.axes, "0") for mask in ("111", "010", "101"))
        stage.alltoall(of_xyz, bytes=part.index_bytes, src="indices", dst="requests")

        stage.launch(phase=PHASES["LOOK_UP"])

        stage.reduce_scatter(
            of_y, bytes=y * part.vector_bytes, src="lookups", dst="sums", dtype=np.int32
        )
        stage.alltoall(of_xz, bytes=part.vector_bytes, src="sums", dst="vectors")

        stage.launch(phase=PHASES["PREDICT"])
        return stage.gather(every, bytes=4 * samples, src="outputs", dtype=np.int32, wait=False)

    def reference(self) -> Array:
        """Compute the forward pass on all CPUs."""
        from pidcomm_studies.apps import _apps

        layers = [
            np.concatenate([weights.ravel() for weights in layers])
            for layers in (self.bottom, self.top)
        ]
        widths = [
            np.array(widths_of_stack, np.int32)
            for widths_of_stack in (self.bottom_widths, self.top_widths)
        ]
        return _apps.dlrm(
            self._all_tables,
            self._starts,
            self.rows,
            self.dense,
            layers[0],
            widths[0],
            layers[1],
            widths[1],
        )

    @property
    def _samples(self) -> int:
        """Number of samples of a chunk."""
        return -(-len(self.rows) // self.chunks)

    def _of_replica(self, shape: Sequence[int]) -> tuple[int, int, int]:
        """Return the axes of a replica. Raises ArgumentError for another number of replicas."""
        x, y, z, replicas = (*shape, 1)[:4]
        if replicas != self.replicas:
            raise ArgumentError(
                f"shape {format_shape(tuple(shape))} has {replicas} replicas; the model has"
                f" {self.replicas}"
            )
        return x, y, z

    def _part(self, shape: Sequence[int]) -> Part:
        """Return the part of each PE. Raises ArgumentError if slices of columns are not words."""
        x, y, z = self._of_replica(shape)
        all_tables, embedding = len(self.heights), self._all_tables.shape[1]
        if embedding % (2 * z):
            raise ArgumentError(
                f"{embedding} columns cannot be cut into slices of whole 8-byte words for {z} PEs"
                f" along z; the length of z must divide {embedding // 2}"
            )
        tables, columns = -(-all_tables // x), embedding // z
        samples = share(self._samples, prod(shape), np.int32)
        places = np.full(tables * x, all_tables)
        places[:all_tables] = np.argsort(-self.heights, kind="stable")
        rows = tuple(int(-(-height // y)) for height in self.heights[places[::x]])
        return Part(
            samples=samples,
            tables=tables,
            rows=rows,
            columns=columns,
            places=places.reshape(tables, x).T,
            wanted_bytes=4 * x * samples * tables,
            index_bytes=4 * x * y * z * samples * tables,
            vector_bytes=4 * x * z * samples * tables * columns,
        )

    def _parts_of_tables(self, shape: Sequence[int], part: Part) -> Array:
        """Return the parts of the tables of each PE of a replica, shape (pes, words)."""
        x, y, z = self._of_replica(shape)
        columns = part.columns
        parts = np.zeros((z, y, x, sum(part.rows), columns), np.int32)
        tables, ends = self.tables, np.cumsum(part.rows)
        for (own_x, slot), place in np.ndenumerate(part.places):
            if place < len(tables):
                rows, end = part.rows[slot], ends[slot]
                whole = padded(tables[place], (y * rows, z * columns))
                parts[:, :, own_x, end - rows : end] = whole.reshape(y, rows, z, columns).transpose(
                    2, 0, 1, 3
                )
        return parts.reshape(x * y * z, -1)

    def _layers(self) -> Array:
        """Return all layers in the layout of kernel.c: rows without gaps, each padded to an even
        word count.
        """
        rows = (
            padded(layer, (len(layer), round_up(layer.shape[1], 2)))
            for layer in (*self.bottom, *self.top)
        )
        return np.concatenate([padded_layer.ravel() for padded_layer in rows])

    def _dense_shape(self, samples: int) -> tuple[int, int]:
        return samples, round_up(self.dense.shape[1], 2)

    def _group(self, widest: int, samples: int) -> int:
        """Return the even number of samples that a PE processes together: equal groups that fit
        in WRAM.
        """
        tables, columns = len(self.heights), self._all_tables.shape[1]
        words = round_up(self.top_widths[0] + 1, 2) + tables * columns + 2 * round_up(widest + 1, 2)
        room = WRAM_BYTES - TASKLETS * (STACK_BYTES + BUFFER_BYTES)
        most = room // (4 * words + 4) // 2 * 2
        if most == 0:
            raise ArgumentError(
                f"two samples with {tables} tables of {columns} columns, {self.top_widths[0]}"
                f" inputs of the top layers and layers of up to {widest} outputs need"
                f" {2 * 4 * words} bytes of WRAM; {room} are available"
            )
        groups = -(-samples // most)
        return round_up(-(-samples // groups), 2)


def _joined(numbers: Iterable[int]) -> str:
    return ",".join(map(str, numbers))


APPLICATION = Dlrm
