"""Cut the edges of a graph into even slices, one per PE, and each slice into patches.

A patch holds the edges from one chunk of vertices to one tile of vertices. The PEs read patches
with ``apps/pe/edges.h``, which has the same layout.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pidcomm.arguments import as_integer
from pidcomm.bench.measure import require_bytes
from pidcomm_studies.apps.graphs import Graph
from pidcomm_studies.apps.partition import bounds, ragged_rows, round_up
from pidcomm_studies.apps.stage import Stage

ALIGNMENT = 64  # chunks and tiles begin at multiples of 64 vertices: 8 bytes at one bit per vertex
EDGE_BITS = 32
MIN_BITS = 6  # log2 of the smallest chunk or tile: ALIGNMENT vertices
BYTES_OF_CUT = 64  # peak memory per edge, measured
FIELDS = 6  # number of fields of a patch, each uint32
# Smallest vector to reduce: the pr techniques cut it into 8 blocks, one per lane of an entangled
# group, of whole words.
REDUCED_BYTES = 64


@dataclass(frozen=True)
class Cut:
    """The edges of a graph, cut for the PEs: row p is for PE p.

    edges: (pes, n), source - chunk_first in the high bits, target - tile_first in the low
    `tile_bits`. patches: (pes, m
    * FIELDS), the fields of ``struct patch``. counts: (pes,), the number of patches without
      padding.
    """

    edges: NDArray[np.uint32]
    patches: NDArray[np.uint32]
    counts: NDArray[np.uint32]

    @property
    def resident(self) -> dict[str, int]:
        """Bytes per PE, for `Placement.resident`."""
        return {"edges": self.edges[0].nbytes, "patches": self.patches[0].nbytes}

    @property
    def host_bytes(self) -> int:
        """Bytes of all rows."""
        return self.edges.nbytes + self.patches.nbytes

    def place(self, stage: Stage) -> None:
        """Write edges and patches to the PEs."""
        stage.place("edges", self.edges)
        stage.place("patches", self.patches)


class Cutter:
    """Cut one graph, and cache the last cut."""

    def __init__(self, graph: Graph) -> None:
        """Take a graph; its edges must be sorted by source and then target."""
        self._graph = graph
        self._last: tuple[tuple[int, int, int], Cut] | None = None

    def cut(self, pes: int, chunk_bits: int, tile_bits: int) -> Cut:
        """Return the result of `cut`, from the cache if possible."""
        how = pes, chunk_bits, tile_bits
        if self._last is None or self._last[0] != how:
            self._last = None  # free the memory of the old cut first
            self._last = how, cut(self._graph, pes, chunk_bits=chunk_bits, tile_bits=tile_bits)
        return self._last[1]


def total_count(stage: Stage) -> int:
    """Add the counts in the window ``count`` (REDUCED_BYTES) of all PEs."""
    return int(stage.reduce("1", bytes=REDUCED_BYTES, src="count", dtype=np.int64).sum())


def cut(graph: Graph, pes: int, *, chunk_bits: int, tile_bits: int) -> Cut:
    """Cut edges, sorted by source and then target, into an even slice per PE, and each slice into
    patches.

    A slice has few sources, but its targets can be any vertices. Its chunks begin at its first
    source and have up to 2^chunk_bits vertices; tiles have 2^tile_bits vertices and begin at
    multiples of their size. Raises ArgumentError if chunk_bits or tile_bits is less than 6, or if
    their sum is more than 32.
    """
    as_integer("chunk_bits", chunk_bits, MIN_BITS, EDGE_BITS - MIN_BITS)
    as_integer("tile_bits", tile_bits, MIN_BITS, EDGE_BITS - chunk_bits)
    require_bytes(BYTES_OF_CUT * graph.edges, f"{graph.edges} edges in patches")
    padded_vertices = round_up(graph.vertices, ALIGNMENT)
    slices = bounds(graph.edges, pes)
    has_edges = np.diff(slices) > 0
    # The sources of the edges of each PE.
    first, last = (
        np.zeros(pes, np.int64),
        np.zeros(pes, np.int64),
    )
    first[has_edges] = graph.sources[slices[:-1][has_edges]] // ALIGNMENT * ALIGNMENT
    last[has_edges] = graph.sources[slices[1:][has_edges] - 1]
    chunks = (last - first >> chunk_bits) + 1
    # The patches of all PEs, one PE after the other.
    chunk_of = np.concatenate([[0], np.cumsum(chunks)])
    tiles = (graph.vertices >> tile_bits) + 1

    # Sort 64-bit numbers once: the high bits are the patch, the low bits the edge in the patch.
    pe_of_edge = np.repeat(np.arange(pes), np.diff(slices))
    local = graph.sources - first[pe_of_edge]
    patch = (chunk_of[pe_of_edge] + (local >> chunk_bits)) * tiles + (
        graph.targets >> np.uint32(tile_bits)
    )
    packed = (local & ((1 << chunk_bits) - 1)) << tile_bits | (
        graph.targets & np.uint32((1 << tile_bits) - 1)
    )
    keys = patch.astype(np.uint64) << np.uint64(EDGE_BITS) | packed.astype(np.uint64)
    del pe_of_edge, local, patch, packed
    keys.sort()
    packed_edges = keys.astype(np.uint32)
    patch_of_edge = (keys >> np.uint64(EDGE_BITS)).astype(np.int64)

    # An odd patch repeats its last edge, so that each patch is aligned to 8 bytes. A repeated edge
    # changes no result.
    starts = np.flatnonzero(np.diff(patch_of_edge, prepend=-1))
    lengths = np.diff(starts, append=len(patch_of_edge))
    is_odd = lengths % 2 == 1
    edges = np.insert(
        packed_edges, (starts + lengths)[is_odd], packed_edges[(starts + lengths - 1)[is_odd]]
    )
    lengths = lengths + is_odd
    ends = np.cumsum(lengths)

    chunk, tile = np.divmod(patch_of_edge[starts], tiles)
    pe = np.searchsorted(chunk_of, chunk, side="right") - 1
    patch_of = np.searchsorted(pe, np.arange(pes + 1))
    edge_of = np.concatenate([[0], ends])[patch_of]
    chunk_first = first[pe] + (chunk - chunk_of[pe] << chunk_bits)
    tile_first = tile << tile_bits
    table = [
        chunk_first,
        np.minimum((last[pe] // ALIGNMENT + 1) * ALIGNMENT - chunk_first, 1 << chunk_bits),
        tile_first,
        np.minimum(padded_vertices - tile_first, 1 << tile_bits),
        ends - lengths - edge_of[pe],
        lengths,
    ]
    return Cut(
        ragged_rows(edges, edge_of, 2),
        ragged_rows(np.stack(table, 1).astype(np.uint32).ravel(), patch_of * FIELDS, FIELDS),
        np.diff(patch_of).astype(np.uint32),
    )
