"""Batches, which run collected calls, and calls that are prepared once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from threading import Thread
from typing import Any

import numpy as np
import pytest

import pidcomm
from pidcomm.batches import PREPARED
from pidcomm.movements import Movements
from pidcomm.scans import Scans

TECHNIQUES = ["tile", "conventional", "pr+im"]


@pytest.fixture
def cube() -> Iterator[Any]:
    """Return a hypercube of 8 x 4 PEs."""
    with pidcomm.allocate(pes=32) as pes:
        yield pes.hypercube(8, 4)


def buffer(cube: Any, seed: int, shape: tuple[int, ...] = (16,)) -> Any:
    """Return a buffer with random elements."""
    rows = np.random.default_rng(seed).integers(0, 100, (cube.pes, *shape))
    return cube.array(rows.astype(np.int32))


def calls(cube: Any, x: Any, y: Any, **options: Any) -> list[Any]:
    """Make calls that depend on each other; return their results."""
    return [
        cube.allreduce(x, "x", out=y, **options),
        cube.alltoall(y, "x", out=x, **options),
        cube.shift(x, "y", out=y, technique=options.get("technique")),
        cube.reduce(buffer(cube, 4, (4,)), ("x", "y")),
        cube.scan(y, "x", op="max", out=y, **options),
        cube.halo(buffer(cube, 9, (6, 6)), {"x": 0}, cyclic=True, corners=True, **options),
        cube.broadcast(np.arange(4 * 3).reshape(4, 3), "x", **options),
    ]


@pytest.mark.parametrize("technique", TECHNIQUES)
def test_a_batch_has_the_results_of_its_calls(cube: Any, technique: Any) -> None:
    """The calls run in order at the end of the block, again by run, and by start and wait."""
    for how in ("run", "start"):
        x, y = buffer(cube, 1), buffer(cube, 2)
        wanted = [np.asarray(result) for result in calls(cube, x, y, technique=technique)]
        x, y = buffer(cube, 1), buffer(cube, 2)
        with cube.batch() as batch:
            results = calls(cube, x, y, technique=technique)
            assert (x.get() == buffer(cube, 1).get()).all(), "a call has run"
        for _ in range(2):
            # A call may change the result of an earlier call.
            for result, want in list(zip(results, wanted, strict=True))[3:]:
                assert (np.asarray(result) == want).all()
            x[:], y[:] = buffer(cube, 1).get(), buffer(cube, 2).get()
            last = batch.run() if how == "run" else batch.start().wait()
            assert last is results[-1]
        assert cube.last_trace is not None


def test_a_batch_checks_all_calls_before_a_byte_moves(cube: Any) -> None:
    """The error names the call; no earlier call has run."""
    x, y = buffer(cube, 1), buffer(cube, 2)

    def wrong() -> None:
        with cube.batch():
            cube.allreduce(x, "x", out=y, technique="ring", scratch=1 << 20)
            cube.alltoall(x, "x", out=y, technique="ring", scratch=1 << 20)

    def interrupted() -> None:
        with cube.batch():
            cube.allreduce(x, "x", out=y)
            raise RuntimeError("mine")

    with pytest.raises(pidcomm.ArgumentError, match=r"request 1: .*ring"):
        wrong()
    assert (y.get() == buffer(cube, 2).get()).all()
    with pytest.raises(RuntimeError, match="mine"):
        interrupted()
    assert (y.get() == buffer(cube, 2).get()).all()


def test_a_batch_refuses_calls_that_it_cannot_collect(cube: Any) -> None:
    """Byte windows, requests, gatherv and nested batches are refused."""
    x, y, odd = buffer(cube, 1), buffer(cube, 2), buffer(cube, 3, (3,))
    full = np.full((4, 3), 7, np.int32)
    refused: list[tuple[Callable[[], Any], str]] = [
        (lambda: cube.allreduce("x", bytes=64, dtype="int32"), "not on byte windows"),
        (lambda: cube.sendrecv([(0, 1)], src=0, dst=64, bytes=8), "not on byte windows"),
        (lambda: cube.allreduce(x, "x", out=y, wait=False), "use Batch.start"),
        (lambda: cube.gatherv(x, "x", [1] * 8), "gatherv"),
        (lambda: cube.scatterv(np.zeros((4, 8)), "x", [1] * 8), "scatterv"),
        (lambda: cube.broadcast(np.zeros((4, 3), np.int32), "x"), "multiple of 8 bytes"),
        (lambda: cube.broadcast([[1, 2]] * 4, "x"), "C-contiguous"),
        (lambda: cube.reduce(odd, "x", out=full), "multiple of 8 bytes"),
        (lambda: cube.prepare("allreduce", x, "x"), "another batch"),
    ]
    for call, part in refused:
        with cube.batch():
            cube.allreduce(x, "x", out=y)
            with pytest.raises(pidcomm.ArgumentError, match=part):
                call()
            assert cube.read(1, "int64").shape == (32, 1), "other methods run at once"
    assert (full == 7).all()
    for name in ("gatherv", "scatterv", "read", 3, np.empty(0)):
        with pytest.raises(pidcomm.ArgumentError, match="cannot be prepared"):
            cube.prepare(name, x)


def test_a_batch_collects_the_calls_of_its_thread_only(cube: Any) -> None:
    """Another thread runs its calls at once."""
    x, y, z = buffer(cube, 1), buffer(cube, 2), buffer(cube, 3)
    with cube.batch():
        cube.allreduce(x, "x", out=y)
        thread = Thread(target=lambda: cube.shift(x, "x", 1, out=z))
        thread.start()
        thread.join()
        moved = z.get()
    assert (moved == np.roll(x.get().reshape(4, 8, 16), 1, axis=1).reshape(32, 16)).all()


def test_a_prepared_call_uses_the_present_content(cube: Any) -> None:
    """Each run reads the buffers and host arrays again; start and wait do the same."""
    x, y = buffer(cube, 1), buffer(cube, 2)
    prepared = cube.prepare("shift", x, "x", 1, out=y)
    for seed in range(3):
        x[:] = buffer(cube, seed).get()
        assert (prepared.run() if seed % 2 else prepared.start().wait()) is y
        want = np.roll(x.get().reshape(4, 8, 16), 1, axis=1).reshape(32, 16)
        assert (y.get() == want).all()
    rows = np.arange(16).reshape(4, 4)
    sent = cube.prepare("broadcast", rows, "x")
    rows[:] = 7
    assert (sent.run().get() == 7).all()
    reduced = cube.prepare("reduce", x, "x", op="max")
    assert (reduced.run() == x.get().reshape(4, 8, 16).max(axis=1)).all()
    x[:] = 5
    assert (reduced.run() == 5).all()
    prepared.start()
    with pytest.raises(pidcomm.ArgumentError, match="wait for its end"):
        prepared.start()
    prepared.wait()
    assert repr(prepared) == "<Batch of 1 call>"
    with cube.batch() as empty:
        pass
    assert empty.run() is None


def test_a_batch_keeps_its_messages_and_operators(cube: Any) -> None:
    """Changes of messages, and dropped operators, do not change a prepared call."""
    x, y = buffer(cube, 1), buffer(cube, 2)
    messages = np.zeros(1, pidcomm.MESSAGE)
    messages["from_pe"], messages["to_pe"], messages["bytes"] = 3, 4, 64
    sent = cube.prepare("sendrecv", messages, src=x, dst=y)
    messages["to"] = 1 << 20
    sent.run()
    assert (y.get()[4] == x.get()[3]).all()
    source = "static element combine(element a, element b) { return a > b ? a : b; }"
    best = cube.prepare("allreduce", x, "x", op=pidcomm.Operator(source, "int32"), out=y)
    mean = cube.prepare("allreduce", buffer(cube, 3), "x", op="avg")
    assert (best.run().get()[:8] == x.get()[:8].max(axis=0)).all()
    assert (mean.run().get()[0] == np.rint(buffer(cube, 3).get()[:8].mean(axis=0))).all()


def test_a_failed_start_ends_the_calls_before(cube: Any) -> None:
    """The batch can be started again after an error."""
    x, y = buffer(cube, 1), buffer(cube, 2)
    with cube._collecting() as batch:
        cube.shift(x, "x", 1, out=y)
        cube.alltoall(x, "x", out=x, technique="ring", scratch=1 << 20)
        with pytest.raises(pidcomm.ArgumentError, match="after the block"):
            batch.start()
    for _ in range(2):
        with pytest.raises(pidcomm.ArgumentError, match="ring"):
            batch.start()
        assert (y.get() == np.roll(x.get().reshape(4, 8, 16), 1, axis=1).reshape(32, 16)).all()


def test_a_batch_refuses_variables_of_replaced_programs() -> None:
    """A load removes the variables of the program before it."""
    source = "#include <mram.h>\n__mram int {0}[8];\nint main(void) {{ return {0}[0]; }}"
    with pidcomm.allocate(pes=8) as pes:
        cube = pes.hypercube(8)
        pes.load(source.format("first"))
        prepared = cube.prepare("allreduce", pes.symbol("first"), "x")
        prepared.run()
        pes.load(source.format("second"))
        with pytest.raises(pidcomm.Error, match="first"):
            prepared.run()


def test_prepare_takes_every_movement() -> None:
    """The names that prepare takes are the methods on buffers."""
    methods = {name for kind in (Movements, Scans) for name in vars(kind) if name[0] != "_"}
    assert set(PREPARED) == {*pidcomm.COLLECTIVES, *methods} - {"scatterv", "gatherv"}


def test_a_batch_has_plans_and_can_be_validated(cube: Any) -> None:
    """Plans of collectives, scans and movements; no byte moves."""
    x, y = buffer(cube, 1), buffer(cube, 2)
    with cube._collecting() as batch:
        calls(cube, x, y)
    batch.validate()
    plans = batch.plans()
    assert [plan["collective"] for plan in plans] == [
        "allreduce", "alltoall", "sendrecv", "reduce", "scan", "sendrecv", "broadcast",
    ]  # fmt: skip
    assert plans[2]["messages"]["bytes"] == 32 * 16 * 4
    assert (x.get() == buffer(cube, 1).get()).all()
    trace = cube.sendrecv([(0, 9), (9, 0)], src=x, dst=y)
    plan = cube.prepare("sendrecv", [(0, 9), (9, 0)], src=x, dst=y).plans(expand=True)[0]
    assert plan["mram_bytes_read"] == trace.mram_bytes_read
    assert plan["messages"]["targets"]
    wrong = cube.prepare("sendrecv", [(0, 9), (1, 9)], src=x, dst=y)
    for call in (wrong.validate, wrong.plans, wrong.run):
        with pytest.raises(pidcomm.ArgumentError, match="two messages write"):
            call()


def test_plans_of_shifts_need_no_pes(cube: Any) -> None:
    """A plan has the messages of the method, also on a hypercube."""
    plan = pidcomm.plan("shift", (8, 4), "01", bytes=64, dst=64)
    own = cube.prepare("shift", buffer(cube, 1), "y", out=buffer(cube, 2)).plans()[0]
    assert plan["messages"] == own["messages"]
    assert cube.plan("shift", "y", bytes=64, dst=64) == plan
    cube.validate("shift", "y", bytes=64, src=buffer(cube, 1), dst=buffer(cube, 2))
    with pytest.raises(pidcomm.ArgumentError, match="another message writes"):
        cube.validate("shift", "y", bytes=64, dst=8)
    assert "messages" not in pidcomm.plan(
        "shift", (8, 4), "01", bytes=64, dst=64, technique="conventional"
    )
    for mask in ("0", "012"):
        with pytest.raises(pidcomm.ArgumentError, match="mask"):
            pidcomm.plan("shift", (8, 4), mask, bytes=64)
