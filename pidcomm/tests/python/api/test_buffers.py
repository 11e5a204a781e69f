"""Buffers: arrays in the MRAM of PEs, collectives on them, and what loads do to them.

One file, because most tests share a program.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pytest
from definitions import COLLECTIVES, groups_of, payload, result_of
from hypothesis import given, settings
from hypothesis import strategies as st

import pidcomm
from pidcomm.compiling import compiled
from pidcomm.programs import MRAM_WINDOW

PROGRAM = """
#include <mram.h>
#include <stdint.h>
struct pair { int8_t first; double second; };
typedef int16_t small;
enum colour { RED, BLUE };
__mram_noinit_keep float grad[1024];
extern __mram_ptr struct pair pairs[3][2]; /* as in a header */
__mram struct pair pairs[3][2];
__host small shorts[2][4];
__host uint8_t flag;
__host double factor;
__host _Bool is_set;
__host enum colour colour;
__host struct { int a : 3; int b : 5; } bits;
__host struct { struct { int inner; }; int outer; } nested;
int main(void) {
  return pairs[0][0].first + shorts[0][0] + flag + factor + is_set + colour + bits.a + nested.outer;
}
"""
LARGE = """
#include <mram.h>
#include <stdint.h>
__mram_noinit_keep uint8_t large[60 << 20];
int main(void) { return 0; }
"""
SMALL = "#include <mram.h>\n__mram_noinit_keep char c[64];\nint main(void) { return 0; }\n"
COPY = """
#include <mram.h>
__mram_noinit int pidcomm_length[2];
int main(void) {
  __dma_aligned int32_t elements[grad_elements + grad_elements % 2];
  mram_read(grad, elements, grad_bytes);
  for (int i = 0; i < grad_elements; i++) elements[i] *= 2;
  mram_write(elements, doubled, grad_bytes);
  pidcomm_length[0] = grad_elements;
  return 0;
}
"""


@pytest.fixture
def fresh() -> Iterator[pidcomm.PeSet]:
    """A set that has loaded no program."""
    with pidcomm.allocate(pes=64) as pe_set:
        yield pe_set


@pytest.fixture(scope="module")
def program() -> Iterator[Path]:
    """A program with variables in MRAM, so that the heap does not begin at byte 0."""
    with compiled(PROGRAM, []) as (path, _):
        yield path


# ---- one buffer


def test_a_buffer_holds_the_rows_that_were_written(cube: pidcomm.Hypercube) -> None:
    x = np.arange(64 * 6, dtype=np.int32).reshape(64, 2, 3)
    buffer = cube.empty((2, 3), "int32", name="g")
    buffer[:] = x
    assert np.array_equal(np.asarray(buffer), x)
    assert np.array_equal(buffer.grid(), x.reshape(8, 8, 2, 3))
    assert np.array_equal(buffer.at(9).get(), x[9])
    assert (buffer.shape, buffer.size, buffer.size_bytes, buffer.pes) == ((2, 3), 6, 24, 64)
    assert repr(buffer) == "<Buffer g: int32[2, 3] on 64 PEs>"
    out = np.empty((64, 2, 3), np.int32)
    assert buffer.get(out) is out
    assert np.array_equal(out, x)
    assert buffer.__array__(np.float64).dtype == np.float64


def test_the_number_of_dimensions_decides_which_pes_get_a_value(cube: pidcomm.Hypercube) -> None:
    buffer = cube.empty(4, "float32")
    buffer[:] = 2
    assert np.array_equal(buffer.get(), np.full((64, 4), 2, np.float32))
    buffer[:] = [1, 2, 3, 4]  # the same for all PEs
    assert np.array_equal(buffer.get(), np.tile([1, 2, 3, 4], (64, 1)))
    rows = np.random.default_rng(1).random((64, 4), np.float32)
    buffer[:] = rows
    assert np.array_equal(buffer.get(), rows)
    grid = np.random.default_rng(2).random((8, 8, 4), np.float32)
    buffer[:] = grid  # by coordinates: [y, x]
    assert np.array_equal(buffer.get()[3 + 8 * 5], grid[5, 3])
    with pytest.raises(pidcomm.ArgumentError, match=r"\(4,\) or \(64, 4\) or \(8, 8, 4\)"):
        buffer[:] = np.zeros((32, 4), np.float32)


@pytest.mark.parametrize(
    ("index", "shape"),
    [
        (3, (4, 5)),
        (-1, (4, 5)),
        (slice(1, 3), (2, 4, 5)),
        ((2, slice(1, 2)), (1, 5)),
        ((2, 3, 1), ()),
        ((2, 3, slice(1, 4)), (3,)),
        (slice(2, 2), (0, 4, 5)),
        (..., (6, 4, 5)),
        ((1, ...), (4, 5)),
        ((slice(0, 2), slice(None)), (2, 4, 5)),
    ],
)
def test_a_slice_is_the_same_memory(
    cube: pidcomm.Hypercube, index: Any, shape: tuple[int, ...]
) -> None:
    for dtype in ("int8", "int32", "complex128"):  # slices that begin within words, too
        x = np.random.default_rng(3).integers(-9, 9, (64, 6, 4, 5)).astype(dtype)
        buffer = cube.array(x)
        part = buffer[index]
        rows = (slice(None), *(index if isinstance(index, tuple) else (index,)))
        assert part.shape == shape
        assert np.array_equal(part.get(), x[rows])
        y = np.random.default_rng(4).integers(-9, 9, (64, *shape)).astype(dtype)
        buffer[index] = y
        x[rows] = y
        assert np.array_equal(buffer.get(), x)
        part.at(7).set(5)
        x[7][rows[1:]] = 5
        assert np.array_equal(buffer.get(), x)


@pytest.mark.parametrize(
    ("index", "error", "rule"),
    [
        (slice(0, 4, 2), pidcomm.ArgumentError, "step 2; it must be 1"),
        ((slice(0, 2), 1), pidcomm.ArgumentError, "does not select contiguous elements"),
        (None, pidcomm.ArgumentError, "does not select contiguous elements"),
        (True, pidcomm.ArgumentError, "not a truth value"),
        (slice("a"), pidcomm.ArgumentError, "slice"),
        (6, IndexError, "index 6 is out of range for axis 0"),
        ((0, 0, 0), IndexError, "3 indices"),
        ("a", pidcomm.ArgumentError, "must be an integer"),
    ],
)
def test_other_indices_are_errors(
    cube: pidcomm.Hypercube, index: Any, error: type[Exception], rule: str
) -> None:
    with pytest.raises(error, match=rule):
        cube.empty((6, 4), "int8")[index]


def test_reshape_gives_the_same_elements(cube: pidcomm.Hypercube) -> None:
    x = np.arange(64 * 24, dtype=np.int64).reshape(64, 24)
    buffer = cube.array(x)
    assert np.array_equal(buffer.reshape(2, -1)[1].get(), x[:, 12:])
    assert buffer.reshape((4, 6)).shape == (4, 6)
    with pytest.raises(pidcomm.ArgumentError, match="cannot have shape 5"):
        buffer.reshape(5)


@pytest.mark.parametrize(
    ("values", "rule"),
    [
        (1.5, "float64"),
        ([1.5, 2], "float64"),
        (np.zeros(2, np.complex64), "complex64"),
        ([1, 2**40], "from 1 to 1099511627776 do not fit"),
        (np.uint32(2**31), "do not fit"),
        (["a", "b"], "dtype"),
    ],
)
def test_values_of_another_kind_are_errors(cube: pidcomm.Hypercube, values: Any, rule: str) -> None:
    buffer = cube.array(np.full((64, 2), 7, np.int32))
    with pytest.raises(pidcomm.ArgumentError, match=rule):
        buffer[:] = values
    assert np.array_equal(buffer.get(), np.full((64, 2), 7))


def test_arrays_have_the_rows_of_their_first_axes(cube: pidcomm.Hypercube) -> None:
    x = np.arange(64 * 3, dtype=np.int16).reshape(64, 3)
    assert np.array_equal(cube.array(x).get(), x)
    assert np.array_equal(cube.array(x.reshape(8, 8, 3)).get(), x)
    assert cube.array(x, "float64", name="a").dtype == np.float64
    with pytest.raises(pidcomm.ArgumentError, match=r"must begin with \(64,\) or \(8, 8\)"):
        cube.array(x[:32])


# ---- places


def test_buffers_are_freed_with_their_last_reference(fresh: pidcomm.PeSet) -> None:
    whole = fresh.buffer("first", 64 << 20, "uint8")
    part = whole[:8]
    del whole
    gc.collect()
    with pytest.raises(
        pidcomm.OutOfMemoryError,
        match=r"buffer second needs 8 bytes .* free part has 0 .* program end at byte 0, first",
    ):
        fresh.buffer("second", 8, "uint8")
    del part
    gc.collect()
    assert fresh.buffer("second", 64 << 20, "uint8").address == 0x08000000


def test_a_set_with_buffers_is_freed_without_references() -> None:
    pes = pidcomm.allocate()
    count, buffer = pes.pes, pes.buffer("b", 8, "uint8")
    buffer[:] = 1
    del pes, buffer
    pidcomm.allocate(pes=count).free()


def test_hypercubes_take_only_buffers_of_their_pes(pes: pidcomm.PeSet) -> None:
    left, right = pes.hypercube(8, 8), pes.hypercube(8, 8, first=64)
    x, of_set = left.empty(8, "int32"), pes.buffer("s", 8, "int32")
    for call in (
        lambda: right.allreduce(x, "x"),
        lambda: right.allreduce(of_set, "x", out=x),
        lambda: right.alltoall("x", bytes=64, src=x),
    ):
        with pytest.raises(pidcomm.ArgumentError, match=r"on PEs 0 to 63 .* has PEs 64 to 127"):
            call()
    of_set[:] = np.arange(128, dtype=np.int32)[:, np.newaxis].repeat(8, 1)
    result = right.allreduce(of_set, "x", op="max")
    assert np.array_equal(result.get()[:, 0], np.arange(64) // 8 * 8 + 71)
    assert result.at(3).get()[0] == 71


def test_buffers_without_elements_are_valid(cube: pidcomm.Hypercube) -> None:
    empty = cube.array(np.zeros((64, 0), np.int32))
    assert cube.allreduce(empty, "x", op="sum").get().shape == (64, 0)
    assert cube.gather(empty, "x").shape == (8, 0)
    assert cube.broadcast(np.zeros((8, 0)), "x").get().shape == (64, 0)


def test_calls_on_a_freed_set_are_errors() -> None:
    pes = pidcomm.allocate(pes=8)
    buffer = pes.buffer("b", 8, "uint8")
    pes.free()
    for call in (buffer.get, lambda: buffer.set(1), lambda: pes.buffer("c", 1, "uint8")):
        with pytest.raises(pidcomm.Error, match="freed"):
            call()


# ---- collectives


@pytest.mark.parametrize("name", COLLECTIVES)
@pytest.mark.parametrize("shape", [(8, 8), (3, 5), (4, 2, 6)])
def test_collectives_on_buffers_equal_their_definitions(
    pes: pidcomm.PeSet, name: str, shape: tuple[int, ...]
) -> None:
    cube, definition = pes.hypercube(*shape), COLLECTIVES[name]
    for mask in ("10", "01", "11") if len(shape) == 2 else ("101", "010"):
        x = payload(name, shape, mask, "int32")
        expected = result_of(name, x, shape, mask)
        result = getattr(cube, name)(cube.array(x) if definition.at_pes_before else x, mask)
        assert isinstance(result, pidcomm.Buffer) == definition.at_pes_after
        assert np.array_equal(np.asarray(result), expected)
        out = (
            cube.empty(expected.shape[1:], "int32")
            if definition.at_pes_after
            else np.empty_like(expected)
        )
        given = cube.array(x) if definition.at_pes_before else x
        request = getattr(cube, name)(given, axis=mask, out=out, wait=False)
        assert request.wait() is out
        assert np.array_equal(np.asarray(out), expected)


@given(
    name=st.sampled_from(sorted(COLLECTIVES)),
    lengths=st.sampled_from([(8, 8), (16, 4), (5, 7), (2, 4, 8)]),
    words=st.integers(1, 6),
    inner=st.sampled_from([(), (1,), (2,)]),
    data=st.data(),
)
@settings(deadline=None, max_examples=60)
def test_random_collectives_on_slices_equal_their_definitions(
    program: Path,
    name: str,
    lengths: tuple[int, ...],
    words: int,
    inner: tuple[int, ...],
    data: st.DataObject,
) -> None:
    mask = data.draw(st.text("01", min_size=len(lengths), max_size=len(lengths)))
    definition = COLLECTIVES[name]
    with pidcomm.allocate(pes=128) as pes:
        if data.draw(st.booleans()):
            pes.load(program)
        cube = pes.hypercube(*lengths)
        rows = payload(name, lengths, mask, "int64", 8 * words * int(np.prod(inner, dtype=int)))
        expected = result_of(name, rows, lengths, mask)
        rows = rows.reshape(len(rows), -1, *inner)
        around = cube.array(np.full((cube.pes, rows.shape[1] + 2, *inner), -1))
        around[1:-1] = rows if definition.at_pes_before else 0
        x: Any = around[1:-1] if definition.at_pes_before else rows
        result = np.asarray(getattr(cube, name)(x, mask))
        assert np.array_equal(result.reshape(expected.shape), expected)
        if definition.at_pes_before:
            assert np.array_equal(around[1:-1].get(), rows)
        assert np.all(around[0].get() == -1)
        assert np.all(around[-1].get() == -1)


def test_a_request_keeps_the_memory_of_its_buffers(fresh: pidcomm.PeSet) -> None:
    cube = fresh.hypercube(8, 8)
    calls: list[Callable[[pidcomm.Buffer], pidcomm.Request[Any]]] = [
        lambda x: cube.allreduce(x, "x", wait=False),
        lambda x: cube.alltoall("x", bytes=64, src=x, dst=0, wait=False),
    ]
    for call in calls:
        x = cube.empty(8, "int64")
        address = x.address
        request = call(x)
        del x
        assert cube.empty(8, "int64").address != address
        request.wait()
        del request
        assert cube.empty(8, "int64").address == address


def test_collectives_work_in_place(cube: pidcomm.Hypercube) -> None:
    x = payload("allreduce", (8, 8), "10", "int32")
    buffer = cube.array(x)
    assert cube.allreduce(buffer, "10", out=buffer) is buffer
    assert np.array_equal(buffer.get(), result_of("allreduce", x, (8, 8), "10"))
    whole = cube.empty(48, "int32")
    whole[:6] = x
    cube.allgather(whole[:6], "10", out=whole)
    assert np.array_equal(whole.get(), result_of("allgather", x, (8, 8), "10"))


@pytest.mark.parametrize("technique", sorted(pidcomm.TECHNIQUES))
def test_techniques_get_scratch_of_their_own(pes: pidcomm.PeSet, technique: Any) -> None:
    pes.load(PROGRAM)  # the heap does not begin at byte 0
    cube = pes.hypercube(8, 8)
    x = payload("allreduce", (8, 8), "10", "int32", 640)
    buffer, neighbour = cube.array(x), cube.array(x)
    result = cube.allreduce(buffer, "10", technique=technique)
    assert cube.last_trace is not None
    assert cube.last_trace.technique == technique
    assert np.array_equal(np.asarray(result), result_of("allreduce", x, (8, 8), "10"))
    assert np.array_equal(neighbour.get(), x)
    assert np.array_equal(buffer.get(), x)


def test_repeated_calls_have_their_own_arguments(pes: pidcomm.PeSet) -> None:
    cube, x = pes.hypercube(8, 16), payload("allreduce", (8, 16), "10", "int32")
    source, out = cube.array(x), cube.empty(x.shape[1], "int32")
    wanted = {
        (mask, op): result_of("allreduce", x, (8, 16), mask, op)
        for mask in ("10", "01", "11")
        for op in ("sum", "max")
    }
    for (mask, op), want in 2 * list(wanted.items()):
        assert cube.allreduce(source, mask, op=op, out=out) is out  # type: ignore[call-overload]
        assert np.array_equal(out.get(), want)
    for _ in range(200):  # a new buffer may have the identity of a freed one
        part = out[:2]
        cube.allreduce(source[2:4], "10", out=part)
    assert np.array_equal(out.get()[:, :2], wanted["10", "sum"][:, 2:4])
    out[:] = 0
    with cube.batch():
        cube.allreduce(source, "10", op="sum", out=out)
        assert not out.get().any()
    assert np.array_equal(out.get(), wanted["10", "sum"])
    pes.load(PROGRAM)
    grad = pes.symbol("grad")
    for _ in range(2):
        cube.allreduce(grad, "10", out=grad)
    pes.load(PROGRAM)
    with pytest.raises(pidcomm.Error, match="replaced"):
        cube.allreduce(grad, "10", out=grad)


def test_padding_moves_only_with_whole_rows(cube: pidcomm.Hypercube) -> None:
    x = np.arange(64 * 3, dtype=np.int16).reshape(64, 3)
    buffer = cube.array(x)
    assert np.array_equal(cube.allreduce(buffer, "11", op="max").get()[0], [189, 190, 191])
    sums = x.reshape(8, 8, 3).sum(1, dtype=np.int16)
    assert np.array_equal(cube.reduce(buffer, "10"), sums)
    assert np.array_equal(cube.broadcast(sums, "10").get(), np.repeat(sums, 8, 0))
    with pytest.raises(pidcomm.ArgumentError, match="block of 3 elements of int16 has 6 bytes"):
        cube.allgather(buffer, "10")
    with pytest.raises(pidcomm.ArgumentError, match="8 bytes at offset 0 pass the end"):
        cube.allreduce(cube.array(np.zeros((64, 8), np.int16))[4:6], "10")


def test_movements_take_every_dtype_of_fixed_size(cube: pidcomm.Hypercube) -> None:
    pair = np.dtype([("key", "u4"), ("value", "f4")])
    x = np.zeros((64, 8), pair)
    x["key"] = np.arange(512).reshape(64, 8)
    moved = cube.alltoall(cube.array(x), "10").get()
    assert np.array_equal(moved["key"], result_of("alltoall", x["key"], (8, 8), "10"))
    with pytest.raises(pidcomm.ArgumentError, match="operator sum is not for dtype 'void64'"):
        cube.allreduce(cube.array(x), "10")


def test_byte_windows_take_buffers(pes: pidcomm.PeSet) -> None:
    cube = pes.hypercube(8, 8)
    x = payload("alltoall", (8, 8), "10", "int32")
    source, target = cube.array(x), cube.empty(x.shape[1], "int32")
    cube.alltoall("10", bytes=source.size_bytes, src=source, dst=target)
    assert np.array_equal(target.get(), result_of("alltoall", x, (8, 8), "10"))
    assert cube.plan("alltoall", "10", bytes=192, src=source, dst=target)["bytes_per_pe"] == 192
    with pytest.raises(pidcomm.ArgumentError, match="200 bytes at offset 0 pass the end"):
        cube.validate("gather", "10", bytes=200, src=source)


def refused(
    cube: pidcomm.Hypercube, x: pidcomm.Buffer, other: pidcomm.Buffer
) -> dict[str, Callable[[], object]]:
    call: Any = cube
    return {
        "must be a buffer": lambda: call.allreduce(x, "10", out=np.zeros(8)),
        "needs 16 elements of int64": lambda: call.allreduce(x, "10", out=x[:8]),
        "needs a buffer, not": lambda: call.allreduce(np.zeros((64, 8)), "10"),
        "needs a buffer and an axis": lambda: call.allreduce("10", op="sum"),
        "needs a buffer and an axis, or": lambda: call.allreduce(x, op="sum"),
        "takes no bytes": lambda: call.allreduce(x, "10", bytes=8),
        "takes no .*src": lambda: call.allreduce(x, "10", src=5, dst=5),
        "takes no .*host": lambda: call.scatter(x, "10", host=np.zeros((8, 8))),
        "on another set": lambda: call.allreduce(other, "10"),
        "one row per group": lambda: call.scatter(np.zeros((3, 8)), "10"),
        "length is 12": lambda: call.alltoall(x[:12], "10"),
        "on one PE": lambda: call.allreduce(x.at(3), "10"),
        "operator 'average' is unknown": lambda: call.allreduce(x, "10", op="average"),
        "overlap": lambda: call.allreduce(x[:8], "10", out=x[4:12]),
    }


def test_wrong_buffers_are_errors_before_bytes_move(cube: pidcomm.Hypercube) -> None:
    x = np.arange(64 * 16, dtype=np.int64).reshape(64, 16)
    buffer = cube.array(x)
    with pidcomm.allocate(pes=64) as others:
        for rule, call in refused(cube, buffer, others.buffer("b", 8, "int64")).items():
            with pytest.raises(pidcomm.ArgumentError, match=rule):
                call()
    assert np.array_equal(buffer.get(), x)


def test_buffers_of_a_set_have_rows_for_all_usable_pes(pes: pidcomm.PeSet) -> None:
    buffer = pes.buffer("b", 2, "int32")
    x = np.arange(256, dtype=np.int32).reshape(128, 2)
    buffer[:] = x
    half = pes.hypercube(8, 8)
    result = half.allreduce(buffer, "11", op="max")
    assert np.array_equal(result.get()[0], x[63])
    assert np.array_equal(buffer.get(), x)


# ---- variables


def test_a_variable_has_the_type_of_its_program(pes: pidcomm.PeSet) -> None:
    pes.load(PROGRAM)
    types = {
        name: (pes.symbol(name).dtype, pes.symbol(name).shape)
        for name in ("grad", "shorts", "flag", "factor", "is_set", "colour", "pairs")
    }
    pair = np.dtype({"names": ["first", "second"], "formats": ["i1", "f8"], "offsets": [0, 8]})
    assert types == {
        "grad": (np.float32, (1024,)),
        "shorts": (np.int16, (2, 4)),
        "flag": (np.uint8, ()),
        "factor": (np.float64, ()),
        "is_set": (np.bool_, ()),
        "colour": (np.uint32, ()),
        "pairs": (pair, (3, 2)),
    }
    for name, rule in (
        ("bits", "NumPy has no type"),
        ("nested", "NumPy has no type"),
        ("__sys_used_mram_end", "has no type"),
    ):
        with pytest.raises(pidcomm.ArgumentError, match=rule):
            _ = pes.symbol(name).dtype


def test_variables_are_buffers(pes: pidcomm.PeSet) -> None:
    pes.load(PROGRAM)
    cube, x = pes.hypercube(8, 16), np.random.default_rng(5).random((128, 1024), np.float32)
    grad = pes.symbol("grad")
    grad[:] = x
    assert np.array_equal(np.asarray(grad), x)
    sums = cube.reduce(grad[:8], "10")
    assert np.allclose(sums, x.reshape(16, 8, 1024)[:, :, :8].sum(1))
    cube.allreduce(grad, axis="10", op="max", out=grad)
    assert np.array_equal(grad.get()[9], x[8:16].max(0))
    flag, shorts = pes.symbol("flag"), pes.symbol("shorts")
    flag[...] = 3  # less than a word of WRAM
    assert np.array_equal(flag.get(), np.full(128, 3))
    shorts[:] = 1
    shorts[1, 1] = np.arange(128)  # within a word
    assert np.array_equal(shorts.get()[:, 1, :3], [[1, pe, 1] for pe in range(128)])
    pes.symbol("pairs")[0] = np.array((1, 2.5), pes.symbol("pairs").dtype)
    assert pes.symbol("pairs").get()[5, 0, 1]["second"] == 2.5
    pes.load(PROGRAM)
    with pytest.raises(pidcomm.Error, match="replaced"):
        grad.get()


def test_an_allreduce_of_a_variable_changes_nothing_else_in_mram() -> None:
    chunk = 4 << 20

    def checksums(cube: pidcomm.Hypercube) -> list[list[int]]:
        return [
            [crc32(row) for row in cube.gather("0", bytes=chunk, src=MRAM_WINDOW + begin)]
            for begin in range(0, pidcomm.MRAM_BYTES, chunk)
        ]

    x = np.random.default_rng(6).integers(-99, 99, (8, 1024)).astype(np.float32)
    with pidcomm.allocate(pes=8) as pes:
        pes.load(PROGRAM)
        cube, grad = pes.hypercube(x=8), pes.symbol("grad")
        buffer = pes.buffer("b", 1024, "float32")
        grad[:] = buffer[:] = x
        before = checksums(cube)
        result = cube.allreduce(grad, axis="x", op="sum")
        assert np.array_equal(result.get(), np.tile(x.sum(0), (8, 1)))
        result[:] = 0  # as before
        assert checksums(cube) == before
        cube.allreduce(grad, axis="x", op="sum", out=grad)
        assert np.array_equal(grad.get(), np.tile(x.sum(0), (8, 1)))
        grad[:] = x
        assert checksums(cube) == before


# ---- programs


def test_programs_get_the_places_of_buffers(fresh: pidcomm.PeSet) -> None:
    x = np.arange(64 * 5, dtype=np.int32).reshape(64, 5)
    grad, doubled = fresh.buffer("grad", 5, "int32"), fresh.buffer("doubled", 5, "int32")
    grad[:] = x
    fresh.load(COPY, buffers=[grad, doubled])
    fresh.launch()
    assert np.array_equal(doubled.get(), 2 * x)
    for buffers, rule in (
        (grad, "must be a sequence of buffers"),
        ([x], "no buffer of this set"),
        ([grad[:2]], "part of a buffer"),
        ([grad, grad], "two buffers have the name grad"),
        ([fresh.symbol("pidcomm_length")], "variable of the program"),
        ([fresh.buffer("two words", 1, "int8")], "no name of C"),
    ):
        with pytest.raises(pidcomm.ArgumentError, match=rule):
            fresh.load(COPY, buffers=buffers)  # type: ignore[arg-type]


def test_buffers_keep_their_bytes_unless_variables_reach_them(fresh: pidcomm.PeSet) -> None:
    x = np.arange(128, dtype=np.int32).reshape(64, 2)
    high = fresh.buffer("high", 2, "int32")
    gap = fresh.buffer("gap", 32 << 20, "uint8")
    low = fresh.buffer("low", 2, "int32")
    high[:] = low[:] = x
    fresh.load(PROGRAM)
    assert np.array_equal(low.get(), x)
    fresh.load(LARGE)
    assert np.array_equal(high.get(), x)
    for call in (low.get, lambda: low.set(1), lambda: fresh.hypercube(64).reduce(low, "1")):
        with pytest.raises(pidcomm.Error, match=r"low begins at .* end at 0xbc00000"):
            call()
    fresh.load(PROGRAM)  # the bytes are still lost
    with pytest.raises(pidcomm.Error, match="overwritten"):
        low.get()
    del gap


def test_offsets_that_a_load_has_moved_are_errors_until_a_launch(fresh: pidcomm.PeSet) -> None:
    cube = fresh.hypercube(8, 8)
    x = np.arange(128, dtype=np.int32).reshape(64, 2)
    cube.write(x, offset=64)
    cube.write(x, offset=128)
    fresh.load(PROGRAM)
    with pytest.raises(
        pidcomm.ArgumentError,
        match=r"offsets 64 to 72 were written when the heap began at 0x8000000; .* 0x80010",
    ):
        cube.read(2, np.int32, offset=64)
    with pytest.raises(pidcomm.ArgumentError, match="offsets 128 to 136 were written"):
        cube.allreduce("10", bytes=256, src=72, dst=512, dtype=np.int32)
    cube.write(x, offset=128)
    assert np.array_equal(cube.read(2, np.int32, offset=128), x)
    with pytest.raises(pidcomm.ArgumentError, match="offsets 64 to 72"):
        cube.read(2, np.int32, offset=64)
    fresh.load(PROGRAM)  # the heap stays
    cube.reduce_scatter("10", bytes=512, src=1024, dst=60 * 8, dtype=np.int32)  # writes 64 bytes
    fresh.load(SMALL)
    with pytest.raises(pidcomm.ArgumentError, match="offsets 64 to 72"):  # of the first heap
        cube.read(2, np.int32, offset=64)
    with pytest.raises(pidcomm.ArgumentError, match="offsets 480 to 544"):
        cube.read(2, np.int32, offset=536)
    cube.write(x, offset=488)  # 8 bytes of the 64
    cube.read(2, np.int32, offset=488)
    cube.read(2, np.int32, offset=544)
    fresh.load(PROGRAM)  # the heap of the last writes
    assert np.array_equal(cube.read(2, np.int32, offset=128), x)
    fresh.launch()
    cube.read(2, np.int32, offset=64)


def test_groups_are_those_of_the_mask(cube: pidcomm.Hypercube) -> None:
    x = np.arange(64, dtype=np.int64).reshape(64, 1)
    gathered = cube.gather(cube.array(x), "01")
    assert np.array_equal(gathered, groups_of((8, 8), "01"))
