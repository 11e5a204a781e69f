"""The recorder: the last calls of every hypercube."""

from __future__ import annotations

from dataclasses import dataclass
from typing import IO

from pidcomm import _core
from pidcomm.arguments import as_integer, as_number
from pidcomm.errors import ArgumentError, shown
from pidcomm.trace import Trace, trace_of

__all__: list[str] = []

STDERR = 2
MAX_INT = 2**31 - 1
_files: list[IO[str] | int] = []  # of `recorder`, which must stay open


@dataclass(frozen=True)
class Record:
    """Report one of the last calls of a hypercube. ``str()`` returns a line of text.

    A batch is one call; its collective, mask, bytes, dtype and op are of its first request.
    """

    hypercube: int
    """Number of the hypercube, or of the cube over hosts, in this process."""
    shape: str
    """Axis lengths of the hypercube; over hosts, with the number of this host."""
    call: int
    """Number of the call on the hypercube, from 1; over hosts, the same on all hosts."""
    collective: str | None
    """The collective, scan or "sendrecv"; None if a host has refused the arguments."""
    mask: str
    """The axis mask; "" for messages."""
    bytes: int
    """Bytes per PE; 0 for messages."""
    dtype: str | None
    """The element type."""
    op: str | None
    """The operator of a reduction; None for an operator of the program."""
    requests: int
    """Number of requests of a batch; else 1."""
    request: int
    """Number of the request that runs, from 0."""
    state: str
    """A state of docs/recorder.md, such as "waits for PEs"."""
    status: str
    """The status of a failed call; else "OK"."""
    sentence: str
    """The start of the error message of a failed call."""
    awaited_host: int | None
    """The first host for which the call waits."""
    awaited_hosts: int
    """Number of hosts for which the call waits."""
    started_s: float
    """Start of the call, in seconds of `time.monotonic`."""
    elapsed_s: float
    """Seconds until the end of the call, or until now."""
    file: str | None
    """File of the innermost caller outside of this package."""
    line: int
    """Line of this caller."""
    text: str
    """The record as a line of text."""
    trace: Trace | None
    """Technique, instruction set, threads, coherence and times; all other fields are 0."""

    def __str__(self) -> str:
        """Return the record as a line of text."""
        return self.text


class Records(list[Record]):
    """The records of the last calls, by hypercube and call; ``str()`` returns a line for each."""

    def __repr__(self) -> str:
        """Return a line for each record."""
        return "\n".join(map(str, self))


def recorder(
    *, wait_s: float | None = None, signal: int | None = None, file: IO[str] | int = STDERR
) -> Records:
    """Return the records of the last calls of every hypercube of this process, also of calls that
    run on other threads.

    wait_s: from now on, if a call takes longer, a thread writes this call and all records to
    `file`; 0 writes no more. signal: from now on, if the process gets this signal, it writes all
    records to `file`, also while a call hangs. file: a file with ``fileno()``, or its number;
    default: standard error.

    Raises ArgumentError if `wait_s` is negative or 1e9 or more, if the signal cannot have a
    handler, or if `file` has no number or is closed. Raises OutOfMemoryError if the system starts
    no thread.
    """
    number = as_integer("file", _number_of(file), high=MAX_INT)
    wait = None if wait_s is None else as_number("wait_s", wait_s)
    if signal is not None:
        _core.recorder_on_signal(as_integer("signal", signal, high=MAX_INT), number)
    if wait is not None:
        _core.recorder_watch(wait, number)
    if (wait_s is not None or signal is not None) and file not in _files:
        _files.append(file)
    return Records(
        Record(**fields, trace=None if trace is None else trace_of(trace))
        for fields, trace in _core.records()
    )


def _number_of(file: IO[str] | int) -> int:
    if isinstance(file, int):
        return file
    try:
        return file.fileno()
    except (AttributeError, OSError, ValueError):  # ValueError: the file is closed
        raise ArgumentError(f"file ({shown(file)}) has no fileno()") from None
