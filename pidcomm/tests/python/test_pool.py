"""Memory pools from Python: calls between processes, a cube over them, the switch, and
errors.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import pidcomm
from pidcomm.pool import Pool

PROGRAM = """
import sys
import numpy as np
import pidcomm

name, host, hosts, switch = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4] == "True"
size = 1 << 20
with pidcomm.pool.Pool(
    name, host=host, hosts=hosts, bytes=size, switch=switch, timeout=60
) as pool:
    x = np.arange(100, dtype=np.int32) + 1000 * host
    offset = pool.allocate(hosts * x.nbytes)
    pool.write(offset + host * x.nbytes, x)
    pool.sync()
    y = pool.read(offset, hosts * x.size, x.dtype).reshape(hosts, -1)
    np.testing.assert_array_equal(y, np.arange(100) + 1000 * np.arange(hosts)[:, None])
    pes = pidcomm.allocate(pes=8)
    pes.load(
        "#include <mram.h>\\n#include <stdint.h>\\n"
        "__mram_noinit_keep int64_t grad[64], sums[64]; int main(void) { return 0; }"
    )
    with pidcomm.hosts.connect(pes.hypercube(8), pool) as cube:
        z = np.arange(8 * 8 * hosts, dtype=np.int64).reshape(8, -1) + host
        rows = np.arange(8 * 8 * hosts).reshape(8, -1)
        everything = sum((rows + other).sum(0) for other in range(hosts))
        np.testing.assert_array_equal(cube.arrays.allreduce(z, "11")[0], everything)
        own = np.split(everything, hosts)[host]
        np.testing.assert_array_equal(cube.arrays.reduce_scatter(z, "11").ravel(), own)
        np.testing.assert_array_equal(cube.arrays.allgather(z[:, :1], "01")[:, host], z[:, 0])
        grad, sums = pes.symbol("grad"), pes.symbol("sums")
        grad.write(z)
        cube.allreduce("11", bytes=64 * hosts, src=grad, dst=sums, dtype="int64")
        np.testing.assert_array_equal(sums.read(z.dtype, 8 * hosts), [everything] * 8)
        np.testing.assert_array_equal(grad.read(z.dtype, 8 * hosts), z)
        cube.alltoall("01", bytes=64 * hosts, src=grad, dst=grad)
        blocks = [np.split(z - host + other, hosts, 1)[host] for other in range(hosts)]
        np.testing.assert_array_equal(grad.read(z.dtype, 8 * hosts), np.hstack(blocks))
        for plan in (cube.plan, cube.validate):  # the heap begins after the variables
            plan("alltoall", "11", bytes=64 * hosts, src=grad, dst=8)
        assert cube.plan("allreduce", "11", bytes=64 * hosts, dtype="int64")["pool_bytes"] > 0
        shown = cube._repr_html_()
        assert shown.startswith(f"<table><caption>hosts.Cube 8x{hosts}, host {host} of {hosts}<")
        assert f'aria-label="mask 01: 8 groups of {hosts} PEs"' in shown
        if len(sys.argv) > 5:
            print("ready", flush=True)
            while True:
                cube.allreduce("11", bytes=64 * hosts, dtype="int64")
