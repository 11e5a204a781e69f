"""Streams, which run launches and collectives at the same time on different ranks."""

from __future__ import annotations

import gc
import os
import weakref
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from stream_cases import (
    COUNT,
    PES,
    job_of,
    load,
    random_buffers,
)
from stream_cases import pes as pes
from stream_cases import program as program

import pidcomm
from pidcomm.bench.over_hosts import _Alone

LARGE = """
#include <mram.h>
__mram_noinit_keep uint8_t large[(64 << 20) - 1024];
int main(void) { return 0; }
"""


PRODUCT = """
static element combine(element x, element y) {
  x.value += y.value, x.index ^= y.index, x.product *= y.product;
  return x;
}
"""


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


@pytest.mark.parametrize("kind", ["own operator", "argmin", "float32"])
def test_parts_have_whole_elements_of_operators(pes: pidcomm.PeSet, kind: str) -> None:
    """Also if an element has 12 bytes, and floats are added in the same order."""
    cube = pes.hypercube(8, 8, 4)
    random = np.random.default_rng(1)
    values: Any = random.random((PES, 48)).astype(np.float32)
    op: Any = pidcomm.ScaledSum(0.3)
    if kind != "float32":
        op, fields = "argmin", [("value", "i4"), ("index", "u4")]
        if kind == "own operator":
            fields.append(("product", "u4"))
            op = pidcomm.Operator(PRODUCT, fields)
        values = random.integers(0, 255, (PES, 48 * 4 * len(fields)), np.uint8).view(fields)
    x = cube.array(values)
    for mask in ("110", "001", "111"):
        want, wanted_rows = cube.allreduce(x, mask, op=op).get(), cube.reduce(x, mask, op=op)
        for groups in (1, 2, 4):
            with pes.stream(groups, parts=16) as stream:
                y = cube.allreduce(x, mask, op=op)
                rows = cube.reduce(x, mask, op=op)
            assert (y.get().tobytes(), rows.tobytes()) == (want.tobytes(), wanted_rows.tobytes())
            assert max(piece.part for piece in stream.timeline()) == (15 if kind == "argmin" else 7)


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
    assert 0 <= trace.seconds_setup <= pieces[0].begin_s
    assert trace.seconds_total == max(piece.end_s for piece in pieces)
    assert trace.seconds_total >= max(trace.seconds_host, trace.seconds_pes) > 0
    assert (trace.rank_groups, trace.parts) == (2, 8)
    lines = stream.explain().splitlines()
    assert lines[0] == repr(stream) == "<Stream of 6 steps on 4 ranks>"
    assert lines[4].split()[:7] == ["1", "launch", "in", "8", "parts", "16", "2"]
    assert lines[6].startswith("3 allreduce 10 in 8 parts ")
    assert "#" in lines[6].split("|")[1]
    assert lines[8].split()[:5] == ["5", "alltoall", "01", "1", "4"]  # waits for all ranks


def test_functions_wait_only_for_steps_that_share_their_arrays(
    pes: pidcomm.PeSet, program: Path
) -> None:
    """A function without arrays waits for all earlier functions."""
    cube = pes.hypercube(64, 4)
    (x, y, _), other = random_buffers(cube, 1), np.zeros(1)
    for arrays, want in (([other], [2, 1]), ([], [1, 2])):
        order: list[int] = []
        with pes.stream(1) as stream:  # with one rank group, no gather is ready before function 2
            stream.write("job", job_of(x, y, 3))
            stream.launch([x], [y])
            rows = cube.gather(y, "10")
            stream.call(partial(order.append, 1), [rows])
            stream.call(partial(order.append, 2), arrays)
        assert order == want
        lines = stream.explain().splitlines()
        assert lines[6].split()[:4] == ["3", "call", "partial", "1"]
        assert lines[6].split()[4] == "-"


