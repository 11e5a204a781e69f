"""Run an application as streams of work (`pidcomm.Stream`): some ranks compute while the host moves
the bytes of others.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from pidcomm import TECHNIQUES, ArgumentError, Stream, StreamTrace
from pidcomm.arguments import Array
from pidcomm.bench.measure import require_bytes
from pidcomm.bench.timing import in_turn
from pidcomm_studies.apps.stage import HOST, Call, Cost, Stage

STREAM, STEPS = "stream", "steps"  # phases: all streams, and the same steps one after another
PLANNED = 0  # rank groups: the library chooses their number
TRIALS = 14  # runs in which a planned stream measures its cuts (pidcomm/src/stream/cuts.h)
LAYOUT_PARTS = 8  # parts of a layout, at most

Step = Callable[[Stream], object]


@dataclass(frozen=True)
class Streamed:
    """Cost of a run as streams.

    cost: of work outside streams and of all streams. On emulated DIMMs, launches take their
    modelled time, and the rest is measured. in_sequence: the same, but the times of host and PEs in
    streams of one rank group, added; None without memory to run streams again. Both are measured
    in the same rounds, in turn. rank_groups: of the streams; `PLANNED` if the library chose them.
    wrong: number of elements that differ from the reference.
    """

    cost: Cost
    in_sequence: Cost | None
    rank_groups: int
    wrong: int


def can_stream(technique: str) -> bool:
    """Return whether collectives with a technique leave the program of the PEs loaded."""
    return technique in TECHNIQUES and not TECHNIQUES[technique].runs_pe_program


class StreamedStage(Stage):
    """A stage that records launches, collectives and layouts, and runs them as one stream when the
    application needs a result.

    `costs` has the phases ``host``, `STREAM` and `STEPS`. With rounds, each stream first runs until
    its cuts are chosen. All runs begin with the same windows, and with the same values of variables
    that were written before the stream, because a program keeps nothing else between launches.
    """

    def __init__(self, *arguments: Any, rank_groups: int = PLANNED, **others: Any) -> None:
        """Take the arguments of `Stage`, without other techniques.

        rank_groups: number of groups of ranks that work independently, or `PLANNED`.
        """
        super().__init__(*arguments, **others)
        self._rank_groups = rank_groups
        self._steps: list[Step] = []
        self._has_launch = False
        self._before: dict[str, Array] = {}  # variables that the steps write, before the steps

    def launch(self, **variables: int | Array) -> None:
        """Record writes of variables and a launch.

        Variables with a value for each PE are written at once, after the end of recorded launches.
        """
        self._load()
        before = self._variables
        changed = self._changed(variables)
        of_pes = {name: column for name, column in changed.items() if column.ndim}
        if of_pes:
            if self._has_launch:
                self.wait()
            self._time_host(lambda: self._write(of_pes), calls=0)
        for name, value in changed.items():
            if name in of_pes:
                continue
            if name in before:
                self._before.setdefault(name, before[name])
            self._steps.append(_step("write", name, value))
        self._steps.append(_step("launch"))
        self._has_launch = True

    def lay_out(
        self, rows: Array, fill: Callable[[slice, Array], object], reads: Array | None = None
    ) -> Array:
        """Record calls of `fill` for parts of the slices."""
        if reads is not None and len(reads) != len(rows):
            raise ValueError(f"reads has {len(reads)} slices, rows {len(rows)}")
        rows.fill(0)
        parts = max(n for n in range(1, LAYOUT_PARTS + 1) if len(rows) % n == 0)
        each = len(rows) // parts
        for first in range(0, len(rows), each):
            own = slice(first, first + each)
            self._steps.append(
                _step(
                    "call",
                    partial(fill, own, rows[own]),
                    reads=[] if reads is None else [reads[own]],
                    writes=[rows[own]],
                )
            )
        return rows

    def gather(self, *arguments: Any, wait: bool = True, **others: Any) -> Array:
        """Record a gather; complete the array if `wait`."""
        return self._waited(super().gather(*arguments, **others), wait)

    def reduce(self, *arguments: Any, **others: Any) -> Array:
        """Record a reduce, and complete the array."""
        return self._waited(super().reduce(*arguments, **others), True)

    def wait(self) -> None:
        """Run the recorded steps."""
        steps, self._steps, self._has_launch = self._steps, [], False
        before, self._before = self._before, {}
        if not steps:
            return
        self._on_phase(f"{self.technique}: {STREAM}")
        kept = self._kept_windows() if self._rounds else None

        def recorded(rank_groups: int) -> Stream:
            with self._pe_set.stream(rank_groups or None) as stream:
                for step in steps:
                    step(stream)
            return stream

        def restore() -> None:
            self.cube.write(kept, self._first_window)
            self._write(before)

        def run(stream: Stream) -> StreamTrace:
            restore()
            stream.run()
            return _trace(stream)

        if kept is None:
            self._add(
                STREAM,
                Cost(calls=1),
                np.array([[_trace(recorded(self._rank_groups)).seconds_total]]),
            )
            return
        in_sequence = recorded(1)
        restore()
        as_stream = recorded(self._rank_groups)
        for _ in range(TRIALS if self._rank_groups == PLANNED else 1):
            run(as_stream)
        seconds = np.empty((self._rounds, 2))
        for left, row in enumerate(seconds[::-1]):
            for index in in_turn(left + 1, 2):
                trace = run((as_stream, in_sequence)[index])
                row[index] = (trace.seconds_total, trace.seconds_host + trace.seconds_pes)[index]
        for phase, column in zip((STREAM, STEPS), seconds.T, strict=True):
            self._add(phase, Cost(calls=1), column[:, None])

    def total(self, phase: str) -> Cost:
        """Return the cost of `STREAM` or `STEPS`, and of the work outside streams."""
        return self.costs.get(HOST, Cost()) + self.costs.get(phase, Cost())

    def _carry_out(
        self, collective: str, mask: str, size: int, output_bytes: int = 0, **arguments: Any
    ) -> None:
        dtype = np.dtype(arguments.get("dtype", np.uint8)).name
        self.calls.append(Call(collective, mask, size, dtype, arguments.get("op")))
        given = {name: value for name, value in arguments.items() if value is not None}
        run = partial(getattr(self.cube, collective), mask, bytes=size, **given, **self._options)
        self._steps.append(lambda _: run())

    def _waited(self, out: Array, wait: bool) -> Array:
        if wait:
            self.wait()
        return out

    @property
    def _first_window(self) -> int:
        return min(self.offsets[name] for name in self._placement.windows)

    def _kept_windows(self) -> Array | None:
        """Return the bytes of the windows of all PEs, or None without memory for them."""
        size = self._placement.bytes - self._first_window
        try:
            require_bytes(self.pes * size, "copies of the windows of a stream")
        except ArgumentError:
            return None
        return self.cube.read(size, np.uint8, self._first_window)


def _step(name: str, *arguments: Any, **others: Any) -> Step:
    return lambda stream: getattr(stream, name)(*arguments, **others)


def _trace(stream: Stream) -> StreamTrace:
    assert stream.trace is not None  # it has just run
    return stream.trace
