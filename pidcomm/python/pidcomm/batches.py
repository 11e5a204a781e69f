"""Calls that are collected, to run together or again and again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import get_ident
from typing import TYPE_CHECKING, Any, NamedTuple

from pidcomm import _core
from pidcomm.errors import ArgumentError, shown
from pidcomm.tables import ROWS

if TYPE_CHECKING:
    from pidcomm.calls import CoreArguments
    from pidcomm.requests import Request
    from pidcomm.trace import Trace

__all__: list[str] = []

PREPARED = (*ROWS, "sendrecv", "shift", "permute", "halo", "alltoallv", "allgatherv",
            "reduce_scatterv", "scatterv")  # fmt: skip


class CollectedCall(NamedTuple):
    """A call, and the function that makes its result from its trace."""

    name: str
    arguments: CoreArguments
    finish: Callable[[Any], Any]


class Batch:
    """Calls on buffers of a hypercube, in the order in which they were made. `Hypercube.batch` and
    `Hypercube.prepare` make a batch.

    `run` runs the calls; each run uses the content that the buffers and host arrays have then. The
    batch keeps them alive.
    """

    def __init__(self, cube: BatchCube) -> None:
        self._cube = cube
        self._thread = get_ident()
        self._calls: list[CollectedCall] = []
        self._result: Any = None
        self._requests: list[Request[Any]] = []

    def run(self) -> Any:
        """Run the calls; return the result of the last call.

        Checks all calls before the first byte moves, and acquires the ranks once for neighbouring
        calls of technique tile. ``cube.last_trace`` has the sums of times and bytes. Raises the
        errors of the calls, with the number of the call.
        """
        if not self._calls:
            return None
        fields = self._cube._core.run_batch([call.arguments for call in self._calls])
        trace = self._cube._finish_batch(fields, self._calls)
        for call in self._calls:
            call.finish(trace)
        return self._result

    def start(self) -> Batch:
        """Start the calls without waiting for their end, one after another; return the batch.

        Raises ArgumentError if they have been started and not waited for.
        """
        if self._requests:
            raise ArgumentError(f"{self!r} runs; wait for its end", "ERR_BUSY")
        for name, arguments, finish in self._calls:
            self._requests.append(self._cube._run(name, arguments, False, finish))
        return self

    def wait(self) -> Any:
        """Wait for the end of the calls of `start`; return the result of the last call.

        Raises the first error of a call, after all calls have ended.
        """
        requests, self._requests = self._requests, []
        error: Exception | None = None
        for request in requests:
            try:
                request.wait()
            except Exception as raised:
                error = error or raised
        if error is not None:
            raise error
        return self._result

    def __repr__(self) -> str:
        """Report the number of calls."""
        return f"<Batch of {len(self._calls)} calls>"

    def _collect(self, call: CollectedCall, wait: bool) -> Any:
        if not wait:
            raise ArgumentError("calls in a batch take no wait=False; use Batch.start")
        self._calls.append(call)
        self._result = call.finish(None)
        return self._result


class BatchCube:
    """The batches of `Hypercube`."""

    _batch: Batch | None = None
    _core: _core.Cube
    _finish_batch: Callable[[dict[str, Any], list[CollectedCall]], Trace]
    _run: Callable[..., Any]

    @contextmanager
    def batch(self) -> Iterator[Batch]:
        """Collect the calls on buffers in a ``with`` block, and run them at its end as one
        `Batch`, in order.

        Collects the collectives, scans and movements that this thread calls; each returns its
        buffer or host array, which is filled at the end. All other methods run at once, also those
        that read and write buffers. After an exception in the block, no call runs. Raises
        ArgumentError for calls on byte windows or with wait=False, and for gatherv.
        """
        with self._collecting() as batch:
            yield batch
        batch.run()

    def prepare(self, name: str, *arguments: Any, **others: Any) -> Batch:
        """Return a batch that makes the call ``cube.name(*arguments, **others)`` at each `run`.

        name: a collective, scan or movement, but not gatherv. Saves the checks in Python, and the
        messages of movements. Counts on the PEs are read now.
        """
        if name not in PREPARED:
            raise ArgumentError(
                f"{shown(name)} cannot be prepared; prepare takes {', '.join(PREPARED)}"
            )
        with self._collecting() as batch:
            getattr(self, name)(*arguments, **others)
        return batch

    @contextmanager
    def _collecting(self) -> Iterator[Batch]:
        if self._batch is not None:
            raise ArgumentError("the hypercube collects the calls of another batch", "ERR_BUSY")
        self._batch = batch = Batch(self)
        try:
            yield batch
        finally:
            self._batch = None

    def _own_batch(self) -> Batch | None:
        """Return the batch that collects the calls of this thread."""
        batch = self._batch
        return batch if batch is not None and batch._thread == get_ident() else None
