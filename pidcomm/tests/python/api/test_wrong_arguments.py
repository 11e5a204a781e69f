"""Arguments of wrong kinds raise `Error` or one of the built-in exceptions that Python programs
expect.
"""

from __future__ import annotations

import inspect
import json
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from wrong_arguments import ARRAY, wrong_calls

import pidcomm
from pidcomm import hosts, model, pool
from pidcomm.bench import osu, platform
from pidcomm.bench.check import make_case
from pidcomm.bench.over_hosts import _Alone

PROGRAM = """
#include <mram.h>
__host unsigned count, part[2];
__mram_noinit unsigned words[64];
int main(void) { return count > 1 && words[count] && part[0]; }
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
LOAD = {"program": PROGRAM, "tasklets": 1, "stack_bytes": 1024, "options": ()}
CUBE: dict[str, Mapping[str, Any]] = {
    **{
        name: {"axis" if key == "mask" else key: value for key, value in row.items()}
        for name, row in COLLECTIVES.items()
    },
    "empty": {"shape": (2, 4), "dtype": "int32", "name": None},
    "array": {"x": ARRAY, "dtype": None, "name": "x"},
    "load": LOAD,
    "location": {"pe": 0},
    "coords": {"pe": 0},
    "group_of": {"pe": 0, "mask": "10"},
    "member_of": {"pe": 0, "mask": "10"},
    "groups": {"mask": "10"},
    "mask_of": {"axis": "x"},
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
    "load": LOAD,
    "symbol": {"name": "count"},
    "log": {"pe": 0},
    "launch": {"wait": True},
    "buffer": {"name": "b", "shape": 8, "dtype": "int32"},
}
BUFFER: dict[str, Mapping[str, Any]] = {
    "at": {"pe": 0},
    "get": {"out": None},
    "grid": {},
    "reshape": {"shape": (2, 4)},
    "set": {"values": np.zeros(8, np.int32)},
}
STREAM: dict[str, Mapping[str, Any]] = {
    "launch": {"reads": [], "writes": (), "whole": (), "parts": 1, "part": "part"},
    "write": {"name": "count", "values": np.uint32(1), "dtype": None},
    "call": {"function": dict, "reads": [ARRAY], "writes": ()},
}
SYMBOL: dict[str, Mapping[str, Any]] = {
    "write": {"values": np.zeros(4, np.uint32), "offset": 0, "dtype": None},
    "read": {"dtype": "uint32", "count": 4, "offset": 0},
}
ON_SHAPE = {"collective": "allreduce", "shape": (8, 8), **REQUEST}
OSU = {"collective": "allreduce", "transport": "pool", "hosts": 2, "ppn": 1, "sizes": (8, 16)}
OSU |= {"pes": 0, "link_gb_s": 1.0, "link_latency_us": 0, "iters": 1}
FUNCTIONS: dict[str, tuple[Callable[..., Any], Mapping[str, Any]]] = {
    "OsuCase": (lambda **fields: json.dumps(asdict(osu.OsuCase(**fields))), OSU),
    "osu.measure": (osu.measure, {"cases": []}),
    "make_case": (make_case, {"seed": 1, "number": 2}),
    "host_bytes": (platform.host_bytes, {"mram_bytes": 64}),
    "run_program": (platform.run_program, {"words": ["true"]}),
    "plan": (pidcomm.plan, {**ON_SHAPE, "src": 0, "dst": 1024, "expand": True, **OPTIONS}),
    "predict": (model.predict, {**ON_SHAPE, "src": 0, "dst": 1024, "machine": "isca24", **OPTIONS}),
    "predict_hosts": (model.predict_hosts, {**ON_SHAPE, "hosts": 2, "machine": "isca24"}),
    "hosts.plan": (
        hosts.plan,
        {
            **ON_SHAPE,
            "shape": (8, 4, 2),
            "mask": "111",
            "host": 0,
            "root": 0,
            "overlap": "auto",
            "link": 1.0,
            "transport": "mpi",
            **OPTIONS,
        },
    ),
    "use_machine": (model.use_machine, {"machine": "isca24"}),
    "load_machine": (model.load_machine, {"name": "isca24"}),
    "with_values": (
        model.load_machine("isca24").with_values,
        {"values": {"bus.read_gb_s": 1.0}, "source": "assumed: x"},
    ),
}


@pytest.mark.parametrize("name", [name for name in CUBE if name != "load"])
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
    if name == "load":
        assert wrong_calls(pes.hypercube(64).load, CUBE[name]) == []


def test_a_stream_refuses_wrong_arguments(pes: pidcomm.PeSet) -> None:
    pes.load(PROGRAM)

    def make(**arguments: Any) -> None:
        with pes.stream(**arguments):
            pass

    assert wrong_calls(make, {"rank_groups": 2, "parts": 4}) == []
    with suppress(TypeError), pes.stream() as stream:  # the end of the block calls len()
        for name, right in STREAM.items():
            getattr(stream, name)(**right)
            assert wrong_calls(getattr(stream, name), right) == []


@pytest.mark.parametrize("variable", ["count", "words"])
@pytest.mark.parametrize("name", SYMBOL)
def test_a_symbol_refuses_wrong_arguments(pes: pidcomm.PeSet, name: str, variable: str) -> None:
    pes.load(PROGRAM)
    assert wrong_calls(getattr(pes.symbol(variable), name), SYMBOL[name]) == []


@pytest.mark.parametrize("name", BUFFER)
def test_a_buffer_refuses_wrong_arguments(cube: pidcomm.Hypercube, name: str) -> None:
    buffer = cube.empty(8, "int32")
    call = getattr(buffer, name)
    right = BUFFER[name]
    assert wrong_calls((lambda shape: call(shape)) if name == "reshape" else call, right) == []
    assert wrong_calls(lambda index: buffer[index], {"index": 0}) == []


@pytest.mark.parametrize("name", COLLECTIVES)
def test_collectives_on_buffers_refuse_wrong_arguments(cube: pidcomm.Hypercube, name: str) -> None:
    row = pidcomm.COLLECTIVES[name]
    x: Any = cube.empty((8, 8), "int32")
    if not row.at_pes_before:
        x = np.zeros((8, 8, 8), np.int32)
    right = {"x": x, "axis": "10", "out": None} | ({"op": "sum"} if row.takes_op else {})
    getattr(cube, name)(**right)
    assert wrong_calls(getattr(cube, name), right) == []


def test_shapes_and_allocations_refuse_wrong_arguments(pes: pidcomm.PeSet) -> None:
    def allocate(**arguments: Any) -> None:
        pidcomm.allocate(**arguments).free()

    assert wrong_calls(lambda length: pes.hypercube(length), {"length": 8}) == []
    assert wrong_calls(lambda length: pes.hypercube(8, length), {"length": 8}) == []
    assert wrong_calls(pes.hypercube, {"x": 8, "first": 64}) == []
    with pytest.raises(pidcomm.ArgumentError, match="at most 64 axis lengths"):
        pidcomm.plan("alltoall", count(1), "1", bytes=64)  # type: ignore[arg-type]
    assert wrong_calls(allocate, {"pes": 8}) == []
    assert wrong_calls(allocate, {"ranks": 1, "profile": None}) == []


MOVEMENTS: dict[str, Mapping[str, Any]] = {
    "sendrecv": {"messages": [(0, 1)], "src": 0, "dst": 1024, "bytes": 64},
    "shift": {"axis": "x", "by": 1, "cyclic": False, "fill": 1, "out": None},
    "permute": {"axis": "x", "sources": list(range(8)), "out": None},
    "halo": {"axes": {"x": 0}, "width": 1, "cyclic": True, "corners": False},
    "alltoallv": {"axis": "x", "counts": np.ones((8, 8), int), "sdispls": None, "rdispls": None},
    "allgatherv": {"axis": "x", "counts": np.ones(8, int), "rdispls": None, "out": None},
    "reduce_scatterv": {"axis": "x", "counts": np.ones(8, int), "op": "sum", "sdispls": None},
    "gatherv": {"axis": "x", "counts": np.ones(8, int)},
    "scatterv": {"x": np.zeros((8, 8)), "axis": "x", "counts": np.ones(8, int)},
    "scan": {"axis": "x", "op": "sum", "out": None},
    "exscan": {"axis": "x", "op": "sum", "out": None},
}


@pytest.mark.parametrize("name", MOVEMENTS)
def test_movements_refuse_wrong_arguments(name: str) -> None:
    with pidcomm.allocate(pes=64) as pes:
        cube = pes.hypercube(8, 8)
        right = {**MOVEMENTS[name], **OPTIONS}
        if name not in ("sendrecv", "scatterv"):
            right["x"] = cube.array(np.zeros((64, 64, 2), np.int32))
        getattr(cube, name)(**right)
        assert wrong_calls(getattr(cube, name), right) == []


SETTINGS: dict[str, Any] = {"hosts": 1, "bytes": 1 << 20, "coherence": "none", "timeout": 0.01}
POOL: dict[str, Mapping[str, Any]] = {
    "allocate": {"bytes": 128},
    "write": {"offset": 4096, "x": ARRAY[:1]},
    "read": {"offset": 4096, "count": 8, "dtype": "int32", "out": None},
    "view": {"offset": 4096, "count": 8, "dtype": "int32"},
    "allgather": {"offset": 4096, "area_bytes": 128, "x": ARRAY[:1], "out": None},
    "reduce": {"offset": 4096, "rows": 1, "count": 8, "dtype": "int32", "op": "sum"},
}
OVER_HOSTS = ("hosts.connect", "pool.open_over", "pool.run_switch")


class OneProcess:
    """A communicator of one process."""

    rank, size = 0, 1

    def Idup(self) -> None:
        raise pidcomm.Error("this communicator has no duplicate")

    def bcast(self, name: str) -> str:
        return name


def test_pools_refuse_wrong_arguments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def open_pool(**settings: Any) -> None:
        pool.Pool(**settings).close()

    monkeypatch.chdir(tmp_path)
    page = np.zeros(2 * SETTINGS["bytes"], np.uint8)
    address = -(-page.ctypes.data // 4096) * 4096
    settings = {"host": 0, **SETTINGS}
    for memory in ({"name": f"wrong{os.getpid()}"}, {"path": "file"}, {"address": address}):
        open_pool(**settings, **memory)
        assert wrong_calls(open_pool, {**settings, **memory}) == []
    with pytest.raises(pidcomm.ArgumentError, match=r"switch .* must be True or False"):
        open_pool(name="wrong", switch=np.zeros(2), **settings)
    run = {"name": "wrong", "path": None, **SETTINGS}
    assert wrong_calls(pool.run_switch, run) == []
    over = {"comm": OneProcess(), "bytes": 1 << 20, "timeout": 1.0}
    assert wrong_calls(lambda **arguments: pool.open_over(**arguments).close(), over) == []
    with pool.Pool(f"wrong{os.getpid()}", host=0, hosts=1, bytes=1 << 20, switch=True) as opened:
        opened.allocate(4096)
        for name, right in POOL.items():
            getattr(opened, name)(**right)
            assert wrong_calls(getattr(opened, name), right) == []
        with pytest.raises(pidcomm.ArgumentError, match="must be between 0 and 1048576"):
            opened.read(4096, 2**61, "int64")


def test_connections_between_hosts_refuse_wrong_arguments(cube: pidcomm.Hypercube) -> None:
    def connect(**arguments: Any) -> None:
        hosts.connect(**arguments).close()

    right = {"local": cube, "comm": _Alone(2), "timeout": 1.0, "overlap": "auto", "link": 1.0}
    connect(**right)
    assert wrong_calls(connect, right) == []
    over = {"local": cube, "comm": OneProcess(), "transport": "pool", "pool_bytes": 1 << 20}
    connect(**over)
    assert wrong_calls(connect, over) == []
    assert wrong_calls(hosts.MpiTransport, {"comm": None}) == []


@pytest.mark.parametrize(
    "name", [*COLLECTIVES, "groups", "has_rows", "mask_of", "plan", "validate"]
)
def test_a_cube_over_hosts_refuses_wrong_arguments(cube: pidcomm.Hypercube, name: str) -> None:
    row: Mapping[str, Any] = {"has_rows": {"mask": "10"}, **CUBE, **COLLECTIVES}[name]
    right = {key: row[key] for key in row if key not in ("expand", "host", "wait")}
    right.update({key: "101" for key in right if key == "mask"})
    if name not in (
        "groups",
        "mask_of",
        *(each for each in COLLECTIVES if "all" in each),
        "reduce_scatter",
    ):
        right["root"] = 1
    for number in (1, 2):
        with hosts.connect(cube, _Alone(number), timeout=0.1) as over_hosts:
            assert wrong_calls(getattr(over_hosts, name), right) == []
            if name in COLLECTIVES:
                arguments = {**ARRAYS[name], **{key: 1 for key in right if key == "root"}}
                call = getattr(over_hosts.arrays, name)
                assert wrong_calls(call, {**arguments, "mask": "101"}) == []


def test_every_public_method_is_in_the_tables() -> None:
    ended = {
        "free",
        "wait",
        "logs",
        "hypercube",
        "fill_variables",
        "connect",
        "batch",
        "prepare",
        "stream",
        "run",
        "timeline",
        "explain",
    }  # without arguments, tested above or in test_batches.py, or only for pidcomm.hosts
    for kind, table in (
        (pidcomm.Hypercube, CUBE),
        (pidcomm.ArrayCollectives, ARRAYS),
        (pidcomm.PeSet, SET),
        (pidcomm.Buffer, BUFFER),
        (pidcomm.Stream, STREAM),
    ):
        methods = {
            name
            for name, _ in inspect.getmembers(kind, inspect.isfunction)
            if not name.startswith("_")
        }
        assert methods - ended - set(MOVEMENTS) == set(table)
    for module in (hosts, pool):
        functions = {name for name in module.__all__ if inspect.isroutine(getattr(module, name))}
        assert functions == {
            name.rpartition(".")[2]
            for name in (*FUNCTIONS, *OVER_HOSTS)
            if name.startswith(f"{module.__name__.rpartition('.')[2]}.")
        }
    methods = {name for name, _ in inspect.getmembers(pool.Pool, inspect.isfunction)}
    assert {name for name in methods if name[0] != "_"} - {"sync", "close"} == set(POOL)
    named = {name for name in model.__all__ if inspect.isfunction(getattr(model, name))} | {"plan"}
    assert named - {"machine_names"} <= set(FUNCTIONS)
