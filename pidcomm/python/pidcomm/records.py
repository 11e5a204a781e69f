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
_files: list[IO[str] | int] = []  # of `recorder`, which must stay open


@dataclass(frozen=True)
class Record:
    """Report one of the last calls of a hypercube. ``str()`` returns a line of text.

    ``call`` counts the calls of the hypercube; over hosts, a call has the same number on all of
    them. ``awaited_host`` is the first of ``awaited_hosts`` hosts for which the call waits. A batch
    is one call of ``requests`` requests; mask, bytes, dtype and op are of its first request, and
    ``request`` is the one that runs. ``file`` and ``line`` are those of the caller.
    """

    hypercube: int
    shape: str
    call: int
    collective: str | None
    mask: str
    bytes: int
    dtype: str | None
    op: str | None
    requests: int
    request: int
    state: str
    status: str
    sentence: str
    awaited_host: int | None
    awaited_hosts: int
    started_s: float
    elapsed_s: float
    file: str | None
    line: int
    text: str
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
    """
    number = file if isinstance(file, int) else _number_of(file)
    if wait_s is not None:
        _core.recorder_watch(as_number("wait_s", wait_s), number)
    if signal is not None:
        _core.recorder_on_signal(as_integer("signal", signal, high=2**31 - 1), number)
    if (wait_s is not None or signal is not None) and file not in _files:
        _files.append(file)
    return Records(
        Record(**fields, trace=None if trace is None else trace_of(trace))
        for fields, trace in _core.records()
    )


def _number_of(file: IO[str]) -> int:
    try:
        return file.fileno()
    except (AttributeError, OSError):
        raise ArgumentError(f"file ({shown(file)}) has no fileno()") from None
