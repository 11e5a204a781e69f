"""Memory pools, which several hosts share: one host writes, all hosts sync, all hosts read.

A process opens the pool with a name, its number and the number of processes:

    with pidcomm.pool.Pool("job7", host=host, hosts=4) as pool:
        offset = pool.allocate(4 * x.nbytes)
        pool.write(offset + host * x.nbytes, x)
        pool.sync()
        everything = pool.read(offset, 4 * x.size, x.dtype)

`pidcomm.hosts.connect` takes a pool in place of an MPI communicator.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from pidcomm import _core
from pidcomm._rows import CoherenceName, OpName, TransportName
from pidcomm.arguments import (
    MAX_COUNT,
    Array,
    ArrayInput,
    ArrayOutput,
    as_bytes,
    as_dtype,
    as_flag,
    as_integer,
    as_text,
    as_timeout,
    as_type,
    input_array,
    output_elements,
    row_of,
)
from pidcomm.errors import ArgumentError, Error, make_error, shown
from pidcomm.installation import module_command
from pidcomm.tables import COHERENCES, OPS

__all__ = ["DEFAULT_BYTES", "Pool", "open_over", "run_switch"]


def __dir__() -> list[str]:
    return __all__


DEFAULT_BYTES = 64 << 20
"""Bytes of a pool unless the caller gives another number."""
_FOLDER = "/dev/shm"  # the file system of shared memory
TIMEOUT_S = 300.0
"""Seconds to wait for other hosts."""

_Settings = tuple["str | None", "str | None", "int | None", int, int, int, bool, int, float]

_PR_SET_PDEATHSIG = 1  # of prctl(2)


class Pool:
    """Share memory between hosts. Offsets are the same on all hosts.

    The pool is a POSIX shared memory object (``name``), a file or a device such as /dev/dax0.0
    (``path``), or memory that the program shares (``address``). All hosts give the same settings,
    with the exception of ``host`` and ``address``. With coherence ``"hardware"``, hosts flush lines
    after writes and before reads; a pool needs it if the caches of hosts do not see each other's
    writes.

    With ``switch=True``, one more process reduces rows for all hosts; host 0 starts it, and it ends
    with host 0.
    If a host or the switch ends, calls of the others that wait raise Error.
    """

    def __init__(
        self,
        name: str | None = None,
        *,
        host: int,
        hosts: int,
        bytes: int = DEFAULT_BYTES,
        path: str | None = None,
        address: int | None = None,
        switch: bool = False,
        coherence: CoherenceName = "none",
        timeout: float = TIMEOUT_S,
    ) -> None:
        """Open the pool; wait for all hosts.

        Raises ArgumentError for settings that are out of range or differ between hosts, and if
        another pool of this name is open; OutOfMemoryError if there is not enough shared memory;
        Error if a host does not come in time.
        """
        settings = _settings(name, path, address, bytes, host, hosts, switch, coherence, timeout)
        if switch and settings[4] == 0:
            if address is not None:
                raise ArgumentError(
                    "a pool with a switch needs a name or a path, because the switch is another"
                    " process"
                )
            with _started_switch(settings) as self._switch:  # its Popen lives as long as the pool
                self._core = _core.Pool(settings, self._switch.pid)
        else:
            self._core = _core.Pool(settings, 0)
        self._settings = settings

    @property
    def host(self) -> int:
        """Number of this host."""
        return self._settings[4]

    @property
    def hosts(self) -> int:
        """Number of hosts."""
        return self._settings[5]

    @property
    def transport(self) -> TransportName:
        """The row of `pidcomm.tables.TRANSPORTS` for collectives through this pool."""
        return "switch" if self._settings[6] else "pool"

    @property
    def bytes(self) -> int:
        """Bytes of the pool."""
        return self._settings[3]

    def allocate(self, bytes: int) -> int:
        """Return the offset of free bytes. All hosts make the same allocations in the same order.

        Raises OutOfMemoryError if the pool is too small.
        """
        return self._core.allocate(as_integer("bytes", bytes))

    def write(self, offset: int, x: ArrayInput, *, out: ArrayOutput | None = None) -> None:
        """Copy an array to the pool.

        out: a contiguous array of the count and dtype of x, which gets the elements, too. Raises
        ArgumentError if the bytes are not in allocated memory, if elements of x have no fixed size,
        or if out does not fit or overlaps x.
        """
        array = input_array("x", x)
        element = as_dtype(array.dtype)
        copy = None if out is None else as_bytes(output_elements(out, array.size, element))
        self._core.write(as_integer("offset", offset), as_bytes(np.ascontiguousarray(array)), copy)

    def read(
        self, offset: int, count: int, dtype: DTypeLike, *, out: ArrayOutput | None = None
    ) -> Array:
        """Return `count` elements of the pool. out: the array to fill, contiguous, of this count
        and dtype.

        Raises ArgumentError if the bytes are not in allocated memory, or if out does not fit.
        """
        element = as_dtype(dtype)
        count = as_integer("count", count)
        as_integer("bytes", count * element.itemsize, high=self.bytes)
        values = output_elements(out, count, element)
        self._core.read(as_integer("offset", offset), as_bytes(values))
        return values

    def view(self, offset: int, count: int, dtype: DTypeLike) -> Array:
        """Return `count` elements of the pool as an array that is not writable and not copied.

        The elements change when a host writes them. With coherence "hardware", the array is valid
        only until the next sync. After `close`, the pool stays open until its last view is deleted.
        Raises ArgumentError if the bytes are not in allocated memory.
        """
        element = as_dtype(dtype)
        count = as_integer("count", count)
        bytes = as_integer("bytes", count * element.itemsize, high=self.bytes)
        return self._core.view(as_integer("offset", offset), bytes).view(element)

    def sync(self) -> None:
        """Wait until all hosts have called it as often; then each host reads what the hosts wrote
        before.

        Raises ArgumentError if the hosts have allocated different memory, or if another host is in
        an allgather; Error if a host or the
        switch has ended, or does not come in time.
        """
        self._core.sync()

    def allgather(
        self, offset: int, area_bytes: int, x: ArrayInput, *, out: ArrayOutput | None = None
    ) -> Array:
        """Return the elements of x of all hosts in host order. All hosts call it with the same
        offset, area_bytes and size of x.

        The elements go through allocated memory, ``area_bytes`` bytes at ``offset``, a multiple of
        64, in chunks of area_bytes / (2 * hosts) bytes, rounded down to a multiple of 64, at least
        64. Chunks of 512 KiB are fast: they stay in the caches. Sync before other uses of the area.
        out: a contiguous array of hosts * x.size elements to fill. Raises ArgumentError if the
        area does not fit or is not in allocated memory, if the hosts make different calls, or if
        out does not fit or overlaps x; Error as `sync`.
        """
        array = input_array("x", x)
        values = output_elements(out, self.hosts * array.size, as_dtype(array.dtype))
        self._core.allgather(
            as_integer("offset", offset),
            as_integer("area_bytes", area_bytes),
            as_bytes(np.ascontiguousarray(array)),
            as_bytes(values),
        )
        return values

    def reduce(
        self, offset: int, rows: int, count: int, dtype: DTypeLike, op: OpName = "sum"
    ) -> None:
        """Let the switch reduce `rows` rows of `count` elements that follow each other; the first
        row gets the result.

        The bytes of a row are a multiple of 8. Only host 0 calls it, after a sync; the other hosts
        meanwhile wait in the next sync. Raises ArgumentError if the pool has no switch, or if the
        rows are not in allocated memory.
        """
        op_code = row_of(OPS, "operator", op, "ERR_OP").code
        size = as_integer("bytes", as_integer("count", count) * as_dtype(dtype).itemsize)
        self._core.reduce(
            as_type(dtype, op).code,
            op_code,
            as_integer("rows", rows, high=MAX_COUNT),
            as_integer("offset", offset),
            size,
            size,
        )

    @property
    def core(self) -> _core.Pool:
        """The pool in the C library."""
        return self._core

    def close(self) -> None:
        """Close the pool. Does not wait for other hosts."""
        self._core.close()

    def __enter__(self) -> Pool:
        """Return the pool."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close the pool."""
        self.close()

    def __repr__(self) -> str:
        """Report the name, the bytes and the number of this host."""
        title = self._settings[0] or self._settings[1] or "in memory"
        return f"<Pool {title}, {self.bytes} bytes, host {self.host} of {self.hosts}>"


