"""Streams with functions of the program, and streams that end early: exceptions, faults, Ctrl-C."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from stream_cases import (
    COUNT,
    PES,
    SPINS,
    TRAPS,
    job_of,
    load,
    random_buffers,
    recorded,
    run_then_sum,
)
from stream_cases import pes as pes
from stream_cases import program as program

import pidcomm


def run_together(functions: list[Callable[[], object]]) -> None:
    """Run each function on its own thread; change the thread that holds the GIL often."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=function) for function in functions]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)


def interrupt(stream: pidcomm.Stream, has_begun: Callable[[], bool]) -> None:
    """Run a stream, and send SIGINT as soon as it has begun."""
    has_ended = threading.Event()

    def send() -> None:
        while not has_begun() and not has_ended.is_set():
            pass
        if not has_ended.is_set():
            signal.raise_signal(signal.SIGINT)

    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    thread = threading.Thread(target=send)
    thread.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            stream.run()
    finally:
        has_ended.set()
        thread.join()
        signal.signal(signal.SIGINT, handler)


def test_functions_run_in_order_on_the_thread_of_the_run(pes: pidcomm.PeSet) -> None:
    """They see the results of earlier steps; later steps see theirs."""
    cube = pes.hypercube(64, 4)
    x, y, z = random_buffers(cube, 1)
    threads = []

    def double(rows: Any, out: Any) -> None:
        threads.append(threading.current_thread())
        out[:] = rows * 2

    for has_launch in (False, True):
        twice = np.zeros((PES, COUNT), np.int32)
        with pes.stream(4, parts=2) as stream:
            stream.write("job", job_of(x, y, 3))
            if has_launch:
                stream.launch([x], [y], part="part")
            rows = cube.gather(y if has_launch else x, "00")
            stream.call(partial(double, rows, twice), reads=[rows], writes=[twice])
            cube.scatter(twice, "00", out=z)
        assert (z.get() == rows * 2).all()
        assert (rows == (x.get() * 3 + np.arange(PES)[:, np.newaxis] if has_launch else x)).all()
        assert [piece.kind for piece in stream.timeline()].count("call") == 1
    assert threads == [threading.current_thread()] * 2


