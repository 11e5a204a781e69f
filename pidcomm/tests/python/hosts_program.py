"""Programs that test_hosts_mpi.py runs in MPI processes: hosts_program.py FUNCTION."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mpi4py
import numpy as np
import pytest
from definitions import COLLECTIVES, groups_of, payload, result_of

import pidcomm

if sys.argv[1] == "a_wait_needs_a_thread_level":
    mpi4py.rc.thread_level = "funneled"
from mpi4py import MPI

from pidcomm.tables import OVERLAPS

COMM = MPI.COMM_WORLD
LOCAL = pidcomm.allocate(pes=16).hypercube(8, 2)
X = np.arange(16 * 24, dtype=np.int32).reshape(16, 24)


def error_of(call: Callable[[], Any]) -> tuple[str, str]:
    """Return the status and the message of the error of a call, which all hosts must share."""
    try:
        call()
    except pidcomm.Error as error:
        status_and_message = (error.status, str(error))
        assert COMM.allgather(status_and_message) == [status_and_message] * COMM.size, (
            status_and_message
        )
        return status_and_message
    raise AssertionError("the call has not failed")


def errors_are_the_same_everywhere() -> None:
    """Hosts that make different or wrong calls get one error; then valid calls work."""
    cube = pidcomm.hosts.connect(LOCAL, COMM, timeout=30)
    is_odd = cube.host == 1
    cube.write(X)

    def check(status: str, part: str, call: Callable[[], Any]) -> None:
        error = error_of(call)
        assert error[0] == status, error
        assert part in error[1], error
        np.testing.assert_array_equal(cube.read(24, np.int32), X)

    def allreduce(
        mask: Any = "101", bytes: int = 96, dtype: Any = np.int32, op: Any = "sum", **rest: Any
    ) -> Any:
        return cube.allreduce(mask, bytes=bytes, dtype=dtype, op=op, **rest)

    different = (
        "the hosts make different calls: host 0: allreduce with mask 101 of 8x2x3, 96 bytes of"
        " int32, sum; host 1"
    )
    check("ERR_ARGUMENT", different, lambda: allreduce(mask="111" if is_odd else "101"))
    check("ERR_ARGUMENT", different, lambda: allreduce(mask="100" if is_odd else "101"))
    check("ERR_ARGUMENT", different, lambda: allreduce(bytes=48 if is_odd else 96))
    check("ERR_ARGUMENT", different, lambda: allreduce(dtype=np.uint32 if is_odd else np.int32))
    check("ERR_ARGUMENT", different, lambda: allreduce(op="max" if is_odd else "sum"))
    check(
        "ERR_ARGUMENT",
        different,
        lambda: cube.allgather("101", bytes=192) if is_odd else allreduce(),
    )
    check(
        "ERR_ARGUMENT",
        "root 1",
        lambda: cube.reduce("101", bytes=96, dtype=np.int32, root=int(is_odd)),
    )
    check("ERR_MASK", "host 1 refuses", lambda: allreduce(mask="1" if is_odd else "101"))
    names: Any = ("q", "x") if is_odd else ("host", "x")
    check("ERR_MASK", "host 1 refuses", lambda: allreduce(mask=names))
    check("ERR_TYPE", "host 1 refuses", lambda: allreduce(dtype="object" if is_odd else np.int32))
    check("ERR_WINDOW", "host 1 refuses", lambda: allreduce(src=4 if is_odd else 0))
    check(
        "ERR_ARGUMENT",
        "root (3) must be below",
        lambda: cube.reduce("101", bytes=96, dtype=np.int32, root=3),
    )
    check("ERR_ARGUMENT", "bytes", lambda: allreduce(bytes=-8 if is_odd else 96))
    # The arrays: an error before the write, and an error in `out` after the hosts have agreed.
    check(
        "ERR_HOST_BUFFER",
        "has shape (15, 24)",
        lambda: cube.arrays.allreduce(X[: 15 if is_odd else 16], "101"),
    )
    check(
        "ERR_SIZE", "divisible", lambda: cube.arrays.alltoall(X[:, : 23 if is_odd else 24], "001")
    )
    small = np.empty((1, 1), np.int32)
    check(
        "ERR_HOST_BUFFER",
        "out has shape",
        lambda: cube.arrays.allreduce(X + 1, "101", out=small if is_odd else None),
    )
    local = pidcomm.hosts.connect
    lengths = (4, 4) if is_odd else (8, 2)
    error_of(lambda: local(LOCAL.pe_set.hypercube(*lengths), COMM, timeout=30))
    error_of(lambda: local(LOCAL, COMM, timeout=30, overlap="on" if is_odd else "off"))
    reduced: Any = cube.arrays.allreduce
    for axis in ("101", ("host", "x")):
        y = reduced(X, axis)
        np.testing.assert_array_equal(y[0], 3 * X[:8].sum(axis=0))
    cube.close()


def a_wait_needs_a_thread_level() -> None:
    """Below MPI_THREAD_SERIALIZED a call must wait."""
    assert MPI.Query_thread() < MPI.THREAD_SERIALIZED
    for overlap in OVERLAPS:
        with pidcomm.hosts.connect(LOCAL, COMM, overlap=overlap) as cube:
            status, message = error_of(
                lambda: cube.allreduce("111", bytes=96, dtype=np.int32, wait=False)
            )
            assert (status, "MPI_THREAD_SERIALIZED" in message) == ("ERR_OPTION", True)
            np.testing.assert_array_equal(cube.arrays.allreduce(X, "111")[0], 3 * X.sum(axis=0))


def a_late_host_is_a_time_out() -> None:
    """A host that does not come ends the others after the time-out, and the connection stays
    closed.
    """
    cube = pidcomm.hosts.connect(LOCAL, COMM, timeout=0.5)
    if cube.host == 2:
        time.sleep(2)
    for _ in range(2):
        begin = time.monotonic()
        with pytest.raises(
            pidcomm.Error, match=r"has waited 0\.5 s for messages of host"
        ) as caught:
            cube.allreduce("111", bytes=96, dtype=np.int32)
        assert caught.value.status == "ERR_DEVICE"
        assert time.monotonic() - begin < 1.9
    COMM.Barrier()


def a_host_that_does_not_call_is_recorded() -> None:
    """Host 1 makes its call when host 0 has recorded that it waits for host 1 only; before, it may
    also wait for host 2.
    """
    cube = pidcomm.hosts.connect(LOCAL, COMM, timeout=60)
    cube.allreduce("111", bytes=96, dtype=np.int32)
    flag = Path(COMM.bcast(tempfile.mkdtemp())) / "recorded"
    found: list[pidcomm.Record] = []

    def look() -> None:
        while not found:
            found.extend(
                record
                for record in pidcomm.recorder()
                if record.state == "waits for hosts"
                and (record.awaited_host, record.awaited_hosts) == (1, 1)
            )
        flag.touch()

    looking = threading.Thread(target=look)
    if cube.host == 0:
        looking.start()
    while cube.host == 1 and not flag.exists():
        time.sleep(0.01)
    cube.allreduce("101", bytes=192, dtype=np.int32)
    if cube.host == 0:
        looking.join()
        record = found[0]
        assert (record.call, record.mask, record.bytes) == (2, "101", 192), record
        assert (record.shape, record.awaited_hosts) == ("8x2x3, host 0", 1)
        assert record.file == __file__
        flag.unlink()
        flag.parent.rmdir()
    with pytest.raises(pidcomm.Error):
        cube.allreduce("111", bytes=96 * (cube.host + 1), dtype=np.int32)
    sentence = pidcomm.recorder()[-1].sentence
    assert "different calls: host 0: allreduce with mask 111 of 8x2x3, 96 bytes" in sentence


def a_pool_in_a_window_of_mpi() -> None:
    """A pool in memory of MPI_Win_allocate_shared."""
    size = 1 << 20
    window = MPI.Win.Allocate_shared(size + 64 if COMM.rank == 0 else 0, 1, comm=COMM)
    address = -(-window.Shared_query(0)[0].address // 64) * 64
    with pidcomm.pool.Pool(
        address=address, host=COMM.rank, hosts=COMM.size, bytes=size, timeout=30
    ) as pool:
        with pidcomm.hosts.connect(LOCAL, pool) as cube:
            np.testing.assert_array_equal(cube.arrays.allreduce(X, "111")[0], 3 * X.sum(axis=0))
        offset = pool.allocate(8 * COMM.size)
        for turn in range(100):
            pool.write(offset + 8 * COMM.rank, np.array([10 * turn + COMM.rank]))
            pool.sync()
            np.testing.assert_array_equal(
                pool.read(offset, COMM.size, np.int64), 10 * turn + np.arange(COMM.size)
            )
            pool.sync()
    COMM.Barrier()
    window.Free()


def a_host_dies() -> None:
    """A host dies before a call of the others."""
    cube = pidcomm.hosts.connect(LOCAL, COMM, timeout=300)
    if cube.host == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    cube.allreduce("111", bytes=96, dtype=np.int32)


def a_host_raises() -> None:
    """A host raises an exception before a call of the others."""
    cube = pidcomm.hosts.connect(LOCAL, COMM, timeout=300)
    if cube.host == 1:
        raise LookupError("no row for host 1")
    cube.allreduce("111", bytes=96, dtype=np.int32)


def a_host_raises_before_it_connects() -> None:
    """A host raises an exception before all hosts have connected."""
    if COMM.rank == 1:
        raise LookupError("no row for host 1")
    pidcomm.hosts.connect(LOCAL, COMM, timeout=300)


def one_host() -> None:
    """A cube over one host gives the results of the local cube, with and without the axis of the
    hosts.
    """
    cube = pidcomm.hosts.connect(LOCAL, COMM)
    assert (cube.shape, cube.hosts, cube.groups("101")) == ((8, 2, 1), 1, (2, 8))
    for mask, axes in (("100", "x"), ("101", ("host", "x")), ("011", ["y", "host"])):
        exchange: Any = cube.arrays.alltoall
        for axis in (mask, axes):
            np.testing.assert_array_equal(
                exchange(X[:, :16], axis), LOCAL.arrays.alltoall(X[:, :16], mask[:2])
            )
        rows = cube.arrays.reduce(X, mask)
        np.testing.assert_array_equal(rows, LOCAL.arrays.reduce(X, mask[:2]))
    assert cube.last_trace is not None
    assert (cube.last_trace.bytes_sent, cube.last_trace.seconds_exchange) == (0, 0)


def the_order_of_dpu_foreach() -> None:
    """Members and rows over hosts have the order of the local hypercubes."""
    local = pidcomm.allocate(pes=64).hypercube(2, 32, order="foreach")
    cube = pidcomm.hosts.connect(local, COMM, timeout=60)
    shape = (2, 32, COMM.size)
    share = slice(64 * cube.host, 64 * (cube.host + 1))
    for name in sorted(COLLECTIVES):
        for mask in ("011", "101", "001", "111", "110"):
            x = payload(name, shape, mask, "int32", 64)
            result = result_of(name, x, shape, mask)
            definition, has_local_rows = COLLECTIVES[name], mask[2] == "0"
            groups = len(groups_of(shape, mask)) // COMM.size
            rows = slice(groups * cube.host, groups * (cube.host + 1)) if has_local_rows else ...
            rows_before, rows_after = (
                share if at_pes else rows
                for at_pes in (definition.at_pes_before, definition.at_pes_after)
            )
            got = getattr(cube.arrays, name)(x[rows_before], mask)
            if got is not None:
                np.testing.assert_array_equal(got, result[rows_after])


if __name__ == "__main__":
    globals()[sys.argv[1]]()
    sys.stdout.write("passed\n")