@contextmanager
def _started_switch(settings: _Settings) -> Iterator[subprocess.Popen[bytes]]:
    """Start the process of the switch. An exception of the body ends the switch; if it has already
    ended, the error of the body gets its last messages.
    """
    with open(os.memfd_create("pidcomm-switch"), "r+b") as messages:
        words, quiet = module_command(__name__, json.dumps(settings)), subprocess.DEVNULL
        try:
            process = subprocess.Popen(words, stdin=quiet, stdout=quiet, stderr=messages)
        except OSError as error:
            raise Error(f"the system cannot start the switch: {error}", "ERR_DEVICE") from None
        try:
            yield process
        except BaseException as error:
            process.kill()
            code = process.wait()
            if code == -signal.SIGKILL or not isinstance(error, Error):
                raise
            messages.seek(0)
            lines = messages.read().decode(errors="replace").splitlines()
            sentence = f"{error}; the switch ended with code {code}: {' '.join(lines[-3:])}"
            raise make_error(error.status, sentence) from None


def open_over(
    comm: Any, bytes: int = DEFAULT_BYTES, switch: bool = False, timeout: float = TIMEOUT_S
) -> Pool:
    """Open a pool for the processes of an mpi4py communicator, all on this machine and in one PID
    namespace.

    Its file has no name, so a process that is killed leaves nothing: the others open it through
    /proc, as long as host 0 has it open. Raises Error on all hosts if host 0 cannot make the file.
    """
    require_communicator(comm)
    file, problem = None, ""
    if comm.rank == 0:
        try:
            file = os.open(_FOLDER, os.O_TMPFILE | os.O_RDWR, 0o600)
        except OSError as error:
            problem = f"host 0 cannot make a file in {_FOLDER}: {error.strerror}"
    try:
        path, problem = comm.bcast((f"/proc/{os.getpid()}/fd/{file}", problem))
        if problem:
            raise Error(problem, "ERR_DEVICE")
        return Pool(
            path=path, host=comm.rank, hosts=comm.size, bytes=bytes, switch=switch, timeout=timeout
        )
    finally:
        if file is not None:
            os.close(file)


