"""Breadth-first search: find the least number of edges from one vertex to every other vertex."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from pathlib import Path
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from pidcomm import ArgumentError
from pidcomm.arguments import as_integer
from pidcomm_studies.apps import graphs
from pidcomm_studies.apps.application import Application
from pidcomm_studies.apps.edges import MIN_BITS, REDUCED_BYTES, Cutter, total_count
from pidcomm_studies.apps.partition import WORD_BYTES, share
from pidcomm_studies.apps.placement import Placement
from pidcomm_studies.apps.stage import Stage

DEFAULT = "rmat:scale=20"  # 128 KiB of bits
DIRECTIONS = ("undirected", "directed")
MOST_EDGES = -1
MAX_BITS = 16  # limit of chunk_bits and tile_bits: a chunk takes 8 KiB of WRAM
WORD_VERTICES = 8 * WORD_BYTES  # one bit for each vertex


class BreadthFirstSearch(Application):
    """The levels of all vertices, int32: the number of edges from the source, or -1 if the
    vertex is unreachable.
    """

    name = "bfs"
    about = "Breadth-first search: the least number of edges from one vertex to every other vertex."
    axes = 1
    data_help = graphs.DATA_HELP
    generate_help = graphs.generate_help(DEFAULT)

    def __init__(
        self,
        graph: graphs.Graph,
        *,
        source: int = MOST_EDGES,
        direction: str = DIRECTIONS[0],
        chunk_bits: int = MAX_BITS,
        tile_bits: int = MAX_BITS,
    ) -> None:
        """Take a graph; `make` describes source and direction.

        chunk_bits, tile_bits: log2 of the vertices of a chunk and of a tile
        (`pidcomm_studies.apps.edges.cut`), 6 to 16.
        """
        if direction not in DIRECTIONS:
            raise ArgumentError(
                f"direction {direction!r} is unknown; use {' or '.join(DIRECTIONS)}"
            )
        self._bits = {
            name: as_integer(name, bits, MIN_BITS, MAX_BITS)
            for name, bits in (("chunk_bits", chunk_bits), ("tile_bits", tile_bits))
        }
        self.graph = (
            graph.undirected() if direction == "undirected" else graph.distinct(keep_loops=False)
        )
        self.direction = direction
        self._starts = self.graph.starts()
        self.source = self._find(source)
        self._cutter = Cutter(self.graph)

    @classmethod
    def make(
        cls,
        *,
        data: Path | None = None,
        generate: str | None = None,
        quick: bool = False,
        source: Annotated[
            int, "Number of the first vertex in the file; -1 selects the vertex with the most edges"
        ] = MOST_EDGES,
        direction: Annotated[
            str,
            "undirected: follow edges in both directions; directed: follow edges from source to"
            " target",
        ] = DIRECTIONS[0],
    ) -> BreadthFirstSearch:
        """Return the search in the graph of a file or a generator."""
        graph = graphs.load(data, generate, graphs.QUICK if quick else DEFAULT)
        return cls(graph, source=source, direction=direction)

    @property
    def facts(self) -> Mapping[str, int | str]:
        """The graph, its number of edges, and the first vertex."""
        graph = self.graph
        return {
            "input": graph.name,
            "vertices": graph.vertices,
            "edges": graph.edges,
            "direction": self.direction,
            "source": (
                int(graph.ids[self.source])
                if graph.ids is not None and graph.vertices
                else self.source
            ),
        }

    @classmethod
    def shape_of(cls, pes: int) -> tuple[int, ...]:
        """Return a shape with one axis."""
        return (pes,)

    def place(self, shape: Sequence[int]) -> Placement:
        """Return the layout: every PE has a bit for every vertex, and an even share of the edges
        and levels.
        """
        pes = prod(shape)
        bits = self._words * WORD_BYTES
        share_words = self._share(pes) // WORD_VERTICES
        edges = self._cutter.cut(pes, **self._bits)
        return Placement(
            source=Path(__file__).parent / "kernel.c",
            resident=edges.resident,
            windows={
                "reached": bits,
                "next": bits,
                "visited": bits,
                "noted": share_words * WORD_BYTES,
                "levels": share_words * WORD_VERTICES * 4,
                "count": REDUCED_BYTES,
            },
            defines={
                "WORDS": self._words,
                "SHARE_WORDS": share_words,
                **{k.upper(): v for k, v in self._bits.items()},
            },
            host_bytes=edges.host_bytes,
        )

    def run(self, stage: Stage) -> NDArray[np.int32]:
        """Search level by level until a level has no vertices."""
        edges = self._cutter.cut(stage.pes, **self._bits)
        edges.place(stage)
        bits = self._words * WORD_BYTES
        stage.broadcast("1", stage.host_work(self._first_bits), dst="reached")
        share_words = self._share(stage.pes) // WORD_VERTICES
        stage.launch(level=0, patches=edges.counts, first=np.arange(stage.pes) * share_words)
        level = 0
        while total_count(stage):
            stage.allreduce("1", bytes=bits, src="next", dst="reached", dtype=np.uint64, op="or")
            level += 1
            stage.launch(level=level)
        levels = stage.gather(
            "1", bytes=share_words * WORD_VERTICES * 4, src="levels", dtype=np.int32
        )
        return levels[0, : self.graph.vertices]

    def reference(self) -> NDArray[np.int32]:
        """Return the levels.

        A directed search goes top down. An undirected search chooses the faster of both directions
        for each level.
        """
        from pidcomm_studies.apps import _apps

        return _apps.bfs(
            self._starts, self.graph.targets, self.source, self.direction == "undirected"
        )

    @property
    def _words(self) -> int:
        return share(self.graph.vertices, 1, np.uint8, 8 * REDUCED_BYTES) // WORD_VERTICES

    def _first_bits(self) -> NDArray[np.uint64]:
        bits = np.zeros((1, self._words), np.uint64)
        if self.graph.vertices:
            bits[0, self.source // WORD_VERTICES] = 1 << (self.source % WORD_VERTICES)
        return bits

    def _share(self, pes: int) -> int:
        return share(self.graph.vertices, pes, np.uint8, WORD_VERTICES)

    def _find(self, source: int) -> int:
        """Translate a vertex number of the file to the vertex number of the graph, which counts
        from 0.
        """
        vertices, ids = self.graph.vertices, self.graph.ids
        if source == MOST_EDGES:
            return int(np.argmax(np.diff(self._starts))) if vertices else 0
        if ids is None:
            if 0 <= source < vertices:
                return source
            rule = f"vertices are 0 to {vertices - 1}" if vertices else "there are no vertices"
        else:
            place = int(np.searchsorted(ids, source))
            if place < vertices and ids[place] == source:
                return place
            rule = (
                f"its {vertices} vertices are from {ids[0]} to {ids[-1]}"
                if vertices
                else "there are no vertices"
            )
        raise ArgumentError(f"source ({source}) is not a vertex of {self.graph.name}: {rule}")


APPLICATION = BreadthFirstSearch
