"""The perceptron: shapes, types, techniques and files, against NumPy."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np
import pytest

import pidcomm
from pidcomm import ArgumentError, Error
from pidcomm.arguments import Array
from pidcomm_studies import apps
from pidcomm_studies.apps.mlp import DTYPES, FEATURES, QUICK_FEATURES, Mlp, prim
from pidcomm_studies.apps.stage import Stage

TECHNIQUES = ["conventional", "pr", "pr+im+cm", "tile"]


def random_problem(features: int, layers: int, dtype: str) -> Mlp:
    """Make a problem with values of the whole range of a type."""
    random = np.random.default_rng(features + layers)
    limits = np.iinfo(dtype)
    arrays = [
        random.integers(limits.min, limits.max, (features,) * axes, dtype, endpoint=True)
        for axes in (*[2] * layers, 1)
    ]
    return Mlp(arrays[:-1], arrays[-1])


def expected(problem: Mlp) -> Array:
    """Return the result, by NumPy, whose integers wrap."""
    x = problem.x
    for layer, weights in enumerate(problem.weights):
        x = weights @ (np.maximum(x, 0) if layer else x)
    return x


def assert_right(problem: Mlp, pes: int, *techniques: str) -> None:
    """Check PEs and CPUs against NumPy."""
    right = expected(problem)
    assert right.dtype == problem.x.dtype
    np.testing.assert_array_equal(problem.reference(), right)
    for run in apps.compare(problem, pes=pes, techniques=techniques or ["tile"], iters=1):
        np.testing.assert_array_equal(run.result, right, err_msg=run.technique)
        assert run.wrong == 0


def save(path: Path, **changes: Array | None) -> Path:
    """Write a file with two layers of three features; arrays in `changes` replace others, None
    leaves them out.
    """
    square = np.arange(9, dtype=np.int32).reshape(3, 3)
    arrays = {"w0": square, "w1": -square, "x": np.array([1, -2, 3], np.int32), **changes}
    kept: dict[str, Any] = {name: array for name, array in arrays.items() if array is not None}
    np.savez(path, **kept)
    return path


@pytest.mark.parametrize(
    ("features", "pes", "layers", "dtype"),
    [
        *((1, 1, 5, dtype) for dtype in DTYPES),
        *((513, 3, 2, dtype) for dtype in DTYPES),
        (1, 64, 2, "int64"),
        (7, 3, 5, "int8"),
        (7, 8, 1, "int16"),
        (100, 1, 2, "int8"),
        (100, 8, 2, "int32"),
        (100, 64, 5, "int16"),
        (513, 8, 1, "int64"),
        (513, 64, 5, "int32"),
    ],
)
def test_every_size_type_and_number_of_pes_is_right(
    features: int, pes: int, layers: int, dtype: str
) -> None:
    """For sizes that divide and sizes that do not; products and sums wrap."""
    assert_right(random_problem(features, layers, dtype), pes)


@pytest.mark.parametrize("dtype", ["int8", "int32"])
def test_every_technique_is_right(dtype: str) -> None:
    """The pr techniques replace the program between its launches."""
    assert_right(random_problem(100, 3, dtype), 24, *TECHNIQUES)


@pytest.mark.parametrize(("features", "dtype"), [(300, "int64"), (2050, "int8")])
def test_one_pe_has_rows_longer_than_a_block(features: int, dtype: str) -> None:
    """Such rows are read in pieces."""
    assert_right(random_problem(features, 1, dtype), 1)


def test_x_of_the_largest_problem_of_one_pe_fits_its_wram() -> None:
    """The kernel's comment promises it: 64-bit elements have the longest x.

    One more feature is too many for MRAM.
    """
    largest, larger = (
        Mlp([np.zeros((n, n), np.int64)], np.zeros(n, np.int64)) for n in (2895, 2896)
    )
    with pytest.raises(ArgumentError, match=r"a PE of 1 needs .*weights .*use more PEs"):
        apps.run(larger, pes=1)
    with (
        pidcomm.allocate(pes=1) as pe_set,
        Stage(pe_set, (1,), largest.place((1,)), {"technique": "tile"}) as stage,
    ):
        stage.launch(layer=0)


@pytest.mark.usefixtures("strict_machine")
@pytest.mark.parametrize("dtype", ["int8", "int64"])
def test_all_transfers_are_whole_words(dtype: str) -> None:
    """A strict machine refuses other transfers."""
    assert_right(random_problem(101, 2, dtype), 8, "conventional", "tile")


def test_relu_applies_between_layers_only() -> None:
    """Negative values become 0 between layers, but not in x or in the result."""
    problem = Mlp([np.array([[1, 0], [0, 1]]), np.array([[-1, 5], [3, 2]])], np.array([4, -7]))
    assert apps.run(problem, pes=3).result.tolist() == [-4, 12]


def test_phases_match_the_paper() -> None:
    """Table III: scatter, reduce_scatter, reduce."""
    run = apps.run(random_problem(64, 5, "int32"), pes=8, iters=1)
    calls = {name: cost.calls for name, cost in run.costs.items()}
    assert calls == {"host": 1, "scatter": 1, "kernel": 5, "reduce_scatter": 4, "reduce": 1}
    assert run.setup.calls == 5


@pytest.mark.parametrize(
    "generate", ["uniform", "uniform:low=-3,high=100,seed=4", "sparse:density=0.5", "prim"]
)
@pytest.mark.parametrize("dtype", ["int8", "int64"])
def test_generators_make_the_same_problem_twice(generate: str, dtype: str) -> None:
    """The problem has the given size and type, and its layers differ."""
    one, other = (
        Mlp.make(generate=generate, features=120, layers=3, dtype=dtype) for _ in range(2)
    )
    for a, b in zip([*one.weights, one.x], [*other.weights, other.x], strict=True):
        np.testing.assert_array_equal(a, b)
        assert a.dtype == dtype
    assert [array.shape for array in one.weights] == [(120, 120)] * 3
    assert (one.weights[0] != one.weights[1]).any()
    np.testing.assert_array_equal(one.reference(), expected(one))


def test_uniform_keeps_its_bounds_and_sparse_its_density() -> None:
    """Including the bounds."""
    weights = Mlp.make(generate="uniform:low=-3,high=2", features=100, layers=1).weights[0]
    assert (weights.min(), weights.max()) == (-3, 2)
    for density, low, high in ((0, 0, 0), (0.25, 0.2, 0.3), (1, 0.9, 1)):
        weights = Mlp.make(generate=f"sparse:density={density}", features=100, layers=1).weights[0]
        assert low <= np.count_nonzero(weights) / weights.size <= high


def test_prim_has_the_values_of_its_definition() -> None:
    """Element i is 0, except the last two in a hundred (weights: (layer + i) % 2) and in fifty
    (x: i % 2).
    """
    features, kind = 30, np.dtype(np.int32)
    for layer in range(2):
        flat = prim()((features, features), kind, layer).ravel()
        assert flat.tolist() == [0 if i % 100 < 98 else (layer + i) % 2 for i in range(features**2)]
    assert prim()((120,), kind, 2).tolist() == [0 if i % 50 < 48 else i % 2 for i in range(120)]


def test_quick_is_smaller_and_nothing_else_changes() -> None:
    """The input has all parameters of its generator."""
    source = "uniform:low=-8,high=8,seed=1"
    assert Mlp.make(quick=True).facts == {
        "input": source,
        "features": QUICK_FEATURES,
        "layers": 5,
        "dtype": "int32",
    }


@pytest.mark.parametrize(
    ("options", "features"),
    [
        ({"features": 10}, 10),
        ({"features": FEATURES}, FEATURES),
        ({"generate": "prim"}, FEATURES),
        ({"generate": "prim", "features": 9}, 9),
    ],
)
def test_quick_overrides_no_given_option(options: dict[str, Any], features: int) -> None:
    """Neither features, even if they equal the default, nor a generator."""
    assert Mlp.make(quick=True, layers=1, dtype="int8", **options).facts["features"] == features


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"features": 0}, r"features \(0\) must be between 1 and 1048576"),
        ({"layers": 0}, r"layers \(0\) must be between 1 and 1024"),
        ({"dtype": "float32"}, "'float32' must be one of int8, int16, int32, int64"),
        ({"generate": "random"}, "'random' is unknown; use uniform:.* or sparse:.* or prim"),
        ({"generate": "sparse:density=nan"}, r"density \(nan\) must be from 0 to 1"),
        ({"generate": "uniform:low=3,high=2"}, r"low \(3\) and high \(2\)"),
        ({"generate": "uniform:high=128", "dtype": "int8"}, r"high \(128\).*in int8"),
        ({"generate": "uniform:seed=-1"}, r"seed \(-1\) must be between 0 and 4294967295"),
        ({"features": 10**6}, "5 layers of 1000000 x 1000000 int32 need .* are available"),
        ({"data": Path("a.npz"), "generate": "prim"}, "not both"),
    ],
)
def test_options_that_break_a_rule_are_refused(options: dict[str, Any], message: str) -> None:
    """The error names their values."""
    with pytest.raises(ArgumentError, match=message):
        Mlp.make(**{"features": 8, **options})


@pytest.mark.parametrize("dtype", [*DTYPES, ">i4"])
def test_files_of_every_type_are_read(tmp_path: Path, dtype: str) -> None:
    """In any byte order, and with column-major arrays."""
    random = np.random.default_rng(1)
    arrays = {
        f"w{layer}": random.integers(-9, 9, (6, 6)).astype(dtype, order="F") for layer in range(11)
    }
    path = save(tmp_path / "a.npz", **arrays, x=np.arange(6).astype(dtype))
    problem = Mlp.make(data=path)
    assert problem.facts == {
        "input": str(path),
        "features": 6,
        "layers": 11,
        "dtype": np.dtype(dtype).name,
    }
    for layer, weights in enumerate(problem.weights):
        np.testing.assert_array_equal(weights, arrays[f"w{layer}"])
    np.testing.assert_array_equal(problem.reference(), expected(problem))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"x": None}, "missing: x; not one of them: none"),
        ({"w0": None}, "missing: w0; not one of them: w1"),
        ({"w0": None, "w1": None}, "missing: w0; not"),
        ({"w3": np.zeros((3, 3), np.int32)}, "missing: w2; not one of them: w3"),
        ({"bias": np.zeros(3, np.int32)}, "missing: none; not one of them: bias"),
        (
            {"w1": np.zeros((3, 4), np.int32)},
            r"w1 has shape \(3, 4\); .*\(features, features\), here \(3, 3\)",
        ),
        ({"w0": np.int32(7)}, r"w0 has shape \(\); .*here \(3, 3\)"),
        ({"x": np.zeros((3, 1), np.int32)}, r"x has shape \(3, 1\); x must be \(features,\)"),
        ({"x": np.zeros(0, np.int32)}, r"x has shape \(0,\); x must be \(features,\), not empty"),
        ({"x": np.zeros(3)}, "x has dtype float64; it must be one of int8, int16, int32, int64$"),
        (
            {"w1": np.zeros((3, 3), np.uint8)},
            "w1 has dtype uint8; it must be int32, the dtype of x$",
        ),
        (
            {"w1": np.zeros((3, 3), np.int16)},
            "w1 has dtype int16; it must be int32, the dtype of x$",
        ),
        ({"w1": np.array([[None] * 3] * 3)}, "w1 cannot be read"),
    ],
)
def test_files_with_wrong_arrays_are_refused(
    tmp_path: Path, changes: dict[str, Array | None], message: str
) -> None:
    """The error names the file, the array and the rule."""
    path = save(tmp_path / "a.npz", **changes)
    with pytest.raises(ArgumentError, match=rf"a\.npz: .*{message}"):
        Mlp.make(data=path)


def test_files_that_are_no_npz_are_refused(tmp_path: Path) -> None:
    """Empty, text, single arrays, truncated and damaged; a missing file is an Error."""
    path = tmp_path / "a.npz"
    whole = save(path).read_bytes()
    with (tmp_path / "b.npy").open("wb") as file:
        np.save(file, np.zeros(3))
    damaged = bytearray(whole)
    damaged[whole.index(b"\x93NUMPY") + 130] ^= 0xFF
    for content in (
        b"",
        b"w0 w1 x\n",
        whole[: len(whole) // 2],
        (tmp_path / "b.npy").read_bytes(),
        bytes(damaged),
    ):
        path.write_bytes(content)
        with pytest.raises(ArgumentError, match=r"a\.npz: ") as refusal:
            Mlp.make(data=path)
        assert "unsafe" not in str(refusal.value)
        assert "pickle" not in str(refusal.value)
    save(path, w1=None)
    with ZipFile(path, "a") as archive:
        archive.writestr("w1.npy", "1 2 3")
    with pytest.raises(ArgumentError, match=r"a\.npz: w1 cannot be read: it is not an array"):
        Mlp.make(data=path)
    for missing in (tmp_path / "none.npz", tmp_path):
        with pytest.raises(Error, match="cannot read"):
            Mlp.make(data=missing)


def test_options_that_contradict_a_file_are_refused(tmp_path: Path) -> None:
    """Options that agree with the file, or keep their default, are accepted."""
    path = save(tmp_path / "a.npz")
    assert Mlp.make(data=path, features=3, layers=2, quick=True).facts["features"] == 3
    for options in ({"features": 4}, {"features": FEATURES}, {"layers": 5}, {"dtype": "int8"}):
        with pytest.raises(ArgumentError, match=r"a\.npz: .* is only for generators"):
            Mlp.make(data=path, **options)


def test_old_values_in_mram_do_not_change_the_result() -> None:
    """Old values behind the rows of y, and in PEs without columns, must not count."""
    problem = random_problem(5, 3, "int8")
    with pidcomm.allocate(pes=128) as pe_set:
        pe_set.hypercube(128).write(np.full((128, 1 << 16), 0x5A, np.uint8))
        with Stage(pe_set, (128,), problem.place((128,)), {"technique": "tile"}) as stage:
            np.testing.assert_array_equal(problem.run(stage), expected(problem))
