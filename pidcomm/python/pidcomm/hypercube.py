"""Hypercubes of PEs, and the collectives on them. One file, because one class has all methods."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar
from weakref import WeakSet, ref

import numpy as np
from numpy.typing import DTypeLike, NDArray

from pidcomm import _core
from pidcomm._rows import HypercubeCollectives
from pidcomm.arguments import (
    MAX_COUNT,
    Array,
    ArrayInput,
    ArrayOutput,
    Axis,
    as_bytes,
    as_dtype,
    as_flag,
    as_integer,
    as_text,
    input_array,
    input_rows,
    option_codes,
)
from pidcomm.arrays import ArrayCollectives
from pidcomm.axes import CHIPS, Axes, OrderName
from pidcomm.batches import BatchCube, Collected
from pidcomm.buffer_calls import prepare_buffers
from pidcomm.buffers import Block, Buffer, shape_of
from pidcomm.calls import Call, CoreArguments, prepare_call, require_words, sizes_of
from pidcomm.errors import ArgumentError, shown
from pidcomm.measured_passes import MeasuredPasses
from pidcomm.messages import MESSAGE, sizes_of_messages
from pidcomm.movements import NAME, Movements
from pidcomm.notebook import hypercube_html
from pidcomm.places import Groups, Location
from pidcomm.plans import Plan, PlannedName, make_planned, make_request, plan_of
from pidcomm.programs import MRAM_WINDOW, HeapWindows, PathText, Window, at_mram_bytes
from pidcomm.requests import Request
from pidcomm.scans import Scans
from pidcomm.tables import BANKS_PER_CHIP, CHIPS_PER_RANK, COLLECTIVES, ROWS, WORD_BYTES
from pidcomm.trace import Trace, trace_of

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from pidcomm.arguments import Options
    from pidcomm.operators import AnyOp
    from pidcomm.signatures import AnyArguments


T = TypeVar("T")
NO_OPTIONS = (0, 0, 0, 0, 0)
PLAIN_OPS = (str, type(None))
MOST_KEPT_CALLS = 64
BUFFER_NUMBERS = itertools.count(1)


class KeptCall(NamedTuple):
    """A call from a buffer to a buffer, whose arguments have been checked. The buffers are not
    kept: the key of the call has their identities, which other objects may have later.
    """

    x: ref[Buffer]
    out: ref[Buffer]
    arguments: CoreArguments

    def is_of(self, x: object, out: object) -> bool:
        """Return whether the call has these buffers."""
        return self.x() is x and self.out() is out


class Owner(Protocol):
    """The methods of `PeSet` that hypercubes use. The set owns the PEs of the hypercube."""

    @property
    def pes(self) -> int:
        """Number of PEs."""

    @property
    def is_freed(self) -> bool:
        """Whether `free` has been called."""

    def free(self) -> None:
        """Free the PEs."""

    def _load(self, *arguments: Any, **others: Any) -> None:
        """Load a program."""

    def hypercube(
        self, *lengths: int, first: int = 0, order: OrderName = "chips", **axes: int
    ) -> Hypercube:
        """Arrange the PEs as another hypercube."""


class Hypercube(HypercubeCollectives, Movements, Scans, BatchCube, MeasuredPasses):
    """Run collectives on PEs that are arranged as a hypercube. `PeSet.hypercube` makes a hypercube.

    The PE at coordinates x, y, z, ... has number x + len_x * (y + len_y * (z + ...)). A collective
    runs along axes: a name, several names in any order, or a ``mask`` such as ``"10"`` with one
    character per axis, x first, where 1 selects the axis. The names are those that
    `PeSet.hypercube` got, or x, y, z, w, axis4, axis5, ... PEs with equal unselected coordinates
    form a group of N members. The member index counts the selected coordinates, and the group index
    the unselected ones; the first such axis varies fastest.

    ``cube.allreduce(x, "x", out=y)`` works on `Buffer` objects. Without ``out``, it returns a new
    buffer; ``out=x`` works in place. Blocks lie along the first axis of x and y. Host arrays, which
    scatter and broadcast take, and gather and reduce return, have one row per group.

    ``cube.allreduce("x", bytes=64, src=0, dst=64, dtype="int32")`` works on windows of MRAM.
    ``src`` and ``dst`` are buffers, or offsets in bytes from the start of the heap, multiples of 8.
    ``bytes`` is the number of bytes per PE: of the output of allgather, scatter and broadcast, and
    of the input of the others. A block has ``bytes`` bytes, or ``bytes`` / N if a row has N blocks.
    Equal offsets work in place; other windows must not overlap.

    The bytes of a block are a multiple of 8. ``dtype`` is any dtype of a fixed size. Reductions
    take ``pidcomm.TYPES``; sum also takes complex numbers, and min, max, and, or, xor also take
    bool. ``op`` is one of ``pidcomm.OPS``, "avg", "argmin", "argmax", `pidcomm.ScaledSum`, or a
    `pidcomm.Operator`. "avg" rounds the exact sum of integers, divided by N, to nearest, ties to
    even; it adds floats as `ScaledSum` does. "argmin" and "argmax" take elements of a value and an
    index, and choose the smallest index of equal values. C-contiguous host arrays are not copied.
    ``**options`` are technique=, isa=, threads=, coherence=, scratch=; see `pidcomm.Options`. A
    collective first waits for earlier work on its PEs. With ``wait=False`` it returns a `Request`,
    whose `wait` returns the result.

    Every method raises `ArgumentError` before any byte moves if an argument breaks a rule, and
    `Error` if the set is freed or a device fails. Calls release the GIL; calls on the hypercubes of
    a set run one at a time.

    Source of the hypercube and its collectives: PID-Comm (ISCA 2024), section IV.
    """

    def __init__(
        self,
        pe_set: Owner,
        core_set: _core.Set,
        requests: WeakSet[Request[Any]],
        blocks: WeakSet[Block],
        heap_windows: HeapWindows,
        axes: Axes,
        first: int,
    ) -> None:
        """Arrange PEs of a set; see `PeSet.hypercube`."""
        self._pe_set = pe_set
        self._requests = requests  # non-blocking calls on the set
        self._blocks = blocks  # of all buffers on the set
        self._heap_windows = heap_windows  # of the set
        self._axes = axes
        self._core_set = core_set
        self._first = first
        self._core = core_set.hypercube(list(axes.shape), axes.order_code, first)
        self._pes = int(np.prod(axes.shape, dtype=np.uint64))
        self._no_axis = "0" * len(axes.shape)
        self._groups: dict[str, Groups] = {}
        self._kept_calls: dict[tuple[object, ...], KeptCall] = {}
        self._last_fields: _core.RawTrace | Trace | None = None

    @property
    def last_trace(self) -> Trace | None:
        """Trace of the last collective that ended; None before the first."""
        fields = self._last_fields
        if isinstance(fields, _core.RawTrace):  # converted here, not in each call
            self._last_fields = fields = trace_of(fields)
        return fields

    @last_trace.setter
    def last_trace(self, trace: Trace | None) -> None:
        self._last_fields = trace

    @property
    def shape(self) -> tuple[int, ...]:
        """Axis lengths, x first."""
        return self._axes.shape

    @property
    def axes(self) -> tuple[str, ...]:
        """Names of the axes, x first."""
        return self._axes.names

    @property
    def pes(self) -> int:
        """Number of PEs."""
        return self._pes

    @property
    def first(self) -> int:
        """Number in the set of PE 0 of the hypercube."""
        return self._first

    @property
    def order(self) -> OrderName:
        """What PE numbers count fastest: "chips" or "foreach"; see `PeSet.hypercube`."""
        return self._axes.order

    @property
    def unused_pes(self) -> int:
        """Number of PEs of the set that the hypercube leaves out."""
        return self._pe_set.pes - self._pes

    @property
    def arrays(self) -> ArrayCollectives:
        """The collectives that take a NumPy array and return a NumPy array."""
        return ArrayCollectives(self)

    @property
    def pe_set(self) -> Owner:
        """The set that owns the PEs."""
        return self._pe_set

    def __repr__(self) -> str:
        """Report the shape (with names if given), the numbers of used and unused PEs, the first
        PE unless it is 0, and whether the PEs are freed.
        """
        begin = f" from PE {self.first} on" if self.first else ""
        unused = f", {self.unused_pes} unused" if self.unused_pes else ""
        freed = ", freed" if self._pe_set.is_freed else ""
        return f"<Hypercube {self._axes} of {self._pes} PEs{begin}{unused}{freed}>"

    def _repr_html_(self) -> str:
        return hypercube_html(repr(self), self.shape, {"unused PEs of the set": self.unused_pes})

    # ---- groups and members

    def location(self, pe: int) -> Location:
        """Return the place of the PE with number pe. Raises ArgumentError if pe is out of range."""
        return Location(*self._core.location(as_integer("pe", pe, high=MAX_COUNT)))

    def _number_in_set(self, pe: int) -> int:
        """Return the number in the set of a PE of the hypercube."""
        if self.order == CHIPS:
            return self._first + pe
        rank, chip, bank = self.location(pe)  # the set has no missing PEs up to this rank
        return (rank * BANKS_PER_CHIP + bank) * CHIPS_PER_RANK + chip

    def coords(self, pe: int) -> tuple[int, ...]:
        """Return the coordinates of the PE with number pe, x first.

        Raises ArgumentError if pe is out of range.
        """
        return tuple(self._core.coords(as_integer("pe", pe, high=MAX_COUNT)))

    def mask_of(self, axis: Axis) -> str:
        """Return the mask that selects axes.

        axis: the name of an axis, a sequence of names, or a mask, which stays as it is. Raises
        ArgumentError if a name is unknown or occurs twice.
        """
        return self._axes.mask_of(axis)

    def group_of(self, pe: int, mask: Axis) -> int:
        """Return the group index of the PE with number pe under an axis mask, which is the row
        in host arrays.
        """
        return self._core.group_of(self.mask_of(mask), as_integer("pe", pe, high=MAX_COUNT))

    def member_of(self, pe: int, mask: Axis) -> int:
        """Return the member index of the PE with number pe in its group under an axis mask."""
        return self._core.member_of(self.mask_of(mask), as_integer("pe", pe, high=MAX_COUNT))

    def groups(self, mask: Axis) -> Groups:
        """Return the number of groups and of PEs per group under an axis mask."""
        return Groups(*self._core.groups(self._axes.mask_of(mask)))

    def _kept_groups(self, mask: str) -> Groups:
        """Return `groups`, which are kept for the next call."""
        if (groups := self._groups.get(mask)) is None:
            groups = self._groups[mask] = self.groups(mask)
        return groups

    # ---- PE programs

    def load(
        self,
        program: PathText | Sequence[PathText],
        *,
        tasklets: int | None = None,
        stack_bytes: int | None = None,
        options: Sequence[str] = (),
        buffers: Sequence[Buffer] = (),
    ) -> None:
        """Load a program on all PEs of the set, as `PeSet.load` does, then `fill_variables`.

        program, tasklets, stack_bytes, options, buffers: as for `PeSet.load`. After an error of
        `fill_variables`, the program is loaded.
        """
        self._pe_set._load(program, tasklets, stack_bytes, options, buffers)
        self.fill_variables()

    def fill_variables(self) -> None:
        """Write the place of each PE to the variables ``__host uint32_t`` of these names that the
        loaded program declares.

        ``pidcomm_pe`` gets the number of the PE in the hypercube; for an axis named x,
        ``pidcomm_coord_x`` gets its coordinate and ``pidcomm_length_x`` the length; for a mask such
        as 10, ``pidcomm_group_10`` gets `group_of` and ``pidcomm_member_10`` `member_of` (up to 8
        axes). PEs outside the hypercube keep their values.

        Raises ArgumentError if such a variable has not 4 bytes or is not in WRAM. Raises Error if
        no program is loaded, a collective has replaced it, or a PE is in fault.
        """
        self._core.fill_variables(list(self.axes))

    # ---- rows of PEs

    def write(self, x: ArrayInput, offset: int = 0, **options: Unpack[Options]) -> Trace:
        """Write row p of x, shape (pes, n), to PE p at `offset`.

        Moves n * itemsize bytes per PE (a multiple of 8).
        """
        rows = input_rows("x", x, self.pes, "PE")
        require_words("write", rows.shape[1], rows.dtype)
        return self.carry_out("scatter", self._no_axis, host=rows, dst=offset, options=options)[0]

    def read(
        self,
        count: int,
        dtype: DTypeLike,
        offset: int = 0,
        *,
        out: ArrayOutput | None = None,
        **options: Unpack[Options],
    ) -> Array:
        """Read `count` elements of `dtype` from every PE at `offset`; return shape (pes, count), or
        fill `out`.

        Moves count * itemsize bytes per PE (a multiple of 8).
        """
        count, element = as_integer("count", count), as_dtype(dtype)
        require_words("read", count, element)
        rows = self.carry_out(
            "gather",
            self._no_axis,
            bytes=count * element.itemsize,
            src=offset,
            dtype=dtype,
            out=out,
            options=options,
        )[1]
        assert rows is not None  # a gather has host rows
        return rows

    # ---- buffers

    def empty(
        self, shape: int | Sequence[int], dtype: DTypeLike, *, name: str | None = None
    ) -> Buffer:
        """Return a new buffer whose content is undefined: an array of `shape` and `dtype` in the
        MRAM of every PE.

        name: for error sentences and PE programs (default: buffer1, buffer2, ...). Raises
        OutOfMemoryError, which lists the buffers, if MRAM has no place. The buffer is freed with
        its last reference.
        """
        element = as_dtype(dtype)
        new_shape = shape_of(shape)
        size_bytes = math.prod(new_shape) * element.itemsize
        text = as_text("name", name) if name is not None else f"buffer{next(BUFFER_NUMBERS)}"
        block = Block(self, self._core.block(text, min(max(size_bytes, 1), 2**63)), text)
        self._blocks.add(block)
        return Buffer(block, element, new_shape)

    def array(
        self, x: ArrayInput, dtype: DTypeLike | None = None, *, name: str | None = None
    ) -> Buffer:
        """Return a new buffer with the rows of x, shape (pes, ...): row p is for PE p. An x of
        shape (..., len_y, len_x, ...) has the row of coordinates x, y, ... at ``[..., y, x]``.

        name: as for `empty`, whose errors it raises. Raises ArgumentError for other shapes.
        """
        rows = input_array("x", x)
        grid = self.shape[::-1]
        if rows.ndim and len(rows) == self._pes:
            shape = rows.shape[1:]
        elif rows.shape[: len(grid)] == grid:
            shape = rows.shape[len(grid) :]
        else:
            raise ArgumentError(
                f"x has shape {rows.shape}; it must begin with {(self._pes,)} or {grid}, one row"
                " per PE",
                "ERR_HOST_BUFFER",
            )
        buffer = self.empty(shape, rows.dtype if dtype is None else dtype, name=name)
        buffer.set(rows.reshape(self._pes, *shape))
        return buffer

    # ---- plans

    def plan(
        self,
        collective: PlannedName,
        mask: Axis,
        *,
        bytes: int,
        src: Window = 0,
        dst: Window = 0,
        dtype: DTypeLike = np.uint8,
        op: AnyOp | None = "sum",
        expand: bool = False,
        **options: Unpack[Options],
    ) -> Plan:
        """Return the plan of a collective on this hypercube, with every step if ``expand``.

        See `pidcomm.plan`. `Batch.plans` has the plans of all movements, and of calls on buffers.
        """
        self._require_own(src, dst)
        src, dst, options = at_mram_bytes(self._core_set, src, dst, options)
        mask = self.mask_of(mask)
        request, messages = make_planned(
            collective, self.shape, mask, bytes, src, dst, dtype, op, self.groups
        )
        codes = option_codes(options)
        return plan_of(self.shape, request, codes, expand, self._axes.order_code, messages)

    def validate(
        self,
        collective: PlannedName,
        mask: Axis,
        *,
        bytes: int,
        src: Window = 0,
        dst: Window = 0,
        dtype: DTypeLike = np.uint8,
        op: AnyOp | None = "sum",
        **options: Unpack[Options],
    ) -> None:
        """Check the arguments of a collective without running it. Raises the error that the
        collective would raise.

        Arguments are those of `pidcomm.plan`; host arrays are not checked. Does not wait for
        earlier work on the PEs, so it reports only faults of work that has ended. Moves no bytes.
        """
        self._require_own(src, dst)
        mask = self.mask_of(mask)
        request, messages = make_planned(
            collective, self.shape, mask, bytes, src, dst, dtype, op, self.groups
        )
        self._core.validate(request, option_codes(options), messages)

    # ---- implementation of all collectives

    def _connect(
        self, transport: object, settings: tuple[float, float, float, int, int]
    ) -> _core.Hosts:
        """Connect with the hypercubes of other hosts; `pidcomm.hosts.connect` calls it.

        transport: a `pidcomm.hosts.Transport` or the pool of the library. settings: time-out, rate
        and latency of the link, codes of overlap and transport.
        """
        return _core.Hosts(self._core, transport, settings)

    def carry_out(
        self, name: str, mask: Axis, **arguments: Unpack[AnyArguments]
    ) -> tuple[Trace, Array | None]:
        """Run the collective `name` of `pidcomm.COLLECTIVES`; return its trace and the filled host
        array, or None. Batches and streams do not record it.

        arguments: the arguments of the method `name`, with a dict ``options``. Arguments that the
        collective does not use are ignored. Host rows, errors and costs are the same as for the
        method.
        """
        call = self._prepare(name, mask, **arguments)
        return self._finished(name, call.arguments), call.out

    def _call(
        self,
        name: str,
        x: Any,
        axis: Axis | None,
        wait: bool,
        *,
        options: Options,
        bytes: int | None = None,
        src: Window = 0,
        dst: Window = 0,
        dtype: DTypeLike = np.uint8,
        op: Any = None,
        host: ArrayInput | None = None,
        out: Any = None,
    ) -> Any:
        """Run the method of a collective.

        With buffers, return the filled buffer or host array, else the trace or the host array;
        without `wait`, a request for them.
        """
        if x is not None and axis is not None:
            is_default = bytes is host is None and type(src) is type(dst) is int and src == dst == 0
            if not is_default:
                raise ArgumentError(
                    f"{name} of {shown(x)} along an axis takes no bytes, src, dst and host; use"
                    " out="
                )
            return self._call_on_buffers(name, x, axis, wait, op, out, options)
        if isinstance(x, Buffer) or (bytes is None and ROWS[name].at_pes_before):
            raise ArgumentError(f"{name} needs a buffer and an axis, or an axis and bytes=")
        mask = x if axis is None else axis
        call = self._prepare(
            name,
            mask,
            bytes=bytes,
            src=src,
            dst=dst,
            dtype=dtype,
            op=op,
            host=host,
            out=out,
            options=options,
        )

        def result(trace: Trace, _: object = (src, dst)) -> Trace | Array:  # keeps buffers
            return trace if call.out is None else call.out

        collected = None
        if (collector := self._collector()) is not None and collector._takes_windows:
            if call.rows_in is not None and not (
                isinstance(host, np.ndarray) and np.shares_memory(call.rows_in, host)
            ):
                raise ArgumentError(f"{name} in a stream needs C-contiguous host arrays")
            buffers = tuple(window for window in (src, dst) if isinstance(window, Buffer))
            collected = Collected(call.out, buffers, uses_heap=True)
        return self._run(name, call.arguments, wait, result, collected)

    def _call_on_buffers(
        self, name: str, x: Any, axis: Axis, wait: bool, op: object, out: Any, options: Options
    ) -> Any:
        is_plain = wait is True and not options and type(axis) is str and type(op) in PLAIN_OPS
        collector = self._collector()
        key = (name, axis, op, id(x), id(out)) if is_plain and collector is None else None
        kept = None if key is None else self._kept_calls.get(key)
        if kept is not None and kept.is_of(x, out):
            x._storage.require_valid()
            out._storage.require_valid()
            self._last_fields = self._core.run(*kept.arguments)
            return out
        call = prepare_buffers(self, name, x, self._axes.mask_of(axis), op, out, options)
        if key is not None and type(x) is type(out) is Buffer:
            if len(self._kept_calls) == MOST_KEPT_CALLS:
                self._kept_calls.clear()
            self._kept_calls[key] = KeptCall(ref(x), ref(out), call[:4])
        collected = None
        if collector is not None:
            if call.copies_host_rows:
                raise ArgumentError(
                    f"{name} in a batch or stream needs C-contiguous host arrays whose rows have a"
                    f" multiple of {WORD_BYTES} bytes"
                )
            buffers = tuple(b for b in (x, call.result) if isinstance(b, Buffer))
            collected = Collected(call.result, buffers)
        return self._run(name, call[:4], wait, call.finish, collected)

    def _run(
        self,
        name: str,
        arguments: CoreArguments,
        wait: bool,
        result: Callable[[Trace], T],
        collected: Collected | None = None,
    ) -> T | Request[T]:
        """Run a collective, or collect it for a batch or stream. Return result(its trace), or a
        request for it without `wait`.

        collected: the call in a batch or stream; None for calls that they cannot collect.
        """
        wait = as_flag("wait", wait)
        if (collector := self._collector()) is not None:
            value: T = collector._collect(self, name, arguments, wait, result, collected)
            return value
        if wait:
            return result(self._finished(name, arguments))

        def finish(trace: Trace, _: object = arguments) -> T:  # keeps the operator
            return result(self._remember(trace))

        request = Request(name, self._core.start(*arguments), finish)
        self._note_arguments(name, arguments)
        self._requests.add(request)
        return request

    def _finished(self, name: str, arguments: CoreArguments) -> Trace:
        """Run a collective and return its trace."""
        self.last_trace = trace_of(self._core.run(*arguments))
        self._note_arguments(name, arguments)
        return self.last_trace

    def _note_arguments(self, name: str, arguments: CoreArguments) -> None:
        request, messages = arguments[:2]
        if name != NAME:
            self._note_written(name, request, self._kept_groups)
        elif messages is not None and request.dst < MRAM_WINDOW:
            self._heap_windows.write(request.dst, sizes_of_messages(messages.view(MESSAGE))[1])

    def _note_written(
        self, name: str, request: _core.Request, groups: Callable[[str], Groups]
    ) -> None:
        row = ROWS[name]
        if row.at_pes_after and request.dst < MRAM_WINDOW:
            self._heap_windows.write(request.dst, sizes_of(row, request, groups)[1])

    def _move(self, name: str, window: int, rows: NDArray[np.uint8]) -> None:
        """Move rows of PEs between the host and a window: scatter, gather, or broadcast a row."""
        row_bytes = rows.shape[-1]
        mask = self._no_axis if rows.ndim > 1 else "1" * len(self.shape)
        request = make_request(name, mask, row_bytes, window, window, np.uint8, None)
        data = as_bytes(rows)
        is_output = COLLECTIVES[name].at_pes_before
        self._finished(
            name, (request, None if is_output else data, data if is_output else None, NO_OPTIONS)
        )

    def _remember(self, trace: Trace) -> Trace:
        self.last_trace = trace
        return trace

    def _require_own(self, *windows: object) -> None:
        """Raise ArgumentError if a window is a buffer of another set."""
        for window in windows:
            if not isinstance(window, Buffer):
                continue
            if not window._is_of(self._core_set):
                raise ArgumentError(f"{window!r} is on another set of PEs")
            first, pes = window._storage.first, window.pes
            if self._first < first or self._first + self._pes > first + pes:
                raise ArgumentError(
                    f"{window!r} is on PEs {first} to {first + pes - 1} of the set; {self!r} has"
                    f" PEs {self._first} to {self._first + self._pes - 1}"
                )

    def _prepare(self, name: str, mask: Axis, **arguments: Unpack[AnyArguments]) -> Call:
        self._require_own(arguments.get("src"), arguments.get("dst"))
        mask = self._axes.mask_of(mask)
        validate = partial(self._core.validate, messages=None)
        return prepare_call(name, mask, self.groups, validate, self._heap_windows, **arguments)
