"""The recorder: which calls it shows, where the program has called, and calls that hang."""

from __future__ import annotations

import inspect
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pidcomm


def here() -> int:
    """Return the line of the caller."""
    frame = inspect.currentframe()
    assert frame is not None
    assert frame.f_back is not None
    return frame.f_back.f_lineno


def last() -> pidcomm.Record:
    return pidcomm.recorder()[-1]


@pytest.fixture
def own() -> Any:
    """A hypercube that is newer than all others, so that its records are the last ones."""
    with pidcomm.allocate(pes=64) as pes:
        yield pes.hypercube(8, 8)


def test_a_record_has_the_arguments_the_trace_and_the_line_of_the_call(
    own: pidcomm.Hypercube,
) -> None:
    trace, line = own.allreduce("01", bytes=96, dst=96, dtype="float32", op="max"), here()
    record = last()
    assert (record.shape, record.call, record.state, record.status) == ("8x8", 1, "done", "OK")
    assert (record.collective, record.mask, record.bytes) == ("allreduce", "01", 96)
    assert (record.dtype, record.op, record.requests) == ("float32", "max", 1)
    assert (record.file, record.line) == (__file__, line)
    assert record.trace is not None
    assert record.trace.technique == trace.technique
    assert record.trace.seconds_pass == pytest.approx(trace.seconds_pass, rel=1e-6)
    assert record.elapsed_s == pytest.approx(trace.seconds_total, rel=1e-6)
    assert str(record).endswith(f", {__file__}:{line}")
    assert "(8x8), call 1: allreduce 01, 96 bytes of float32, max: done, " in str(record)


def calls_of(pes: Any, cube: pidcomm.Hypercube) -> dict[str, Callable[[], Any]]:
    x, out = cube.array(np.ones((64, 16), np.int32)), cube.empty(16, "int32")
    prepared = cube.prepare("allreduce", x, "10", op="sum", out=out)
    rows = np.ones((64, 16), np.int32)

    def batch() -> None:
        with cube.batch():
            cube.shift(x, "10", 1, out=out)

    def stream() -> None:
        with pes.stream():
            cube.shift(x, "10", 1, out=out)

    def launching_stream() -> None:
        with pes.stream() as steps:
            cube.shift(x, "10", 1, out=out)
            steps.launch()

    return {
        "buffers": lambda: cube.allreduce(x, "10", op="sum", out=out),
        "arrays": lambda: cube.arrays.allreduce(rows, "10"),
        "read": lambda: cube.read(16, np.int32),
        "get": lambda: out.get(),
        "prepared": lambda: prepared.run(),
        "no wait": lambda: cube.alltoall("10", bytes=64, dst=64, wait=False).wait(),
        "shift": lambda: cube.shift(x, "10", 1, out=out),
        "scan": lambda: cube.scan(x, "10", op="sum", out=out),
        "batch": batch,
        "stream": stream,
        "launching stream": launching_stream,
    }


def test_the_line_is_that_of_the_innermost_caller_outside_of_the_package(
    own: pidcomm.Hypercube,
) -> None:
    own.load("int main(void) { return 0; }")
    for name, call in calls_of(own.pe_set, own).items():
        for _ in range(2):  # the second call is in caches
            call()
            line = call.__code__.co_firstlineno + (call.__name__ != "<lambda>")  # of the block
            assert (last().file, last().line) == (__file__, line), name


def test_failed_calls_have_the_error(own: pidcomm.Hypercube) -> None:
    with pytest.raises(pidcomm.Error) as caught:
        own.alltoall("10", bytes=100)
    assert (last().state, last().status) == ("failed", "ERR_SIZE")
    assert last().sentence == str(caught.value)
    assert last().trace is None


def test_more_calls_than_records_keep_the_last_ones(own: pidcomm.Hypercube) -> None:
    for _ in range(100):
        own.alltoall("10", bytes=64, dst=64)
    records = [record for record in pidcomm.recorder() if record.hypercube == last().hypercube]
    assert [record.call for record in records] == list(range(37, 101))
    assert str(records[0]) in str(pidcomm.recorder())


# The PE computes until the limit of CPU time ends the program: no test waits for ever.
HANG = """
import resource, signal, sys
import pidcomm

resource.setrlimit(resource.RLIMIT_CPU, (60, 60))
if "own" in sys.argv: pidcomm.recorder(wait_s=0.01, signal=signal.SIGUSR1)
pes = pidcomm.allocate(pes=64)
cube = pes.hypercube(8, 8)
pes.load("int main(void) { volatile int runs = 1; while (runs); return 0; }")
pes.launch(wait=False)
cube.allreduce("10", bytes=64, dst=64, dtype="int32", op="sum")
"""


@pytest.mark.parametrize("by", ["own", "environment"])
def test_a_collective_that_waits_for_a_pe_that_never_ends_is_found(by: str) -> None:
    found = "call 1: allreduce 10, 64 bytes of int32, sum: waits for PEs, "
    variables = {"PIDCOMM_RECORDER": "signal,wait=0.01"} if by == "environment" else {}
    program = subprocess.Popen(
        [sys.executable, "-c", HANG, by],
        stderr=subprocess.PIPE,
        text=True,
        bufsize=1,
        env={**os.environ, **variables},
    )
    try:
        assert program.stderr is not None
        lines = [program.stderr.readline() for _ in range(4)]
        assert lines[0] == "pidcomm: a call has not ended after 10.000 ms:\n"
        assert found in lines[1]
        assert lines[1].endswith(", <string>:11\n")
        assert lines[2] == "pidcomm: the last calls:\n"
        program.send_signal(signal.SIGUSR1)
        assert found in program.stderr.readline()
    finally:
        program.kill()
        program.communicate()


@pytest.mark.parametrize(
    "text",
    [
        "signals",
        "wait=",
        "wait=5s",
        "wait=-1",
        "wait=0",
        "signal,,wait=1",
        "signal,signal",
        "wait=1,wait=2",
    ],
)
def test_a_wrong_environment_variable_is_an_error(text: str) -> None:
    program = "import pidcomm; pidcomm.allocate(pes=64).hypercube(8, 8)"
    ran = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PIDCOMM_RECORDER": text},
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    assert ran.returncode != 0
    assert "ArgumentError: environment variable PIDCOMM_RECORDER: " in ran.stderr


def test_wrong_arguments_are_errors() -> None:
    with open(os.devnull) as closed:
        pass
    wrong: list[dict[str, Any]] = [
        {"wait_s": -1},
        {"wait_s": "soon"},
        {"signal": signal.SIGKILL},
        {"signal": "USR1"},
        {"file": object()},
        {"file": True},
        {"file": -1},
        {"file": closed},
    ]
    for arguments in wrong:
        with pytest.raises(pidcomm.ArgumentError):
            pidcomm.recorder(**arguments)


OWN_HANDLER = """
import os, signal
import pidcomm
signal.signal(signal.SIGUSR1, lambda number, frame: print("own"))
pidcomm.allocate(pes=64).hypercube(8, 8).alltoall("10", bytes=64, dst=64)
os.kill(os.getpid(), signal.SIGUSR1)
"""


def test_the_environment_variable_keeps_a_handler_of_the_program() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", OWN_HANDLER],
        env={**os.environ, "PIDCOMM_RECORDER": "signal"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "own\n", "")
