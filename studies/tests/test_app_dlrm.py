"""DLRM: its results, its batches and models of any shape, and Criteo click logs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpuemu
from pidcomm import ArgumentError
from pidcomm.arguments import Array
from pidcomm_studies import apps
from pidcomm_studies.apps.dlrm import BUFFER_BYTES, Dlrm, criteo
from pidcomm_studies.apps.dlrm.criteo import Criteo

WORDS = np.iinfo(np.int32)


def problem_of(
    samples: int = 37,
    tables: int = 5,
    rows: int | Sequence[int] = 11,
    embedding: int = 16,
    dense: int = 13,
    bottom: Sequence[int] = (9,),
    top: Sequence[int] = (10, 3),
    **others: Any,
) -> Dlrm:
    """A model and a batch of random 32-bit integers: results are right only if sums wrap."""
    heights = np.full(tables, rows)
    rng = np.random.default_rng([samples, tables, *heights, embedding])

    def integers(*shape: int) -> Array:
        return rng.integers(WORDS.min, WORDS.max, shape, np.int32, endpoint=True)

    def layers(*widths: int) -> list[Array]:
        return [integers(outputs, inputs + 1) for inputs, outputs in pairwise(widths)]

    return Dlrm(
        tables=integers(heights.sum(), embedding),
        heights=heights,
        rows=rng.integers(0, heights, (samples, tables)),
        dense=integers(samples, dense),
        bottom=layers(dense, *bottom, embedding),
        top=layers(embedding + tables * (tables + 1) // 2, *top, 1),
        **others,
    )


def forward(problem: Dlrm) -> Array:
    """The forward pass of the public model, sample by sample, without its sigmoid."""

    def linear(layer: Array, x: Array) -> Array:
        return layer[:, :-1] @ x + layer[:, -1]

    results = []
    for rows, x in zip(problem.rows, problem.dense, strict=True):
        for layer in problem.bottom:
            x = np.maximum(linear(layer, x), 0)
        vectors = np.stack(
            [x, *(table[row] for table, row in zip(problem.tables, rows, strict=True))]
        )
        products = vectors @ vectors.T
        y = np.concatenate([x, products[np.tril_indices(len(vectors), -1)]])
        for layer in problem.top[:-1]:
            y = np.maximum(linear(layer, y), 0)
        results.append(linear(problem.top[-1], y)[0])
    return np.array(results, np.int32)


def assert_right(problem: Dlrm, shape: tuple[int, ...], technique: str = "tile") -> None:
    """Compare PEs and CPU with NumPy."""
    run = apps.run(problem, shape=shape, technique=technique, iters=1)
    np.testing.assert_array_equal(run.result, forward(problem))
    assert run.wrong == 0


# ---- the forward pass


@pytest.mark.parametrize("embedding", [16, 32])
@pytest.mark.parametrize(
    "shape", [(1, 1, 1), (2, 2, 2), (4, 2, 1), (3, 2, 2), (8, 8, 1), (1, 3, 4), (2, 1, 8)]
)
def test_the_result_equals_numpys_on_every_shape(shape: tuple[int, ...], embedding: int) -> None:
    assert_right(problem_of(embedding=embedding), shape)


@pytest.mark.parametrize("chunks", [1, 3, 37])
@pytest.mark.parametrize("shape", [(2, 2, 2, 3), (1, 1, 1, 5), (3, 2, 1, 2)])
def test_replicas_and_chunks_do_not_change_the_result(shape: tuple[int, ...], chunks: int) -> None:
    assert_right(problem_of(replicas=shape[3], chunks=chunks), shape)


@pytest.mark.parametrize(
    ("options", "shape", "message"),
    [
        ({"replicas": 0}, (1, 1, 1), r"replicas \(0\) must be between 1"),
        ({"chunks": 38}, (1, 1, 1), r"chunks \(38\) must be between 1 and 37"),
        ({"replicas": 2}, (1, 1, 1, 3), "shape 1x1x1x3 has 3 replicas; the model has 2"),
        ({"replicas": 2}, (1, 1, 3), "needs a shape of 4 axes"),
        ({"replicas": 2}, 3, "2 replicas must divide the 3 PEs"),
    ],
)
def test_replicas_and_chunks_that_do_not_fit_are_refused(
    options: dict[str, Any], shape: tuple[int, ...] | int, message: str
) -> None:
    where = {"pes": shape} if isinstance(shape, int) else {"shape": shape}
    with pytest.raises(ArgumentError, match=message):
        apps.run(problem_of(**options), **where)


def pytorchs(problem: Dlrm) -> Array:
    """The outputs of the modules that the public model has (facebookresearch/dlrm,
    dlrm_s_pytorch.py, without the last sigmoid), in float64.
    """
    torch = pytest.importorskip("torch", reason="needs PyTorch")

    def exactly(values: Any) -> Any:
        """Values that are integers and do not wrap in 32 bits: then float64 is exact."""
        assert (values == values.round()).all()
        assert values.abs().max() < 2**31
        return values

    def mlp(layers: Sequence[Array], x: Any, *, with_last_relu: bool) -> Any:
        for number, layer in enumerate(layers, 1):
            outputs, inputs = layer.shape[0], layer.shape[1] - 1
            linear = torch.nn.Linear(inputs, outputs, dtype=torch.float64)
            linear.weight.copy_(torch.tensor(layer[:, :-1]))
            linear.bias.copy_(torch.tensor(layer[:, -1]))
            x = exactly(linear(x))
            if with_last_relu or number < len(layers):
                x = torch.nn.ReLU()(x)
        return x

    def look_up(table: Array, rows: Array) -> Any:
        weights = torch.tensor(table, dtype=torch.float64)
        bag = torch.nn.EmbeddingBag(*table.shape, mode="sum", _weight=weights)
        return bag(torch.tensor(rows.astype(np.int64)), torch.arange(len(rows)))

    with torch.no_grad():
        dense = torch.tensor(problem.dense, dtype=torch.float64)
        x = mlp(problem.bottom, dense, with_last_relu=True)
        vectors = map(look_up, problem.tables, problem.rows.T)
        features = torch.cat([x, *vectors], dim=1).view((len(x), -1, x.shape[1]))
        products = torch.bmm(features, torch.transpose(features, 1, 2))
        pairs = [(i, j) for i in range(features.shape[1]) for j in range(i)]
        rows, columns = torch.tensor(pairs).T
        both = torch.cat([x, exactly(products[:, rows, columns])], dim=1)
        outputs = mlp(problem.top, both, with_last_relu=False)
    results: Array = outputs[:, 0].numpy().astype(np.int32)
    return results


@pytest.mark.parametrize(("rows", "max_height"), [(40, None), (None, 40)])
def test_the_result_equals_pytorchs(rows: int | None, max_height: int | None) -> None:
    problem = Dlrm.make(
        batch=200, embedding=8, rows=rows, max_height=max_height, bottom="5", top="9"
    )
    expected = pytorchs(problem)
    assert len(np.unique(expected)) > 100
    run = apps.run(problem, shape=(4, 2, 2), iters=1)
    np.testing.assert_array_equal(run.result, expected)
    np.testing.assert_array_equal(problem.reference(), expected)


@pytest.mark.parametrize("technique", ["conventional", "pr", "pr+im+cm", "tile"])
def test_the_result_equals_numpys_with_every_technique(technique: str) -> None:
    assert_right(problem_of(samples=40), (2, 4, 2), technique)


@pytest.mark.parametrize("samples", [1, 31, 33, 200])
def test_batches_need_not_be_divisible(samples: int) -> None:
    assert_right(problem_of(samples=samples, tables=3), (2, 4, 2))


@pytest.mark.parametrize(
    "sizes",
    [
        {"tables": 1, "rows": 1, "dense": 1, "bottom": (), "top": ()},
        {"tables": 2, "rows": 3, "embedding": 4, "bottom": (1, 2)},
        {"tables": 26, "rows": 2, "samples": 9},
        {"tables": 30, "rows": 40, "embedding": 64, "samples": 5},
        {
            "bottom": (300, 7),
            "top": (520, 17, 16),
        },  # more weights than fit a tasklet; outputs of all kinds
        {"dense": 256, "bottom": (), "top": (33,)},
    ],
    ids=str,
)
def test_models_have_any_number_of_tables_rows_and_outputs(sizes: dict[str, Any]) -> None:
    assert_right(problem_of(**sizes), (4, 2, 2))


@pytest.mark.parametrize(
    "shape", [(1, 1, 1), (2, 3, 2), (3, 2, 1), (4, 2, 2), (8, 1, 1), (1, 8, 2)], ids=str
)
def test_tables_may_have_different_numbers_of_rows(shape: tuple[int, ...]) -> None:
    assert_right(problem_of(tables=7, rows=[3, 40, 1, 5, 170, 2, 40]), shape)


def test_pes_have_memory_for_their_own_rows_only() -> None:
    heights = [1, 2, 1000, 3, 3, 100, 900, 2]
    placement = problem_of(tables=8, rows=heights).place((2, 2, 1))
    # Each of two members of x has four tables; a slot is as long as the longer of its two tables.
    assert placement.resident["tables"] == 4 * 16 * (1000 + 100 + 4 + 2) // 2


def test_heights_follow_from_the_categories_of_the_data(tmp_path: Path) -> None:
    clicks = Criteo().clicks(400)
    problem = Dlrm.make(batch=400, max_height=50)
    for field, rows in enumerate(problem.rows.T):
        distinct = np.unique(clicks.categories[clicks.has_category[:, field], field])
        numbers = {int(category): n for n, category in enumerate(distinct, 1)}
        expected = [
            numbers[int(category)] % 50 if has else 0
            for category, has in zip(
                clicks.categories[:, field], clicks.has_category[:, field], strict=True
            )
        ]
        assert rows.tolist() == expected
        assert problem.heights[field] == max(expected) + 1
    assert problem.facts["rows"] == f"{min(problem.heights)} to 50"
    assert_right(problem, (4, 2, 2))
    criteo.write(tmp_path / "log", clicks)
    loaded = Dlrm.make(data=tmp_path / "log", batch=400, max_height=50)
    np.testing.assert_array_equal(loaded.rows, problem.rows)


def test_groups_of_samples_that_do_not_divide_a_pes_samples_are_right() -> None:
    problem = problem_of(samples=160, tables=26, embedding=32)
    assert 80 % int(problem.place((1, 2, 1)).defines["GROUP"]) != 0
    assert_right(problem, (1, 2, 1))


@pytest.fixture
def _strict() -> Iterator[None]:
    dpuemu.machine(strict=True)
    yield
    dpuemu.machine(strict=False)


@pytest.mark.usefixtures("_strict")
def test_a_strict_machine_finds_no_fault() -> None:
    assert_right(problem_of(samples=50, tables=7, top=(300, 5)), (2, 2, 2), "pr")


@pytest.mark.usefixtures("_strict")
@pytest.mark.parametrize("samples", [513, 700])
def test_results_of_a_group_may_be_longer_than_a_transfer(samples: int) -> None:
    problem = problem_of(samples=samples, tables=1, embedding=2, dense=1, bottom=(), top=())
    assert int(problem.place((1, 1, 1)).defines["GROUP"]) * 4 > 2048
    assert_right(problem, (1, 1, 1))


@pytest.mark.parametrize("shape", [(1, 1, 1), (1, 4, 2), (2, 1, 1), (4, 3, 1)])
def test_a_pe_may_have_more_indices_than_fit_a_tasklet(shape: tuple[int, ...]) -> None:
    problem = problem_of(samples=prod(shape) * 130, tables=9, embedding=4, bottom=(), top=())
    assert 130 * -(-9 // shape[0]) * 4 > BUFFER_BYTES
    assert_right(problem, shape)


def test_phases_match_the_paper() -> None:
    """Table III without broadcast, and figure 11; indices cross the bus once for every y and z."""
    run = apps.run(problem_of(samples=64), shape=(2, 2, 2), iters=1)
    calls = {name: cost.calls for name, cost in run.costs.items()}
    assert calls == {
        "host": 2,
        "scatter": 2,
        "kernel": 3,
        "alltoall": 2,
        "reduce_scatter": 1,
        "gather": 1,
    }
    indices, dense = 4 * 2 * 8 * 3, 4 * 8 * 14
    assert run.costs["scatter"].bus_bytes == 2 * 8 * (indices + dense)  # read and written
    assert run.setup.calls == 2


@pytest.mark.parametrize("pes", [1, 3, 6, 8, 40, 64, 256, 1000, 1024, 2560])
def test_any_number_of_pes_has_a_shape_that_the_model_fits(pes: int) -> None:
    problem = problem_of()
    shape = problem.shape_of(pes)
    assert prod(shape) == pes
    problem.place(shape)


def test_powers_of_two_are_divided_among_tables_rows_and_columns() -> None:
    shapes = [problem_of().shape_of(pes) for pes in (64, 256, 1024)]
    assert shapes == [(4, 4, 4), (8, 8, 4), (16, 8, 8)]
    assert problem_of(replicas=4).shape_of(256) == (4, 4, 4, 4)


@pytest.mark.parametrize(("z", "columns"), [(3, 16), (16, 16), (32, 32)])
def test_slices_of_columns_are_whole_words(z: int, columns: int) -> None:
    with pytest.raises(
        ArgumentError, match=f"{columns} columns .* {z} PEs along z; .* must divide {columns // 2}"
    ):
        problem_of(embedding=columns).place((1, 1, z))


def test_a_model_that_does_not_fit_wram_reports_the_bytes_it_needs() -> None:
    with pytest.raises(
        ArgumentError,
        match=r"two samples with 100 tables of 64 columns, 5114 inputs .* bytes of WRAM",
    ):
        problem_of(tables=100, embedding=64, rows=1, samples=1).place((1, 1, 1))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tables": np.zeros((2, 3), np.int32)}, r"tables of shape \(2, 3\) must have shape"),
        ({"tables": np.zeros((5, 11, 16))}, "tables of type float64 must be of type int32"),
        ({"top": [np.zeros((1, 32), np.int64)]}, "a top layer of type int64 must be of type int32"),
        ({"tables": np.zeros((5, 11, 15), np.int32)}, "15 columns must be even and at most 64"),
        (
            {"rows": np.zeros((37, 4), np.int32)},
            r"rows of shape \(37, 4\) must have shape \(samples, 5\)",
        ),
        (
            {"rows": np.full((37, 5), 4), "heights": np.array([10, 20, 4, 20, 1])},
            "rows must be integers from 0 to 3",
        ),
        ({"heights": np.array([10, 20, 5, 20])}, "rows of shape .* 4"),
        ({"heights": np.array([10, 20, 5, 20, 0])}, r"tables of shape \(55, 16\) .* heights"),
        ({"heights": np.array([10, 20, 5, 20, 1])}, r"shape \(sum of heights, columns\)"),
        ({"rows": np.full((37, 5), 11)}, "rows must be integers from 0 to 10"),
        ({"rows": np.full((37, 5), -1)}, "rows must be integers from 0 to 10"),
        ({"rows": np.zeros((37, 5))}, "rows must be integers from 0 to 10"),
        (
            {"dense": np.zeros((36, 13), np.int32)},
            r"dense features of shape \(36, 13\) must have shape \(37, 1 to 256\)",
        ),
        (
            {"bottom": []},
            r"bottom layers \[13\]: there must be at least one, and the last must have 16 outputs",
        ),
        (
            {"bottom": [np.zeros((16, 13), np.int32)]},
            r"bottom layer 1 of shape \(16, 13\) must have .* 14\)",
        ),
        (
            {"top": [np.zeros((2, 32), np.int32)]},
            r"top layers \[31, 2\]: there must be at least one, and the last must have 1 outputs",
        ),
    ],
)
def test_arrays_that_do_not_agree_are_refused(change: dict[str, Any], message: str) -> None:
    problem = problem_of()
    if "heights" in change:
        change = {"tables": np.concatenate(problem.tables), **change}
    names = ("tables", "rows", "dense", "bottom", "top")
    with pytest.raises(ArgumentError, match=message):
        Dlrm(**{**{name: getattr(problem, name) for name in names}, **change})


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"batch": 0}, r"batch \(0\) must be between 1 and 16777216"),
        ({"rows": 0}, r"rows \(0\) must be between 1 and 16777216"),
        ({"max_height": 0}, r"max_height \(0\) must be between 1 and 16777216"),
        ({"max_height": 9, "rows": 3}, r"give rows \(3\) or max_height \(9\), not both"),
        ({"seed": -1}, r"seed \(-1\) must be between 0 and 4294967295"),
        ({"embedding": 15}, "15 columns must be even"),
        ({"embedding": 65}, "embedding"),
        ({"bottom": "64,x"}, r"bottom \('64,x'\) must be numbers of outputs"),
        ({"top": "0"}, r"top \('0'\) must be numbers of outputs"),
        ({"generate": "criteo:seed=-1"}, r"seed \(-1\) must not be negative"),
        ({"generate": "criteo:skew=nan"}, r"skew \(nan\)"),
    ],
)
def test_options_out_of_range_are_refused(option: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        Dlrm.make(quick=True, **option)


def test_options_are_the_sizes_of_the_model() -> None:
    facts = Dlrm.make(batch=50, embedding=32, rows=7, bottom="", top="5").facts
    assert facts == {
        **{
            "input": "criteo:seed=1,skew=1.05",
            "samples": 50,
            "tables": 26,
            "rows": 7,
            "embedding": 32,
        },
        **{"bottom": "13-32", "top": "383-5-1", "replicas": 1, "chunks": 1, "seed": 1},
    }
    assert "seed" not in problem_of().facts


def test_the_input_has_all_parameters_of_its_generator() -> None:
    facts = Dlrm.make(generate="criteo:skew=0.5", batch=2, rows=3, seed=7).facts
    assert (facts["input"], facts["seed"]) == ("criteo:seed=1,skew=0.5", 7)


@pytest.mark.parametrize(
    ("options", "samples", "rows"),
    [
        ({}, 512, 4096),
        ({"batch": 4096}, 4096, 4096),
        ({"rows": 65536}, 512, 65536),
        ({"batch": 16384, "rows": 5}, 16384, 5),
        ({"generate": "criteo", "embedding": 2}, 16384, 65536),
    ],
)
def test_quick_reduces_only_sizes_that_no_option_sets(
    options: dict[str, Any], samples: int, rows: int
) -> None:
    facts = Dlrm.make(quick=True, **options).facts
    assert (facts["samples"], facts["rows"]) == (samples, rows)


@pytest.mark.parametrize("options", [{"rows": 2**24, "embedding": 64}, {"batch": 2**24, "rows": 3}])
def test_a_problem_larger_than_memory_is_refused_before_it_is_made(
    monkeypatch: pytest.MonkeyPatch, options: dict[str, Any]
) -> None:
    monkeypatch.setattr("pidcomm.bench.measure.available_bytes", lambda: 8 << 30)
    with pytest.raises(
        ArgumentError, match=r"26 tables of .* samples, need about .* are available"
    ):
        Dlrm.make(**options)


@pytest.mark.parametrize(
    ("place", "change"),
    [
        (0, np.zeros((54, 16), np.int32)),
        (0, np.zeros((55, 16))),
        (1, np.array([0, 11, 22, 33, 44, 54])),
        (1, np.array([0, 22, 11, 33, 44, 55])),
        (1, np.array([1, 11, 22, 33, 44, 55])),
        (1, np.array([0, 11, 22, 33, 55])),
        (3, np.zeros((36, 13), np.int32)),
        (4, np.zeros(9, np.int32)),
        (5, np.array([13, 9, 17], np.int32)),
        (5, np.array([12, 9, 16], np.int32)),
        (5, np.array([13], np.int32)),
        (5, np.array([13, -9, 16], np.int32)),
        (7, np.array([31, 10, 3, 2], np.int32)),
    ],
)
def test_the_reference_takes_only_arrays_that_agree(
    monkeypatch: pytest.MonkeyPatch, place: int, change: Array
) -> None:
    from pidcomm_studies.apps import _apps

    valid: list[Any] = []

    def listen(*arguments: Any) -> Array:
        valid[:] = arguments
        return compute(*arguments)

    compute = _apps.dlrm
    monkeypatch.setattr(_apps, "dlrm", listen)
    problem_of().reference()
    valid[place] = change
    with pytest.raises((ValueError, TypeError)):
        compute(*valid)
