"""Lay out a graph neural network in MRAM: tiles, weights and matrices in slabs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import ceil, prod
from pathlib import Path

import numpy as np

from pidcomm.arguments import Array
from pidcomm_studies.apps.graphs import Graph
from pidcomm_studies.apps.partition import WORD_BYTES, padded, ragged_rows, round_up, share
from pidcomm_studies.apps.placement import Placement

TASKLETS = 16
CHUNK_BYTES = 24 << 10  # size of a chunk of features or weights in WRAM, which the tasklets share
BLOCK_BYTES = 512  # size of each of the two buffers of a tasklet
SLAB_ROW_BYTES = (64, 32, 16, 8)  # bytes of a row of a slab, the widest row first
STRIP_ROWS_MULTIPLE = (
    8  # an allreduce of the pr techniques cuts a strip into up to 8 parts of whole words
)
EDGE = np.dtype(np.uint32)


@dataclass(frozen=True)
class Side:
    """The adjacency matrix in tiles.

    Columns are split along the axis whose PEs add partial sums, and rows along the second axis.
    row_bytes: bytes of a row of a slab. A tile is cut into cells; a cell has chunk_rows columns and
    block_rows rows.
    """

    shape: tuple[int, int]
    along: int
    rows: int
    columns: int
    row_bytes: int
    sources: Array
    targets: Array

    @property
    def name(self) -> str:
        """Name of the axis whose PEs add partial sums: x or y."""
        return "xy"[self.along]

    @property
    def chunk_rows(self) -> int:
        """Number of rows of features that WRAM holds at a time."""
        return CHUNK_BYTES // self.row_bytes

    @property
    def block_rows(self) -> int:
        """Number of rows of sums in a block; all tasklets have the same number of blocks."""
        rounds = ceil(self.rows / (TASKLETS * (BLOCK_BYTES // self.row_bytes)))
        return ceil(self.rows / (TASKLETS * rounds))

    @property
    def blocks(self) -> int:
        """Number of blocks of a tile."""
        return ceil(self.rows / self.block_rows)

    @property
    def cells(self) -> int:
        """Number of cells of a tile."""
        return ceil(self.columns / self.chunk_rows) * self.blocks

    @property
    def starts_bytes(self) -> int:
        """Bytes of the starts of the cells and the end of the last cell; the PE reads 16 bytes
        aligned to 8.
        """
        return round_up(self.cells + 3, 2) * EDGE.itemsize

    @cached_property
    def tiles(self) -> Array:
        """Number of the PE to which each edge belongs."""
        column, row = self.targets // self.columns, self.sources // self.rows
        x, y = (column, row) if self.along == 0 else (row, column)
        pes: Array = x + self.shape[0] * y
        return pes

    @property
    def edges_bytes(self) -> int:
        """Bytes of the edges of the largest tile."""
        most = int(np.bincount(self.tiles).max(initial=0))
        return max(round_up(most * EDGE.itemsize, WORD_BYTES), WORD_BYTES)

    def resident_rows(self) -> Iterator[tuple[str, Array]]:
        """Return the edges and the starts of the cells as kernel.c reads them, with one row for
        each PE.
        """
        block, row = np.divmod(self.sources % self.rows, self.block_rows)
        chunk, column = np.divmod(self.targets % self.columns, self.chunk_rows)
        cell = self.tiles * self.cells + chunk * self.blocks + block
        order = np.argsort(cell, kind="stable")
        edges = (row * self.row_bytes << 16 | column * self.row_bytes)[order]
        ends = np.cumsum(np.bincount(cell, minlength=prod(self.shape) * self.cells)).reshape(
            -1, self.cells
        )
        begins = np.concatenate([[0], ends[:-1, -1]])
        yield (
            f"edges_{self.name}",
            ragged_rows(edges.astype(EDGE), np.append(begins, len(edges)), 2),
        )
        starts = np.zeros((len(ends), self.starts_bytes // EDGE.itemsize), EDGE)
        starts[:, 1 : self.cells + 1] = ends - begins[:, None]
        yield f"starts_{self.name}", starts


@dataclass(frozen=True)
class Layer:
    """The layout of a layer. side: the tiles. width, next_width: padded numbers of features before
    and after the layer.

    members: PEs that share a row of tiles. in_width and out_width: rows and columns of a PE's part
    of the weights.
    weights_at: offset of this part in the window of the weights.
    """

    index: int
    side: Side
    width: int
    next_width: int
    in_width: int
    out_width: int
    weights_at: int

    @property
    def mask(self) -> str:
        """Mask of the axis whose PEs add partial sums."""
        return ("10", "01")[self.side.along]

    @property
    def members(self) -> int:
        """Length of the axis whose PEs add partial sums."""
        return self.side.shape[self.side.along]


class Layout:
    """A network on a hypercube.

    graph: has each edge once. widths: numbers of features before the first layer and after each
    layer. splits_input:
    whether the PEs of a sum split the features before the combination (RS&AR) or after it (AR&AG).
    """

    def __init__(
        self,
        shape: tuple[int, int],
        graph: Graph,
        widths: Sequence[int],
        dtype: np.dtype[np.signedinteger],
        splits_input: bool,
    ) -> None:
        """Choose the width of slabs, and cut the matrices."""
        self.shape = shape
        self.vertices = graph.vertices
        self.dtype = dtype
        members = [shape[layer % 2] for layer in range(len(widths) - 1)]
        # A matrix that is split by columns has one or more complete slabs for each member.
        parts = [*members, 1] if splits_input else [1, *members]

        def padded_widths(row_bytes: int) -> list[int]:
            slab = row_bytes // dtype.itemsize
            return [
                round_up(width, slab * count) for width, count in zip(widths, parts, strict=True)
            ]

        def products(row_bytes: int) -> int:
            pairs = zip(pairwise(padded_widths(row_bytes)), members, strict=True)
            return sum(width * next_width // count for (width, next_width), count in pairs)

        # Prefer the fewest products, which take the most time; then the widest slabs, which read
        # edges least often.
        self.row_bytes = min(SLAB_ROW_BYTES, key=products)
        self.slab = self.row_bytes // dtype.itemsize
        self.widths = padded_widths(self.row_bytes)
        strips = [share(graph.vertices, length, dtype, STRIP_ROWS_MULTIPLE) for length in shape]
        sources, targets = (ends.astype(np.int64) for ends in (graph.sources, graph.targets))
        sides = [
            Side(shape, along, strips[1 - along], strips[along], self.row_bytes, sources, targets)
            for along in range(2)
        ]
        self.layers: list[Layer] = []
        at = 0
        for index, (width, next_width) in enumerate(pairwise(self.widths)):
            depth = width // members[index] if splits_input else width
            columns = next_width if splits_input else next_width // members[index]
            self.layers.append(
                Layer(index, sides[index % 2], width, next_width, depth, columns, at)
            )
            at += depth * columns * dtype.itemsize
        self._weights_bytes = at
        self._splits_input = splits_input
        self._sides = sides[: len(self.layers)]

    def bytes(self, rows: int, width: int) -> int:
        """Return the bytes of a matrix."""
        return rows * width * self.dtype.itemsize

    def placement(self) -> Placement:
        """Return the program of the PEs and its MRAM layout."""
        resident = {"weights": self._weights_bytes}
        for side in self._sides:
            resident |= {
                f"edges_{side.name}": side.edges_bytes,
                f"starts_{side.name}": side.starts_bytes,
            }
        features, sums, blocks = [0], [0], [0]
        for layer in self.layers:
            rows = layer.side.rows
            features.append(self.bytes(layer.side.columns, layer.width))
            sums.append(self.bytes(rows, layer.width))
            if self._splits_input:
                blocks.append(self.bytes(rows, layer.in_width))
                sums.append(self.bytes(rows, layer.out_width))
            else:
                features.append(self.bytes(rows, layer.width))
                blocks.append(self.bytes(rows, layer.out_width))
        return Placement(
            source=Path(__file__).with_name("kernel.c"),
            resident=resident,
            windows={"features": max(features), "sums": max(sums), "blocks": max(blocks)},
            tasklets=TASKLETS,
            defines={
                "ELEMENT": f"{self.dtype.name}_t",
                "ELEMENT_BYTES": self.dtype.itemsize,
                "WIDTH": self.slab,
                "CHUNK_BYTES": CHUNK_BYTES,
                "BLOCK_BYTES": BLOCK_BYTES,
            },
            host_bytes=prod(self.shape) * sum(resident.values()) + self._rows_bytes,
        )

    @property
    def _rows_bytes(self) -> int:
        """Bytes of the first strips and of the last results, each twice: padded, and in the
        other order.
        """
        first, last = self.layers[0], self.layers[-1]
        strips = self.bytes(self.shape[0] * first.side.columns, first.width)
        results = self.bytes(prod(self.shape) // last.members * last.side.rows, last.next_width)
        return 2 * (strips + results)

    def strips(self, features: Array) -> Array:
        """Return the strips of the first layer in slabs; all PEs with coordinate x get row x."""
        count, rows = self.shape[0], self.layers[0].side.columns
        slabs = padded(features, (count * rows, self.widths[0])).reshape(count, rows, -1, self.slab)
        return slabs.swapaxes(1, 2).reshape(count, -1)

    def weight_rows(self, layer: Layer, weights: Array) -> Array:
        """Return each PE's part of a layer's weights, in slabs."""
        whole = padded(weights, (layer.width, layer.next_width))
        parts = whole.reshape(
            layer.width // layer.in_width,
            layer.in_width,
            layer.next_width // layer.out_width,
            -1,
            self.slab,
        )
        by_member = parts.transpose(0, 2, 3, 1, 4).reshape(layer.members, -1)
        pes = np.arange(prod(self.shape))
        return by_member[(pes % self.shape[0], pes // self.shape[0])[layer.side.along]]

    def resident_rows(self) -> Iterator[tuple[str, Array]]:
        """Return the tiles by name, with one row for each PE."""
        for side in self._sides:
            yield from side.resident_rows()

    def result(self, rows: Array, width: int) -> Array:
        """Return `width` columns of the matrix of the last layer. rows: the rows of the groups,
        in slabs.
        """
        layer = self.layers[-1]
        slabs = rows.reshape(len(rows), -1, layer.side.rows, self.slab)
        matrix = slabs.swapaxes(1, 2).reshape(-1, layer.next_width)
        return np.ascontiguousarray(matrix[: self.vertices, :width])
