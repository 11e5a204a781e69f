"""What moves bytes between hosts."""

from __future__ import annotations

import time
from typing import Any, Protocol, runtime_checkable

from pidcomm.arguments import as_timeout
from pidcomm.errors import Error
from pidcomm.pool import require_communicator

__all__ = ["TIMEOUT_S", "MpiTransport", "Transport"]

TIMEOUT_S = 300.0
"""Seconds without a message after which a call fails."""
POLL_S = 0.001


@runtime_checkable
class Transport(Protocol):
    """Move bytes between hosts; `connect` makes one from an mpi4py communicator.

    The library calls the methods from one thread at a time. No method may wait. Messages between
    two hosts arrive in the order of `post`. An exception of a method fails the call of the
    collective.
    """

    host: int
    """The number of this host, from 0."""
    hosts: int
    """The number of hosts."""
    allows_any_thread: bool
    """Whether any thread may call the methods, which ``wait=False`` needs."""

    def post(
        self, host: int, is_send: bool, address: int, rows: int, bytes: int, stride: int
    ) -> Any:
        """Start a message to or from a host; return a handle.

        Row r of the message is at address + r * stride.
        """

    def test(self, handle: Any) -> bool:
        """Return whether the message has been sent or received."""

    def abandon(self, handle: Any) -> None:
        """Give up a message that has not been sent or received."""

    def allocate(self, bytes: int) -> int:
        """Return the address of memory from which messages are sent fast."""

    def release(self, address: int) -> None:
        """Release memory of `allocate`."""

    def close(self) -> None:
        """Release the transport."""


class MpiTransport:
    """A `Transport` over a duplicate of an mpi4py communicator. Each process is a host."""

    def __init__(self, comm: Any, timeout: float = TIMEOUT_S) -> None:
        require_communicator(comm)
        timeout = as_timeout(timeout)
        from mpi4py import MPI

        self._mpi = MPI
        if not MPI.Is_initialized() or MPI.Is_finalized():
            raise Error("MPI is not initialised, or has been finalised", "ERR_DEVICE")
        self._comm, request = comm.Idup()
        end = time.monotonic() + timeout
        while not request.Test():  # Dup would use a CPU while it waits
            if time.monotonic() > end:
                raise Error(
                    f"host {comm.rank} has waited {timeout} s for the other hosts to connect",
                    "ERR_DEVICE",
                )
            time.sleep(POLL_S)
        self._comm.Set_errhandler(MPI.ERRORS_RETURN)
        self._memory: dict[int, Any] = {}
        self.host: int = self._comm.rank
        self.hosts: int = self._comm.size
        self.allows_any_thread = bool(MPI.Query_thread() >= MPI.THREAD_SERIALIZED)

    def post(
        self, host: int, is_send: bool, address: int, rows: int, bytes: int, stride: int
    ) -> Any:
        """Start a message to or from a host; return a handle."""
        mpi, start = self._mpi, self._comm.Isend if is_send else self._comm.Irecv
        if bytes == stride:
            return start([mpi.memory.fromaddress(address, rows * bytes), mpi.BYTE], host)
        memory = mpi.memory.fromaddress(address, (rows - 1) * stride + bytes)
        datatype = mpi.BYTE.Create_hvector(rows, bytes, stride).Commit()
        try:
            return start([memory, 1, datatype], host)
        finally:
            datatype.Free()

    def test(self, handle: Any) -> bool:
        """Return whether the message has been sent or received."""
        return bool(handle.Test())

    def abandon(self, handle: Any) -> None:
        """Give up a message."""
        handle.Cancel()
        handle.Free()

    def allocate(self, bytes: int) -> int:
        """Return the address of memory of MPI."""
        memory = self._mpi.Alloc_mem(bytes)
        address = int(memory.address)
        self._memory[address] = memory
        return address

    def release(self, address: int) -> None:
        """Release memory."""
        self._mpi.Free_mem(self._memory.pop(address))

    def close(self) -> None:
        """Release the communicator."""
        if not self._mpi.Is_finalized():
            self._comm.Free()
