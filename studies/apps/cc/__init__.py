"""Find the connected components of an undirected graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import cycle
from math import prod
from pathlib import Path
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from pidcomm.arguments import as_integer
from pidcomm_studies.apps import graphs
from pidcomm_studies.apps.application import Application
from pidcomm_studies.apps.edges import (
    ALIGNMENT,
    EDGE_BITS,
    MIN_BITS,
    REDUCED_BYTES,
    Cut,
    Cutter,
    total_count,
)
from pidcomm_studies.apps.partition import WORD_BYTES, share
from pidcomm_studies.apps.placement import Placement
from pidcomm_studies.apps.stage import Stage

DEFAULT = "rmat:scale=18"  # 1 MiB of labels
LABEL_BYTES = 4
WORD_LABELS = WORD_BYTES // LABEL_BYTES
CHUNK_BITS = 11  # log2 of the vertices of a chunk: 8 KiB of labels
ROOM_BITS = 12  # the largest tile that PEs read completely: 16 KiB
# A PE reads a complete tile if the tile has at most this number of vertices per edge. Else the PE
# reads 8 bytes for each edge. The emulated DMA engine needs 0.53 cycles per byte, plus 34 cycles
# per transfer.
VERTICES_PER_READ = 16


class ConnectedComponents(Application):
    """The label of every vertex, uint32: the smallest vertex number in the component of the vertex.

    Numbers count from 0.
    """

    name = "cc"
    about = "Connected components: for every vertex, the least vertex number in its component."
    axes = 1
    data_help = graphs.DATA_HELP
    generate_help = graphs.generate_help(DEFAULT)

    def __init__(
        self,
        graph: graphs.Graph,
        *,
        chunk_bits: int = CHUNK_BITS,
        room_bits: int = ROOM_BITS,
        tile_bits: int | None = None,
        in_place: bool = False,
    ) -> None:
        """Take a graph; its edges connect in both directions.

        chunk_bits: log2 of the number of vertices of a chunk (`pidcomm_studies.apps.edges.cut`), 6
        to 11. tile_bits: log2 of the vertices of a tile, 6 to 32 - chunk_bits. room_bits: log2 of
        the vertices of the largest tile that PEs read completely, 6 to 12. By default tile_bits is
        room_bits; if there are too few edges to read complete tiles, it is as large as possible.
        in_place: whether the labels of a round replace those of the round before, instead of
        going to a second window.
        """
        as_integer("chunk_bits", chunk_bits, MIN_BITS, CHUNK_BITS)
        as_integer("room_bits", room_bits, MIN_BITS, ROOM_BITS)
        if tile_bits is not None:
            as_integer("tile_bits", tile_bits, MIN_BITS, EDGE_BITS - chunk_bits)
        self.graph = graph.undirected()
        self._starts = self.graph.starts()
        self._bits = chunk_bits, room_bits, tile_bits
        self._windows = ("labels",) if in_place else ("labels", "next")
        self._cutter = Cutter(self.graph)

    @classmethod
    def make(
        cls,
        *,
        data: Path | None = None,
        generate: str | None = None,
        quick: bool = False,
        in_place: Annotated[
            bool, "Reduce labels in place: half the memory, but a slower allreduce."
        ] = False,
    ) -> ConnectedComponents:
        """Return the application with the graph of a file or a generator."""
        graph = graphs.load(data, generate, graphs.QUICK if quick else DEFAULT)
        return cls(graph, in_place=in_place)

    @property
    def facts(self) -> Mapping[str, int | str]:
        """The graph, and its number of edges; each edge counts once per direction."""
        return {
            "input": self.graph.name,
            "vertices": self.graph.vertices,
            "edges": self.graph.edges,
        }

    @classmethod
    def shape_of(cls, pes: int) -> tuple[int, ...]:
        """Return a shape with one axis."""
        return (pes,)

    def place(self, shape: Sequence[int]) -> Placement:
        """Return the layout: every PE has the labels of all vertices, and an even share of the
        edges and the result.
        """
        pes = prod(shape)
        chunk_bits, room_bits, _ = self._bits
        edges = self._cut_for(pes)
        return Placement(
            source=Path(__file__).parent / "kernel.c",
            resident=edges.resident,
            windows={
                **{name: self._vertices * LABEL_BYTES for name in self._windows},
                "result": self._share(pes) * LABEL_BYTES,
                "count": REDUCED_BYTES,
            },
            defines={
                "WORDS": self._vertices // WORD_LABELS,
                "SHARE_WORDS": self._share(pes) // WORD_LABELS,
                "CHUNK_BITS": chunk_bits,
                "TILE_BITS": self._tile_bits(pes),
                "ROOM_BITS": room_bits,
                "VERTICES_PER_READ": VERTICES_PER_READ,
            },
            host_bytes=edges.host_bytes,
        )

    def run(self, stage: Stage) -> NDArray[np.uint32]:
        """Reduce labels in rounds until no label changes."""
        edges = self._cut_for(stage.pes)
        edges.place(stage)
        labels = stage.host_work(lambda: np.arange(self._vertices, dtype=np.uint32).reshape(1, -1))
        stage.broadcast("1", labels, dst="labels")
        windows = cycle(self._windows)
        src = next(windows)
        stage.launch(
            at_labels=stage.offsets[src],
            patches=edges.counts,
            first=np.arange(stage.pes) * self._share(stage.pes),
        )
        while total_count(stage):
            size = self._vertices * LABEL_BYTES
            dst = next(windows)
            stage.allreduce("1", bytes=size, src=src, dst=dst, dtype=np.uint32, op="min")
            stage.launch(at_labels=stage.offsets[dst])
            src = dst
        size = self._share(stage.pes) * LABEL_BYTES
        return stage.gather("1", bytes=size, src="result", dtype=np.uint32)[
            0, : self.graph.vertices
        ]

    def reference(self) -> NDArray[np.uint32]:
        """Compute the labels with the Afforest algorithm."""
        from pidcomm_studies.apps import _apps

        return _apps.cc(self._starts, self.graph.targets)

    @property
    def _vertices(self) -> int:
        """Number of vertices, padded."""
        return share(self.graph.vertices, 1, np.uint32, ALIGNMENT)

    def _share(self, pes: int) -> int:
        return share(self.graph.vertices, pes, np.uint32)

    def _tile_bits(self, pes: int) -> int:
        chunk_bits, room_bits, tile_bits = self._bits
        if tile_bits is not None:
            return tile_bits
        is_dense = self.graph.edges * VERTICES_PER_READ >= pes * self._vertices
        return room_bits if is_dense else EDGE_BITS - chunk_bits

    def _cut_for(self, pes: int) -> Cut:
        chunk_bits, _, _ = self._bits
        return self._cutter.cut(pes, chunk_bits, self._tile_bits(pes))


APPLICATION = ConnectedComponents
