"""Streams, which run launches and collectives at the same time on different ranks."""

from __future__ import annotations

import gc
import os
import signal
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pidcomm
from pidcomm.compiling import compiled

PES, RANKS, COUNT = 256, 4, 256
SPINS, TRAPS = 1 << 30, 1 << 31

# Launch i of P computes destination = source * factor + row in part i of P.
KERNEL = f"""
#include <mram.h>
#include <stdint.h>
__host uint32_t part[2] = {{0, 1}}, row;
__host struct {{ uint32_t source, destination, bytes, factor; }} job;
__mram_noinit_keep int32_t values[{COUNT}];
__dma_aligned int32_t chunk[2];
int main(void) {{
  if (job.factor == {SPINS}u) for (;;) {{}}
  if (job.factor == {TRAPS}u) __builtin_trap();
  uint32_t bytes = job.bytes / part[1], begin = part[0] * bytes;
  for (uint32_t at = begin; at < begin + bytes; at += 8) {{
    mram_read((__mram_ptr uint8_t *)job.source + at, chunk, 8);
    chunk[0] = chunk[0] * job.factor + row;
    chunk[1] = chunk[1] * job.factor + row;
    mram_write(chunk, (__mram_ptr uint8_t *)job.destination + at, 8);
  }}
  return 0;
}}
"""
LARGE = """
#include <mram.h>
__mram_noinit_keep uint8_t large[(64 << 20) - 1024];
int main(void) { return 0; }
"""
JOB = np.dtype([(name, "u4") for name in ("source", "destination", "bytes", "factor")])


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program of the kernel."""
    path = tmp_path_factory.mktemp("streams") / "kernel"
    with compiled(KERNEL, [], "") as (file, _):
        path.write_bytes(Path(file).read_bytes())
    return path


@pytest.fixture
def pes(program: Path) -> Iterator[pidcomm.PeSet]:
    """Four ranks that have loaded the kernel."""
    with pidcomm.allocate(ranks=RANKS) as pe_set:
        load(pe_set, program)
        yield pe_set


def load(pes: pidcomm.PeSet, program: Path) -> None:
    """Load the kernel and write the rows."""
    pes.load(program)
    pes.symbol("row").write(np.arange(PES, dtype=np.uint32)[:, np.newaxis])


def job_of(source: Any, destination: Any, factor: int) -> Any:
    """Return the job of a launch."""
    return np.array((source.address, destination.address, source.size_bytes, factor), JOB)


def random_buffers(cube: Any, seed: int, count: int = 3) -> list[Any]:
    """Return buffers of random elements."""
    random = np.random.default_rng(seed)
    return [cube.array(random.integers(-9, 9, (PES, COUNT)).astype(np.int32)) for _ in range(count)]


def recorded(pes: pidcomm.PeSet, steps: Callable[[pidcomm.Stream], object]) -> pidcomm.Stream:
    """Return a stream of two rank groups that has not run."""
    with suppress(RuntimeError), pes.stream(2) as stream:
        steps(stream)
        raise RuntimeError("the stream does not run")
    return stream


def run_then_sum(stream: Any, factor: int, cube: Any, x: Any, y: Any, z: Any) -> None:
    """Record the kernel from x to y, and an allreduce to z."""
    stream.write("job", job_of(x, y, factor))
    stream.launch([x], [y])
    cube.allreduce(y, "11", out=z)


class AtOnce:
    """Runs the steps of a stream one after another."""

    def __init__(self, pes: pidcomm.PeSet) -> None:
        self.pes = pes

    def write(self, name: str, values: Any) -> None:
        """Write a variable."""
        self.pes.symbol(name).write(values)

    def launch(self, *_: Any, **how: Any) -> None:
        """Run the whole kernel."""
        self.pes.symbol("part").write(np.array([0, 1], np.uint32))
        self.pes.launch()


def random_steps(on: Any, cube: Any, buffers: list[Any], seed: int) -> list[Any]:
    """Make up to ten random steps; return the host rows that they fill."""
    random = np.random.default_rng(seed)
    rows = []
    for _ in range(random.integers(1, 10)):
        x, y = (buffers[i] for i in random.choice(len(buffers), 2, replace=False))
        mask = ("100", "010", "001", "110", "101")[random.integers(5)]
        op = ("sum", "min", "xor", "avg")[random.integers(4)]
        groups = cube.groups(mask).groups
        kind = random.integers(9)
        if kind < 3:
            on.write("job", job_of(x, y, int(random.integers(1, 9))))
            on.launch([x], [y], part="part", parts=None if random.integers(2) else 2)
        elif kind == 3:
            cube.allreduce(x, mask, op=op, out=(x, y)[random.integers(2)])
        elif kind == 4:
            cube.alltoall(x, mask, out=y)
        elif kind == 5:
            rows.append(cube.reduce(x, mask, op=op))
        elif kind == 6 and rows:
            if rows[-1].shape == (groups, COUNT):
                cube.broadcast(rows[-1], mask, out=y)
        elif kind == 7:
            cube.shift(x, "x", int(random.integers(1, 3)), out=y)
        else:
            rows.append(cube.gather(x, mask))
    return rows


@pytest.mark.parametrize("seed", range(24))
def test_a_stream_has_the_bits_of_its_steps_one_after_another(
    pes: pidcomm.PeSet, seed: int
) -> None:
    """So have later runs, with the present content of the buffers."""
    cube = pes.hypercube(8, 8, 4)
    buffers = random_buffers(cube, seed)
    wanted_rows = random_steps(AtOnce(pes), cube, buffers, seed)
    wanted = [buffer.get() for buffer in buffers]
    groups, parts = (None, 1, 2, 4)[seed % 4], (1, 3, 8)[seed % 3]
    fresh = [buffer.get() for buffer in random_buffers(cube, seed)]
    for buffer, content in zip(buffers, fresh, strict=True):
        buffer[:] = content
    with pes.stream(groups, parts=parts) as stream:
        rows = random_steps(stream, cube, buffers, seed)
        assert all((b.get() == f).all() for b, f in zip(buffers, fresh, strict=True)), "it has run"
    for _ in range(4):
        for buffer, want in zip(buffers, wanted, strict=True):
            assert (buffer.get() == want).all()
        for own, want in zip(rows, wanted_rows, strict=True):
            assert (own == want).all()
        for buffer, content in zip(buffers, fresh, strict=True):
            buffer[:] = content
        stream.run()


def test_calls_on_byte_windows_become_steps(pes: pidcomm.PeSet, program: Path) -> None:
    """They return a host array or None. A load, which may move the windows, ends the stream."""
    cube = pes.hypercube(64, 4)
    x = np.random.default_rng(1).integers(-9, 9, (4, COUNT))
    size_bytes = 8 * COUNT
    result = np.zeros((4, COUNT), np.int64)
    with pes.stream(2, parts=4) as stream:
        assert cube.broadcast("10", host=x, dst=64) is None
        assert cube.allreduce("10", bytes=size_bytes, src=64, dst=64, dtype="int64") is None
        assert cube.sendrecv([(0, 1)], src=64, dst=4096 + 64, bytes=size_bytes) is None
        rows = cube.gather("00", bytes=size_bytes, src=4096 + 64, dtype="int64")
        assert cube.reduce("10", bytes=size_bytes, src=64, dtype="int64", out=result) is result
    assert repr(stream) == "<Stream of 5 steps on 4 ranks>"
    assert (result == x * 64 * 64).all()
    assert (rows[1] == x[0] * 64).all()
    load(pes, program)
    with pytest.raises(pidcomm.Error, match="has loaded a program"):
        stream.run()


def test_cuts_give_pieces_for_rank_groups_and_parts(pes: pidcomm.PeSet) -> None:
    """A step without parts of whole words takes the next smaller number."""
    cube = pes.hypercube(64, 4)
    (x, y, _), small = random_buffers(cube, 1), cube.array(np.ones((PES, 4), np.int32))
    with pes.stream(2, parts=8) as stream:
        stream.write("job", job_of(x, y, 3))
        stream.launch([x], [y], part="part")
        stream.launch([x], [y], [small])
        cube.allreduce(y, "10", out=y)
        cube.allreduce(small, "10", out=small)
        cube.alltoall(y, "01", out=x)
    pieces = stream.timeline()
    counts = [sum(piece.step == step for piece in pieces) for step in range(6)]
    assert counts == [2, 16, 2, 16, 4, 1]
    assert [{piece.kind for piece in pieces if piece.step == step} for step in (0, 1, 3)] == [
        {"write"},
        {"launch"},
        {"collective"},
    ]
    assert {(p.first_rank, p.ranks) for p in pieces if p.step == 3} == {(0, 2), (2, 2)}
    assert {piece.part for piece in pieces if piece.step == 4} == {0, 1}
    assert all(0 <= piece.begin_s <= piece.end_s for piece in pieces)
    trace = stream.trace
    assert trace is not None
    assert trace.pieces == len(pieces)
    assert trace.seconds_total == max(piece.end_s for piece in pieces)
    assert trace.seconds_total >= max(trace.seconds_host, trace.seconds_pes) > 0
    assert (trace.rank_groups, trace.parts) == (2, 8)
    lines = stream.explain().splitlines()
    assert lines[0] == repr(stream) == "<Stream of 6 steps on 4 ranks>"
    assert lines[4].split()[:6] == ["1", "launch", "in", "8", "parts", "16"]
    assert lines[6].startswith("3 allreduce 10 in 8 parts ")
    assert "#" in lines[6].split("|")[1]


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


def test_calls_that_a_stream_cannot_record_raise_errors(pes: pidcomm.PeSet, program: Path) -> None:
    """The block goes on; no refused call becomes a step."""
    cube = pes.hypercube(64, 4)
    x, y, _ = random_buffers(cube, 1)
    batch = cube.prepare("allreduce", x, "10", out=y)
    with pidcomm.allocate(ranks=1) as other:
        far = other.hypercube(64)
        z = far.empty(COUNT, np.int32)
        refused: list[tuple[Callable[[Any], Any], str]] = [
            (lambda _: cube.allreduce(x, "10", out=y, wait=False), "take no wait=False"),
            (lambda _: cube.allreduce("10", bytes=64, dtype="int32", wait=False), "take no wait"),
            (lambda _: cube.broadcast("10", host=[[1]] * 4), "C-contiguous"),
            (lambda _: cube.arrays.allreduce(x.get(), "10"), "cannot record it"),
            (lambda _: cube.broadcast([[1, 2]] * 4, "10"), "C-contiguous"),
            (lambda _: far.allreduce(z, "1", out=z), "the PEs of the stream only"),
            (lambda _: batch.run(), "outside of the block"),
            (lambda _: cube.prepare("allreduce", x, "10"), "of a stream"),
            (lambda _: pes.launch(), "cannot record it"),
            (lambda _: pes.stream().__enter__(), "another stream"),
            (lambda s: s.run(), "still records"),
            (lambda s: s.launch([z]), "another set"),
            (lambda s: s.launch([pes.symbol("row")]), "not in MRAM"),
            (lambda s: s.launch(x), "must be a list of buffers"),
            (lambda s: s.launch([x], [y], parts=2), "part_variable is null"),
            (lambda s: s.launch([x], [y], parts=3, part="part"), "multiple of 24"),
            (lambda s: s.launch([x], [y], part="row"), "uint32_t"),
            (lambda s: s.launch([x], [y], parts=0, part="part"), "between 1 and"),
            (lambda s: s.write("values", np.zeros(COUNT, np.int32)), "not in WRAM"),
            (lambda s: s.write("row", np.zeros((PES, 1), np.int32)), "the same values"),
            (lambda s: s.write("row", np.zeros(2, np.int32)), "pass the end"),
            (lambda s: s.call(None), "must be callable"),
            (lambda s: s.call(bool, [x]), "NumPy arrays"),
            (lambda s: s.call(bool, [np.zeros((4, 4)).T]), "not C-contiguous"),
            (lambda s: s.call(bool, [], [np.broadcast_to(np.zeros(1), 1)]), "read-only"),
            (lambda s: s.write("rows", np.int32(0)), "rows"),
        ]
        with pes.stream(2) as stream:
            cube.allreduce(x, "10", out=y)
            for call, part in refused:
                with pytest.raises(pidcomm.ArgumentError, match=part):
                    call(stream)
        assert repr(stream) == "<Stream of 1 step on 4 ranks>"
    for wrong, part in ((0, "between"), (3, "must divide the 4 ranks")):
        with pytest.raises(pidcomm.ArgumentError, match=part), pes.stream(wrong):
            pass
    with pytest.raises(pidcomm.ArgumentError, match="parts"), pes.stream(parts=0):
        pass
    with cube.batch(), pytest.raises(pidcomm.ArgumentError, match="batch"), pes.stream():
        pass
    odd = pidcomm.allocate(pes=96)
    with odd, pytest.raises(pidcomm.Error, match="needs all PEs"), odd.stream(2):
        pass


def test_techniques_that_replace_the_program_take_no_launches(pes: pidcomm.PeSet) -> None:
    """In either order. Without launches, a stream takes them."""
    cube = pes.hypercube(64, 4)
    x, y, _ = random_buffers(cube, 1)
    cube.alltoall(x, "01", out=y)
    want = y.get()
    y[:] = 0
    with pes.stream(2) as stream:
        stream.launch()
        for technique in ("pr+im", "auto"):
            with pytest.raises(pidcomm.ArgumentError, match="may replace the program"):
                cube.alltoall(x, "01", out=y, technique=technique, scratch=1 << 22)
    with pes.stream(2) as stream:
        cube.alltoall(x, "01", out=y, technique="pr+im", scratch=1 << 22)
        with pytest.raises(pidcomm.ArgumentError, match="may replace the program"):
            stream.launch()
    assert (y.get() == want).all()


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
    with pytest.raises(pidcomm.Error, match="has loaded a program"):
        stream.run()
    with pes.stream(2) as stream:
        stream.write("job", job_of(x, y, 2))
        stream.launch([x], [y])
    assert (y.get() == x.get() * 2 + np.arange(PES)[:, np.newaxis]).all()


def test_ctrl_c_ends_a_stream_and_the_set_stays_usable(pes: pidcomm.PeSet, program: Path) -> None:
    """The signal arrives while the PEs run without end."""
    cube = pes.hypercube(64, 4)
    x, y, z = random_buffers(cube, 1)
    before = z.get()

    def interrupt() -> None:
        """Send the signal as soon as the stream runs."""
        with suppress(pidcomm.Error):
            while True:
                cube.location(0)  # raises Error while the stream runs
        signal.raise_signal(signal.SIGINT)

    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    thread = threading.Thread(target=interrupt)
    stream = recorded(pes, lambda stream: run_then_sum(stream, SPINS, cube, x, y, z))
    thread.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            stream.run()
    finally:
        thread.join()
        signal.signal(signal.SIGINT, handler)
    load(pes, program)
    with pes.stream(2) as stream:
        stream.write("job", job_of(x, y, 2))
        stream.launch([x], [y])
    assert (z.get() == before).all()
    assert (y.get() == x.get() * 2 + np.arange(PES)[:, np.newaxis]).all()


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


def test_a_planned_stream_predicts_then_measures(pes: pidcomm.PeSet) -> None:
    """Before the first run, the times are predictions; nothing runs."""
    cube = pes.hypercube(64, 4)
    x, y, _ = random_buffers(cube, 1)
    before = y.get()
    with pes.stream(parts=4) as stream:
        stream.write("job", job_of(x, y, 3))
        stream.launch([x], [y], part="part")
        cube.allreduce(y, "10", out=y)
        pieces = stream.timeline()
        assert {piece.step for piece in pieces} == {0, 1, 2}
        assert sum(piece.end_s - piece.begin_s for piece in pieces if piece.step == 2) > 0
        assert "1 rank groups, 1 parts" in stream.explain()
        assert "(predicted)" in stream.explain()
        assert (y.get() == before).all()
    want = y.get()
    for _ in range(20):
        trace = stream.trace
        assert trace is not None
        assert trace.source == ("measured" if "PIDCOMM_TEST_SDK_ACCESS" in os.environ else "mixed")
        assert 4 % trace.rank_groups == 4 % trace.parts == 0
        y[:] = 0
        stream.run()
        assert (y.get() == want).all()


def test_a_stream_keeps_buffers_and_hypercubes_alive(pes: pidcomm.PeSet) -> None:
    """It frees them with its own end."""
    cube = pes.hypercube(64, 4)
    x, y = random_buffers(cube, 1, 2)
    want = x.get().reshape(4, 64, COUNT).sum(axis=1)
    with pes.stream(2) as stream:
        cube.allreduce(x, "10", out=y)
        rows = cube.gather(y, "10")
        stream.call(partial(np.copyto, copy := np.zeros_like(rows), rows), [rows], [copy])
    buffer, hypercube = weakref.ref(y), weakref.ref(cube)
    del cube, x, y
    gc.collect()
    assert buffer() is not None
    rows[:] = copy[:] = 0
    stream.run()
    assert (copy == rows).all()
    assert (rows.reshape(4, 64, COUNT) == want[:, np.newaxis]).all()
    del stream
    gc.collect()
    assert (buffer(), hypercube()) == (None, None)


def test_a_freed_set_and_a_lost_buffer_end_a_stream(program: Path) -> None:
    """The error is that of the set or of the buffer."""
    with pidcomm.allocate(ranks=2) as pes:
        cube = pes.hypercube(64, 2)
        x = cube.array(np.ones((128, 256), np.int64))
        with pes.stream(2) as stream:
            cube.allreduce(x, "10", out=x)
        pes.load(LARGE)
        with pytest.raises(pidcomm.Error, match="overwritten the buffer"):
            stream.run()
    for call in (stream.run, stream.timeline):
        with pytest.raises(pidcomm.Error):
            call()


def test_an_empty_stream_and_a_call_of_a_stream_run(pes: pidcomm.PeSet) -> None:
    """A set of a part of a rank has one rank group."""
    with pes.stream() as stream:
        pass
    assert stream.trace is not None
    assert stream.trace.seconds_total == 0
    assert "total" in stream.explain()
    with pidcomm.allocate(pes=16) as few:
        cube = few.hypercube(16)
        x = cube.array(np.ones((16, 8), np.int64))
        with few.stream():
            cube.allreduce(x, "1", out=x)
        assert (x.get() == 16).all()
