"""Arguments of wrong kinds raise `Error` or one of the built-in exceptions that Python programs
expect.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from itertools import count
from typing import Any

import numpy as np
import pytest
from wrong_arguments import ARRAY, wrong_calls

import pidcomm
from pidcomm import model

PROGRAM = """
#include <mram.h>
__host unsigned count;
__mram_noinit unsigned words[64];
int main(void) { return count > 1 && words[count]; }
"""


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
    "stream_limit": {
        "bytes_read": 64,
        "bytes_written": 64,
        "src": 0,
        "dst": 1024,
        "copy_order": "plain",
        **OPTIONS,
    },
    "push_xfer": {"rows": np.zeros((64, 64), np.uint8), "offset": 0, "to_pes": True},
    "carry_out": {"name": "reduce", **MOVED, "op": "sum", "host": None, "out": None, "options": {}},
}
ARRAYS: dict[str, Mapping[str, Any]] = {
    name: {
        "x": ROWS.get(name, np.zeros((64, 64), np.int32)),
        "mask": "10",
        "base_offset": 0,
        "out": None,
    }
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
    "predict_hosts": (model.predict_hosts, {**ON_SHAPE, "hosts": 2, "machine": "isca24"}),
    "use_machine": (model.use_machine, {"machine": "isca24"}),
    "load_machine": (model.load_machine, {"name": "isca24"}),
    "with_values": (
        model.load_machine("isca24").with_values,
        {"values": {"bus.read_gb_s": 1.0}, "source": "assumed: x"},
    ),
}


@pytest.mark.parametrize("name", CUBE)
def test_a_hypercube_refuses_wrong_arguments(cube: pidcomm.Hypercube, name: str) -> None:
    getattr(cube, name)(**{name: value for name, value in CUBE[name].items() if name != "wait"})
    assert wrong_calls(getattr(cube, name), CUBE[name]) == []


def test_push_xfer_refuses_incomplete_words(cube: pidcomm.Hypercube) -> None:
    for offset, row_bytes in ((4, 8), (0, 12)):
        with pytest.raises(pidcomm.ArgumentError, match=f"{row_bytes} bytes must be multiples of"):
            cube.push_xfer(np.zeros((64, row_bytes), np.uint8), offset, to_pes=True)


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
    for kind, table in (
        (pidcomm.Hypercube, CUBE),
        (pidcomm.ArrayCollectives, ARRAYS),
        (pidcomm.PeSet, SET),
    ):
        methods = {
            name
            for name, _ in inspect.getmembers(kind, inspect.isfunction)
            if not name.startswith("_")
        }
        assert methods - ended == set(table)
    named = {name for name in model.__all__ if inspect.isfunction(getattr(model, name))} | {"plan"}
    assert named - {"machine_names"} <= set(FUNCTIONS)
