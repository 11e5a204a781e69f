"""Ownership, lifetime and threads."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import dpuemu
import pidcomm


def test_free_invalidates_hypercubes_with_an_error() -> None:
    pes = pidcomm.allocate(pes=64)
    cube = pes.hypercube(8, 8)
    cube.write(np.zeros((64, 1)))
    pes.free()
    pes.free()
    assert pes.is_freed
    assert "freed" in repr(pes)
    for call in (
        lambda: cube.write(np.zeros((64, 1))),
        lambda: cube.read(1, np.int64),
        lambda: cube.alltoall("10", bytes=64),
        lambda: cube.arrays.allreduce(np.zeros((64, 1)), "10"),
        lambda: cube.coords(0),
        lambda: cube.location(0),
        lambda: cube.groups("10"),
        lambda: cube.stream_limit(64, 64),
        lambda: pes.hypercube(8, 8),
        lambda: pes.usable_pes,
    ):
        with pytest.raises(pidcomm.Error, match="freed") as caught:
            call()
        assert caught.value.status == "ERR_SET"
        assert not isinstance(caught.value, ValueError)
    assert cube.plan("alltoall", "10", bytes=64)["groups"] == 8


def test_with_block_frees_even_after_an_error() -> None:
    with pytest.raises(ZeroDivisionError), pidcomm.allocate(pes=8) as pes:
        _ = 1 / 0
    assert pes.is_freed


def test_a_hypercube_keeps_its_set() -> None:
    cube = pidcomm.allocate(pes=8).hypercube(8)
    gc.collect()
    cube.write(np.arange(8, dtype=np.int64).reshape(8, 1))
    assert cube.read(1, np.int64)[7, 0] == 7


def test_garbage_collection_frees_the_ranks() -> None:
    ranks = dpuemu.machine().ranks
    for _ in range(3 * ranks):
        pidcomm.allocate(ranks=1).hypercube(64).write(np.zeros((64, 1)))


def test_free_returns_the_memory() -> None:
    before = dpuemu.resident_bytes()
    with pidcomm.allocate(pes=64) as pes:
        pes.hypercube(64).write(np.ones((64, 4096)))
        assert dpuemu.resident_bytes() > before
    assert dpuemu.resident_bytes() <= before


def test_sets_and_hypercubes_report_their_sizes() -> None:
    with pidcomm.allocate(ranks=2) as pes:
        assert (pes.pes, pes.ranks) == (128, 2)
        cube = pes.hypercube(4, 8)
        assert (cube.pes, cube.shape, cube.pe_set) == (32, (4, 8), pes)
    with pidcomm.allocate(12) as pes:
        assert pes.pes == 12
        np.testing.assert_array_equal(
            pes.hypercube(3, 4).arrays.reduce(np.ones((12, 1)), "11"), [[12]]
        )


def run_together(*bodies: Callable[[], None]) -> None:
    """Run bodies in threads; raise the first error of any."""
    errors: list[BaseException] = []

    def guarded(body: Callable[[], None]) -> None:
        try:
            body()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(body,)) for body in bodies]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def test_two_threads_may_use_two_sets() -> None:
    def work(seed: int) -> Callable[[], None]:
        def body() -> None:
            x = np.random.default_rng(seed).integers(0, 1000, (64, 64), dtype=np.int64)
            with pidcomm.allocate(pes=64) as pes:
                cube = pes.hypercube(8, 8)
                for _ in range(20):
                    result = cube.arrays.allreduce(x, "10", threads=2)
                    np.testing.assert_array_equal(
                        result.reshape(8, 8, 64)[:, 0], x.reshape(8, 8, 64).sum(1)
                    )
                    with pytest.raises(pidcomm.ArgumentError, match=rf"\({8 * seed + 4}\)"):
                        cube.allreduce("10", bytes=8 * seed + 4, dtype="int64")

        return body

    run_together(*(work(seed) for seed in range(4)))


def test_two_threads_may_use_one_hypercube(cube: pidcomm.Hypercube) -> None:
    x = np.random.default_rng(0).integers(0, 1000, (64, 64), dtype=np.int64)

    def work(offset: int) -> Callable[[], None]:
        def body() -> None:
            for _ in range(20):
                cube.write(x, offset)
                cube.alltoall("01", bytes=512, src=offset, dst=offset)
                cube.alltoall("01", bytes=512, src=offset, dst=offset)
                np.testing.assert_array_equal(cube.read(64, np.int64, offset), x)

        return body

    run_together(work(0), work(4096))


def test_freeing_during_a_collective_is_safe() -> None:
    for _ in range(5):
        pes = pidcomm.allocate(pes=64)
        cube = pes.hypercube(8, 8)

        def work(cube: pidcomm.Hypercube = cube) -> None:
            def loop() -> None:
                while True:
                    cube.alltoall("10", bytes=1 << 16, dst=1 << 16)

            with pytest.raises(pidcomm.Error, match="freed"):
                loop()

        def free(pes: pidcomm.PeSet = pes) -> None:
            time.sleep(0.02)
            pes.free()

        run_together(work, work, free)


def test_collectives_release_the_interpreter(cube: pidcomm.Hypercube) -> None:
    ticks: list[float] = []
    is_done = threading.Event()

    def tick() -> None:
        while not is_done.is_set():
            ticks.append(time.perf_counter())
            time.sleep(0.0005)

    ticker = threading.Thread(target=tick)
    ticker.start()
    most = 0
    for _ in range(20):
        begin = time.perf_counter()
        # The audit ISA is slow: one call takes longer than a tick.
        cube.allreduce("11", bytes=1 << 15, dst=1 << 15, dtype="int32", isa="audit", threads=1)
        end = time.perf_counter()
        most = max(most, sum(begin < t < end for t in ticks))
        if most >= 3:
            break
    is_done.set()
    ticker.join()
    assert most >= 3


DROP_BESIDE_A_LAUNCH = """
import threading, pidcomm
pes = pidcomm.allocate(pes=8)
pes.load(
    "int main(void) {"
    " volatile int x = 0; for (int i = 0; i < 40000000; i++) x += i; return x == 1; }"
)
kept, dropped = pes.hypercube(8), pes.hypercube(4, 2)
launch = threading.Thread(target=pes.launch)
launch.start()
del dropped
launch.join()
import dpuemu; print(dpuemu.report(pes).pes)
"""


def test_a_hypercube_may_be_dropped_during_a_launch() -> None:
    result = subprocess.run(
        [sys.executable, "-c", DROP_BESIDE_A_LAUNCH],
        capture_output=True,
        text=True,
        timeout=600,
        check=True,
    )
    assert result.stdout == "8\n"


def ends_normally(program: str, *arguments: str) -> None:
    """Run a Python program; fail if a signal ends it, if it hangs or if it writes to stderr."""
    end = subprocess.run(
        [sys.executable, "-c", program, *arguments], capture_output=True, text=True, timeout=60
    )
    assert (end.returncode, end.stderr) == (0, "")


DAEMON_THREAD = """
import threading, time
import numpy as np, pidcomm
cube = pidcomm.allocate(pes=64).hypercube(8, 8)
cube.write(np.ones((64, 8192)))
cube.pe_set.load("int main(void) {{ return 0; }}")
is_running = threading.Event()
def work():
    while True:
        is_running.set()
        {call}
