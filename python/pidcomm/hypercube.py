"""PEs arranged as a hypercube, and the eight collectives on it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from pidcomm import _core
from pidcomm.arguments import (
    MAX_COUNT,
    Array,
    as_bytes,
    as_integer,
    as_mask,
    as_shape,
    as_type,
    input_rows,
    option_codes,
    output_rows,
    row_of,
)
from pidcomm.arrays import ArrayCollectives
from pidcomm.errors import ArgumentError
from pidcomm.plan import make_request, plan
from pidcomm.tables import COLLECTIVES, STREAMS
from pidcomm.trace import Trace

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from pidcomm.arguments import Options
    from pidcomm.machine import PeSet


class Groups(NamedTuple):
    """How an axis mask divides the PEs: `groups` groups of `group_pes` PEs (N)."""

    groups: int
    group_pes: int


class Hypercube:
    """PEs numbered x + len_x * (y + len_y * (z + ...)), with the collectives among them. Made by `PeSet.hypercube`.

    An axis mask such as ``"10"`` has one character per axis, the first for x: PEs that agree in all unselected
    coordinates form a group. A PE's member index counts its selected coordinates, the first selected axis fastest;
    groups count the unselected ones the same way. ``bytes`` is per PE: what each PE holds before alltoall,
    reduce_scatter, allreduce, reduce and gather, and after allgather, scatter and broadcast. Blocks (bytes, or bytes /
    N where a row has N blocks) are multiples of 8 bytes.

    ``src`` and ``dst`` are offsets in bytes from the start of the MRAM heap, multiples of 8; equal ones mean in place,
    and other overlaps are errors. ``dtype`` is one of ``pidcomm.TYPES``; movement does not depend on it. ``op`` is one
    of ``pidcomm.OPS``. Host arrays have one row per group; they are not copied if they are C-contiguous. ``**options``
    are technique=, isa=, threads=, coherence=, see `pidcomm.Options`.

    Every method raises `ArgumentError` before anything moves if an argument breaks a rule, and `Error` if the set is
    freed or a device fails. Calls release the GIL; those on one hypercube are serialised.

    Source of the hypercube and its collectives: PID-Comm (ISCA 2024), section IV.
    """

    def __init__(self, pe_set: PeSet, core_set: _core.Set, lengths: tuple[int, ...]) -> None:
        """Arrange PEs of a set; see `PeSet.hypercube`."""
        self._pe_set = pe_set
        self._shape = tuple(as_shape(lengths))
        self._core = core_set.hypercube(list(self._shape))
        self._pes = int(np.prod(self._shape, dtype=np.uint64))
        self._no_axis = "0" * len(self._shape)
        self.last_trace: Trace | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """Axis lengths, x first."""
        return self._shape

    @property
    def pes(self) -> int:
        """Number of PEs."""
        return self._pes

    @property
    def arrays(self) -> ArrayCollectives:
        """The collectives from array to array."""
        return ArrayCollectives(self)

    @property
    def pe_set(self) -> PeSet:
        """The set that owns the PEs."""
        return self._pe_set

    def __repr__(self) -> str:
        """Tell the shape."""
        return f"<Hypercube {'x'.join(map(str, self._shape))}>"

    # ---- who talks to whom

    def coords(self, pe: int) -> tuple[int, ...]:
        """Return the coordinates of the PE with number pe, x first. Raises ArgumentError if there is none."""
        return tuple(self._core.coords(as_integer("pe", pe, high=MAX_COUNT)))

    def group_of(self, pe: int, mask: str) -> int:
        """Return the group of the PE with number pe under an axis mask: its row in host arrays."""
        return self._core.group_of(as_mask(mask), as_integer("pe", pe, high=MAX_COUNT))

    def member_of(self, pe: int, mask: str) -> int:
        """Return the member index of the PE with number pe in its group under an axis mask."""
        return self._core.member_of(as_mask(mask), as_integer("pe", pe, high=MAX_COUNT))

    def groups(self, mask: str) -> Groups:
        """Return the number of groups and of PEs per group under an axis mask."""
        return Groups(*self._core.groups(as_mask(mask)))

    # ---- rows of PEs

    def write(self, x: ArrayLike, offset: int = 0, **options: Unpack[Options]) -> Trace:
        """Write row p of x, shape (pes, n), to PE p at `offset`.

        Moves n * itemsize bytes per PE (a multiple of 8).
        """
        rows = input_rows("x", x, self.pes, "PE")
        return self.carry_out("scatter", self._no_axis, host=rows, dst=offset, options=options)[0]

    def read(
        self, count: int, dtype: DTypeLike, offset: int = 0, *, out: Array | None = None, **options: Unpack[Options]
    ) -> Array:
        """Read `count` elements of every PE at `offset`; return (or fill `out`) shape (pes, count).

        Moves count * itemsize bytes per PE (a multiple of 8).
        """
        size_bytes = as_integer("count", count) * as_type(dtype).size_bytes
        return self._to_host("gather", self._no_axis, size_bytes, offset, dtype, None, out, options)

    # ---- the eight collectives

    def alltoall(
        self,
        mask: str,
        *,
        bytes: int,
        src: int = 0,
        dst: int = 0,
        dtype: DTypeLike = np.uint8,
        **options: Unpack[Options],
    ) -> Trace:
        """Move block q of member p to block p of member q.

        Reads and writes `bytes` per PE, N blocks.
        """
        return self.carry_out("alltoall", mask, bytes=bytes, src=src, dst=dst, dtype=dtype, options=options)[0]

    def reduce_scatter(
        self,
        mask: str,
        *,
        bytes: int,
        src: int = 0,
        dst: int = 0,
        dtype: DTypeLike,
        op: str = "sum",
        **options: Unpack[Options],
    ) -> Trace:
        """Leave at member q block q, reduced over all members.

        Reads `bytes` per PE, N blocks, and writes bytes / N; in place the result replaces block 0.
        """
        return self.carry_out(
            "reduce_scatter", mask, bytes=bytes, src=src, dst=dst, dtype=dtype, op=op, options=options
        )[0]

    def allreduce(
        self,
        mask: str,
        *,
        bytes: int,
        src: int = 0,
        dst: int = 0,
        dtype: DTypeLike,
        op: str = "sum",
        **options: Unpack[Options],
    ) -> Trace:
        """Leave at every member the element-wise reduction over the group.

        Reads and writes `bytes` per PE.
        """
        return self.carry_out("allreduce", mask, bytes=bytes, src=src, dst=dst, dtype=dtype, op=op, options=options)[0]

    def allgather(
        self,
        mask: str,
        *,
        bytes: int,
        src: int = 0,
        dst: int = 0,
        dtype: DTypeLike = np.uint8,
        **options: Unpack[Options],
    ) -> Trace:
        """Leave at every member the contributions of all, in member order.

        Reads bytes / N per PE and writes `bytes`; in place the contribution is at the start of the window.
        """
        return self.carry_out("allgather", mask, bytes=bytes, src=src, dst=dst, dtype=dtype, options=options)[0]

    def scatter(
        self, mask: str, *, host: ArrayLike, bytes: int | None = None, dst: int = 0, **options: Unpack[Options]
    ) -> Trace:
        """Leave at member q part q of its group's row of `host`, shape (groups, N * n).

        Writes n * itemsize bytes per PE (`bytes`, if given, must be that).
        """
        return self.carry_out("scatter", mask, bytes=bytes, dst=dst, host=host, options=options)[0]

    def gather(
        self,
        mask: str,
        *,
        bytes: int,
        src: int = 0,
        dtype: DTypeLike = np.uint8,
        out: Array | None = None,
        **options: Unpack[Options],
    ) -> Array:
        """Return (or fill `out` with) what the members hold, in member order: shape (groups, N * bytes / itemsize).

        Reads `bytes` per PE.
        """
        return self._to_host("gather", mask, bytes, src, dtype, None, out, options)

    def reduce(
        self,
        mask: str,
        *,
        bytes: int,
        src: int = 0,
        dtype: DTypeLike,
        op: str = "sum",
        out: Array | None = None,
        **options: Unpack[Options],
    ) -> Array:
        """Return (or fill `out` with) the element-wise reduction of every group: shape (groups, bytes / itemsize).

        Reads `bytes` per PE.
        """
        return self._to_host("reduce", mask, bytes, src, dtype, op, out, options)

    def broadcast(
        self, mask: str, *, host: ArrayLike, bytes: int | None = None, dst: int = 0, **options: Unpack[Options]
    ) -> Trace:
        """Leave at every member its group's row of `host`, shape (groups, n).

        Writes n * itemsize bytes per PE (`bytes`, if given, must be that).
        """
        return self.carry_out("broadcast", mask, bytes=bytes, dst=dst, host=host, options=options)[0]

    # ---- plans and limits

    def plan(self, collective: str, mask: str, *, bytes: int, **arguments: Any) -> dict[str, Any]:
        """Return what a collective would do here; arguments are those of `pidcomm.plan`. Moves nothing."""
        return plan(collective, self._shape, mask, bytes=bytes, **arguments)

    def stream_limit(
        self,
        bytes_read: int,
        bytes_written: int,
        *,
        src: int = 0,
        dst: int = 0,
        stream: str = "sequential",
        **options: Unpack[Options],
    ) -> tuple[float, int]:
        """Time a streaming pass that does nothing but read bytes_read and write bytes_written bytes of every PE.

        Reads the window at `src` and overwrites that at `dst`. stream: the order in which memory is visited, a name of
        ``pidcomm.STREAMS``. Returns (seconds, bytes read plus written over all PEs).
        """
        return self._core.stream_limit(
            row_of(STREAMS, "stream", stream, "ERR_OPTION").code,
            as_integer("bytes_read", bytes_read),
            as_integer("bytes_written", bytes_written),
            as_integer("src", src),
            as_integer("dst", dst),
            option_codes(options),
        )

    def push_xfer(self, rows: NDArray[np.uint8], offset: int = 0, *, to_pes: bool) -> float:
        """Return the seconds of one plain dpu_push_xfer between `rows`, shape (pes, bytes), and the PEs at `offset`.

        to_pes: the direction; False fills rows.
        """
        rows = output_rows(rows, (self.pes, rows.shape[-1]), np.uint8)
        return self._core.push_xfer(to_pes, as_integer("offset", offset), as_bytes(rows))

    # ---- the one implementation

    def carry_out(
        self,
        name: str,
        mask: str,
        *,
        bytes: int | None = None,
        src: int = 0,
        dst: int = 0,
        dtype: DTypeLike = np.uint8,
        op: str | None = None,
        host: ArrayLike | None = None,
        out: Array | None = None,
        options: Options,
    ) -> tuple[Trace, Array | None]:
        """Carry out any collective of `pidcomm.COLLECTIVES`; return its trace and the host array it filled, if any.

        What a collective does not use is ignored. Raises and costs as the method of that name.
        """
        row = COLLECTIVES[name]
        codes = option_codes(options)
        groups = self.groups(mask)
        host_in = host_out = None
        if not row.at_pes_before:
            host_in = input_rows("host", () if host is None else host, groups.groups, "group")
            dtype = host_in.dtype
            if bytes is None:
                bytes = _bytes_per_pe(host_in, row.blocks_before(groups.group_pes))
        request = make_request(row, mask, 0 if bytes is None else bytes, src, dst, dtype, op)
        if not row.at_pes_after:
            _core.plan_json(list(self._shape), request, codes, False)  # raises before memory is asked for
            row_bytes = (bytes or 0) * row.blocks_after(groups.group_pes)
            host_out = output_rows(out, (groups.groups, row_bytes // np.dtype(dtype).itemsize), dtype)
        trace = self._core.run(
            request,
            None if host_in is None else as_bytes(host_in),
            None if host_out is None else as_bytes(host_out),
            codes,
        )
        self.last_trace = Trace(**trace)
        return self.last_trace, host_out

    def _to_host(
        self,
        name: str,
        mask: str,
        size_bytes: int,
        src: int,
        dtype: DTypeLike,
        op: str | None,
        out: Array | None,
        options: Options,
    ) -> Array:
        size_bytes = as_integer("bytes", size_bytes)
        _, filled = self.carry_out(name, mask, bytes=size_bytes, src=src, dtype=dtype, op=op, out=out, options=options)
        assert filled is not None
        return filled


def _bytes_per_pe(rows: Array, blocks: int) -> int:
    row_bytes = int(rows.shape[1]) * rows.itemsize
    if row_bytes % blocks:
        raise ArgumentError(
            f"rows of {row_bytes} bytes cannot be divided among the {blocks} members of a group", "ERR_SIZE"
        )
    return row_bytes // blocks
