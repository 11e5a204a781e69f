"""Every error names the values and the rule, and moves no byte."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pidcomm
from pidcomm import ArgumentError, Error

Call = Callable[[Any], Any]
MRAM = pidcomm.MRAM_BYTES

CASES: dict[str, tuple[Call, str, str]] = {
    "mask too short": (lambda c: c.alltoall("1", bytes=64), "ERR_MASK", "mask"),
    "mask with another character": (
        lambda c: c.alltoall("1x", bytes=64),
        "ERR_MASK",
        "'1x' contains 'x'",
    ),
    "mask with a null": (lambda c: c.alltoall("10\0", bytes=64), "ERR_MASK", "contains"),
    "mask of another type": (lambda c: c.alltoall(10, bytes=64), "ERR_MASK", "must be a str"),
    "indivisible block": (
        lambda c: c.alltoall("10", bytes=72),
        "ERR_SIZE",
        r"8x8 selects 8 PEs; alltoall.*\(72\).*8 \* 8",
    ),
    "block of 4 bytes": (
        lambda c: c.write(np.zeros((64, 1), np.int32)),
        "ERR_SIZE",
        "moves 4 bytes per PE; .* multiple of 8",
    ),
    "odd read": (lambda c: c.read(3, np.int8), "ERR_SIZE", "moves 3 bytes per PE"),
    "odd block in arrays": (
        lambda c: c.arrays.allreduce(np.zeros((64, 3), np.int8), "10"),
        "ERR_SIZE",
        r"\(3\)",
    ),
    "negative bytes": (
        lambda c: c.alltoall("10", bytes=-64),
        "ERR_ARGUMENT",
        r"bytes \(-64\) must be between 0",
    ),
    "bytes of 2**64": (
        lambda c: c.alltoall("10", bytes=2**64),
        "ERR_ARGUMENT",
        r"bytes \(18446744073709551616\)",
    ),
    "bytes of 2**64 + 64": (
        lambda c: c.alltoall("10", bytes=2**64 + 64),
        "ERR_ARGUMENT",
        "18446744073709551680",
    ),
    "bytes of 2**64 - 64": (
        lambda c: c.alltoall("10", bytes=2**64 - 64),
        "ERR_WINDOW",
        "18446744073709551552",
    ),
    "bytes of 1 GiB": (lambda c: c.alltoall("10", bytes=1 << 30), "ERR_WINDOW", "1073741824"),
    "fraction": (
        lambda c: c.alltoall("10", bytes=64.0),
        "ERR_ARGUMENT",
        r"bytes \(64.0\) must be an integer, not float",
    ),
    "truth value": (lambda c: c.alltoall("10", bytes=True), "ERR_ARGUMENT", r"bytes \(True\)"),
    "text": (lambda c: c.alltoall("10", bytes="64"), "ERR_ARGUMENT", "bytes"),
    "negative source": (
        lambda c: c.alltoall("10", bytes=64, src=-8),
        "ERR_ARGUMENT",
        r"src \(-8\)",
    ),
    "odd source": (
        lambda c: c.alltoall("10", bytes=64, src=4, dst=128),
        "ERR_WINDOW",
        "source offset 4.*multiple of 8",
    ),
    "destination past MRAM": (
        lambda c: c.alltoall("10", bytes=64, dst=MRAM - 56),
        "ERR_WINDOW",
        str(MRAM - 56),
    ),
    "huge destination": (
        lambda c: c.alltoall("10", bytes=64, dst=2**64 - 64),
        "ERR_WINDOW",
        str(2**64 - 64),
    ),
    "overlap": (lambda c: c.alltoall("10", bytes=64, src=0, dst=8), "ERR_WINDOW", "overlap"),
    "count of 2**63": (lambda c: c.read(2**63, np.int8), "ERR_WINDOW", "9223372036854775808"),
    "count of 2**62 words": (
        lambda c: c.read(2**62, np.int64),
        "ERR_ARGUMENT",
        r"bytes \(36893488147419103232\)",
    ),
    "huge gather": (lambda c: c.gather("10", bytes=2**40), "ERR_WINDOW", str(2**40)),
    "base past MRAM": (
        lambda c: c.arrays.allreduce(np.zeros((64, 1)), "10", base_offset=MRAM),
        "ERR_WINDOW",
        "past",
    ),
    "unknown operator": (
        lambda c: c.allreduce("10", bytes=64, dtype="int32", op="mean"),
        "ERR_OP",
        "'mean'.*sum, prod",
    ),
    "no operator": (
        lambda c: c.carry_out("allreduce", "10", bytes=64, options={}),
        "ERR_OP",
        "None",
    ),
    "bits of floats": (
        lambda c: c.reduce("10", bytes=64, dtype="float32", op="xor"),
        "ERR_OP",
        "xor.*float32",
    ),
    "unknown type": (
        lambda c: c.allreduce("10", bytes=64, dtype="complex128", op="min"),
        "ERR_OP",
        "not for dtype 'complex128'; its operators are sum",
    ),
    "no type at all": (
        lambda c: c.allreduce("10", bytes=64, dtype="nothing"),
        "ERR_TYPE",
        "'nothing'",
    ),
    "unknown technique": (
        lambda c: c.alltoall("10", bytes=64, technique="magic"),
        "ERR_OPTION",
        "'magic'.*tile",
    ),
    "unknown ISA": (
        lambda c: c.alltoall("10", bytes=64, isa="neon"),
        "ERR_OPTION",
        "'neon'.*scalar",
    ),
    "unknown policy": (
        lambda c: c.alltoall("10", bytes=64, coherence=1),
        "ERR_OPTION",
        "coherence 1",
    ),
    "too many threads": (
        lambda c: c.alltoall("10", bytes=64, threads=1025),
        "ERR_OPTION",
        "1025.*1024",
    ),
    "negative threads": (
        lambda c: c.alltoall("10", bytes=64, threads=-1),
        "ERR_ARGUMENT",
        r"threads \(-1\)",
    ),
    "PE out of range": (lambda c: c.coords(64), "ERR_ARGUMENT", "PE 64 is out of range.*8x8.*64"),
    "location of no PE": (
        lambda c: c.location(64),
        "ERR_ARGUMENT",
        "PE 64 is out of range.*8x8.*64",
    ),
    "negative PE": (lambda c: c.group_of(-1, "10"), "ERR_ARGUMENT", r"pe \(-1\)"),
    "PE of 2**32": (lambda c: c.member_of(2**32, "10"), "ERR_ARGUMENT", "4294967296"),
    "limit past MRAM": (lambda c: c.stream_limit(64, 64, dst=MRAM), "ERR_WINDOW", "MRAM"),
}


@pytest.mark.parametrize("name", CASES)
def test_argument_error_names_the_rule_and_nothing_moves(
    cube: pidcomm.Hypercube, name: str
) -> None:
    call, status, message = CASES[name]
    windows = [(0, 4096), (MRAM - 4096, 4096)]
    rng = np.random.default_rng(1)
    images = [rng.integers(0, 256, (64, size), dtype=np.uint8) for _, size in windows]
    for image, (offset, _) in zip(images, windows, strict=True):
        cube.write(image, offset)
    with pytest.raises(ArgumentError, match=message) as caught:
        call(cube)
    assert caught.value.status == status
    assert isinstance(caught.value, ValueError)
    assert isinstance(caught.value, Error)
    for image, (offset, size) in zip(images, windows, strict=True):
        np.testing.assert_array_equal(cube.read(size, np.uint8, offset), image)


@pytest.mark.parametrize(
    ("lengths", "message"),
    [
        ((), "axis|axes"),
        ((0, 8), "length 0"),
        ((-8,), r"axis length \(-8\)"),
        ((2**32,), r"axis length \(4294967296\)"),
        ((2**31, 2**31, 2**31), "2147483648x2147483648x2147483648"),
        ((16, 16), "256|16x16"),
        ((8.0,), "must be an integer"),
        ((1,) * 17, "17"),
    ],
)
def test_shapes_that_the_set_cannot_form_are_errors(
    pes: pidcomm.PeSet, lengths: Any, message: str
) -> None:
    with pytest.raises(ArgumentError, match=message):
        pes.hypercube(*lengths)


@pytest.mark.parametrize(
    ("keywords", "kind", "message"),
    [
        ({"pes": 0}, ArgumentError, r"pes \(0\)"),
        ({"pes": -5}, ArgumentError, r"pes \(-5\)"),
        ({"pes": 2**32}, ArgumentError, "4294967296"),
        ({"pes": 8, "ranks": 1}, ArgumentError, "not both"),
        ({"ranks": 0}, ArgumentError, r"ranks \(0\)"),
        ({"pes": 8, "profile": "x"}, ArgumentError, "allocating 8 PEs"),
        ({"pes": 8, "profile": 8}, ArgumentError, "must be a str"),
        ({"pes": 100_000}, Error, "allocating 100000 PEs"),
        ({"ranks": 1000}, Error, "allocating 1000 ranks"),
    ],
)
def test_impossible_allocations_are_errors(keywords: Any, kind: type[Error], message: str) -> None:
    with pytest.raises(kind, match=message):
        pidcomm.allocate(**keywords)


def test_a_shortage_of_pes_is_no_argument_error() -> None:
    with pytest.raises(Error) as caught:
        pidcomm.allocate(pes=100_000)
    assert not isinstance(caught.value, ValueError)
    assert caught.value.status == "ERR_DEVICE"


def test_unknown_keywords_are_type_errors(cube: pidcomm.Hypercube) -> None:
    with pytest.raises(TypeError, match=r"'isas'.*technique, isa, threads, coherence"):
        cube.alltoall("10", bytes=64, isas="avx2")  # type: ignore[call-overload]


def test_every_status_has_an_error_class() -> None:
    from pidcomm.errors import make_error

    for status in pidcomm.STATUSES:
        error = make_error(status, "why")
        assert (error.status, str(error)) == (status, "why")
    assert isinstance(make_error("ERR_MEMORY", ""), MemoryError)
    assert not isinstance(make_error("ERR_DEVICE", ""), ValueError)


def test_an_error_after_another_has_its_own_message(cube: pidcomm.Hypercube) -> None:
    for size in (4, 12, 20):
        with pytest.raises(ArgumentError, match=rf"\({size}\)"):
            cube.allreduce("10", bytes=size, dtype="int8")


def test_the_library_prints_nothing(
    cube: pidcomm.Hypercube, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ArgumentError):
        cube.alltoall("10", bytes=1)
    cube.arrays.allreduce(np.ones((64, 2)), "10")
    assert capfd.readouterr() == ("", "")


def test_none_is_no_size_and_no_dtype(cube: pidcomm.Hypercube) -> None:
    nothing: Any = None
    with pytest.raises(pidcomm.ArgumentError, match="needs a buffer and an axis, or"):
        cube.alltoall("10", bytes=nothing, dst=1 << 20)
    with pytest.raises(pidcomm.ArgumentError, match="dtype is missing; use int8"):
        cube.allreduce("10", bytes=64, dtype=nothing)
    with pytest.raises(pidcomm.ArgumentError, match="the shape is empty"):
        cube.pe_set.hypercube()


def test_ctrl_c_while_an_error_is_made_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("pidcomm.errors.make_error", interrupt)
    with pytest.raises(KeyboardInterrupt):
        pidcomm.plan("alltoall", (8, 8), "10", bytes=3)


def test_errors_of_rows_name_the_call_of_the_user(cube: pidcomm.Hypercube) -> None:
    rule = r"{} of 3 elements of float32 moves 12 bytes per PE; .* a multiple of 8"
    with pytest.raises(pidcomm.ArgumentError, match=rule.format("read")):
        cube.read(3, "float32")
    with pytest.raises(pidcomm.ArgumentError, match=rule.format("write")):
        cube.write(np.zeros((cube.pes, 3), np.float32))
    with pytest.raises(TypeError, match="unexpected keyword argument 'wait'"):
        cube.read(4, "float32", wait=False)  # type: ignore[call-arg]
    too_many = cube.pe_set.pes + 1
    with pytest.raises(pidcomm.ArgumentError, match=f"needs {too_many} PEs; the set has") as error:
        cube.pe_set.hypercube(too_many)
    assert "chips" not in str(error.value)
