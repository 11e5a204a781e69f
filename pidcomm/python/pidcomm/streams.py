"""Streams of work: launches and collectives that run at the same time on different ranks."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from threading import RLock
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from pidcomm import _core, emulated
from pidcomm.arguments import MAX_COUNT, Array, as_bytes, as_integer, as_text
from pidcomm.batches import Collected, collectable, collecting_stream
from pidcomm.buffers import Buffer, Storage
from pidcomm.errors import ArgumentError, Error, shown
from pidcomm.programs import HeapWindows, Symbol
from pidcomm.sizes import format_duration
from pidcomm.tables import WORD_BYTES

if TYPE_CHECKING:
    from pidcomm.calls import CoreArguments
    from pidcomm.hypercube import Hypercube

__all__: list[str] = []

PLANNED = 0
BAR_CHARACTERS = 32
MOST_PARTS = 1024  # pieces take memory


class StreamPiece(NamedTuple):
    """A part of a step on consecutive ranks. Times are seconds from the start of the run."""

    step: int
    """Number of the step, from 0."""
    part: int
    """Number of the part of the step, from 0."""
    first_rank: int
    """First rank of the set."""
    ranks: int
    """Number of ranks."""
    begin_s: float
    """Begin."""
    end_s: float
    """End."""
    kind: str
    """A kind of stream.h: "launch", "collective", "combine", "write" or "call"."""


class StreamTrace(NamedTuple):
    """Times of a run of a stream, in seconds."""

    seconds_total: float
    """From the begin of the run to the end of the last piece."""
    seconds_host: float
    """The host moved bytes, started launches or ran functions."""
    seconds_pes: float
    """PEs ran: at least one launch had started and not ended."""
    seconds_setup: float
    """Until the first piece: the host waited for earlier work and chose cuts."""
    pieces: int
    """Number of pieces."""
    rank_groups: int
    """Number of rank groups."""
    parts: int
    """Number of parts of the step that had most."""
    source: str
    """"measured"; "mixed": launches take modelled time and launch cost, all others are measured
    (emulated DIMMs); or "predicted"."""


class Stream:
    """Launches, collectives and writes of variables that run as a graph: some ranks run while the
    host moves the bytes of others. `PeSet.stream` makes a stream.

    The results are those of the steps one after another. Each run uses the content that the buffers
    and host arrays have then. The stream keeps them alive. docs/streams.md describes which
    collectives can be cut.
    """

    _takes_windows = True

    def __init__(
        self,
        core_set: _core.Set,
        symbol: Callable[[str], Symbol],
        heap_windows: HeapWindows,
        rank_groups: int | None,
        parts: int,
    ) -> None:
        self._core_set = core_set
        self._symbol = symbol
        self._heap_windows = heap_windows
        self._parts = as_integer("parts", parts, 1, MOST_PARTS)
        groups = PLANNED
        if rank_groups is not None:
            groups = as_integer("rank_groups", rank_groups, 1, MAX_COUNT)
        self._core = core_set.stream(groups)
        self._recording = RLock()  # the core and this object number the steps alike
        self._loads: int | None = None  # of the set, when a call on byte windows was recorded
        self._steps: list[str] = []
        self._launches = 0
        self._held: list[Any] = []
        self._functions: list[Callable[[], object]] = []
        self._storages: dict[int, Storage] = {}  # of buffers, by identity

    def launch(
        self,
        reads: Sequence[Buffer] = (),
        writes: Sequence[Buffer] = (),
        whole: Sequence[Buffer] = (),
        *,
        parts: int | None = None,
        part: str | None = None,
    ) -> None:
        """Record a launch of the loaded program on all PEs.

        reads, writes: all buffers of which launch i of P reads or writes only bytes i * n / P to (i
        + 1) * n / P, where n is `size_bytes` with padding to words. whole: all buffers that each
        launch may read and write as a whole. Without buffers, the launch may use all MRAM. part:
        the variable ``uint32_t[2]`` that gets i and P before launch i; None: one launch. parts: P;
        None: the largest divisor of the `parts` of the stream that the bytes allow.

        Raises ArgumentError if a buffer is not in MRAM of the set, if P is not 1 without `part`, if
        n is not divisible by 8 * P, or if the program has no such variable.
        """
        cut = [(buffer, False) for buffer in _buffers("reads", reads)]
        cut += [(buffer, True) for buffer in _buffers("writes", writes)]
        uncut = [(buffer, True) for buffer in _buffers("whole", whole)]
        accesses = [(*self._window_of(buffer), is_written, True) for buffer, is_written in cut]
        if parts is not None:
            count = as_integer("parts", parts, 1, MOST_PARTS)
        elif part is None:
            count = 1
        else:
            count = math.gcd(self._parts, *(access[1] // WORD_BYTES for access in accesses))
        accesses += [(*self._window_of(buffer), is_written, False) for buffer, is_written in uncut]
        name = None if part is None else as_text("part", part)
        with self._recording:
            self._core.launch(accesses, count, name)
            self._launches += 1
            self._note(f"launch{_of_parts(count)}", [buffer for buffer, _ in cut + uncut])

    def write(self, name: str, values: ArrayLike, *, dtype: DTypeLike | None = None) -> None:
        """Record a write of values to the variable `name` in WRAM of every PE; copy the values now.

        values, dtype: as for `Symbol.write`, but an array of shape (n,) or a single value, which
        every PE gets. Writes n * itemsize bytes, a multiple of 4. Raises the errors of
        `PeSet.symbol` and `Symbol.write`.
        """
        symbol = self._symbol(name)
        array = symbol._elements(values, 0, dtype)
        if array.ndim > 1:
            raise ArgumentError(
                f"values for {symbol!r} have shape {array.shape}; a stream writes the same values"
                " to all PEs, shape (n,)",
                "ERR_HOST_BUFFER",
            )
        symbol._require_inside(0, array.nbytes)
        with self._recording:
            self._core.write(name, as_bytes(np.ascontiguousarray(array)))
            self._note(f"write {name}", ())

    def call(
        self,
        function: Callable[[], object],
        reads: Sequence[Array] = (),
        writes: Sequence[Array] = (),
    ) -> None:
        """Record a call of ``function()`` on the thread that runs the stream.

        reads, writes: all host arrays that the function uses, C-contiguous, of any shape and dtype.
        Without arrays, the function may use all host arrays of the stream, and waits for all
        earlier steps that use any. Only these arrays order functions: if two functions share
        another state, such as a list or a file, give both no arrays. An exception of the function
        ends the run, which raises it. In the function, calls on the set raise Error.

        Raises ArgumentError if an array is not C-contiguous, or an array of `writes` is read-only.
        """
        if not callable(function):
            raise ArgumentError(f"function ({shown(function)}) must be callable")
        read, written = _host_bytes("reads", reads), _host_bytes("writes", writes)
        if not all(array.flags.writeable for array in written):
            raise ArgumentError("an array of writes is read-only", "ERR_HOST_BUFFER")
        with self._recording:
            self._core.call(len(self._functions), read, written)
            self._functions.append(function)
            self._note(f"call {getattr(function, '__name__', type(function).__name__)}", ())

    def run(self) -> None:
        """Run all steps, and wait for their end. `trace` and `timeline` then have its times.

        If `PeSet.stream` got no rank_groups, the first runs measure the steps without cuts, later
        runs try cuts that are predicted to be faster, and then the fastest stay. Raises the error
        of the first piece that failed; the sentence begins with the number of the step, from 0.
        Then no other piece starts. Raises Error if the set has loaded another program since a
        launch or a write was recorded, or any program since a call on byte windows was recorded;
        some techniques load one. After Ctrl-C, no other piece starts, and the run ends with the
        pieces that run. On emulated DIMMs, Ctrl-C also stops the PEs, which can be used again
        after a load or a launch.
        """
        self._require_collected()
        for storage in self._storages.values():
            storage.require_valid()  # a load may have removed the memory
        self._require_windows()
        if self._launches:
            self._heap_windows.launch()
        self._core.execute(emulated.stop, emulated.explain_fault, self._functions)

    @property
    def trace(self) -> StreamTrace | None:
        """Times of the last run that began; None if none began, or if it failed."""
        fields = self._core.trace()
        return None if fields is None else StreamTrace(**fields)

    def timeline(self) -> list[StreamPiece]:
        """Return the pieces of the last run, in the order of their begins. Before the first run,
        return the pieces of the next run with predicted times; launches take
        only their launch cost, writes and calls 0 s.

        Raises Error if the set is freed or runs a stream.
        """
        if not self._core.has_run:
            self._core.plan()
        return self._pieces()

    def explain(self) -> str:
        """Return the times of `timeline` as text, with a line for each step: its pieces, the ranks
        for which a piece waits (-: of a function), begin, end, the sum of the durations of its
        pieces, and when they ran.

        Raises Error as `timeline` does.
        """
        trace = self.trace if self._core.has_run else StreamTrace(**self._core.plan())
        pieces = self._pieces()
        lines = [repr(self)]
        if trace is None:
            return f"{lines[0]}, failed"
        lines.append(
            f"rank groups: {trace.rank_groups}, parts: {trace.parts};"
            f" total {format_duration(trace.seconds_total)}: host"
            f" {format_duration(trace.seconds_host)}, PEs {format_duration(trace.seconds_pes)}"
            f" ({trace.source})"
        )
        names = [f"{number} {name}" for number, name in enumerate(self._steps)]
        width = max(map(len, ["step", *names]))
        lines.append(f"{'step':{width}} pieces ranks  begin us    end us   busy us")
        for number, name in enumerate(names):
            own = [piece for piece in pieces if piece.step == number]
            if not own:
                continue
            begin_s, end_s = min(piece.begin_s for piece in own), max(piece.end_s for piece in own)
            busy_s = sum(piece.end_s - piece.begin_s for piece in own)
            lines.append(
                f"{name:{width}} {len(own):6} {self._ranks_of(own):>5}"
                f" {begin_s * 1e6:9.1f} {end_s * 1e6:9.1f} {busy_s * 1e6:9.1f}"
                f" |{_bar(own, trace.seconds_total)}|"
            )
        return "\n".join(lines)

    def __repr__(self) -> str:
        """Report the number of steps and of ranks."""
        steps, ranks = len(self._steps), self._core_set.ranks
        return (
            f"<Stream of {steps} step{'' if steps == 1 else 's'} on {ranks}"
            f" rank{'' if ranks == 1 else 's'}>"
        )

    # ---- implementation

    def _ranks_of(self, pieces: list[StreamPiece]) -> int | str:
        """Return the ranks for which a piece of a step waits. A combination waits for all."""
        kinds = {piece.kind for piece in pieces}
        if "combine" in kinds:
            return self._core_set.ranks
        return "-" if "call" in kinds else pieces[0].ranks

    def _pieces(self) -> list[StreamPiece]:
        return [
            StreamPiece(step, part, first_rank, ranks, begin_s, end_s, _core.STREAM_KINDS[kind])
            for step, part, first_rank, ranks, begin_s, end_s, kind in self._core.timeline()
        ]

    def _collect(
        self,
        cube: Hypercube,
        name: str,
        arguments: CoreArguments,
        wait: bool,
        finish: Callable[[Any], Any],
        collected: Collected | None,
    ) -> Any:
        """Record a collective of a hypercube of the set; return its buffer or host array."""
        collected = collectable("stream", name, wait, collected)
        if collected.uses_heap:
            self._require_windows()
        held = (*collected.buffers, collected.value, finish)
        with self._recording:
            parts = self._core.run(cube._core, *arguments, self._parts)
            if collected.uses_heap:
                self._loads = self._core_set.loads
            self._note(f"{name} {arguments[0].mask}".rstrip() + _of_parts(parts), held)
        cube._note_arguments(name, arguments)
        return collected.value

    def _require_windows(self) -> None:
        if self._loads not in (None, self._core_set.loads):
            raise Error(
                "the set has loaded a program, which may have moved byte windows, since a step was"
                " recorded; record it again"
            )

    def _require_collected(self) -> None:
        if collecting_stream(self._core_set) is self:
            raise ArgumentError(f"{self!r} still records steps; run it after the block", "ERR_BUSY")

    def _window_of(self, buffer: Buffer) -> tuple[int, int]:
        """Return the window of a buffer, and its bytes with padding to words."""
        if not buffer._is_of(self._core_set):
            raise ArgumentError(f"{buffer!r} is on another set of PEs")
        size_bytes = buffer.size_bytes + -buffer.size_bytes % WORD_BYTES
        return buffer._window_of(size_bytes), size_bytes

    def _note(self, step: str, held: Sequence[Any]) -> None:
        self._steps.append(step)
        self._held += held
        for buffer in held:
            if isinstance(buffer, Buffer):
                self._storages[id(buffer._storage)] = buffer._storage


def _buffers(name: str, buffers: object) -> list[Buffer]:
    if not isinstance(buffers, Sequence) or not all(isinstance(item, Buffer) for item in buffers):
        raise ArgumentError(f"{name} ({shown(buffers)}) must be a list of buffers")
    return list(buffers)


def _host_bytes(name: str, arrays: object) -> list[Array]:
    """Return the memory of C-contiguous arrays."""
    if not isinstance(arrays, Sequence) or not all(isinstance(a, np.ndarray) for a in arrays):
        raise ArgumentError(f"{name} ({shown(arrays)}) must be a list of NumPy arrays")
    for array in arrays:
        if not array.flags.c_contiguous:
            raise ArgumentError(f"an array of {name} is not C-contiguous", "ERR_HOST_BUFFER")
    return [as_bytes(array) for array in arrays]


def _of_parts(parts: int) -> str:
    return f" in {parts} parts" if parts != 1 else ""


def _bar(pieces: Sequence[StreamPiece], seconds: float) -> str:
    """Return a character for each interval of time: # if a piece begins or runs in it."""
    bar, scale = [" "] * BAR_CHARACTERS, BAR_CHARACTERS / seconds if seconds else 0
    for piece in pieces:
        first = min(int(piece.begin_s * scale), BAR_CHARACTERS - 1)
        behind = min(max(first + 1, math.ceil(piece.end_s * scale)), BAR_CHARACTERS)
        bar[first:behind] = "#" * (behind - first)
    return "".join(bar)
