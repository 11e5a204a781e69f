"""Graphs for the tests of graph applications."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pidcomm_studies.apps import compare
from pidcomm_studies.apps.graphs import Graph, grid, rmat, uniform


def graph_of(vertices: int, edges: list[tuple[int, int]]) -> Graph:
    """Return a graph of edges (source, target)."""
    pairs = np.array(edges, np.uint32).reshape(-1, 2)
    return Graph("edges", vertices, pairs[:, 0].copy(), pairs[:, 1].copy())


def renumbered(graph: Graph, seed: int = 1) -> Graph:
    """Return the graph with its vertices numbered in random order."""
    order = np.random.default_rng(seed).permutation(graph.vertices).astype(np.uint32)
    return Graph(graph.name, graph.vertices, order[graph.sources], order[graph.targets])


def star(vertices: int, centre: int) -> Graph:
    """Return edges from every other vertex to the centre."""
    return graph_of(vertices, [(v, centre) for v in range(vertices) if v != centre])


GRAPHS = {
    "no vertex": graph_of(0, []),
    "a vertex": graph_of(1, []),
    "no edge": graph_of(130, []),
    "a loop": graph_of(2, [(1, 1)]),
    "the same edge twice, and back": graph_of(3, [(0, 2), (0, 2), (2, 0)]),
    "first and last of 4097": graph_of(4097, [(4096, 0)]),
    "path of 200": grid(rows=1, columns=200),
    "path of 200, renumbered": renumbered(grid(rows=1, columns=200)),
    "star of 700": star(700, 650),
    "grid": renumbered(grid(rows=17, columns=19)),
    "many components": uniform(vertices=1500, edges=1100, seed=3),
    "rmat": rmat(scale=10, edges=8),
}


def check_every_technique(problem: Any, expected: NDArray[Any]) -> None:
    """Run a graph problem with techniques in turn; compare the results and the names of costs."""
    for outcome in compare(
        problem, pes=64, techniques=["tile", "pr", "pr+im+cm", "conventional"], iters=1
    ):
        assert outcome.wrong == 0
        np.testing.assert_array_equal(outcome.result, expected)
        assert set(outcome.costs) == {
            "broadcast",
            "kernel",
            "host",
            "reduce",
            "allreduce",
            "gather",
        }
