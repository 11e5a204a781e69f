"""Arrays of every kind, in and out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from definitions import payload

import pidcomm
from pidcomm.tables import OpName

ROWS = np.arange(64 * 4, dtype=np.int32).reshape(64, 4)


def memory_view(x: Any) -> Any:
    return memoryview(x.copy())


def read_only(x: Any) -> Any:
    x = x.copy()
    x.flags.writeable = False
    return x


KINDS: dict[str, Callable[[Any], Any]] = {
    "C": lambda x: x.copy(),
    "Fortran": np.asfortranarray,
    "strided": lambda x: np.repeat(x, 2, axis=1)[:, ::2],
    "reversed": lambda x: np.ascontiguousarray(x[::-1])[::-1],
    "read-only": read_only,
    "memoryview": memory_view,
    "unaligned": lambda x: (
        np.frombuffer(b"\0" + x.tobytes(), np.uint8)[1:].view(x.dtype).reshape(x.shape)
    ),
    "list": lambda x: x.astype(np.int64).tolist(),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_array_can_be_written(cube: pidcomm.Hypercube, kind: str) -> None:
    x = KINDS[kind](ROWS)
    cube.write(x)
    dtype = np.asarray(x).dtype
    np.testing.assert_array_equal(cube.read(4, dtype), ROWS)
    host = KINDS[kind](ROWS[:8])
    cube.broadcast("10", host=host)
    np.testing.assert_array_equal(cube.read(4, dtype), np.repeat(ROWS[:8], 8, axis=0))


@pytest.mark.parametrize("dtype", pidcomm.TYPES)
def test_every_type_survives_a_round_trip(cube: pidcomm.Hypercube, dtype: str) -> None:
    x = payload("gather", (8, 8), "10", dtype, block_bytes=40)
    cube.write(x)
    read = cube.read(x.shape[1], dtype)
    assert read.dtype == x.dtype
    np.testing.assert_array_equal(read, x)


MOVED = ["bool", "complex64", "complex128", "S8", "datetime64[s]", [("key", "u2"), ("at", "f4", 3)]]


@pytest.mark.parametrize("dtype", MOVED, ids=str)
def test_every_dtype_of_a_fixed_size_moves(cube: pidcomm.Hypercube, dtype: Any) -> None:
    size = 64 * 64 * np.dtype(dtype).itemsize
    words = np.random.default_rng(3).integers(0, 2, size, np.uint8)
    x = np.frombuffer(words.tobytes(), dtype).reshape(64, 64)
    cube.write(x)
    np.testing.assert_array_equal(cube.read(64, dtype), x)
    moved = cube.arrays.alltoall(x, "10")
    assert moved.dtype == x.dtype
    blocks = x.reshape(8, 8, 8, 8)
    np.testing.assert_array_equal(moved, blocks.transpose(0, 2, 1, 3).reshape(64, 64))
    np.testing.assert_array_equal(cube.alltoall(cube.array(x), "x").get(), moved)
    with pytest.raises(pidcomm.ArgumentError, match="operator prod is not for dtype"):
        cube.arrays.allreduce(x, "10", op="prod")


@pytest.mark.parametrize("dtype", ["complex128", "S24", "S12"])
def test_blocks_hold_whole_elements(cube: pidcomm.Hypercube, dtype: str) -> None:
    for call in (
        lambda: cube.alltoall("10", bytes=64, dtype=dtype),
        lambda: cube.gather("10", bytes=8, dtype=dtype),
        lambda: cube.validate("allgather", "10", bytes=64, dtype=dtype),
    ):
        with pytest.raises(pidcomm.ArgumentError, match="no whole number of elements") as caught:
            call()
        assert caught.value.status == "ERR_SIZE"


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_numbers_are_added(cube: pidcomm.Hypercube, dtype: str) -> None:
    parts = np.random.default_rng(3).integers(-9, 9, (2, 64, 8))
    x = (parts[0] + 1j * parts[1]).astype(dtype)
    expected = np.repeat(x.reshape(8, 8, 8).sum(1), 8, axis=0)
    np.testing.assert_array_equal(cube.arrays.allreduce(x, "10"), expected)
    np.testing.assert_array_equal(cube.allreduce(cube.array(x), "x").get(), expected)


@pytest.mark.parametrize(
    ("op", "combine"),
    [
        ("min", np.logical_and),
        ("and", np.logical_and),
        ("max", np.logical_or),
        ("or", np.logical_or),
        ("xor", np.logical_xor),
    ],
)
def test_bools_are_combined(cube: pidcomm.Hypercube, op: OpName, combine: np.ufunc) -> None:
    x = np.random.default_rng(3).random((64, 8)) < 0.8
    result = cube.arrays.allreduce(x, "10", op=op)
    assert result.dtype == bool
    np.testing.assert_array_equal(result[::8], combine.reduce(x.reshape(8, 8, 8), axis=1))


@pytest.mark.parametrize("dtype", ["object", ">i4", "V0"])
def test_other_types_are_errors(cube: pidcomm.Hypercube, dtype: str) -> None:
    x = np.zeros((64, 8), dtype)
    for call in (
        lambda: cube.write(x),
        lambda: cube.arrays.alltoall(x, "10"),
        lambda: cube.read(8, dtype),
        lambda: cube.alltoall("10", bytes=64, dtype=dtype),
    ):
        with pytest.raises(pidcomm.ArgumentError, match="dtype") as caught:
            call()
        assert caught.value.status == "ERR_TYPE"


def test_contiguous_arrays_are_not_copied(cube: pidcomm.Hypercube) -> None:
    out = np.empty((8, 32), np.int32)
    cube.write(ROWS)
    assert cube.gather("10", bytes=16, dtype=np.int32, out=out) is out
    np.testing.assert_array_equal(out.reshape(64, 4), ROWS)
    filled = np.empty((64, 4), np.int32)
    assert cube.read(4, np.int32, out=filled) is filled
    assert cube.arrays.allreduce(ROWS, "10", out=filled) is filled
    np.testing.assert_array_equal(filled[:8], np.tile(ROWS[:8].sum(0, dtype=np.int32), (8, 1)))
    summed = np.empty((8, 4), np.int32)
    assert cube.arrays.reduce(ROWS, "10", out=summed) is summed


@pytest.mark.parametrize(
    ("out", "message"),
    [
        (read_only(np.zeros((8, 32), np.int32)), "read-only"),
        (np.zeros((8, 31), np.int32), r"shape \(8, 31\).*needs \(8, 32\)"),
        (np.zeros((8, 32), np.int64), "dtype int64.*needs.*int32"),
        (np.zeros((8, 64), np.int32)[:, ::2], "C-contiguous"),
        ([[0] * 32] * 8, "CPU tensor, not list"),
    ],
)
def test_outputs_that_cannot_be_filled_are_errors(
    cube: pidcomm.Hypercube, out: Any, message: str
) -> None:
    before = np.copy(out)
    calls: list[Callable[[], Any]] = [
        lambda: cube.gather("10", bytes=16, dtype=np.int32, out=out),
        lambda: cube.arrays.gather(ROWS, "10", out=out),
    ]
    for call in calls:
        with pytest.raises(pidcomm.ArgumentError, match=message):
            call()
    np.testing.assert_array_equal(out, before)


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (np.zeros((63, 4), np.int32), r"\(63, 4\).*needs \(64, n\), one row per PE"),
        (np.zeros(64, np.int32), r"\(64,\).*needs \(64, n\)"),
        (np.zeros((64, 2, 2), np.int32), r"\(64, 2, 2\)"),
        (np.int32(3), r"\(\)"),
        ([[1, 2], [3]], "x is not an array"),
        ("rows", "shape"),
        (None, "dtype"),
    ],
)
def test_inputs_of_a_wrong_shape_are_errors(cube: pidcomm.Hypercube, x: Any, message: str) -> None:
    for call in (lambda: cube.write(x), lambda: cube.arrays.allreduce(x, "10")):
        with pytest.raises(pidcomm.ArgumentError, match=message):
            call()


def test_host_arrays_have_one_row_per_group(cube: pidcomm.Hypercube) -> None:
    with pytest.raises(
        pidcomm.ArgumentError, match=r"host has shape \(64, 4\).*needs \(8, n\), one row per group"
    ):
        cube.scatter("10", host=ROWS)
    with pytest.raises(
        pidcomm.ArgumentError, match="rows of 36 bytes cannot be divided among the 8 members"
    ):
        cube.scatter("10", host=np.zeros((8, 9), np.int32))
    with pytest.raises(pidcomm.ArgumentError, match="the host buffer has 128 bytes"):
        cube.broadcast("10", host=np.zeros((8, 4), np.int32), bytes=24)
    with pytest.raises(pidcomm.ArgumentError, match=r"number of columns \(9\) divisible by 8"):
        cube.arrays.alltoall(np.zeros((64, 9), np.int64), "10")


class Tensor:
    """A tensor that supports only DLPack."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def __dlpack__(self, **how: Any) -> Any:
        return self.array.__dlpack__(**how)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


