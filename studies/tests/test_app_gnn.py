"""The graph neural network against SciPy: shapes, strategies, types, techniques, odd graphs and
sizes, errors.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import pidcomm
from pidcomm.arguments import Array
from pidcomm_studies import apps
from pidcomm_studies.apps.gnn import Gnn
from pidcomm_studies.apps.graphs import Graph
from pidcomm_studies.apps.placement import SHARED_HEADERS

# A product of two matrices row by row: 21 x 12 and 12 x 6, in one slab each, or in slabs of 4
# columns and of 2.
PRODUCT = """
#include <barrier.h>
#include <stdint.h>
#define ELEMENT int32_t
#define ELEMENT_BYTES 4
#include "gemm.h"
BARRIER_INIT(all, NR_TASKLETS);
__dma_aligned int32_t weights[72], rows[NR_TASKLETS][2][60];
int main(void) {
  const struct product product = {0, 8192, 16384, 21, 5, 12 / IN, IN, 6 / OUT, OUT};
  const struct product_room room = {weights, ROOM, rows[me()][0], rows[me()][1]};
  multiply(&product, &room, &all);
  return 0;
}
"""

SHAPES = [(1, 1), (3, 1), (2, 4), (4, 4), (8, 8), (5, 3)]
TECHNIQUES = ["conventional", "pr", "pr+im+cm", "tile"]
DTYPES = ["int8", "int16", "int32"]


def random_graph(vertices: int, edges: int, seed: int = 3) -> Graph:
    """Edges among the lower half of the vertices and a hub; some occur twice, some lead from a
    vertex to itself.
    """
    random = np.random.default_rng(seed)
    ends = random.integers(0, max(vertices // 2, 1), (2, edges), np.uint32)
    ends[1, ::5] = max(vertices, 1) - 1
    ends[1, ::7] = ends[0, ::7]
    ends = np.concatenate([ends, ends[:, ::3]], axis=1)
    return Graph("random", vertices, ends[0], ends[1])


def network(graph: Graph, widths: list[int], dtype: str, strategy: str) -> Gnn:
    """A network whose features and weights are as large as the type allows, so that sums wrap."""
    random = np.random.default_rng(5)
    least, most = np.iinfo(dtype).min, np.iinfo(dtype).max

    def numbers(*shape: int) -> Array:
        return random.integers(least, most, shape, dtype, endpoint=True)

    weights = [numbers(*shape) for shape in pairwise(widths)]
    return Gnn(graph, numbers(graph.vertices, widths[0]), weights, strategy)


def expected(problem: Gnn) -> Array:
    """The definition, with SciPy's sparse product and NumPy's matrix product, in the type of the
    features.
    """
    adjacency = problem.graph.matrix()
    adjacency.data[:] = 1  # an edge that occurs twice is one element
    adjacency = adjacency.astype(problem.features.dtype)
    rows = problem.features
    for layer, weights in enumerate(problem.weights):
        rows = (adjacency @ (np.maximum(rows, 0) if layer else rows)) @ weights
    return rows


def check(problem: Gnn, shape: tuple[int, int], techniques: list[str] | None = None) -> None:
    """Run on PEs; compare the PEs and the CPUs with the definition."""
    wanted = expected(problem)
    for run in apps.compare(problem, shape=shape, techniques=techniques or ["tile"], iters=1):
        assert run.wrong == 0
        assert run.result.dtype == wanted.dtype
        np.testing.assert_array_equal(run.result, wanted)


@pytest.mark.parametrize("strategy", ["rs_ar", "ar_ag"])
@pytest.mark.parametrize(("shape", "dtype"), list(zip(SHAPES, DTYPES * 2, strict=True)))
def test_layers_are_right_on_every_shape(shape: tuple[int, int], dtype: str, strategy: str) -> None:
    check(network(random_graph(203, 900), [12, 20, 9, 5], dtype, strategy), shape)


@pytest.mark.parametrize(
    ("dtype", "strategy"), [("int8", "rs_ar"), ("int32", "rs_ar"), ("int16", "ar_ag")]
)
def test_all_techniques_agree_for_every_type(dtype: str, strategy: str) -> None:
    check(network(random_graph(203, 900), [40, 33, 7], dtype, strategy), (4, 4), TECHNIQUES)


@pytest.mark.parametrize("layers", [1, 4])
def test_any_number_of_layers_ends_on_the_right_axis(layers: int) -> None:
    for strategy in ("rs_ar", "ar_ag"):
        check(
            network(random_graph(50, 200), [3, 4, 5, 6, 7][: layers + 1], "int32", strategy), (2, 4)
        )


@pytest.mark.parametrize(("vertices", "edges"), [(0, 0), (1, 1), (300, 0)])
def test_tiny_and_empty_graphs_are_right(vertices: int, edges: int) -> None:
    for strategy in ("rs_ar", "ar_ag"):
        check(network(random_graph(vertices, edges), [1, 1, 1], "int8", strategy), (4, 4))


def test_features_and_weights_need_not_fit_wram() -> None:
    # Four chunks of features with both strategies. 3703 features, as in Citeseer, take two chunks
    # of weights.
    check(network(random_graph(3000, 9000), [64, 64], "int32", "rs_ar"), (2, 1))
    for strategy in ("rs_ar", "ar_ag"):
        check(network(random_graph(90, 300), [3703, 6], "int32", strategy), (1, 2))


def slabs(matrix: Array, width: int) -> Array:
    """The matrix in slabs, as one row of bytes."""
    parts = matrix.reshape(len(matrix), -1, width).swapaxes(0, 1)
    return np.ascontiguousarray(parts).view(np.uint8).reshape(1, -1)


@pytest.mark.parametrize(
    ("in_width", "out_width", "room"), [(12, 6, 288), (4, 2, 288), (4, 6, 96), (4, 2, 64)]
)
def test_products_are_right_for_any_width_of_slabs_and_room(
    in_width: int, out_width: int, room: int
) -> None:
    random = np.random.default_rng(1)
    matrix, weights = (
        random.integers(-(2**31), 2**31, shape, np.int32) for shape in ((21, 12), (12, 6))
    )
    options = [
        "-I",
        str(SHARED_HEADERS),
        f"-DIN={in_width}",
        f"-DOUT={out_width}",
        f"-DROOM={room}",
    ]
    with pidcomm.allocate(pes=1) as pes:
        cube = pes.hypercube(1)
        pes.load(PRODUCT, tasklets=3, options=options)
        cube.write(slabs(matrix, in_width), 0)
        cube.write(slabs(weights, out_width), 8192)
        pes.launch()
        got = cube.read(21 * 6, np.int32, offset=16384)
    np.testing.assert_array_equal(got.view(np.uint8), slabs(matrix @ weights, out_width))


@pytest.mark.usefixtures("strict_machine")
def test_a_strict_machine_finds_no_fault() -> None:
    for strategy in ("rs_ar", "ar_ag"):
        check(network(random_graph(203, 900), [12, 9, 5], "int8", strategy), (5, 3))


def test_undirected_graphs_have_the_edges_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "path.mtx"
    path.write_text("%%MatrixMarket matrix coordinate pattern symmetric\n3 3 3\n2 1\n3 2\n3 3\n")
    problem = Gnn.make(data=path, layers=1, features=2, outputs=3)
    adjacency = np.array([[0, 1, 0], [1, 0, 1], [0, 1, 1]], np.int32)
    np.testing.assert_array_equal(
        expected(problem), adjacency @ problem.features @ problem.weights[0]
    )
    check(problem, (2, 2))


def test_numbers_of_pes_become_the_most_even_shape() -> None:
    assert [Gnn.shape_of(pes) for pes in (1, 7, 24, 128, 256)] == [
        (1, 1),
        (7, 1),
        (6, 4),
        (16, 8),
        (16, 16),
    ]


def test_the_same_seed_makes_the_same_network() -> None:
    one, other, third = (Gnn.make(quick=True, seed=seed) for seed in (4, 4, 5))
    np.testing.assert_array_equal(one.features, other.features)
    np.testing.assert_array_equal(one.weights[2], other.weights[2])
    assert not np.array_equal(one.features, third.features)
    assert one.facts["features"] == "64-64-64-16"
    assert (one.facts["seed"], third.facts["seed"]) == (4, 5)
    assert "seed" not in network(random_graph(5, 3), [1, 1], "int8", "rs_ar").facts


def test_quick_does_not_replace_a_given_graph() -> None:
    assert Gnn.make(generate="grid:rows=3,columns=4", quick=True).facts["vertices"] == 12


def test_the_layout_of_strips_is_timed_and_comes_before_their_broadcast() -> None:
    problem = network(random_graph(64, 200), [8, 8], "int32", "rs_ar")
    run = apps.run(problem, shape=(2, 4), iters=1)
    assert list(run.costs)[:2] == ["host", "broadcast"]
    assert run.host.measured > 0
    assert run.costs["broadcast"].calls == 1


def one_layer(**changed: Array) -> Array:
    """The reference on a path of three vertices, with valid arguments except those in `changed`."""
    from pidcomm_studies.apps import _apps

    arrays = {
        "starts": np.array([0, 1, 2, 2]),
        "targets": np.array([1, 2], np.uint32),
        "features": np.ones((3, 2), np.int8),
        "weights": np.ones((2, 5), np.int8),
    }
    return _apps.gnn_layer(**{**arrays, **changed}, is_rectified=False)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"starts": np.array([0, 2])}, "starts must have an element"),
        ({"starts": np.array([0, 1, 2, 3])}, "starts must ascend from 0 to the number of targets"),
        ({"starts": np.array([1, 1, 2, 2])}, "starts must ascend"),
        ({"starts": np.array([0, 2, 1, 2])}, "starts must ascend"),
        ({"targets": np.array([1, 3], np.uint32)}, "targets must be rows of features"),
        ({"weights": np.ones((3, 5), np.int8)}, "weights must have a row for every column"),
    ],
)
def test_the_reference_reads_nothing_beyond_its_arrays(
    changed: dict[str, Array], message: str
) -> None:
    np.testing.assert_array_equal(one_layer(), [[2] * 5, [2] * 5, [0] * 5])
    with pytest.raises(ValueError, match=message):
        one_layer(**changed)


@pytest.mark.parametrize(
    ("name", "dtype"), [("starts", "int32"), ("targets", "int64"), ("features", "int64")]
)
def test_the_reference_converts_no_types(name: str, dtype: str) -> None:
    arrays = {"starts": np.zeros(4), "targets": np.zeros(2), "features": np.ones((3, 2))}
    with pytest.raises(TypeError):
        one_layer(**{name: arrays[name].astype(dtype)})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"strategy": "RS&AR"}, "strategy 'RS&AR' is unknown; use rs_ar, ar_ag"),
        ({"dtype": "float32"}, "dtype 'float32' is not supported; use int8, int16, int32"),
        ({"layers": 0}, r"layers \(0\) must be between 1 and"),
        ({"features": 0}, r"features \(0\) must be between 1 and"),
        ({"hidden": -1}, r"hidden \(-1\) must be between 1 and"),
        ({"outputs": 0}, r"outputs \(0\) must be between 1 and"),
        (
            {"features": 10**12},
            "1024 vertices and features 1000000000000-64-64-16 of int32 need .* are available",
        ),
        ({"seed": -1}, r"seed \(-1\) must be between 0 and"),
    ],
)
def test_bad_options_are_named_with_the_rule(options: dict[str, object], message: str) -> None:
    with pytest.raises(pidcomm.ArgumentError, match=message):
        Gnn.make(quick=True, **options)  # type: ignore[arg-type]


def test_arrays_that_do_not_fit_together_are_refused() -> None:
    graph = random_graph(4, 3)
    features, weights = np.zeros((4, 3), np.int16), np.zeros((3, 2), np.int16)
    for arguments, message in (
        (
            (features[:3], [weights]),
            r"features of shape \(3, 3\) need a row for each of 4 vertices",
        ),
        ((features.astype(np.uint8), [weights]), "features of uint8 are not supported"),
        ((features, []), "there are no weights"),
        (
            (features, [weights, weights]),
            r"weights 1 of int16 and shape \(3, 2\) must be of int16 and shape \(2, n\)",
        ),
        ((features, [weights.astype(np.int8)]), "weights 0 of int8"),
    ):
        with pytest.raises(pidcomm.ArgumentError, match=message):
            Gnn(graph, *arguments)


def test_a_problem_too_large_for_a_pe_lists_the_bytes_of_its_arrays() -> None:
    problem = Gnn.make(generate="grid:rows=100,columns=100", features=700)
    with pytest.raises(
        pidcomm.ArgumentError, match=r"a PE of 1 needs .* of MRAM .*features .*use more PEs"
    ):
        apps.run(problem, shape=(1, 1))