def test_calls_that_a_stream_cannot_record_raise_errors(pes: pidcomm.PeSet, program: Path) -> None:
    """The block goes on; no refused call becomes a step."""
    cube = pes.hypercube(64, 4)
    x, y, _ = random_buffers(cube, 1)
    batch = cube.prepare("allreduce", x, "10", out=y)
    few = pes.hypercube(64)
    with pidcomm.allocate(ranks=1) as other, pidcomm.hosts.connect(cube, _Alone(1)) as alone:
        far = other.hypercube(64)
        z = far.empty(COUNT, np.int32)
        refused: list[tuple[Callable[[Any], Any], str]] = [
            (lambda _: cube.allreduce(x, "10", out=y, wait=False), "take no wait=False"),
            (lambda _: cube.allreduce("10", bytes=64, dtype="int32", wait=False), "take no wait"),
            (lambda _: cube.broadcast("10", host=[[1]] * 4), "C-contiguous"),
            (lambda _: cube.arrays.allreduce(x.get(), "10"), "cannot record it"),
            (lambda _: cube.broadcast([[1, 2]] * 4, "10"), "C-contiguous"),
            (lambda _: far.allreduce(z, "1", out=z), "the PEs of the stream only"),
            (lambda _: alone.allreduce("101", bytes=64, dtype="int32"), "cannot record it"),
            (lambda _: alone.arrays.allreduce(x.get(), "101"), "cannot record it"),
            (lambda _: batch.run(), "outside of the block"),
            (lambda _: cube.prepare("allreduce", x, "10"), "of a stream"),
            (lambda _: pes.launch(), "cannot record it"),
            (lambda _: pes.stream().__enter__(), "another stream"),
            (lambda _: few.allreduce(x, "1", out=y), "must have all 256 PEs"),
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


@pytest.mark.parametrize("kind", ["launch", "write"])
def test_techniques_that_replace_the_program_take_no_steps_that_use_it(
    pes: pidcomm.PeSet, kind: str
) -> None:
    """In either order. Without launches and writes, a stream takes them."""
    cube = pes.hypercube(64, 4)
    x, y, _ = random_buffers(cube, 1)
    reorder = partial(cube.alltoall, x, "10", out=y, technique="pr+im", scratch=1 << 22)

    def use(stream: pidcomm.Stream) -> None:
        if kind == "launch":
            stream.launch()
        else:
            stream.write("job", job_of(x, y, 3))

    cube.alltoall(x, "10", out=y)
    want = y.get()
    y[:] = 0
    with pes.stream(2) as stream:
        use(stream)
        for technique in ("pr+im", "auto"):
            with pytest.raises(pidcomm.ArgumentError, match="may replace"):
                cube.alltoall(x, "10", out=y, technique=technique, scratch=1 << 22)
    with pes.stream(2) as after:
        reorder()
        with pytest.raises(pidcomm.ArgumentError, match="may replace"):
            use(after)
    assert (y.get() == want).all()
    with pytest.raises(pidcomm.Error, match="has replaced the program"):
        stream.run()
    with pytest.raises(pidcomm.Error, match="has replaced the program"), pes.stream(2) as later:
        use(later)


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
        assert "rank groups: 1, parts: 1;" in stream.explain()
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
        stream.call(partial(getattr, stream, "trace"))  # a cycle
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


def test_a_refused_call_keeps_no_array_alive(pes: pidcomm.PeSet) -> None:
    """Here the hypercube does not have all PEs of the stream."""
    few = pes.hypercube(64)
    rows = np.ones((1, COUNT), np.int32)
    with pes.stream() as stream, pytest.raises(pidcomm.ArgumentError, match="must have all"):
        few.broadcast("1", host=rows, dst=64)
    array = weakref.ref(rows)
    del rows
    gc.collect()
    assert array() is None
    assert stream.explain()


def test_a_freed_set_and_a_lost_buffer_end_a_stream(program: Path) -> None:
    """The stream raises the error of the set or of the buffer."""
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
    assert stream.trace.pieces == 0
    assert "total" in stream.explain()
    with pidcomm.allocate(pes=16) as few:
        cube = few.hypercube(16)
        x = cube.array(np.ones((16, 8), np.int64))
        with few.stream():
            cube.allreduce(x, "1", out=x)
        assert (x.get() == 16).all()
