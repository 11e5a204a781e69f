"""Non-blocking collectives: wait=False."""

from __future__ import annotations

import gc
import threading
import time
import weakref
from collections.abc import Iterator

import numpy as np
import pytest
from definitions import payload
from emulated_machine import ctrl_c
from user_program import main as user_program

import dpuemu
import pidcomm

LONG = 1 << 18
SLOW: pidcomm.Options = {"isa": "audit", "threads": 1}  # counts every line


@pytest.fixture
def pes() -> Iterator[pidcomm.PeSet]:
    """A new set for every test, which may free it."""
    with pidcomm.allocate(pes=64) as pes:
        yield pes


def written(
    cube: pidcomm.Hypercube, size_bytes: int = 512
) -> np.ndarray[tuple[int, ...], np.dtype[np.int32]]:
    x = np.random.default_rng(1).integers(-1000, 1000, (cube.pes, size_bytes // 4), np.int32)
    cube.write(x)
    return x


def test_collectives_between_pes_return_a_request_for_their_trace(cube: pidcomm.Hypercube) -> None:
    for name in ("alltoall", "reduce_scatter", "allreduce", "allgather"):
        arguments = {"op": "max"} if pidcomm.COLLECTIVES[name].takes_op else {}
        written(cube)
        cube.write(np.zeros((64, 128), np.int32), offset=4096)
        wanted_trace = getattr(cube, name)("10", bytes=512, dst=4096, dtype=np.int32, **arguments)
        wanted = cube.read(128, np.int32, offset=4096)
        cube.write(np.zeros((64, 128), np.int32), offset=4096)
        request = getattr(cube, name)(
            "10", bytes=512, dst=4096, dtype=np.int32, wait=False, **arguments
        )
        assert isinstance(request, pidcomm.Request)
        trace = request.wait()
        assert isinstance(trace, pidcomm.Trace)
        assert request.wait() is trace is cube.last_trace
        assert request.test()
        assert trace.bus_bytes == wanted_trace.bus_bytes
        np.testing.assert_array_equal(cube.read(128, np.int32, offset=4096), wanted)


def test_host_collectives_return_a_request_for_their_array(cube: pidcomm.Hypercube) -> None:
    x = written(cube)
    gathered = cube.gather("10", bytes=512, dtype=np.int32, wait=False).wait()
    np.testing.assert_array_equal(gathered, x.reshape(8, 1024))
    out = np.zeros((8, 128), np.int32)
    request = cube.reduce("10", bytes=512, dtype=np.int32, out=out, wait=False)
    assert request.wait() is out
    np.testing.assert_array_equal(out, x.reshape(8, 8, 128).sum(axis=1))
    for name in ("scatter", "broadcast"):
        rows = payload(name, (8, 8), "10", "int32", block_bytes=64)
        getattr(cube, name)("10", host=rows, dst=0, wait=False).wait()
        got = cube.read(16, np.int32)
        want = rows.reshape(64, 16) if name == "scatter" else np.repeat(rows, 8, axis=0)
        np.testing.assert_array_equal(got, want)


def test_a_request_keeps_its_arrays_alive(cube: pidcomm.Hypercube) -> None:
    wanted = np.arange(8 * LONG, dtype=np.uint8).reshape(8, LONG)
    rows = wanted.copy()
    alive = weakref.ref(rows)
    request = cube.broadcast("10", host=rows, wait=False, **SLOW)
    del rows
    gc.collect()
    assert alive() is not None
    request.wait()
    np.testing.assert_array_equal(cube.read(LONG, np.uint8), np.repeat(wanted, 8, axis=0))


def test_later_calls_wait_for_a_request(cube: pidcomm.Hypercube) -> None:
    x = written(cube, LONG)
    request = cube.alltoall("10", bytes=LONG, dst=1 << 20, dtype=np.int32, wait=False, **SLOW)
    cube.alltoall("10", bytes=LONG, src=1 << 20, dst=2 << 20, dtype=np.int32)
    np.testing.assert_array_equal(cube.read(LONG // 4, np.int32, offset=2 << 20), x)
    assert request.test()


def test_a_launch_waits_for_the_request(pes: pidcomm.PeSet, cube: pidcomm.Hypercube) -> None:
    pes.load(
        """
        #include <mram.h>
        __dma_aligned int32_t part[256];
        int main(void) {
          __mram_ptr int32_t *x = DPU_MRAM_HEAP_POINTER + (1 << 20);
          for (unsigned i = 0; i < (1 << 18) / 4; i += 256) {
            mram_read(x + i, part, sizeof part);
            for (int j = 0; j < 256; j++) part[j] += 1;
            mram_write(part, x + i, sizeof part);
          }
          return 0;
        }
        """
    )
    x = written(cube, LONG)
    request = cube.allreduce("10", bytes=LONG, dst=1 << 20, dtype=np.int32, wait=False, **SLOW)
    pes.launch()
    want = np.repeat(x.reshape(8, 8, -1).sum(axis=1), 8, axis=0) + 1
    np.testing.assert_array_equal(cube.read(LONG // 4, np.int32, offset=1 << 20), want)
    request.wait()


def test_ctrl_c_stops_pes_for_which_a_request_waits(
    pes: pidcomm.PeSet, cube: pidcomm.Hypercube
) -> None:
    pes.load('int main(void) { for (;;) __asm__ volatile(""); }')
    pes.launch(wait=False)
    request = cube.alltoall("10", bytes=512, wait=False)
    start = time.monotonic()
    with ctrl_c():
        pes.wait()
    assert time.monotonic() - start < dpuemu.machine().patience_seconds / 2
    with pytest.raises(pidcomm.Error, match="in fault"):
        request.wait()


def test_freeing_a_busy_set_is_an_error(pes: pidcomm.PeSet, cube: pidcomm.Hypercube) -> None:
    request = cube.alltoall("10", bytes=512, wait=False)
    with pytest.raises(pidcomm.Error, match="not been waited for: 1") as caught:
        pes.free()
    assert caught.value.status == "ERR_BUSY"
    assert not isinstance(caught.value, ValueError)
    assert not pes.is_freed
    assert "not waited for" in repr(request)
    request.wait()
    assert "ended" in repr(request)
    pes.free()
    assert pes.is_freed


def test_a_with_block_waits_before_it_frees() -> None:
    with pidcomm.allocate(pes=64) as pes:
        request = pes.hypercube(64).alltoall("1", bytes=LONG, wait=False, **SLOW)
    assert pes.is_freed
    assert request.wait().mram_bytes_written == 64 * LONG


def test_a_request_is_a_context(cube: pidcomm.Hypercube) -> None:
    x = written(cube, LONG)
    with cube.alltoall(
        "10", bytes=LONG, dst=1 << 20, dtype=np.int32, wait=False, **SLOW
    ) as request:
        assert isinstance(request, pidcomm.Request)
    assert request.test()
    assert "ended" in repr(request)
    cube.alltoall("10", bytes=LONG, src=1 << 20, dtype=np.int32)
    np.testing.assert_array_equal(cube.read(LONG // 4, np.int32), x)


def test_a_dropped_request_is_waited_for(pes: pidcomm.PeSet, cube: pidcomm.Hypercube) -> None:
    cube.alltoall("10", bytes=LONG, wait=False, **SLOW)
    gc.collect()
    pes.free()


def test_a_request_keeps_its_hypercube_alive() -> None:
    request = (
        pidcomm.allocate(pes=64).hypercube(8, 8).alltoall("10", bytes=LONG, wait=False, **SLOW)
    )
    gc.collect()
    assert request.wait().mram_bytes_written == 64 * LONG


def test_a_call_returns_before_its_collective_ends(cube: pidcomm.Hypercube) -> None:
    for _ in range(10):
        request = cube.alltoall("10", bytes=LONG, wait=False, **SLOW)
        was_under_way = not request.test()
        request.wait()
        if was_under_way:
            return
    pytest.fail("every call had ended when it returned")


def test_several_calls_queue_without_waiting(cube: pidcomm.Hypercube) -> None:
    x = written(cube, LONG)
    for _ in range(10):
        first = cube.alltoall("10", bytes=LONG, dst=1 << 20, dtype=np.int32, wait=False, **SLOW)
        second = cube.alltoall(
            "10",
            bytes=LONG,
            src=1 << 20,
            dst=2 << 20,
            technique="pr+im",
            scratch=3 << 20,
            wait=False,
        )
        # Checks before it allocates.
        third = cube.gather("10", bytes=LONG, src=2 << 20, dtype=np.int32, wait=False)
        was_under_way = not first.test()
        np.testing.assert_array_equal(third.wait(), x.reshape(8, -1))
        assert first.wait().mram_bytes_written == second.wait().mram_bytes_written == 64 * LONG
        if was_under_way:
            return
    pytest.fail("the first call had ended when the third returned")


def test_errors_are_raised_by_the_call(cube: pidcomm.Hypercube) -> None:
    with pytest.raises(pidcomm.ArgumentError, match="divisible by 8"):
        cube.alltoall("10", bytes=12, wait=False)
    with pytest.raises(pidcomm.ArgumentError, match="axis mask"):
        cube.alltoall("2", bytes=64, wait=False)


def test_other_techniques_are_requests_too(cube: pidcomm.Hypercube) -> None:
    x = written(cube)
    for technique in ("conventional", "pr+im"):
        request = cube.alltoall(
            "10", bytes=512, dst=4096, technique=technique, scratch=8192, wait=False
        )
        assert request.wait().technique == technique
        cube.alltoall("10", bytes=512, src=4096, dst=16384)
        np.testing.assert_array_equal(cube.read(128, np.int32, offset=16384), x)


def test_two_threads_wait_for_one_request(cube: pidcomm.Hypercube) -> None:
    request = cube.alltoall("10", bytes=LONG, wait=False, **SLOW)
    traces: list[pidcomm.Trace] = []
    threads = [threading.Thread(target=lambda: traces.append(request.wait())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(traces) == 4
    assert {trace.seconds_total for trace in traces} == {traces[0].seconds_total}


def start_and_ask(cube: pidcomm.Hypercube, seen: set[tuple[bool, str]]) -> None:
    """Record each error, and whether the set was freed then."""
    for _ in range(20):
        try:
            cube.alltoall("10", bytes=64, wait=False).wait()
            cube.coords(0)
        except pidcomm.Error as error:
            seen.add((cube.pe_set.is_freed, error.status))


def free_at_last(pes: pidcomm.PeSet, refused: set[str]) -> None:
    """Free a set as soon as possible; record the errors until then."""
    while not pes.is_freed:
        try:
            pes.free()
        except pidcomm.Error as error:
            refused.add(error.status)


def test_a_set_is_reported_as_freed_only_after_free() -> None:
    refused: set[str] = set()
    seen: set[tuple[bool, str]] = set()
    for _ in range(30):
        pes = pidcomm.allocate(pes=64)
        cube = pes.hypercube(8, 8)
        threads = [threading.Thread(target=start_and_ask, args=(cube, seen)) for _ in range(2)]
        threads.append(threading.Thread(target=free_at_last, args=(pes, refused)))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert refused <= {"ERR_BUSY"}
    assert seen <= {(True, "ERR_SET")}


def leave_with(error: Exception | None) -> pidcomm.PeSet:
    """Leave the `with` block of a set with a pending request."""
    with pidcomm.allocate(pes=64) as pes:
        pes.hypercube(8, 8).alltoall("10", bytes=64, wait=False)
        kept = pes.hypercube(8, 8).alltoall("10", bytes=64, wait=False)
        assert "not waited for" in repr(kept)
        if error is not None:
            raise error
    return pes


def test_an_error_of_a_pending_request_is_raised_by_the_with_block(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert leave_with(None).is_freed
    with pytest.raises(ZeroDivisionError):
        leave_with(ZeroDivisionError())
    really_wait = pidcomm.Request.wait

    def fail(self: pidcomm.Request[pidcomm.Trace]) -> None:
        really_wait(self)
        raise pidcomm.Error("a device failed on the way", "ERR_DEVICE")

    monkeypatch.setattr(pidcomm.Request, "wait", fail)
    with pytest.raises(pidcomm.Error, match="on the way"):
        leave_with(None)
    with pytest.raises(ZeroDivisionError):
        leave_with(ZeroDivisionError())


@pytest.mark.parametrize("wait", [True, False])
def test_the_program_that_type_checkers_see_is_right(wait: bool) -> None:
    assert user_program(wait) == 0