def require_communicator(comm: object) -> None:
    """Raise ArgumentError unless comm is an mpi4py communicator."""
    if not hasattr(comm, "Idup"):
        raise ArgumentError(
            f"comm ({shown(comm)}) must be an mpi4py communicator, a Transport or a Pool"
        )


def run_switch(
    name: str | None = None,
    *,
    hosts: int,
    bytes: int = DEFAULT_BYTES,
    path: str | None = None,
    coherence: CoherenceName = "none",
    timeout: float = TIMEOUT_S,
) -> None:
    """Run the switch of a pool in this process until the last host has closed the pool.

    Arguments as for `Pool`.
    """
    _core.run_switch(_settings(name, path, None, bytes, 0, hosts, True, coherence, timeout))


def _settings(
    name: str | None,
    path: str | None,
    address: int | None,
    bytes: int,
    host: int,
    hosts: int,
    switch: bool,
    coherence: CoherenceName,
    timeout: float,
) -> _Settings:
    return (
        None if name is None else as_text("name", name),
        None if path is None else as_text("path", path),
        None if address is None else as_integer("address", address),
        as_integer("bytes", bytes),
        as_integer("host", host, high=MAX_COUNT),
        as_integer("hosts", hosts, high=MAX_COUNT),
        as_flag("switch", switch),
        row_of(COHERENCES, "coherence", coherence).code,
        as_timeout(timeout),
    )


def _end_with_parent() -> None:
    """Let the kernel end this process when the process that started it ends."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() == 1:  # it has already ended
        sys.exit(1)


if __name__ == "__main__":
    _end_with_parent()
    _core.run_switch(tuple(json.loads(sys.argv[1])))