@pytest.mark.parametrize("raised", [ZeroDivisionError, KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("has_launch", [False, True])
def test_an_exception_of_a_function_ends_the_run(
    pes: pidcomm.PeSet, raised: type[BaseException], has_launch: bool
) -> None:
    """The run raises it; later steps do not run; the set stays usable."""
    cube = pes.hypercube(64, 4)
    x, y, _ = random_buffers(cube, 1)
    before, error, is_wrong = y.get(), raised("mine"), [True]

    def check() -> None:
        if is_wrong:
            raise error

    def fail_at_the_end() -> None:
        raise OSError("last")

    def steps(stream: pidcomm.Stream) -> None:
        stream.write("job", job_of(x, x, 1))
        if has_launch:
            stream.launch([x], [x])
        stream.call(check)
        cube.broadcast(np.ones((1, COUNT), np.int32), "11", out=y)
        stream.call(fail_at_the_end)

    stream = recorded(pes, steps)
    with pytest.raises(raised, match="mine") as caught:
        stream.run()
    assert caught.value is error
    assert stream.trace is None
    assert stream.explain() == "<Stream of 5 steps on 4 ranks>, failed".replace(
        "5", "5" if has_launch else "4"
    )
    assert (y.get() == before).all()
    is_wrong.clear()
    with pytest.raises(OSError, match="last"):
        stream.run()
    assert (y.get() == 1).all()


def test_ctrl_c_in_a_function_ends_the_run(pes: pidcomm.PeSet) -> None:
    """The function gets the signal, and the PEs need no load."""
    cube = pes.hypercube(64, 4)
    x, y, _ = random_buffers(cube, 1)
    before = y.get()

    def interrupt() -> None:
        signal.raise_signal(signal.SIGINT)
        for _ in range(2):  # Python handles signals between bytecodes
            pass

    def steps(stream: pidcomm.Stream) -> None:
        stream.write("job", job_of(x, x, 1))
        stream.launch([x], [x])
        stream.call(interrupt)
        cube.broadcast(np.ones((1, COUNT), np.int32), "11", out=y)

    stream = recorded(pes, steps)
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            stream.run()
    finally:
        signal.signal(signal.SIGINT, handler)
    assert (y.get() == before).all()


def test_a_function_and_another_thread_cannot_use_the_set(pes: pidcomm.PeSet) -> None:
    """Their calls raise Error, and the stream goes on."""
    cube = pes.hypercube(64, 4)
    x, y, _ = random_buffers(cube, 1)
    calls = [x.get, pes.launch, pes.free, lambda: cube.allreduce(x, "10", out=y)]
    errors: list[str] = []
    with pes.stream() as stream:
        uses = [*calls, stream.run, stream.timeline, stream.launch, lambda: pes.hypercube(64)]

        def use() -> None:
            for call in uses:
                with pytest.raises(pidcomm.Error, match="runs a stream") as caught:
                    call()
                errors.append(caught.value.status)

        def both() -> None:
            use()
            thread = threading.Thread(target=use)
            thread.start()
            thread.join()

        stream.call(both)
        cube.allreduce(x, "10", out=y)
    assert errors == ["ERR_BUSY"] * 2 * len(uses)
    assert (y.get()[:64] == x.get()[:64].sum(axis=0)).all()


def test_functions_that_threads_record_run_once_each(pes: pidcomm.PeSet) -> None:
    """So do those that two threads record while a third predicts."""
    cube = pes.hypercube(64, 4)
    x, y, _ = random_buffers(cube, 1)
    calls: list[int] = []

    def steps(stream: pidcomm.Stream) -> None:
        for _ in range(100):
            cube.allreduce(x, "10", out=y)

    stream = recorded(pes, steps)

    def record(first: int) -> None:
        for number in range(first, 40, 2):
            stream.call(partial(calls.append, number))

    def predict() -> None:
        for _ in range(20):
            assert stream.timeline()

    run_together([predict, partial(record, 0), partial(record, 1)])
    stream.run()
    assert sorted(calls) == list(range(40))


def test_a_thread_reads_a_whole_prediction_while_another_predicts(pes: pidcomm.PeSet) -> None:
    """The pieces are those of one prediction."""
    cube = pes.hypercube(64, 4)
    x, y, _ = random_buffers(cube, 1)

    def steps(stream: pidcomm.Stream) -> None:
        for _ in range(100):
            cube.allreduce(x, "10", out=y)

    stream = recorded(pes, steps)
    stream.timeline()  # predicts
    wanted, read = stream._core.timeline(), []

    def predict() -> None:
        for _ in range(100):
            stream._core.plan()

    def read_pieces() -> None:
        for _ in range(2000):
            read.append(stream._core.timeline())

    run_together([predict, read_pieces])
    assert all(pieces == wanted for pieces in read)


def test_a_refused_run_keeps_the_times_of_the_last_run(pes: pidcomm.PeSet) -> None:
    """Here another stream of the set runs."""
    cube = pes.hypercube(64, 4)
    x, y, _ = random_buffers(cube, 1)
    with pes.stream(2) as stream:
        cube.allreduce(x, "10", out=y)
    before = stream.trace, stream.timeline(), stream.explain()
    other = recorded(pes, lambda other: other.call(stream.run))
    with pytest.raises(pidcomm.Error, match="runs a stream"):
        other.run()
    assert (stream.trace, stream.timeline(), stream.explain()) == before
    assert stream.trace is not None


def test_a_fault_names_the_step_and_the_pe(pes: pidcomm.PeSet, program: Path) -> None:
    """No later step runs. After a load, the set is usable again."""
    cube = pes.hypercube(64, 4)
    x, y, z = random_buffers(cube, 1)
    before = z.get()
    stream = recorded(pes, lambda stream: run_then_sum(stream, TRAPS, cube, x, y, z))
    with pytest.raises(
        pidcomm.Error, match=r"step 1, ranks 0 to 1 .*\(PE 0\) is in fault.*in main"
    ):
        stream.run()
    assert stream.trace is None
    load(pes, program)
    assert (z.get() == before).all()
    with pes.stream(2) as stream:
        stream.write("job", job_of(x, y, 2))
        stream.launch([x], [y])
    assert (y.get() == x.get() * 2 + np.arange(PES)[:, np.newaxis]).all()


def test_ctrl_c_ends_a_stream_and_the_set_stays_usable(pes: pidcomm.PeSet, program: Path) -> None:
    """The signal arrives while the PEs run without end."""
    cube = pes.hypercube(64, 4)
    x, y, z = random_buffers(cube, 1)
    before = z.get()

    def has_begun() -> bool:
        try:
            return cube.location(0) is None
        except pidcomm.Error:  # while the stream runs
            return True

    stream = recorded(pes, lambda stream: run_then_sum(stream, SPINS, cube, x, y, z))
    interrupt(stream, has_begun)
    load(pes, program)
    with pes.stream(2) as stream:
        stream.write("job", job_of(x, y, 2))
        stream.launch([x], [y])
    assert (z.get() == before).all()
    assert (y.get() == x.get() * 2 + np.arange(PES)[:, np.newaxis]).all()


@pytest.mark.parametrize("has_launch", [False, True])
def test_ctrl_c_ends_the_host_passes_of_a_stream(pes: pidcomm.PeSet, has_launch: bool) -> None:
    """The signal arrives before many long passes. The next run is complete."""
    cube = pes.hypercube(64, 4)
    x, y, _ = random_buffers(cube, 1)
    large = cube.empty(1 << 16, np.int32)
    begins = threading.Event()
    rows, last = np.empty((PES, 1 << 16), np.int32), np.zeros((PES, COUNT), np.int32)

    def steps(stream: pidcomm.Stream) -> None:
        stream.write("job", job_of(x, y, 1))
        if has_launch:
            stream.launch([x], [y])
        stream.call(begins.set)
        for _ in range(100):
            cube.gather(large, "00", out=rows)
        cube.gather(x, "00", out=last)

    stream = recorded(pes, steps)
    interrupt(stream, begins.is_set)
    assert not last.any()
    assert stream.trace is None
    stream.run()
    assert (last == x).all()


def test_an_exception_in_the_block_runs_no_step(pes: pidcomm.PeSet) -> None:
    """Afterwards, calls run at once again."""
    cube = pes.hypercube(64, 4)
    x, y, _ = random_buffers(cube, 1)
    before = y.get()
    with suppress(ZeroDivisionError), pes.stream(2) as stream:
        cube.allreduce(x, "10", out=y)
        1 // 0  # noqa: B018
    assert (y.get() == before).all()
    assert stream.trace is None
    assert "(predicted)" in stream.explain()
    cube.allreduce(x, "10", out=y)
    assert (y.get() != before).any()
