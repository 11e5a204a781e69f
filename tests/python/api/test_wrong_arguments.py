"""Arguments of wrong kinds raise `Error` or one of the built-in exceptions that Python programs expect."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from itertools import count
from typing import Any

import numpy as np
import pidcomm
import pytest
from pidcomm import model

PROGRAM = """
#include <mram.h>
__host unsigned count;
__mram_noinit unsigned words[64];
int main(void) { return count > 1 && words[count]; }
"""


class Hostile:
    """An object whose conversions fail."""

    def __index__(self) -> int:
        raise ValueError("no index")

    def __len__(self) -> int:
        raise ValueError("no length")

    def __repr__(self) -> str:
        return "<Hostile>"


ARRAY = np.zeros((64, 8), np.int32)
WRONG: dict[str, Any] = {
    "None": None,
    "object": object(),
    "hostile": Hostile(),
    "function": len,
    "class": int,
    "true": True,
    "text": "x",
    "no text": "",
    "number as text": "8",
    "null character": "a\0b",
    "surrogate": "\ud800",
    "bytes": b"x",
    "minus one": -1,
    "2^70": 2**70,
    "10^5000": 10**5000,
    "fraction": 1.5,
    "nan": float("nan"),
    "infinity": float("inf"),
    "complex": 1j,
    "list": [],
    "list of None": [None],
    "list of text": ["x"],
    "ragged list": [[1], [1, 2]],
    "list of rows": [[0] * 8] * 64,
    "tuple of 2^70": (2**70,),
    "nested list": [[[[]]]],
    "dict": {},
    "dict of None": {None: None},
    "set": {1},
    "matrix": ARRAY.view(np.matrix),
    "matrix of bytes": np.zeros((64, 64), np.uint8).view(np.matrix),
    "masked": np.ma.masked_array(ARRAY, mask=True),
    "float16": ARRAY.astype(np.float16),
    "objects": ARRAY.astype(object),
    "texts": ARRAY.astype("U1"),
    "dates": ARRAY.astype("M8[s]"),
    "records": np.zeros((64, 8), [("a", "i4")]),
    "other byte order": ARRAY.astype(">i4"),
    "0-d": np.array(1),
    "0-d object": np.array(None),
    "1-d": np.zeros(8, np.int32),
    "3-d": np.zeros((64, 8, 1), np.int32),
    "empty": np.zeros((64, 0), np.int32),
    "no rows": np.zeros((0, 8), np.int32),
    "not contiguous": np.zeros((64, 16), np.int32)[:, ::2],
    "fortran order": np.asfortranarray(ARRAY),
    "read-only": np.broadcast_to(np.int32(0), (64, 8)),
    "memory": memoryview(b"x" * 64),
    "NumPy scalar": np.float64(1),
    "dtype": np.dtype(object),
}
MOVED = {"mask": "10", "bytes": 64, "src": 0, "dst": 1024, "dtype": "int32"}
OPTIONS = {"technique": "tile", "isa": None, "threads": 1, "coherence": None, "scratch": 4096}
REQUEST = {"mask": "10", "bytes": 64, "dtype": "int32", "op": "sum"}
COLLECTIVES: dict[str, Mapping[str, Any]] = {
    "alltoall": MOVED,
    "reduce_scatter": {**MOVED, "op": "sum"},
    "allreduce": {**MOVED, "op": "sum", "wait": False, **OPTIONS},
    "allgather": MOVED,
    "scatter": {"mask": "10", "host": np.zeros((8, 64), np.int32), "dst": 0},
    "gather": {"mask": "10", "bytes": 64, "src": 0, "dtype": "int32", "out": None},
    "reduce": {"mask": "10", "bytes": 64, "src": 0, "dtype": "int32", "op": "sum", "out": None},
    "broadcast": {"mask": "10", "host": np.zeros((8, 16), np.int32), "dst": 0},
}
ROWS = {**dict.fromkeys(("scatter", "broadcast"), np.zeros((8, 64), np.int32))}
CUBE: dict[str, Mapping[str, Any]] = {
    **COLLECTIVES,
    "location": {"pe": 0},
    "coords": {"pe": 0},
    "group_of": {"pe": 0, "mask": "10"},
    "member_of": {"pe": 0, "mask": "10"},
    "groups": {"mask": "10"},
    "write": {"x": ARRAY, "offset": 0, **OPTIONS},
    "read": {"count": 8, "dtype": "int32", "offset": 0, "out": None},
    "plan": {"collective": "alltoall", **MOVED, "op": None, "expand": True, **OPTIONS},
    "validate": {"collective": "allreduce", **MOVED, "op": "sum", **OPTIONS},
    "stream_limit": {"bytes_read": 64, "bytes_written": 64, "src": 0, "dst": 1024, "copy_order": "plain", **OPTIONS},
    "push_xfer": {"rows": np.zeros((64, 64), np.uint8), "offset": 0, "to_pes": True},
    "carry_out": {"name": "reduce", **MOVED, "op": "sum", "host": None, "out": None, "options": {}},
}
ARRAYS: dict[str, Mapping[str, Any]] = {
    name: {"x": ROWS.get(name, np.zeros((64, 64), np.int32)), "mask": "10", "base_offset": 0, "out": None}
    | ({"op": "sum"} if row.takes_op else {})
    for name, row in pidcomm.COLLECTIVES.items()
}
SET: dict[str, Mapping[str, Any]] = {
    "load": {"program": PROGRAM, "tasklets": 1, "stack_bytes": 1024, "options": ()},
    "symbol": {"name": "count"},
    "log": {"pe": 0},
    "launch": {"wait": True},
}
SYMBOL: dict[str, Mapping[str, Any]] = {
    "write": {"values": np.zeros(4, np.uint32), "offset": 0, "dtype": None},
    "read": {"dtype": "uint32", "count": 4, "offset": 0},
}
ON_SHAPE = {"collective": "allreduce", "shape": (8, 8), **REQUEST}
FUNCTIONS: dict[str, tuple[Callable[..., Any], Mapping[str, Any]]] = {
    "plan": (pidcomm.plan, {**ON_SHAPE, "src": 0, "dst": 1024, "expand": True, **OPTIONS}),
    "predict": (model.predict, {**ON_SHAPE, "src": 0, "dst": 1024, "machine": "isca24", **OPTIONS}),
    "compare": (model.compare, {**ON_SHAPE, "machine": "isca24", "technique": "tile"}),
    "influences": (model.influences, {**ON_SHAPE, "machine": "isca24"}),
    "predict_hosts": (model.predict_hosts, {**ON_SHAPE, "hosts": 2, "machine": "isca24"}),
    "predict_links": (
        model.predict_links,
        {**ON_SHAPE, "machine": "upmem-2560+links", "is_fed_by_pes": True},
    ),
    "advise": (
        model.advise,
        {"collective": "allreduce", "pes": 8, "group": 4, "bytes": 64, "dtype": "int32", "op": "sum", "top": 1}
        | {"machine": "isca24"},
    ),
    "use_machine": (model.use_machine, {"machine": "isca24"}),
    "load_machine": (model.load_machine, {"name": "isca24"}),
    "with_values": (
        model.load_machine("isca24").with_values,
        {"values": {"bus.read_gb_s": 1.0}, "source": "assumed: x"},
    ),
}


def wrong_calls(call: Callable[..., Any], right: Mapping[str, Any]) -> list[str]:
    """Call with each argument replaced by each wrong value; return the calls that raise an undocumented exception."""
    found = []
    for name in right:
        for kind, value in WRONG.items():
            try:
                result = call(**{**right, name: value})
                if isinstance(result, pidcomm.Request):
                    result.wait()
            except pidcomm.Error:
                pass
            except Exception as error:
                # As for every Python function, an unknown keyword is a TypeError.
                if not isinstance(error, TypeError) or "unexpected keyword argument" not in str(error):
                    found.append(f"{name}={kind}: {type(error).__name__}: {str(error)[:100]}")
    return found


@pytest.mark.parametrize("name", CUBE)
def test_a_hypercube_refuses_wrong_arguments(cube: pidcomm.Hypercube, name: str) -> None:
    getattr(cube, name)(**{name: value for name, value in CUBE[name].items() if name != "wait"})
    assert wrong_calls(getattr(cube, name), CUBE[name]) == []


@pytest.mark.parametrize("name", ARRAYS)
def test_array_collectives_refuse_wrong_arguments(cube: pidcomm.Hypercube, name: str) -> None:
    getattr(cube.arrays, name)(**ARRAYS[name])
    assert wrong_calls(getattr(cube.arrays, name), ARRAYS[name]) == []


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_refuse_wrong_arguments(name: str) -> None:
    call, right = FUNCTIONS[name]
    call(**right)
    try:
        assert wrong_calls(call, right) == []
    finally:
        model.use_machine(None)


@pytest.mark.parametrize("name", SET)
def test_a_set_refuses_wrong_arguments(pes: pidcomm.PeSet, name: str) -> None:
    pes.load(PROGRAM)
    getattr(pes, name)(**SET[name])
    assert wrong_calls(getattr(pes, name), SET[name]) == []


@pytest.mark.parametrize("variable", ["count", "words"])
@pytest.mark.parametrize("name", SYMBOL)
def test_a_symbol_refuses_wrong_arguments(pes: pidcomm.PeSet, name: str, variable: str) -> None:
    pes.load(PROGRAM)
    assert wrong_calls(getattr(pes.symbol(variable), name), SYMBOL[name]) == []


def test_shapes_and_allocations_refuse_wrong_arguments(pes: pidcomm.PeSet) -> None:
    def allocate(**arguments: Any) -> None:
        pidcomm.allocate(**arguments).free()

    assert wrong_calls(lambda length: pes.hypercube(length), {"length": 8}) == []
    assert wrong_calls(lambda length: pes.hypercube(8, length), {"length": 8}) == []
    with pytest.raises(pidcomm.ArgumentError, match="at most 64 axis lengths"):
        pidcomm.plan("alltoall", count(1), "1", bytes=64)  # type: ignore[arg-type]
    assert wrong_calls(allocate, {"pes": 8}) == []
    assert wrong_calls(allocate, {"ranks": 1, "profile": None}) == []


def test_every_public_method_is_in_the_tables() -> None:
    ended = {
        "free",
        "wait",
        "logs",
        "hypercube",
        "connect",
    }  # without arguments, tested above, or only for pidcomm.hosts
    for kind, table in ((pidcomm.Hypercube, CUBE), (pidcomm.ArrayCollectives, ARRAYS), (pidcomm.PeSet, SET)):
        methods = {name for name, it in inspect.getmembers(kind, inspect.isfunction) if not name.startswith("_")}
        assert methods - ended == set(table)
    named = {name for name in model.__all__ if inspect.isfunction(getattr(model, name))} | {"plan"}
    assert named - {"machine_names"} <= set(FUNCTIONS)
