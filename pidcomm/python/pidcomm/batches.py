"""Calls that are collected, to run together or again and again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import local
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from pidcomm import _core
from pidcomm.errors import ArgumentError, shown
from pidcomm.plans import Plan, plan_of
from pidcomm.requests import Request, first_error
from pidcomm.tables import ROWS

if TYPE_CHECKING:
    from pidcomm.axes import Axes
    from pidcomm.buffers import Buffer
    from pidcomm.calls import CoreArguments

__all__: list[str] = []

PREPARED = (
    *ROWS, "sendrecv", "shift", "permute", "halo", "alltoallv", "allgatherv", "reduce_scatterv",
)  # fmt: skip


class Collected(NamedTuple):
    """What a call fills, and its buffers. uses_heap: whether it has byte windows, which a load of a
    program may move.
    """

    value: Any
    buffers: tuple[Buffer, ...]
    uses_heap: bool = False


class CollectedCall(NamedTuple):
    """A call of a batch. finish: the function that makes the result of a request."""

    name: str
    arguments: CoreArguments
    finish: Callable[[Any], Any]
    buffers: tuple[Buffer, ...]


class Collector(Protocol):
    """A batch or a stream, which collects the calls of a thread."""

    _takes_windows: bool
    """Whether it collects calls on byte windows."""

    def _collect(
        self,
        cube: Any,
        name: str,
        arguments: CoreArguments,
        wait: bool,
        finish: Callable[[Any], Any],
        collected: Collected | None,
    ) -> Any:
        """Collect a call of a hypercube; return what it will fill."""


def collectable(collector: str, name: str, wait: bool, collected: Collected | None) -> Collected:
    """Return the call. Raises ArgumentError for calls that no collector can collect."""
    if collected is None:
        raise ArgumentError(f"{name}: a {collector} collects calls on buffers, not on byte windows")
    if not wait:
        hint = "; use Batch.start" if collector == "batch" else ""
        raise ArgumentError(f"{name}: calls in a {collector} take no wait=False{hint}")
    return collected


class Batch:
    """Calls on buffers of a hypercube, in the order in which they were made. `Hypercube.batch` and
    `Hypercube.prepare` make a batch.

    Each run uses the content that the buffers and host arrays have then, and fills the same buffers
    and arrays: copy a result that you keep. The batch keeps them alive.
    """

    _takes_windows = False

    def __init__(self, cube: BatchCube) -> None:
        self._cube = cube
        self._calls: list[CollectedCall] = []
        self._result: Any = None
        self._requests: list[Request[Any]] = []

    def run(self) -> Any:
        """Run the calls; return the result of the last call.

        Checks all calls before the first byte moves, and acquires the ranks once for neighbouring
        calls that run as tile. ``cube.last_trace`` has the sums of times and bytes. Raises the
        errors of the calls, with the number of the call, and ArgumentError after `start` until
        `wait` has returned.
        """
        self._require_ready()
        if self._calls:
            arguments = [call.arguments for call in self._calls]
            self._cube._last_fields = self._cube._core.run_batch(arguments)
        return self._result

    def start(self) -> Batch:
        """Start the calls without waiting for their end, one after another; return the batch.

        Each call is checked when it starts. If one fails, waits for the calls before it, and raises
        its error. Raises ArgumentError if the batch has been started and not waited for.
        """
        self._require_ready()
        try:
            for name, arguments, finish, _ in self._calls:
                self._requests.append(self._cube._run(name, arguments, False, finish))
        except BaseException:
            with suppress(Exception):
                self.wait()
            raise
        return self

    def wait(self) -> Any:
        """Wait for the end of the calls of `start`; return the result of the last call.

        Raises the first error of a call, after all calls have ended.
        """
        error = first_error(self._requests)
        self._requests.clear()
        if error is not None:
            raise error
        return self._result

    def plans(self, *, expand: bool = False) -> list[Plan]:
        """Return the plan of each call, with every step if ``expand``; see `pidcomm.plan`.

        A halo with corners and a reduce_scatterv are several calls. Moves no bytes.
        """
        cube = self._cube
        return [
            plan_of(cube._axes.shape, request, codes, expand, cube._axes.order_code, messages)
            for request, messages, _, codes in (call.arguments for call in self._calls)
        ]

    def validate(self) -> None:
        """Check the calls without running them. Raises the error that the first wrong call would
        raise; see `Hypercube.validate`.
        """
        self._require_ready()
        for request, messages, _, codes in (call.arguments for call in self._calls):
            self._cube._core.validate(request, codes, messages)

    def __repr__(self) -> str:
        """Report the number of calls."""
        return f"<Batch of {len(self._calls)} call{'s' if len(self._calls) != 1 else ''}>"

    def _require_ready(self) -> None:
        collector = self._cube._collector()
        if collector is self:
            raise ArgumentError(
                f"{self!r} still collects calls; run it after the block", "ERR_BUSY"
            )
        if collector is not None:
            raise ArgumentError(f"{self!r} runs at once: call it outside of the block of a stream")
        if self._requests:
            raise ArgumentError(f"{self!r} runs; wait for its end", "ERR_BUSY")
        for call in self._calls:
            for buffer in call.buffers:
                buffer._storage.require_valid()  # a load may have removed a variable

    def _collect(
        self,
        cube: Any,
        name: str,
        arguments: CoreArguments,
        wait: bool,
        finish: Callable[[Any], Any],
        collected: Collected | None,
    ) -> Any:
        collected = collectable("batch", name, wait, collected)
        self._calls.append(CollectedCall(name, arguments, finish, collected.buffers))
        self._result = collected.value
        return self._result


class _Collecting(local):
    """What collects calls of this thread: batches by the identity of the hypercube, and streams by
    the identity of the core set.
    """

    def __init__(self) -> None:
        self.batches: dict[int, Batch] = {}
        self.streams: dict[int, Collector] = {}


_COLLECTING = _Collecting()


def collecting_stream(core_set: _core.Set) -> Collector | None:
    """Return the stream that records the calls of this thread on a set.

    Raises ArgumentError if this thread records a stream, but none of the set.
    """
    streams = _COLLECTING.streams
    if streams and id(core_set) not in streams:
        raise ArgumentError("the block of a stream takes calls on the PEs of the stream only")
    return streams.get(id(core_set))


def refuse_in_stream(name: str) -> None:
    """Raise ArgumentError if this thread records a stream."""
    if _COLLECTING.streams:
        raise ArgumentError(
            f"{name}: a stream cannot record it; call it outside of the block of the stream"
        )


@contextmanager
def recording(core_set: _core.Set, stream: Collector) -> Iterator[None]:
    """Let a stream record the calls of this thread on hypercubes of a set."""
    if id(core_set) in _COLLECTING.streams:
        raise ArgumentError("the set records another stream", "ERR_BUSY")
    if any(batch._cube._core_set is core_set for batch in _COLLECTING.batches.values()):
        raise ArgumentError("a hypercube of the set collects the calls of a batch", "ERR_BUSY")
    _COLLECTING.streams[id(core_set)] = stream
    try:
        yield
    finally:
        del _COLLECTING.streams[id(core_set)]


class BatchCube:
    """The batches of `Hypercube`."""

    _axes: Axes
    _core_set: _core.Set
    _core: _core.Cube
    _last_fields: Any
    _run: Callable[..., Any]

    @contextmanager
    def batch(self) -> Iterator[Batch]:
        """Collect the calls on buffers in a ``with`` block, and run them at its end as one
        `Batch`, in order.

        Collects the collectives, scans and movements that this thread calls; each returns its
        buffer or host array, which is filled at the end. All other methods run at once, also those
        that read and write buffers. After an exception in the block, no call runs. Raises
        ArgumentError for calls on byte windows or with wait=False, for host arrays that are not
        C-contiguous or whose rows have no multiple of 8 bytes, and for scatterv and gatherv.
        """
        with self._collecting() as batch:
            yield batch
        batch.run()

    def prepare(self, name: str, *arguments: Any, **others: Any) -> Batch:
        """Return a batch that makes the call ``cube.name(*arguments, **others)`` at each `run`.

        name: a collective, scan or movement, but not scatterv and gatherv. Saves the checks in
        Python, and the messages of movements. Messages, and a buffer of counts, are read now, not
        at each run. The library checks the call at each run.
        """
        if not isinstance(name, str) or name not in PREPARED:
            raise ArgumentError(
                f"{shown(name)} cannot be prepared; prepare takes {', '.join(PREPARED)}"
            )
        with self._collecting() as batch:
            getattr(self, name)(*arguments, **others)
        return batch

    @contextmanager
    def _collecting(self) -> Iterator[Batch]:
        if self._collector() is not None:
            raise ArgumentError(
                "the hypercube collects the calls of another batch or of a stream", "ERR_BUSY"
            )
        _COLLECTING.batches[id(self)] = batch = Batch(self)
        try:
            yield batch
        finally:
            del _COLLECTING.batches[id(self)]

    def _collector(self) -> Collector | None:
        """Return the batch or stream that collects the calls of this thread."""
        batch = _COLLECTING.batches.get(id(self))
        return batch if batch is not None else collecting_stream(self._core_set)