class TensorElsewhere(Tensor):
    def __dlpack__(self, **how: Any) -> Any:
        raise BufferError("this tensor is in the memory of another device")

    def __dlpack_device__(self) -> tuple[int, int]:
        return (2, 0)


def test_tensors_are_read_and_filled_in_place(cube: pidcomm.Hypercube) -> None:
    cube.write(Tensor(ROWS))
    memory = np.zeros((64, 4), np.int32)
    got = cube.read(4, np.int32, out=Tensor(memory))
    np.testing.assert_array_equal(memory, ROWS)
    assert np.shares_memory(got, memory)


def test_buffers_are_filled_in_place(cube: pidcomm.Hypercube) -> None:
    cube.write(ROWS)
    memory = bytearray(ROWS.nbytes)
    cube.read(4, np.int32, out=memoryview(memory).cast("i", ROWS.shape))
    assert memory == ROWS.tobytes()


def test_tensors_on_other_devices_are_refused(cube: pidcomm.Hypercube) -> None:
    for call in (lambda x: cube.write(x), lambda x: cube.read(4, np.int32, out=x)):
        with pytest.raises(pidcomm.ArgumentError, match=r"(another device|device)"):
            call(TensorElsewhere(ROWS))
    with pytest.raises(pidcomm.ArgumentError, match="CPU tensor, not list"):
        cube.read(4, np.int32, out=ROWS.tolist())  # type: ignore[arg-type]


