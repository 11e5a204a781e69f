"""Define the stage of an application: PEs with a program, named windows of MRAM, and a timer for
each phase.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from time import perf_counter
from types import TracebackType
from typing import Any, TypeVar

import numpy as np
from numpy.typing import DTypeLike

import pidcomm
from pidcomm import COLLECTIVES, TECHNIQUES, ArgumentError, Options, PeSet
from pidcomm.arguments import Array, with_scratch
from pidcomm.bench import platform
from pidcomm.bench.ablation import Assumed
from pidcomm.bench.measure import POISON, require_bytes
from pidcomm.compiling import compiled, compiler_options
from pidcomm.sizes import format_about, format_size
from pidcomm_studies.apps.partition import round_up

T = TypeVar("T")
KERNEL, HOST = "kernel", "host"  # phases that are not collectives
ALIGNMENT_BYTES = 64  # alignment of windows, enough for every element type and DMA transfer
SHARED_HEADERS = Path(__file__).parent / "pe"
ASSUMED = Assumed()


@dataclass(frozen=True)
class Cost:
    """Time of a phase in seconds, by source.

    measured: time of the host, on this machine. modelled: time of the PEs, from the cycles of the
    slowest PE. launches, loads: numbers of launches and loads of programs, with assumed costs
    (`pidcomm.bench.ablation.Assumed`). calls:
    number of times that the phase occurred. bus_bytes: bytes that crossed the memory bus, read and
    written.
    bytes_per_pe: argument ``bytes`` of the largest collective.
    """

    measured: float = 0.0
    modelled: float = 0.0
    launches: int = 0
    loads: int = 0
    calls: int = 0
    bus_bytes: int = 0
    bytes_per_pe: int = 0

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


@dataclass(frozen=True)
class Placement:
    """The program of an application's PEs, and the layout of MRAM.

    source: the C file. It must not define MRAM variables, so that offsets of the heap do not depend
    on the program.
    resident: names and sizes (bytes per PE) of data that is placed once and stays, such as a graph
    or weights. windows:
    names and sizes of data for collectives. Resident data and windows follow each other from the
    start of the heap, each aligned to 64 bytes; the program gets their offsets as macros, such as
    ``AT_EDGES`` for ``edges``. tasklets:
    NR_TASKLETS. defines: more macros. stack_bytes: stack of each tasklet. host_bytes: memory that
    `Application.run` needs for rows, besides the input.
    """

    source: Path
    resident: Mapping[str, int]
    windows: Mapping[str, int]
    tasklets: int = 16
    defines: Mapping[str, int | str] = field(default_factory=dict)
    stack_bytes: int = 1024
    host_bytes: int = 0

    @property
    def sizes(self) -> dict[str, int]:
        """Bytes of resident data and windows."""
        return {**self.resident, **self.windows}

    @property
    def offsets(self) -> dict[str, int]:
        """Offsets of resident data and windows, in bytes from the start of the MRAM heap."""
        ends = np.cumsum([0, *map(_aligned, self.sizes.values())])
        return dict(zip(self.sizes, map(int, ends), strict=False))

    @property
    def bytes(self) -> int:
        """Sum of all sizes, after each size is rounded up to the alignment."""
        return sum(map(_aligned, self.sizes.values()))

    @property
    def scratch_bytes(self) -> int:
        """Bytes after the windows that techniques may need: the size of the longest input of a
        collective.
        """
        return max(map(_aligned, self.windows.values()), default=0)

    def options(self) -> list[str]:
        """Return the options of the compiler."""
        macros = {**{f"AT_{name.upper()}": at for name, at in self.offsets.items()}, **self.defines}
        words = [
            "-I",
            str(SHARED_HEADERS),
            *(f"-D{name}={value}" for name, value in macros.items()),
        ]
        return compiler_options(self.tasklets, self.stack_bytes, words)


def require_room(placement: Placement, shape: Sequence[int], techniques: Sequence[str]) -> None:
    """Raise ArgumentError if a placement exceeds the MRAM of a PE or the memory of this machine."""
    needs_scratch = _needs_scratch(techniques)
    per_pe = placement.bytes + (placement.scratch_bytes if needs_scratch else 0)
    pes = prod(shape)
    if per_pe > pidcomm.MRAM_BYTES:
        sizes = ", ".join(f"{name} {format_about(size)}" for name, size in placement.sizes.items())
        raise ArgumentError(
            f"a PE of {pes} needs {format_about(per_pe)} of MRAM ({sizes}"
            + (", scratch of the pr techniques" if needs_scratch else "")
            + f"); it has {format_size(pidcomm.MRAM_BYTES)}: use more PEs or a smaller input"
        )
    require_bytes(
        platform.host_bytes(pes * per_pe) + placement.host_bytes,
        f"{pes} PEs with {format_about(per_pe)} each{_doubled()} and"
        f" {format_about(placement.host_bytes)} of host rows",
    )


class Stage:
    """PEs with the program of an application, and timed collectives between its launches.

    ``src`` and ``dst`` are names of windows; equal names mean that the collective works in place.
    Collectives that are not in place, and alltoall, run several times, and their median time
    counts. Use as a context manager.
    """

    def __init__(
        self,
        pe_set: PeSet,
        shape: Sequence[int],
        placement: Placement,
        options: Options,
        repeats: int = 1,
        on_phase: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Compile the program.

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
        self._options = with_scratch(options, placement.bytes)
        self._repeats = repeats
        self._on_phase = on_phase
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
    def pes(self) -> int:
        """Number of PEs."""
        return self.cube.pes

    @property
    def technique(self) -> str:
        """Technique of the collectives."""
        return self._options.get("technique") or "tile"

    # ---- before a run

    def poison(self) -> None:
        """Fill resident data, windows and scratch with a pattern, so that stale data cannot pass
        the check.

        The stage does not time this call. The call also allocates the memory, so that no run
        includes the allocation.
        """
        scratch_bytes = self._placement.scratch_bytes if _needs_scratch([self.technique]) else 0
        row = np.full((1, self._placement.bytes + scratch_bytes), POISON, np.uint8)
        if row.size:
            self.cube.broadcast("1" * len(self.shape), host=row)

    # ---- resident data

    def place(self, name: str, rows: Array, *, at: int = 0) -> None:
        """Write row p, shape (pes, n), to PE p, `at` bytes into resident data. The cost is in
        `setup` and in no total.

        Rows are multiples of 8 bytes. The technique is always `tile`: the technique of the stage is
        for repeated transfers only.
        """
        _require_room_in(self._placement.resident, name, at + rows[0].nbytes)
        self._on_phase(f"{self.technique}: placing {name}")
        trace = self.cube.write(rows, self.offsets[name] + at, threads=self._options.get("threads"))
        self.setup += Cost(measured=trace.host_seconds, calls=1, bus_bytes=trace.bus_bytes)

    # ---- work of the host

    def host_work(self, act: Callable[[], T]) -> T:
        """Return the result of act(), timed: work of the host that every input needs, such as
        laying out rows.

        The stage calls `act` as often as collectives and counts the median time. Every call must do
        the same work.
        """
        self._on_phase(f"{self.technique}: {HOST}")
        return self._timed(act, calls=1)

    def _timed(self, act: Callable[[], T], calls: int) -> T:
        seconds = []
        for _ in range(self._repeats):
            begin = perf_counter()
            result = act()
            seconds.append(perf_counter() - begin)
        self._add(HOST, Cost(measured=_median(seconds), calls=calls))
        return result

    # ---- launches

    def launch(self, **variables: int | Array) -> None:
        """Write variables of the program, then run it on all PEs. Variables keep their values
        between launches.

        variables: the name of a ``__host uint32_t`` of the program -> an int for all PEs, or an
        array of shape (pes,) with a value for each PE.
        """
        self._on_phase(f"{self.technique}: {KERNEL}")
        before = {} if self._load() else self._variables
        self._variables = {
            **self._variables,
            **{name: np.asarray(value, np.uint32) for name, value in variables.items()},
        }
        changed = {
            name: column.reshape(-1, 1) if column.ndim else column
            for name, column in self._variables.items()
            if name not in before or not np.array_equal(column, before[name])
        }

        def write() -> None:
            for name, values in changed.items():
                self._pe_set.symbol(name).write(values)

        self._timed(write, calls=0)
        self._add(KERNEL, Cost(modelled=platform.launch_seconds(self._pe_set), launches=1, calls=1))

    def _load(self) -> bool:
        """Load the program if it is not loaded; return whether this call loaded the program.

        The first load counts as set-up.
        """
        if self._is_loaded:
            return False
        self._pe_set.load(self._program)
        self._is_loaded = True
        if self._replaced_by is None:
            self.setup += Cost(loads=1)
        else:  # the collective that replaced the program pays for this load
            self._add(self._replaced_by, Cost(loads=1))
        return True

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

    def gather(self, mask: str, *, bytes: int, src: str, dtype: DTypeLike) -> Array:
        """Return the data of the members, in member order: shape (groups, N * bytes / itemsize)."""
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
            self._runs(collective, is_in_place=src == dst),
            src=self.offsets[src],
            dst=self.offsets[dst],
            dtype=dtype,
            op=op if row.takes_op else None,
        )

    def _runs(self, collective: str, *, is_in_place: bool) -> int:
        """Return how often a collective runs.

        In place only alltoall repeats: two runs restore the input.
        """
        if not is_in_place:
            return self._repeats
        return (self._repeats - 1) // 2 * 2 + 1 if collective == "alltoall" else 1

    def _from_host(self, collective: str, mask: str, host: Array, dst: str, size: int) -> None:
        _require_room_in(self._placement.windows, dst, size)
        self._carry_out(collective, mask, size, self._repeats, host=host, dst=self.offsets[dst])

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
            self._repeats,
            src=self.offsets[src],
            dtype=dtype,
            op=op,
            out=out,
        )
        return out

    def _carry_out(
        self, collective: str, mask: str, size: int, repeats: int, **arguments: Any
    ) -> None:
        self._on_phase(f"{self.technique}: {collective}")
        arguments |= {"bytes": size, "options": self._options}
        dtype = np.dtype(arguments.get("dtype", np.uint8)).name
        self.calls.append(Call(collective, mask, size, dtype, arguments.get("op")))
        traces = [self.cube.carry_out(collective, mask, **arguments)[0] for _ in range(repeats)]
        median = _median([trace.host_seconds for trace in traces])
        trace = next(candidate for candidate in traces if candidate.host_seconds == median)
        # Loads of the program that reorders blocks. This program stays loaded for the repetitions.
        loads = traces[0].pe_loads
        if loads and self._is_loaded:
            self._is_loaded, self._replaced_by = False, collective
        self._add(
            collective,
            Cost(
                trace.host_seconds,
                trace.pe_seconds,
                trace.pe_launches,
                loads,
                1,
                trace.bus_bytes,
                size,
            ),
        )

    def _add(self, phase: str, cost: Cost) -> None:
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


def _doubled() -> str:
    return " (twice with huge pages; DPUEMU_HUGEPAGES=off)" if platform.host_bytes(1) == 2 else ""


def _needs_scratch(techniques: Sequence[str]) -> bool:
    return any(name in TECHNIQUES and TECHNIQUES[name].runs_pe_program for name in techniques)


def _median(seconds: Sequence[float]) -> float:
    """Return the median. Of an even number of values, return the lower of the two middle values."""
    return sorted(seconds)[(len(seconds) - 1) // 2]


def _aligned(size: int) -> int:
    return round_up(size, ALIGNMENT_BYTES)


def _require_room_in(sizes: Mapping[str, int], name: str, size: int) -> None:
    if name not in sizes:
        raise ArgumentError(f"{name!r} is not one of {', '.join(sizes)}")
    if size > sizes[name]:
        raise ArgumentError(f"{size} bytes do not fit {name!r}, which has {sizes[name]}")
