"""Breadth-first search on PEs, against SciPy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from graph_cases import GRAPHS, check_every_technique, graph_of, star
from numpy.typing import NDArray
from scipy.sparse.csgraph import shortest_path

import dpuemu
from pidcomm import ArgumentError
from pidcomm_studies.apps import _apps, run
from pidcomm_studies.apps.bfs import BreadthFirstSearch
from pidcomm_studies.apps.graphs import Graph

SMALL_PATCHES: dict[str, Any] = {"chunk_bits": 6, "tile_bits": 7}


def levels(graph: Graph, source: int, direction: str) -> NDArray[np.int32]:
    """Return the levels that SciPy finds."""
    if graph.vertices == 0:
        return np.zeros(0, np.int32)
    distances: Any = shortest_path(
        graph.matrix(np.float64), directed=direction == "directed", unweighted=True, indices=source
    )
    return np.where(np.isinf(distances), -1, distances).astype(np.int32)


def check(problem: BreadthFirstSearch, graph: Graph, **how: Any) -> None:
    """Run a problem; compare the PEs and the CPUs with SciPy."""
    expected = levels(graph, problem.source, problem.direction)
    outcome = run(problem, iters=1, **how)
    assert outcome.result.dtype == np.int32
    np.testing.assert_array_equal(outcome.result, expected)
    np.testing.assert_array_equal(problem.reference(), expected)
    # A launch per level, and one that finds nothing.
    assert outcome.kernel.calls == expected.max(initial=-1) + 2


@pytest.mark.parametrize("direction", ["undirected", "directed"])
@pytest.mark.parametrize("name", GRAPHS)
def test_levels_equal_scipys(name: str, direction: str) -> None:
    graph = GRAPHS[name]
    check(
        BreadthFirstSearch(
            graph, source=0 if graph.vertices else -1, direction=direction, **SMALL_PATCHES
        ),
        graph,
        pes=8,
    )


@pytest.mark.parametrize("pes", [1, 3, 24, 64])
def test_any_number_of_pes_is_right(pes: int) -> None:
    for patches in ({}, SMALL_PATCHES):
        check(BreadthFirstSearch(GRAPHS["rmat"], **patches), GRAPHS["rmat"], pes=pes)


def test_every_technique_in_turn_finds_the_same_levels() -> None:
    problem = BreadthFirstSearch(GRAPHS["many components"])
    expected = levels(GRAPHS["many components"], problem.source, "undirected")
    check_every_technique(problem, expected)


def test_a_strict_machine_finds_no_fault() -> None:
    dpuemu.machine(strict=True)
    try:
        check(BreadthFirstSearch(GRAPHS["rmat"], **SMALL_PATCHES), GRAPHS["rmat"], pes=8)
    finally:
        dpuemu.machine(strict=False)


def test_the_vertex_with_the_most_edges_is_the_default_source() -> None:
    assert BreadthFirstSearch(star(9, 5)).source == 5


def test_a_source_is_a_vertex_number_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "edges.txt"
    path.write_text("10 30\n30 70\n")
    problem = BreadthFirstSearch.make(data=path, source=30)
    assert (problem.source, problem.facts["source"]) == (1, 30)
    assert problem.reference().tolist() == [1, 0, 1]
    with pytest.raises(
        ArgumentError,
        match=r"source \(31\) is not a vertex of .*edges.txt: its 3 vertices are from 10 to 70",
    ):
        BreadthFirstSearch.make(data=path, source=31)


@pytest.mark.parametrize(("vertices", "source"), [(5, 5), (5, -2), (0, 0)])
def test_a_source_that_is_no_vertex_is_an_error(vertices: int, source: int) -> None:
    with pytest.raises(ArgumentError, match=rf"source \({source}\) is not a vertex"):
        BreadthFirstSearch(graph_of(vertices, []), source=source)


def test_an_unknown_direction_is_an_error() -> None:
    with pytest.raises(
        ArgumentError, match="direction 'up' is unknown; use undirected or directed"
    ):
        BreadthFirstSearch(GRAPHS["rmat"], direction="up")


@pytest.mark.parametrize(
    ("bits", "message"),
    [
        ({"chunk_bits": 5}, r"chunk_bits \(5\) must be between 6 and 16"),
        ({"tile_bits": 17}, r"tile_bits \(17\) must be between 6 and 16"),
        ({"tile_bits": 8.0}, r"tile_bits \(8.0\) must be an integer"),
    ],
)
def test_bits_that_do_not_fit_wram_are_errors(bits: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        BreadthFirstSearch(GRAPHS["rmat"], **bits)


def test_the_reference_refuses_arrays_that_are_no_graph() -> None:
    starts, targets = np.array([0, 1, 2], np.int64), np.array([1, 0], np.uint32)
    assert _apps.bfs(starts, targets, 1, True).tolist() == [1, 0]
    for wrong, rule in ((starts[:0], "starts"), (starts[:2], "starts"), (starts + 1, "starts")):
        with pytest.raises(ValueError, match=rule):
            _apps.bfs(wrong, targets, 0, True)
    with pytest.raises(ValueError, match="source"):
        _apps.bfs(starts, targets, 2, True)
    with pytest.raises(TypeError):
        _apps.bfs(starts, targets.astype(np.int64), 0, True)
