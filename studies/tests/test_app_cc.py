"""Connected components on PEs, against SciPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from graph_cases import GRAPHS, check_every_technique, renumbered
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

import dpuemu
from pidcomm import ArgumentError
from pidcomm_studies.apps import _apps, run
from pidcomm_studies.apps.cc import ConnectedComponents
from pidcomm_studies.apps.graphs import Graph, grid

# Tiles that are always read whole, and tiles that are read whole only if they have many edges.
SMALL_PATCHES: list[dict[str, Any]] = [
    {"chunk_bits": 6, "room_bits": 6, "tile_bits": 6},
    {"chunk_bits": 6, "room_bits": 7, "tile_bits": 8, "in_place": True},
]


def labels(graph: Graph) -> NDArray[np.uint32]:
    """Return the least vertex of each vertex's component, by SciPy."""
    if graph.vertices == 0:
        return np.zeros(0, np.uint32)
    _, component = connected_components(graph.matrix(), directed=False)
    _, least = np.unique(component, return_index=True)
    of_all: NDArray[np.uint32] = least[component].astype(np.uint32)
    return of_all


def check(problem: ConnectedComponents, graph: Graph, **how: Any) -> int:
    """Run a problem; compare the PEs and the CPUs with SciPy. Returns the number of rounds."""
    expected = labels(graph)
    outcome = run(problem, iters=1, **how)
    assert outcome.result.dtype == np.uint32
    np.testing.assert_array_equal(outcome.result, expected)
    np.testing.assert_array_equal(problem.reference(), expected)
    return outcome.kernel.calls


@pytest.mark.parametrize("patches", SMALL_PATCHES)
@pytest.mark.parametrize("name", GRAPHS)
def test_labels_are_the_least_vertices_of_scipys_components(
    name: str, patches: dict[str, Any]
) -> None:
    check(ConnectedComponents(GRAPHS[name], **patches), GRAPHS[name], pes=8)


@pytest.mark.parametrize("pes", [1, 3, 24, 64])
def test_any_number_of_pes_is_right(pes: int) -> None:
    for patches in ({}, *SMALL_PATCHES):
        check(ConnectedComponents(GRAPHS["rmat"], **patches), GRAPHS["rmat"], pes=pes)


def test_every_technique_in_turn_finds_the_same_labels() -> None:
    for in_place in (False, True):
        problem = ConnectedComponents(GRAPHS["many components"], in_place=in_place)
        check_every_technique(problem, labels(GRAPHS["many components"]))


def test_labels_in_place_need_half_the_memory() -> None:
    graph = grid(rows=300, columns=300)
    two, one = (
        ConnectedComponents(graph, in_place=in_place).place((1024,)) for in_place in (False, True)
    )
    assert two.bytes - one.bytes == 4 * 90048  # vertices, padded
    assert one.bytes < 0.55 * two.bytes


def test_rounds_grow_with_the_logarithm_of_the_length_of_a_path() -> None:
    for path in (grid(rows=1, columns=3000), renumbered(grid(rows=1, columns=3000))):
        assert check(ConnectedComponents(path), path, pes=8) <= 2 * np.log2(3000)


def test_a_strict_machine_finds_no_fault() -> None:
    dpuemu.machine(strict=True)
    try:
        for patches in SMALL_PATCHES:
            check(ConnectedComponents(GRAPHS["rmat"], **patches), GRAPHS["rmat"], pes=8)
    finally:
        dpuemu.machine(strict=False)


@pytest.mark.parametrize(
    ("bits", "message"),
    [
        ({"chunk_bits": 12}, r"chunk_bits \(12\) must be between 6 and 11"),
        ({"room_bits": 13}, r"room_bits \(13\) must be between 6 and 12"),
        ({"chunk_bits": 8, "tile_bits": 25}, r"tile_bits \(25\) must be between 6 and 24"),
    ],
)
def test_bits_that_do_not_fit_wram_or_an_edge_are_errors(
    bits: dict[str, Any], message: str
) -> None:
    with pytest.raises(ArgumentError, match=message):
        ConnectedComponents(GRAPHS["rmat"], **bits)


def test_the_reference_refuses_arrays_that_are_no_graph() -> None:
    starts, targets = np.array([0, 1, 2], np.int64), np.array([1, 0], np.uint32)
    assert _apps.cc(starts, targets).tolist() == [0, 0]
    for wrong in (starts[:0], starts[:2], starts + 1):
        with pytest.raises(ValueError, match="starts"):
            _apps.cc(wrong, targets)
    with pytest.raises(TypeError):
        _apps.cc(starts, targets.astype(np.int64))
