"""Define the stage of an application: PEs with a program, named windows of MRAM, and a timer for
each phase.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from time import perf_counter
from types import TracebackType
from typing import Any, TypeVar

import numpy as np
from numpy.typing import DTypeLike

from pidcomm import COLLECTIVES, ArgumentError, Options, PeSet
from pidcomm.arguments import AUTO, Array, options_of, with_scratch
from pidcomm.bench import platform
from pidcomm.bench.ablation import Assumed
from pidcomm.bench.measure import POISON, require_bytes
from pidcomm.bench.timing import in_turn
from pidcomm.compiling import compiled
from pidcomm_studies.apps.placement import Placement, needs_scratch

T = TypeVar("T")
KERNEL, HOST = "kernel", "host"  # phases that are not collectives
ASSUMED = Assumed()


@dataclass(frozen=True)
class Cost:
    """Time of a phase in seconds, by source.

    measured: time of the host, on this machine. low, high: the sums of the lower and the upper
    quartiles of the calls, where `measured` has their medians. modelled: time of the PEs, from the
    cycles of the slowest PE. launches, loads: numbers of launches and loads of programs, with
    assumed costs (`pidcomm.bench.ablation.Assumed`). calls: number of times that the phase
    occurred. bus_bytes: bytes that crossed the memory bus, read and written. bytes_per_pe: argument
    ``bytes`` of the largest collective.
    """

    measured: float = 0.0
    modelled: float = 0.0
    launches: int = 0
    loads: int = 0
    calls: int = 0
    bus_bytes: int = 0
    bytes_per_pe: int = 0
    low: float = 0.0
    high: float = 0.0

    @property
    def assumed(self) -> float:
        """Assumed seconds of launches and loads on DIMMs."""
        return 1e-6 * (ASSUMED.launch_us * self.launches + ASSUMED.load_us * self.loads)

    @property
    def total(self) -> float:
        """Measured and modelled seconds together, without assumed seconds."""
        return self.measured + self.modelled

    def __add__(self, other: Cost) -> Cost:
        """Return a cost with the times and counts of both costs added."""
        return Cost(
            self.measured + other.measured,
            self.modelled + other.modelled,
            self.launches + other.launches,
            self.loads + other.loads,
            self.calls + other.calls,
            self.bus_bytes + other.bus_bytes,
            max(self.bytes_per_pe, other.bytes_per_pe),
            self.low + other.low,
            self.high + other.high,
        )


@dataclass(frozen=True)
class Call:
    """A collective of a run.

    Its plan follows from these values and the shape. op: a name, or None.
    """

    collective: str
    mask: str
    bytes_per_pe: int
    dtype: str
    op: str | None


class Stage:
    """PEs with the program of an application, and timed collectives between its launches.

    ``src`` and ``dst`` are names of windows; equal names mean that the collective works in place.
    Without rounds, every collective runs once, and this run is timed. With rounds, each collective
    first runs in an untimed round and in `rounds` timed rounds, and its quartiles are in `timed`.
    Each round runs the collective with the stage's technique and with all others, on equal inputs.
    Use as a context manager.
    """

    def __init__(
        self,
        pe_set: PeSet,
        shape: Sequence[int],
        placement: Placement,
        options: Options,
        rounds: int = 0,
        on_phase: Callable[[str], None] = lambda _: None,
        others: Sequence[str] = (),
    ) -> None:
        """Compile the program.

        others: the other techniques that run in the rounds.

        Raises ArgumentError with the compiler's messages if compilation fails.
        """
        self.cube = pe_set.hypercube(*shape)
        self.offsets = placement.offsets
        """Offset of each window, in bytes from the start of the MRAM heap."""
        self.costs: dict[str, Cost] = {}
        """Costs of the phases so far, by name, in the order of their first use."""
        self.setup = Cost()
        """Cost of `place`."""
        self.calls: list[Call] = []
        """Collectives so far, in order."""
        self._pe_set = pe_set
        self._placement = placement
        self._variants = [
            with_scratch(variant, placement.bytes)
            for variant in (
                options,
                *(options_of(**{**options, "technique": name}) for name in others),
            )
        ]
        self._options = self._variants[0]
        self._rounds = rounds
        self._on_phase = on_phase
        self._timed: dict[str, Array] = {}
        self._single: set[str] = set()
        self._variables: dict[str, Array] = {}
        self._is_loaded = False
        self._replaced_by: str | None = None
        self._close = ExitStack()
        self._program, _ = self._close.enter_context(
            compiled([placement.source], placement.options())
        )

    @property
    def shape(self) -> tuple[int, ...]:
        """Axis lengths, x first."""
        return self.cube.shape

    @property
    def timed(self) -> dict[str, Array]:
        """Seconds of the host by phase, of shape (3, 1 + others): the sums of the quartiles and of
        the medians of its calls (rows: 25, 50, 75 percent), for the stage's technique and the
        others. The work of the host is equal for all. Phases without rounds are left out.
        """
        return {name: sums for name, sums in self._timed.items() if name not in self._single}

    @property
    def pes(self) -> int:
        """Number of PEs."""
        return self.cube.pes

    @property
    def technique(self) -> str:
        """Technique of the collectives."""
        return self._options.get("technique") or AUTO

    # ---- before a run

    def poison(self) -> None:
        """Fill resident data, windows and scratch with a pattern, so that stale data cannot pass
        the check.

        The stage does not time this call. The call also allocates the memory, so that no run
        includes the allocation.
        """
        techniques = [variant.get("technique", AUTO) for variant in self._variants]
        scratch_bytes = self._placement.scratch_bytes if needs_scratch(techniques) else 0
        self._poison(0, self._placement.bytes + scratch_bytes)

    def _poison(self, offset: int, size: int) -> None:
        if size:
            row = np.full((1, size), POISON, np.uint8)
            self.cube.broadcast("1" * len(self.shape), dst=offset, host=row)

    # ---- resident data

    def place(self, name: str, rows: Array, *, at: int = 0) -> None:
        """Write row p, shape (pes, n), to PE p, `at` bytes into resident data. The cost is in
        `setup` and in no total.

        Fewer rows are for the PEs with number 0 on the last axis; the others get the same data.
        Rows are multiples of 8 bytes. The technique is always `tile`: the technique of the stage is
        for repeated transfers only.
        """
        _require_room_in(self._placement.resident, name, at + rows[0].nbytes)
        self._on_phase(f"{self.technique}: placing {name}")
        offset, options = self.offsets[name] + at, {"threads": self._options.get("threads")}
        if len(rows) == self.pes:
            trace = self.cube.write(rows, offset, **options)
        else:
            mask = "1".rjust(len(self.shape), "0")
            trace = self.cube.broadcast(mask, host=rows, dst=offset, technique="tile", **options)
        self.setup += Cost(measured=trace.host_seconds, calls=1, bus_bytes=trace.bus_bytes)

    def wait(self) -> None:
        """Complete the arrays of `lay_out` and of gathers without wait. Here they are complete."""

    # ---- work of the host

    def host_work(self, act: Callable[[], T]) -> T:
        """Return the result of act(), timed: work of the host that every input needs, such as
        laying out rows.

        With rounds, the stage calls `act` once per round and counts the median time. Every call
        must do the same work.
        """
        self._on_phase(f"{self.technique}: {HOST}")
        return self._time_host(act, calls=1)

    def lay_out(
        self, rows: Array, fill: Callable[[slice, Array], object], reads: Array | None = None
    ) -> Array:
        """Return `rows` after fill(slices, rows[slices]): work of the host, as `host_work`.

        A slice is the PEs with one number on the last axis of the hypercube. rows: C-contiguous;
        the first axis has an element for each slice, or for each group of neighbouring slices. It
        is zero before `fill`. reads: the array from which `fill` reads, with slices in that order.
        """
        rows.fill(0)  # untimed: the first touch of memory is slow
        self.host_work(lambda: fill(slice(0, len(rows)), rows))
        return rows

    def _time_host(self, act: Callable[[], T], calls: int) -> T:
        seconds = []
        for _ in range(max(1, self._rounds)):
            begin = perf_counter()
            result = act()
            seconds.append(perf_counter() - begin)
        self._add(HOST, Cost(calls=calls), np.array(seconds).reshape(-1, 1))
        return result

    # ---- launches

    def launch(self, **variables: int | Array) -> None:
        """Write variables of the program, then run it on all PEs. Variables keep their values
        between launches.

        variables: the name of a ``__host uint32_t`` of the program -> an int for all PEs, or an
        array of shape (pes,) with a value for each PE.
        """
        self._on_phase(f"{self.technique}: {KERNEL}")
        self._load()
        changed = self._changed(variables)
        self._time_host(lambda: self._write(changed), calls=0)
        self._add(KERNEL, Cost(modelled=platform.launch_seconds(self._pe_set), launches=1, calls=1))

    def _changed(self, variables: Mapping[str, int | Array]) -> dict[str, Array]:
        """Note values of variables for the next launch; return those that differ from before."""
        before = self._variables
        columns = {name: np.asarray(value, np.uint32) for name, value in variables.items()}
        self._variables = {**before, **columns}
        return {
            name: column
            for name, column in columns.items()
            if name not in before or not np.array_equal(column, before[name])
        }

    def _write(self, variables: Mapping[str, Array]) -> None:
        for name, column in variables.items():
            self._pe_set.symbol(name).write(column.reshape(-1, 1) if column.ndim else column)

    def _load(self) -> None:
        """Load the program if it is not loaded, with the variables that it had.

        The first load counts as set-up. The load has an assumed cost, which includes the variables.
        """
        if self._is_loaded:
            return
        self._restore()
        self._is_loaded = True
        if self._replaced_by is None:
            self.setup += Cost(loads=1)
        else:  # the collective that replaced the program pays for this load
            self._add(self._replaced_by, Cost(loads=1))

    def _restore(self) -> None:
        self._pe_set.load(self._program)
        self._write(self._variables)

    # ---- collectives; mask, bytes, dtype and op are the same as in `pidcomm.Hypercube`

    def alltoall(self, mask: str, *, bytes: int, src: str, dst: str) -> None:
        """Move block q of member p to block p of member q."""
        self._between("alltoall", mask, bytes, src, dst)

    def reduce_scatter(
        self, mask: str, *, bytes: int, src: str, dst: str, dtype: DTypeLike, op: str = "sum"
    ) -> None:
        """Reduce block q over all members, for member q."""
        self._between("reduce_scatter", mask, bytes, src, dst, dtype, op)

    def allreduce(
        self, mask: str, *, bytes: int, src: str, dst: str, dtype: DTypeLike, op: str = "sum"
    ) -> None:
        """Reduce element by element over the group, for every member."""
        self._between("allreduce", mask, bytes, src, dst, dtype, op)

    def allgather(self, mask: str, *, bytes: int, src: str, dst: str) -> None:
        """Copy the contributions of all members, in member order, to every member."""
        self._between("allgather", mask, bytes, src, dst)

    def scatter(self, mask: str, host: Array, *, dst: str) -> None:
        """Copy part q of a group's row of `host`, shape (groups, N * n), to member q."""
        self._from_host(
            "scatter", mask, host, dst, host[0].nbytes // self.cube.groups(mask).group_pes
        )

    def broadcast(self, mask: str, host: Array, *, dst: str) -> None:
        """Copy a group's row of `host`, shape (groups, n), to every member."""
        self._from_host("broadcast", mask, host, dst, host[0].nbytes)

    def gather(
        self, mask: str, *, bytes: int, src: str, dtype: DTypeLike, wait: bool = True
    ) -> Array:
        """Return the data of the members, in member order: shape (groups, N * bytes / itemsize).

        wait: False: a stream fills the array later; pass it to `lay_out` as `reads`, or call `wait`
        before reading it.
        """
        return self._to_host("gather", mask, bytes, src, dtype, self.cube.groups(mask).group_pes)

    def reduce(
        self, mask: str, *, bytes: int, src: str, dtype: DTypeLike, op: str = "sum"
    ) -> Array:
        """Return the element-wise reduction of every group: shape (groups, bytes / itemsize)."""
        return self._to_host("reduce", mask, bytes, src, dtype, 1, op)

    def _between(
        self,
        collective: str,
        mask: str,
        size: int,
        src: str,
        dst: str,
        dtype: DTypeLike = np.uint8,
        op: str = "sum",
    ) -> None:
        members = self.cube.groups(mask).group_pes
        row = COLLECTIVES[collective]
        block = size // max(row.blocks_before(members), row.blocks_after(members))
        _require_room_in(self._placement.windows, src, block * row.blocks_before(members))
        _require_room_in(self._placement.windows, dst, block * row.blocks_after(members))
        self._carry_out(
            collective,
            mask,
            size,
            output_bytes=block * row.blocks_after(members),
            src=self.offsets[src],
            dst=self.offsets[dst],
            dtype=dtype,
            op=op if row.takes_op else None,
        )

    def _from_host(self, collective: str, mask: str, host: Array, dst: str, size: int) -> None:
        _require_room_in(self._placement.windows, dst, size)
        self._carry_out(collective, mask, size, output_bytes=size, host=host, dst=self.offsets[dst])

    def _to_host(
        self,
        collective: str,
        mask: str,
        size: int,
        src: str,
        dtype: DTypeLike,
        parts: int,
        op: str | None = None,
    ) -> Array:
        _require_room_in(self._placement.windows, src, size)
        shape = (self.cube.groups(mask).groups, parts * size // np.dtype(dtype).itemsize)
        out = np.empty(shape, dtype)
        out.fill(0)  # untimed: the first touch of memory is slow
        self._carry_out(
            collective,
            mask,
            size,
            src=self.offsets[src],
            dtype=dtype,
            op=op,
            out=out,
        )
        return out

    def _carry_out(
        self, collective: str, mask: str, size: int, output_bytes: int = 0, **arguments: Any
    ) -> None:
        """Run a collective. output_bytes: size of its output at `dst`; 0 if it has host rows."""
        self._on_phase(f"{self.technique}: {collective}")
        arguments["bytes"] = size
        dtype = np.dtype(arguments.get("dtype", np.uint8)).name
        self.calls.append(Call(collective, mask, size, dtype, arguments.get("op")))
        seconds = None
        if self._rounds and collective not in self._single:
            seconds = self._time_rounds(collective, mask, output_bytes, arguments)
        trace, _ = self.cube.carry_out(collective, mask, options=self._options, **arguments)
        if trace.pe_loads and self._is_loaded:
            self._is_loaded, self._replaced_by = False, collective
        self._add(
            collective,
            Cost(
                modelled=trace.pe_seconds,
                launches=trace.pe_launches,
                loads=trace.pe_loads,
                calls=1,
                bus_bytes=trace.bus_bytes,
                bytes_per_pe=size,
            ),
            np.array([[trace.host_seconds]]) if seconds is None else seconds,
        )

    def _time_rounds(
        self, collective: str, mask: str, output_bytes: int, arguments: Mapping[str, Any]
    ) -> Array | None:
        """Return seconds of shape (rounds, variants), or None without memory for a copy of an input
        that changes in place: then the collective runs once with each technique.

        Then the input and the program are as before, and the output has a pattern, so that outputs
        of the rounds cannot pass the check. Restores inputs that a run in place changes, untimed.
        """
        src, dst, out = (arguments.get(name) for name in ("src", "dst", "out"))
        kept = None
        if src is not None and src == dst:
            size = arguments["bytes"]  # of the longer of input and output
            try:
                require_bytes(self.pes * size, f"copies of the input of {collective} in place")
            except ArgumentError:
                self._single.add(collective)
                return None
            kept = self.cube.read(size, np.uint8, src)
        seconds = np.empty((1 + self._rounds, len(self._variants)))
        is_replaced = False
        for number in range(len(seconds)):  # the first round makes plans and is not timed
            for index in in_turn(number, len(self._variants)):
                trace, _ = self.cube.carry_out(
                    collective, mask, options=self._variants[index], **arguments
                )
                seconds[number, index] = trace.host_seconds
                is_replaced |= trace.pe_loads > 0
                if kept is not None:
                    self.cube.write(kept, src)
        if out is not None:
            out.fill(0)
        elif kept is None:
            self._poison(dst, output_bytes)
        if is_replaced and self._is_loaded:
            self._restore()
        return seconds[1:]

    def _add(self, phase: str, cost: Cost, seconds: Array | None = None) -> None:
        """Add a cost. seconds: of the host, shape (rounds, variants), or (rounds, 1) if equal for
        all.
        """
        if seconds is not None:
            low, middle, high = quartiles = np.percentile(seconds, (25, 50, 75), axis=0)
            cost += Cost(measured=float(middle[0]), low=float(low[0]), high=float(high[0]))
            before = self._timed.get(phase, np.zeros((3, len(self._variants))))
            self._timed[phase] = before + quartiles
        self.costs[phase] = self.costs.get(phase, Cost()) + cost

    def __enter__(self) -> Stage:
        """Return the stage."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Remove the compiled program."""
        self._close.close()


def _require_room_in(sizes: Mapping[str, int], name: str, size: int) -> None:
    if name not in sizes:
        raise ArgumentError(f"{name!r} is not one of {', '.join(sizes)}")
    if size > sizes[name]:
        raise ArgumentError(f"{size} bytes do not fit {name!r}, which has {sizes[name]}")
