"""How the edges of a graph are cut: even slices for PEs, and a slice into blocks, of a chunk times a tile of vertices.

The program of the PEs reads the blocks with ``apps/pe/edges.h``, which has the layout of what is made here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from pidcomm.apps.graphs import Graph
from pidcomm.apps.partition import bounds, ragged_rows, round_up

if TYPE_CHECKING:
    from pidcomm.apps.stage import Stage

ALIGNMENT = 64  # of the first vertex and the number of vertices of chunks and tiles: 8 bytes of bits
EDGE_BITS = 32
FIELDS = 6  # of a block, uint32 each
# Of what is reduced: the techniques pr cut a vector into as many blocks of whole words as an entangled group has lanes.
REDUCED_BYTES = 64


@dataclass(frozen=True)
class Cut:
    """A graph's edges by PE: row p is PE p's.

    edges: (pes, n), source - chunk_first in the high bits, target - tile_first in the low `tile_bits`. blocks: (pes, m
    * FIELDS), the fields of ``struct block``. counts: (pes,), how many of them are blocks, not padding.
    """

    edges: NDArray[np.uint32]
    blocks: NDArray[np.uint32]
    counts: NDArray[np.uint32]

    @property
    def resident(self) -> dict[str, int]:
        """Bytes per PE, for `Placement.resident`."""
        return {"edges": self.edges[0].nbytes, "blocks": self.blocks[0].nbytes}

    def place(self, stage: Stage) -> None:
        """Write edges and blocks to the PEs."""
        stage.place("edges", self.edges)
        stage.place("blocks", self.blocks)


def total_count(stage: Stage) -> int:
    """Return the sum, over all PEs, of what they have counted in the window ``count`` of REDUCED_BYTES."""
    return int(stage.reduce("1", bytes=REDUCED_BYTES, src="count", dtype=np.int64).sum())


def cut(graph: Graph, pes: int, *, chunk_bits: int, tile_bits: int) -> Cut:
    """Cut edges, which are by source and then target, into as many even slices as there are PEs, and into blocks.

    A slice has few sources, those of a PE, and any targets. Its chunks begin at its own first source and have up to
    2^chunk_bits vertices; tiles of 2^tile_bits begin at multiples of that.
    """
    assert chunk_bits + tile_bits <= EDGE_BITS
    padded_vertices = round_up(graph.vertices, ALIGNMENT)
    slices = bounds(graph.edges, pes)
    has_edges = np.diff(slices) > 0
    first, last = np.zeros(pes, np.int64), np.zeros(pes, np.int64)  # sources of each PE
    first[has_edges] = graph.sources[slices[:-1][has_edges]] // ALIGNMENT * ALIGNMENT
    last[has_edges] = graph.sources[slices[1:][has_edges] - 1]
    chunks = (last - first >> chunk_bits) + 1
    chunk_of = np.concatenate([[0], np.cumsum(chunks)])  # of all PEs, one after the other
    tiles = (graph.vertices >> tile_bits) + 1

    # One sort of 64-bit numbers: the block, then the edge in it.
    pe_of_edge = np.repeat(np.arange(pes), np.diff(slices))
    local = graph.sources - first[pe_of_edge]
    block = (chunk_of[pe_of_edge] + (local >> chunk_bits)) * tiles + (graph.targets >> np.uint32(tile_bits))
    packed = (local & ((1 << chunk_bits) - 1)) << tile_bits | (graph.targets & np.uint32((1 << tile_bits) - 1))
    keys = block.astype(np.uint64) << np.uint64(EDGE_BITS) | packed.astype(np.uint64)
    del pe_of_edge, local, block, packed
    keys.sort()
    packed_edges = keys.astype(np.uint32)
    block_of_edge = (keys >> np.uint64(EDGE_BITS)).astype(np.int64)

    # An odd block repeats its last edge, so that each begins at 8 bytes. Twice the same edge does no harm.
    starts = np.flatnonzero(np.diff(block_of_edge, prepend=-1))
    lengths = np.diff(starts, append=len(block_of_edge))
    is_odd = lengths % 2 == 1
    edges = np.insert(packed_edges, (starts + lengths)[is_odd], packed_edges[(starts + lengths - 1)[is_odd]])
    lengths = lengths + is_odd
    ends = np.cumsum(lengths)

    chunk, tile = np.divmod(block_of_edge[starts], tiles)
    pe = np.searchsorted(chunk_of, chunk, side="right") - 1
    block_of = np.searchsorted(pe, np.arange(pes + 1))
    edge_of = np.concatenate([[0], ends])[block_of]
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
        ragged_rows(np.stack(table, 1).astype(np.uint32).ravel(), block_of * FIELDS, FIELDS),
        np.diff(block_of).astype(np.uint32),
    )