def test_torch_tensors_are_read_and_filled_in_place(cube: pidcomm.Hypercube) -> None:
    torch = pytest.importorskip("torch")
    tensor = torch.arange(64 * 4, dtype=torch.int32).reshape(64, 4)
    filled = torch.zeros_like(tensor)
    cube.write(tensor)
    cube.read(4, np.int32, out=filled)
    assert torch.equal(filled, tensor)
    with pytest.raises(pidcomm.ArgumentError, match="grad"):
        cube.write(torch.zeros((64, 4), requires_grad=True))


def test_the_core_reads_and_fills_the_memory_of_the_caller(
    cube: pidcomm.Hypercube, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Any] = []
    core = cube._core

    class Spy:
        def run(self, request: Any, host_in: Any, host_out: Any, codes: Any) -> Any:
            seen.extend(rows for rows in (host_in, host_out) if rows is not None)
            return core.run(request, host_in, host_out, codes)

        def __getattr__(self, name: str) -> Any:
            return getattr(core, name)

    monkeypatch.setattr(cube, "_core", Spy())
    out = np.zeros_like(ROWS)
    cube.write(ROWS)
    cube.read(4, np.int32, out=out)
    assert [np.shares_memory(rows, own) for rows, own in zip(seen, (ROWS, out), strict=True)] == [
        True,
        True,
    ]