threading.Thread(target=work, daemon=True).start()
is_running.wait()
time.sleep(0.02)
"""


@pytest.mark.parametrize(
    "call",
    [
        'cube.alltoall("11", bytes=65536)',
        'cube.alltoall("11", bytes=65536, wait=False).wait()',
        "cube.read(8192, np.float64)",
        "pidcomm.allocate(pes=8).hypercube(8)",
        "cube.pe_set.launch()",
    ],
)
def test_the_interpreter_exits_while_a_daemon_thread_is_in_a_call(call: str) -> None:
    for _ in range(3):
        ends_normally(DAEMON_THREAD.format(call=call))


def test_a_child_of_fork_exits_although_a_call_of_its_parent_is_pending() -> None:
    ends_normally("""
import os
import numpy as np, pidcomm
cube = pidcomm.allocate(pes=512).hypercube(32, 16)
request = cube.alltoall("11", bytes=1 << 20, wait=False)
child = os.fork()
if child == 0:
    try:
        request.wait()
    except pidcomm.Error as error:
        assert "before fork" in str(error) and error.status == "ERR_BUSY", error
    else:
        raise SystemExit("the child process waited")
else:
    assert os.waitpid(child, 0)[1] == 0
    request.wait()
""")


def test_compiling_removes_the_folder_of_a_killed_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = tmp_path / "pidcomm-tmp-abcdefgh"
    left.mkdir()
    os.utime(left, times=(0, 0))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pidcomm.allocate(pes=8) as pes:
        pes.load("int main(void) { return 0; }")
    assert list(tmp_path.iterdir()) == []
