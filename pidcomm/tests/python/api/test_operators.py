"""Operators beside those of the table, and scans. Random cases are in movement_cases.py."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import pidcomm

ADD = "static element combine(element a, element b) { return a + b; }"


@pytest.fixture
def cube() -> Iterator[Any]:
    """Return a hypercube of 8 x 2 PEs."""
    with pidcomm.allocate(pes=16) as pes:
        yield pes.hypercube(8, 2)


def test_averages_of_16_bit_floats_round_once(cube: Any) -> None:
    """Float32 has the sums of 256 and ones. Bfloat16 rounds them to 256."""
    rows = np.ones((16, 4), ml_dtypes.bfloat16)
    rows[0] = rows[8] = 256
    x = cube.array(rows)
    assert (cube.scan(x, "x").get()[7] == 256).all()
    assert (cube.allreduce(x, "x", op="avg").get() == ml_dtypes.bfloat16(263 / 8)).all()
    assert (cube.scan(x, "x", op=pidcomm.ScaledSum(2)).get()[7] == 528).all()


@pytest.mark.parametrize(
    ("op", "identity"),
    [("sum", 0), ("prod", 1), ("min", np.inf), ("max", -np.inf), ("avg", 0)],
)
def test_an_exscan_gives_member_0_the_identity(cube: Any, op: Any, identity: float) -> None:
    """Member 0 has the identity of each operator."""
    y = cube.exscan(cube.array(np.full((16, 2), 3, np.float32)), "x", op=op)
    assert (y[:2].get()[[0, 8]] == identity).all()
    assert (y.get()[1] == 3).all()


def test_operators_of_other_elements(cube: Any) -> None:
    """C operators take numbers, booleans, complex numbers, and structs with padding and arrays."""
    struct = np.dtype([("flag", "u1"), ("sums", "f8", (2,))], align=True)
    rows: Any
    for dtype, source in (
        ("float32", ADD),
        ("float16", ADD),
        ("complex64", "static element combine(element a, element b) { return a * b; }"),
        ("bool", "static element combine(element a, element b) { return a && b; }"),
        (
            struct,
            "static element combine(element a, element b) {"
            " a.flag |= b.flag; a.sums[0] += b.sums[0]; a.sums[1] *= b.sums[1]; return a; }",
        ),
    ):
        rows = np.ones((16, 16), dtype)
        if dtype is struct:
            rows["sums"][:, :, 1] = 2
        y = cube.allreduce(cube.array(rows), "x", op=pidcomm.Operator(source, dtype)).get()
        if dtype is struct:
            assert (y["flag"] == 1).all()
            assert (y["sums"] == (8, 256)).all()
        else:
            assert (y == (8 if dtype in ("float16", "float32") else 1)).all()


def test_operators_report_what_is_wrong(cube: Any) -> None:
    """Wrong sources, dtypes and identities are reported before any byte moves."""
    with pytest.raises(pidcomm.ArgumentError, match=r"operator:1.*error"):
        pidcomm.Operator("static element combine(element a, element b) { return c; }", "f4")
    for dtype in ("float128", "bfloat16"):
        with pytest.raises(pidcomm.ArgumentError, match=f"{dtype} has no type in C"):
            pidcomm.Operator(ADD, dtype)
    with pytest.raises(pidcomm.ArgumentError, match="combine"):
        pidcomm.Operator("element combine(element a, element b);", "f4")
    with pytest.raises(pidcomm.ArgumentError, match="field 'a b'"):
        pidcomm.Operator(ADD, np.dtype([("a b", "i4")]))
    with pytest.raises(pidcomm.ArgumentError, match="must be an element of float32"):
        pidcomm.Operator(ADD, "f4", identity=[1, 2])
    with pytest.raises(pidcomm.ArgumentError, match="factor"):
        pidcomm.ScaledSum(float("nan"))
    x = cube.array(np.ones((16, 2), np.int64))
    add = pidcomm.Operator(ADD, "f4")
    with pytest.raises(pidcomm.ArgumentError, match="not for elements of int64"):
        cube.allreduce(x, "x", op=add)
    with pytest.raises(pidcomm.ArgumentError, match="scaled_sum is for floats, not for int64"):
        cube.allreduce(x, "x", op=pidcomm.ScaledSum(2))
    with pytest.raises(pidcomm.ArgumentError, match="it needs a value and an index"):
        cube.allreduce(x, "x", op="argmax")
    with pytest.raises(pidcomm.ArgumentError, match="avg is not for dtype 'complex64'"):
        cube.allreduce(cube.array(np.ones((16, 2), np.complex64)), "x", op="avg")
    y = cube.array(np.ones((16, 2), np.float32))
    with pytest.raises(pidcomm.ArgumentError, match="identity is null"):
        cube.exscan(y, "x", op=add)
    with pytest.raises(pidcomm.ArgumentError, match="use tile or conventional"):
        cube.allreduce(y, "x", op="avg", technique="ring")


def test_functions_change_the_results_of_the_operators_of_the_library(cube: Any) -> None:
    """Operators with op reduce as op does, then call store once for each result."""
    relu = pidcomm.Operator(
        "static element store(element sum, size_t members) {"
        " return sum < 0 ? 0 : sum + (element)members; }",
        "int32",
        op="sum",
    )
    rows = np.random.default_rng(3).integers(-100, 100, (16, 40), np.int32)
    sums = rows.reshape(2, 8, 40).sum(1)
    want = np.where(sums < 0, 0, sums + 8)
    x = cube.array(rows)
    for technique in ("tile", "conventional"):
        assert (cube.allreduce(x, "x", op=relu, technique=technique).get()[3] == want[0]).all()
        assert (cube.reduce(x, "x", op=relu, technique=technique) == want).all()
    flipped = pidcomm.Operator(
        "static element store(element bits, size_t members) { (void)members; return ~bits; }",
        "uint8",
        op="xor",
    )
    rows = rows.astype(np.uint8)
    want = ~np.bitwise_xor.reduce(rows.reshape(2, 8, 40), 1)
    assert (cube.reduce(cube.array(rows), "x", op=flipped) == want).all()
    with pytest.raises(pidcomm.ArgumentError, match="operator 'mean' is unknown"):
        pidcomm.Operator(ADD, "f4", op="mean")  # type: ignore[arg-type]
    with pytest.raises(pidcomm.ArgumentError, match="is not for elements of int32"):
        cube.allreduce(x, "x", op=flipped)
    with pytest.raises(pidcomm.ArgumentError, match="complex64"):
        pidcomm.Operator(ADD, "complex64", op="sum")
    with pytest.raises(pidcomm.ArgumentError, match="store"):
        pidcomm.Operator(ADD, "f4", op="sum")  # it defines combine


def test_windows_and_plans_know_operators(cube: Any) -> None:
    """Byte windows take operators; plans name the path of scans and operators."""
    cube.write(np.arange(32, dtype=np.int64).reshape(16, 2))
    cube.allreduce("x", bytes=16, dst=64, dtype="int64", op="avg")
    assert (cube.read(2, "int64", 64)[:8] == (7, 8)).all()  # 7 and 8
    assert cube.plan("scan", "x", bytes=16, dtype="int64")["path"] == "fold"
    plan = cube.plan("allreduce", "x", bytes=16, dtype="float32", op="avg")
    assert (plan["path"], plan["op"], plan["store"]) == ("tile", "sum", "operation")
    cube.validate("exscan", "y", bytes=16, dst=64, dtype="int32", op="max")