print("passed")
"""


def start(name: str, hosts: int, switch: bool, *words: str) -> list[subprocess.Popen[str]]:
    """Start the program in a process per host."""
    return [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM, name, str(host), str(hosts), str(switch), *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        for host in range(hosts)
    ]


def switches(name: str) -> list[int]:
    """Return the processes of the switch of a pool."""
    processes = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if name.encode() in (
                words := (folder / "cmdline").read_bytes()
            ) and b"pidcomm.pool" in words.split(b"\0"):
                processes.append(int(folder.name))
        except OSError:
            continue
    return processes


def wait_until_gone(name: str) -> None:
    """Wait until no switch and no object of a pool is left."""
    for _ in range(100):
        if not switches(name) and not list(Path("/dev/shm").glob(f"pidcomm-pool-*{name}*")):
            return
        time.sleep(0.05)
    raise AssertionError(f"{name}: {switches(name)}")


@pytest.mark.parametrize("switch", [False, True])
def test_hosts_share_a_pool(switch: bool) -> None:
    name = f"share{os.getpid()}{switch}"
    for process in start(name, 3, switch):
        out, err = process.communicate(timeout=60)
        assert out == "passed\n", err
    wait_until_gone(name)


@pytest.mark.parametrize("victim", [0, 1, "switch"])
def test_a_killed_process_ends_the_others_and_leaves_nothing(victim: int | str) -> None:
    name = f"kill{os.getpid()}{victim}"
    processes = start(name, 2, True, "forever")
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n", process.communicate()[1]
    (killed,) = switches(name) if victim == "switch" else [processes[int(victim)].pid]
    os.kill(killed, 9)
    word = "the switch" if victim == "switch" else f"host {victim}"
    for process in processes:
        _, err = process.communicate(timeout=60)
        if process.pid != killed:
            assert f"{word} (process {killed}) has ended without closing the pool" in err
    wait_until_gone(name)


def test_a_switch_that_cannot_start_is_an_error_with_its_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    program = "raise SystemExit('the switch has no library')"
    monkeypatch.setattr("pidcomm.pool.module_command", lambda *_: [sys.executable, "-c", program])
    with pytest.raises(
        pidcomm.Error,
        match=r"the switch \(process \d+\) has ended .* with code 1: the switch has no library",
    ) as caught:
        Pool(f"start{os.getpid()}", host=0, hosts=1, bytes=1 << 20, switch=True, timeout=1000)
    assert caught.value.status == "ERR_DEVICE"
    monkeypatch.setattr("pidcomm.pool.module_command", lambda *_: ["/nowhere/python"])
    with pytest.raises(pidcomm.Error, match=r"cannot start the switch: .*/nowhere/python"):
        Pool(f"start{os.getpid()}", host=0, hosts=1, bytes=1 << 20, switch=True, timeout=1000)


@pytest.mark.parametrize("coherence", ["none", "hardware"])
def test_an_uncaught_exception_closes_the_pool(coherence: str, tmp_path: Path) -> None:
    program = (
        "import sys, pidcomm\n"
        "def main(host):\n"
        f"    pool = pidcomm.pool.Pool(path={str(tmp_path / 'pool')!r}, host=host, hosts=2,\n"
        f"        bytes=1 << 20, coherence={coherence!r}, timeout=300)\n"
        "    pool.sync()\n"
        "    if host == 1: raise LookupError('no row for host 1')\n"
        "    pool.sync()\n"
        "main(int(sys.argv[1]))\n"
    )
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", program, str(host)], stderr=subprocess.PIPE, text=True
        )
        for host in range(2)
    ]
    errors = [process.communicate(timeout=120)[1] for process in processes]
    assert "LookupError: no row for host 1" in errors[1]
    assert re.search(r"host 1 \(process \d+\) has (closed|ended)", errors[0]), errors[0]


def test_a_pool_of_one_host() -> None:
    with Pool(f"one{os.getpid()}", host=0, hosts=1, bytes=1 << 20, coherence="hardware") as pool:
        assert (pool.host, pool.hosts, pool.bytes, pool.transport) == (0, 1, 1 << 20, "pool")
        assert repr(pool) == f"<Pool one{os.getpid()}, 1048576 bytes, host 0 of 1>"
        x = np.arange(24, dtype=np.float32).reshape(4, 6)
        offset = pool.allocate(x.nbytes)
        pool.write(offset, x)
        pool.sync()
        out = np.empty((4, 6), np.float32)
        assert pool.read(offset, 24, np.float32, out=out) is out
        np.testing.assert_array_equal(out, x)
        with pytest.raises(
            pidcomm.ArgumentError,
            match=r"out has 24 elements of float32; it needs 5 of float32",
        ):
            pool.read(offset, 5, np.float32, out=out)
        with pytest.raises(pidcomm.ArgumentError, match="must be in allocated memory"):
            pool.write(offset + 64, x)
        with pytest.raises(
            pidcomm.OutOfMemoryError, match="free bytes of 1048576; 1048576 are needed"
        ):
            pool.allocate(1 << 20)
    with pytest.raises(pidcomm.Error, match="the pool has been closed"):
        pool.sync()


@pytest.mark.parametrize("count", [0, 1, 100, 524_287, 524_288, 600_001])
def test_rows_of_any_size_and_alignment_are_copied_exactly(count: int) -> None:
    x = np.random.default_rng(count).integers(0, 256, count + 1, np.uint8)
    name = f"rows{os.getpid()}-{count}"
    with Pool(name, host=0, hosts=1, bytes=2 << 20, coherence="hardware") as pool:
        offset = pool.allocate(count + 9)
        pool.write(offset, np.full(count + 9, 7, np.uint8))
        for shift in (0, 1, 63):
            copy, read = np.full((2, count + 64), 9, np.uint8)
            part = slice(shift, shift + count)
            pool.write(offset + 8, x[1:], out=copy[part])
            pool.read(offset + 8, count, np.uint8, out=read[part])
            for rows in (copy, read):
                np.testing.assert_array_equal(rows[part], x[1:])
                assert (rows[:shift] == 9).all()
                assert (rows[shift + count :] == 9).all()
        edges = pool.read(offset, count + 9, np.uint8)[[*range(8), -1]]
        assert (edges == 7).all()
        with pytest.raises(pidcomm.ArgumentError, match="out has"):
            pool.write(offset, x, out=np.empty(count + 2, np.uint8))


def on_hosts(hosts: int, body: Callable[[Pool], object], **settings: object) -> list[object]:
    """Run the body in a thread per host. Return its results, or its exceptions."""
    settings = {"name": f"threads{os.getpid()}", "timeout": 60, **settings}

    def run(host: int) -> object:
        with Pool(host=host, hosts=hosts, **settings) as pool:  # type: ignore[arg-type]
            try:
                return body(pool)
            except Exception as error:
                return error

    with ThreadPoolExecutor(hosts) as threads:
        return list(threads.map(run, range(hosts)))


ALLGATHERS = [
    (np.uint8, 0, 64),
    (np.uint8, 1, 64),
    (np.int16, 33, 64),
    (np.float32, 1000, 192),
    (np.complex128, 4097, 16 << 10),
    (np.uint8, 600_001, 128 << 10),
    (np.int64, 70_001, 1 << 20),
    (np.float64, 100, 127),
]
"""dtype, elements per host, bytes of a slot."""


@pytest.mark.parametrize("coherence", ["none", "hardware"])
@pytest.mark.parametrize("hosts", [1, 2, 3, 4])
def test_allgather_returns_the_elements_of_all_hosts(hosts: int, coherence: str) -> None:
    def body(pool: Pool) -> bool:
        generator = np.random.default_rng(5)  # the same on all hosts
        offset = pool.allocate(2 * hosts << 20)
        for dtype, count, slot in ALLGATHERS:
            rows = generator.integers(0, 256, (hosts, count)).astype(dtype)
            for shift in (0, 1):
                memory = np.full((hosts * count + 2) * np.dtype(dtype).itemsize + 1, 9, np.uint8)
                size = hosts * rows[0].nbytes
                out = memory[shift : shift + size].view(dtype)
                y = pool.allgather(offset, 2 * hosts * slot, rows[pool.host], out=out)
                assert y is out
                np.testing.assert_array_equal(y, rows.ravel())
                assert (memory[:shift] == 9).all()
                assert (memory[shift + size :] == 9).all()
            y = pool.allgather(offset + 64, 2 * hosts * 64, rows[pool.host][:50])
            np.testing.assert_array_equal(y, rows[:, :50].ravel())
        pool.sync()
        return True

    assert on_hosts(hosts, body, coherence=coherence) == [True] * hosts


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (lambda pool, at, x: pool.allgather(at, 4096, x[:-1]), "all hosts must make the same"),
        (lambda pool, at, x: pool.allgather(at, 4096, x[:0]), "all hosts must make the same"),
        (lambda pool, at, x: pool.sync(), "all hosts must make the same calls|has closed the pool"),
        (lambda pool, at, x: 1 / 0, "has closed the pool"),
    ],
)
@pytest.mark.parametrize("odd", [0, 1])
def test_hosts_that_make_other_calls_are_errors(
    other: Callable[..., object], message: str, odd: int
) -> None:
    def body(pool: Pool) -> object:
        offset, x = pool.allocate(1 << 16), np.arange(5000, dtype=np.uint8)
        pool.allgather(offset, 4096, x)
        return other(pool, offset, x) if pool.host == odd else pool.allgather(offset, 4096, x)

    results = on_hosts(3, body, bytes=1 << 20)
    for host, result in enumerate(results):
        assert isinstance(result, pidcomm.Error | ZeroDivisionError), results
        assert re.search(message, str(result)) or host == odd, results


def test_an_allgather_does_not_match_a_call_of_an_earlier_pool_in_the_file(tmp_path: Path) -> None:
    for has_other_call in (False, True):

        def body(pool: Pool, has_other_call: bool = has_other_call) -> object:
            offset, x = pool.allocate(1 << 16), np.arange(5000, dtype=np.uint8)
            if has_other_call and pool.host == 1:
                pool.sync()
            return pool.allgather(offset, 1 << 16, x).size

        results = on_hosts(2, body, name=None, path=str(tmp_path / "pool"))
        if has_other_call:
            assert all(isinstance(result, pidcomm.Error) for result in results), results
            assert "host 1 is in a sync; all hosts must make the same calls" in str(results[0])
        else:
            assert results == [10000, 10000]


def test_allgather_checks_its_arguments() -> None:
    with Pool(f"checks{os.getpid()}", host=0, hosts=1, bytes=1 << 20) as pool:
        offset, x = pool.allocate(1024), np.arange(8, dtype=np.int32)
        for arguments, message in (
            (
                (offset, 64, x),
                "for an allgather must begin at a multiple of 64 and be at least 128",
            ),
            ((offset + 8, 128, x), "must begin at a multiple of 64"),
            ((offset, 2048, x), "must be in allocated memory"),
            ((0, 128, x), "must be in allocated memory"),
        ):
            with pytest.raises(pidcomm.ArgumentError, match=message):
                pool.allgather(*arguments)
        with pytest.raises(pidcomm.ArgumentError, match="overlap"):
            pool.allgather(offset, 128, x, out=x)
        with pytest.raises(pidcomm.ArgumentError, match="out has 7 elements"):
            pool.allgather(offset, 128, x, out=x[:7])
        np.testing.assert_array_equal(pool.allgather(offset, 128, x), x)


def test_a_view_shows_the_pool_and_keeps_it_open() -> None:
    with Pool(f"views{os.getpid()}", host=0, hosts=1, bytes=1 << 20) as pool:
        offset, x = pool.allocate(1024), np.arange(16, dtype=np.int32)
        view = pool.view(offset, x.size, x.dtype)
        for change in (0, 5):
            pool.write(offset, x + change)
            np.testing.assert_array_equal(view, x + change)
        with pytest.raises(ValueError, match="read-only"):
            view[0] = 1
        with pytest.raises(pidcomm.ArgumentError, match="must be in allocated memory"):
            pool.view(offset, 300, np.float32)
        assert pool.view(offset, 0, np.float32).size == 0
        part = view[3:]
    del view
    with pytest.raises(pidcomm.Error, match="closed"):
        pool.view(offset, 1, np.int32)
    np.testing.assert_array_equal(part, x[3:] + 5)


@pytest.mark.parametrize("victim", [0, 1])
def test_a_host_killed_in_an_allgather_ends_the_others(victim: int) -> None:
    program = (
        "import sys, numpy as np, pidcomm\n"
        "x = np.zeros(1 << 20, np.uint8)\n"
        "with pidcomm.pool.Pool(sys.argv[1], host=int(sys.argv[2]), hosts=3) as pool:\n"
        "    offset = pool.allocate(6 << 16)\n"
        "    while True:\n"
        "        pool.allgather(offset, 6 << 16, x)\n"
        "        print('more', flush=True)\n"
    )
    name = f"gather{os.getpid()}{victim}"
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", program, name, str(host)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for host in range(3)
    ]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "more\n"
    processes[victim].kill()
    for process in processes:
        _, err = process.communicate(timeout=60)
        if process is not processes[victim]:
            assert f"host {victim} (process {processes[victim].pid}) has ended" in err
    wait_until_gone(name)


def test_wrong_settings_are_errors(tmp_path: Path) -> None:
    for settings, message in (
        ({"name": "a b"}, "the name 'a b' of a pool must have 1 to 64"),
        ({"bytes": 5}, r"bytes \(5\) of a pool must be a multiple of 4096"),
        ({"host": 2}, r"host \(2\) must be below the number of hosts \(1\)"),
        ({"hosts": 0}, r"hosts \(0\) of a pool must be between"),
        ({"name": None}, "exactly one of name, path and memory, not 0"),
        ({"coherence": "weak"}, "coherence 'weak' is unknown"),
        ({"timeout": 0}, r"timeout \(0\) must not be 0"),
        ({"name": None, "path": str(tmp_path)}, "the system cannot open it"),
    ):
        with pytest.raises(pidcomm.Error, match=message):
            Pool(**{"name": "wrong", "host": 0, "hosts": 1, "timeout": 1, **settings})  # type: ignore[arg-type]


def test_plans_through_a_pool_write_once() -> None:
    for hosts in (2, 4, 8):
        size = 16 * hosts * 64
        pool = pidcomm.hosts.plan("allgather", (16, hosts), "11", bytes=size, transport="pool")
        mpi = pidcomm.hosts.plan("allgather", (16, hosts), "11", bytes=size, transport="mpi")
        assert pool["link"]["bytes_sent"] == 16 * 64
        assert pool["link"]["bytes_received"] == size
        assert mpi["link"]["bytes_sent"] == (hosts - 1) * 16 * 64
        assert [row["syncs"] for row in pool["pieces"][0]["rounds"]] == [True]
    switch = pidcomm.hosts.plan(
        "allreduce", (16, 4), "11", bytes=64, dtype="int32", transport="switch"
    )
    assert switch["pieces"][0]["rounds"][0]["on_switch"]


@pytest.mark.parametrize(
    "statements",
    [
        "Pool(f'folder{os.getpid()}', host=0, hosts=1, bytes=1 << 20, switch=True).close()",
        "osu.measure([osu.OsuCase('allgather', 'mpi', 2, 1, (64,), iters=1)])",
        "measure_over_hosts([HostsCase('reduce', (8, 2), '11', 64, 'auto')], iters=1)",
    ],
)
def test_child_processes_import_nothing_from_the_current_folder(
    statements: str, tmp_path: Path
) -> None:
    hostile = tmp_path / "hostile"
    hostile.mkdir()
    for name in ("json", "random", "runpy", "secrets", "numpy"):
        (hostile / f"{name}.py").write_text(f"open('imported_{name}', 'w')\nraise ImportError\n")
    program = tmp_path / "program.py"
    program.write_text(
        "import os\n"
        "from pidcomm.bench import osu\n"
        "from pidcomm.bench.over_hosts import HostsCase, measure_over_hosts\n"
        "from pidcomm.pool import Pool\n"
        f"{statements}\n"
    )
    result = subprocess.run(
        [sys.executable, str(program)], cwd=hostile, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    assert not list(hostile.glob("imported_*"))
