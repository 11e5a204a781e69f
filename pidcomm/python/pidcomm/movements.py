"""Movements between any PEs of a hypercube: messages, shifts, permutations, ghost planes, and
collectives with a size for each pair of PEs. One file, because one class has all methods.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pidcomm import _core
from pidcomm.arguments import (
    Array,
    ArrayInput,
    Axis,
    as_bytes,
    as_flag,
    as_integer,
    input_array,
    option_codes,
)
from pidcomm.batches import Collected
from pidcomm.buffers import Buffer
from pidcomm.errors import ArgumentError, shown
from pidcomm.messages import (
    FILL,
    KEEP,
    MESSAGE,
    begins_of,
    counts_of,
    dimensions_of,
    displacements_or,
    elements_of_word,
    group_pes,
    halo_passes,
    messages_of,
    per_group,
    request_of_messages,
    require_buffer,
    require_like,
    rows_of,
    shift_sources,
    sizes_of_messages,
    unit_of,
    words_of,
)
from pidcomm.operators import AnyOp
from pidcomm.requests import Request
from pidcomm.tables import WORD_BYTES

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from pidcomm.arguments import Options
    from pidcomm.axes import Axes
    from pidcomm.batches import Collector
    from pidcomm.calls import CoreArguments
    from pidcomm.programs import HeapWindows, Window
    from pidcomm.trace import Trace

__all__: list[str] = []

T = TypeVar("T")

NAME = "sendrecv"


class Movements:
    """The movements of `Hypercube`."""

    _axes: Axes
    _core: _core.Cube
    _halo: tuple[object, list[Array]] = (None, [])  # the arguments and messages of the last halo
    _heap_windows: HeapWindows
    _pes: int
    empty: Callable[..., Buffer]
    reduce_scatter: Callable[..., Any]
    scatter: Callable[..., Any]
    gather: Callable[..., Any]
    mask_of: Callable[[Axis], str]
    _require_own: Callable[..., None]
    _run: Callable[..., Any]
    _collector: Callable[[], Collector | None]

    def sendrecv(
        self,
        messages: ArrayInput,
        *,
        src: Window,
        dst: Window,
        bytes: int | None = None,
        wait: bool = True,
        **options: Unpack[Options],
    ) -> Trace | Request[Trace]:
        """sendrecv: move messages between PEs, in one pass over the ranks.

        messages: an array of dtype `pidcomm.MESSAGE`; or an array of shape (n, 2) with a pair of PE
        numbers per row, from and to, each of which moves `bytes` bytes (default: those of the
        buffer src) from the start of src to the start of dst. src, dst: buffers or offsets.

        Raises ArgumentError if two messages write the same byte, or if one reads what another
        writes, except in place (all at the same place in MRAM, with equal `bytes` and one run).
        """
        rows = input_array("messages", messages)
        if rows.dtype != MESSAGE:
            if rows.ndim != 2 or rows.shape[1] != 2 or rows.dtype.kind not in "iu":
                raise ArgumentError(
                    f"messages has dtype {rows.dtype} and shape {rows.shape}; it must have dtype"
                    " pidcomm.MESSAGE, or integers of shape (n, 2)",
                    "ERR_HOST_BUFFER",
                )
            if bytes is None and not isinstance(src, Buffer):
                raise ArgumentError("messages of two PE numbers need bytes=, or a buffer src")
            size_bytes = words_of(src) if bytes is None else as_integer("bytes", bytes)  # type: ignore[arg-type]
            rows = messages_of(rows[:, 0], rows[:, 1], size_bytes)
        elif bytes is not None:
            raise ArgumentError("messages of dtype pidcomm.MESSAGE take no bytes")
        moved: Trace | Request[Trace] = self._send(rows, src, dst, wait, lambda t: t, options)
        return moved

    def shift(
        self,
        x: Buffer,
        axis: Axis,
        by: int = 1,
        *,
        cyclic: bool = True,
        fill: float | None = None,
        out: Buffer | None = None,
        wait: bool = True,
        **options: Unpack[Options],
    ) -> Buffer | Request[Buffer]:
        """shift: member m receives x of member m - by, for the members along an axis.

        cyclic: whether the shift wraps around. Else the members that receive nothing
        have `fill` in every element, or, without fill, keep the content of `out`. out, wait: as for
        the collectives; x itself works in place.
        """
        groups = self._groups_of(axis)
        by = as_integer("by", by, low=-(2**31), high=2**31)
        sources = shift_sources(groups.shape[1], by, as_flag("cyclic", cyclic))
        if fill is not None and cyclic:
            raise ArgumentError(f"fill ({shown(fill)}) is for shifts with cyclic=False")
        return self._permute("shift", x, groups, sources, fill, out, wait, options)

    def permute(
        self,
        x: Buffer,
        axis: Axis,
        sources: ArrayLike,
        *,
        out: Buffer | None = None,
        wait: bool = True,
        **options: Unpack[Options],
    ) -> Buffer | Request[Buffer]:
        """permute: member m along an axis has the x of member sources[m].

        sources: one table for all groups, shape (N,), or one per group, shape (groups, N). A source
        may occur more than once; with -1, the member keeps the content of `out`. wait: as for the
        collectives.
        """
        groups = self._groups_of(axis)
        table = per_group("sources", sources, groups.shape)
        if table.size and not KEEP <= table.min() <= table.max() < groups.shape[1]:
            raise ArgumentError(
                f"sources has values from {table.min()} to {table.max()}; a group has members 0 to"
                f" {groups.shape[1] - 1}, and {KEEP} keeps"
            )
        return self._permute("permute", x, groups, table, None, out, wait, options)

    def halo(
        self,
        x: Buffer,
        axes: Mapping[str, int],
        width: int = 1,
        *,
        cyclic: bool = False,
        corners: bool = False,
        wait: bool = True,
        **options: Unpack[Options],
    ) -> Buffer | Request[Buffer]:
        """halo: copy the outer planes of the blocks of neighbours into the ghost planes of x.

        x is a block of a grid with `width` ghost planes at both ends of each dimension that `axes`
        names. axes: for axes of the hypercube, the dimension of x along which neighbours lie, such
        as ``{"x": 1, "y": 0}``. cyclic: whether the ends of the grid are neighbours; else their
        ghost planes keep their content. corners: whether ghost planes include the edges and corners
        that they share with the ghost planes of other axes; this takes one pass per axis, else one
        pass in all. Runs of adjacent elements must have a multiple of 8 bytes. Returns x. wait: as
        for the collectives.
        """
        require_buffer("halo", x)
        width = as_integer("width", width, low=1)
        is_cyclic, has_corners = as_flag("cyclic", cyclic), as_flag("corners", corners)
        dimensions = dimensions_of(axes, x, width)
        key = (x.shape, x.dtype, tuple(dimensions.items()), width, is_cyclic, has_corners)
        last = self._halo  # programs repeat a halo in every time step
        if key != last[0]:
            groups = {axis: self._groups_of(axis) for axis in dimensions}
            last = key, halo_passes(x, dimensions, groups, width, is_cyclic, has_corners)
            self._halo = last
        *earlier, moved = (
            self._send(messages, x, x, wait, lambda _: x, options) for messages in last[1]
        )
        return moved._after(earlier) if isinstance(moved, Request) else x

    def alltoallv(
        self,
        x: Buffer,
        axis: Axis,
        counts: ArrayLike | Buffer,
        *,
        sdispls: ArrayLike | None = None,
        rdispls: ArrayLike | None = None,
        out: Buffer | None = None,
        wait: bool = True,
        **options: Unpack[Options],
    ) -> Buffer | Request[Buffer]:
        """alltoallv: counts[p, q] elements of x move from member p to member q along an axis.

        counts: shape (N, N), or (groups, N, N) with a table per group, or a buffer of shape (N,) in
        which each PE has the counts that it sends. Elements lie along the first axis of x and out.
        sdispls[p, q], rdispls[p, q]: the first element of the block in x of member p, and in out of
        member q; by default, blocks lie one after another in member order, each at a word of 8
        bytes (`pidcomm.displacements`). Messages move whole words, so up to 7 bytes behind a block
        belong to it. Without `out`, returns a buffer for the largest member. wait: as for the
        collectives.
        """
        groups, unit = self._groups_of(axis), unit_of("alltoallv", x)
        members = groups.shape[1]
        table = self._count_table(counts, groups, (members, members))
        source = displacements_or("sdispls", sdispls, table, unit)
        target = (
            begins_of(table.swapaxes(1, 2), unit).swapaxes(1, 2)
            if rdispls is None
            else per_group("rdispls", rdispls, table.shape)
        )
        return self._move_blocks(
            "alltoallv", x, table, source, target, groups[:, :, None], groups[:, None, :], out,
            wait, options,
        )  # fmt: skip

    def allgatherv(
        self,
        x: Buffer,
        axis: Axis,
        counts: ArrayLike | Buffer,
        *,
        rdispls: ArrayLike | None = None,
        out: Buffer | None = None,
        wait: bool = True,
        **options: Unpack[Options],
    ) -> Buffer | Request[Buffer]:
        """allgatherv: every member along an axis has the first counts[p] elements of x of each
        member p.

        counts: shape (N,), or (groups, N), or a buffer with one number per PE. rdispls[p]: the
        first element of the block of member p in out. Elements, blocks and wait are as for
        `alltoallv`.
        """
        groups, unit = self._groups_of(axis), unit_of("allgatherv", x)
        members = groups.shape[1]
        table = self._count_table(counts, groups, (members,))
        target = displacements_or("rdispls", rdispls, table, unit)
        shape = (len(groups), members, members)
        return self._move_blocks(
            "allgatherv", x, np.broadcast_to(table[:, :, None], shape), np.zeros(shape, np.int64),
            np.broadcast_to(target[:, :, None], shape), groups[:, :, None], groups[:, None, :], out,
            wait, options,
        )  # fmt: skip

    def reduce_scatterv(
        self,
        x: Buffer,
        axis: Axis,
        counts: ArrayLike,
        *,
        op: AnyOp = "sum",
        sdispls: ArrayLike | None = None,
        wait: bool = True,
        **options: Unpack[Options],
    ) -> Buffer | Request[Buffer]:
        """reduce_scatterv: member q along an axis has block q of x, of counts[q] elements, reduced
        by `op` over all members.

        counts: shape (N,). sdispls[q]: the first element of block q in x, as for `alltoallv`. Moves
        the blocks into a buffer of equal blocks first, so it takes two passes. Returns a buffer of
        max(counts) elements; member q has counts[q] of them, then undefined elements. wait: as for
        the collectives.
        """
        groups, unit = self._groups_of(axis), unit_of("reduce_scatterv", x)
        members = groups.shape[1]
        table = self._count_table(counts, groups[:1], (members,))
        source = displacements_or("sdispls", sdispls, table, unit)
        pad = elements_of_word(unit)
        most = -(-int(table.max(initial=0)) // pad) * pad
        equal = self.empty((members * most, *x.shape[1:]), x.dtype)
        shape = (len(groups), members, members)
        pes = np.broadcast_to(groups[:, :, None], shape)
        moved = self._move_blocks(
            "reduce_scatterv", x, np.broadcast_to(table[:, None, :], shape),
            np.broadcast_to(source[:, None, :], shape),
            np.broadcast_to(np.arange(members) * most, shape), pes, pes, equal, wait, options,
        )  # fmt: skip
        result: Buffer | Request[Buffer] = self.reduce_scatter(
            equal, axis, op=op, wait=wait, **options
        )
        if isinstance(moved, Request) and isinstance(result, Request):
            return result._after([moved])
        return result

    def scatterv(
        self,
        x: Sequence[ArrayInput],
        axis: Axis,
        counts: ArrayLike,
        *,
        wait: bool = True,
        **options: Unpack[Options],
    ) -> Buffer | Request[Buffer]:
        """scatterv: member q along an axis has counts[q] elements of its group's row.

        x: one row per group, with the elements of all members one after another. counts: shape
        (N,), or (groups, N). Moves the bytes of the largest count to every PE. Returns a buffer of
        max(counts) elements; member q has counts[q] of them, then zeros. wait: as for the
        collectives.
        """
        self._refuse_batch("scatterv")
        groups = self._groups_of(axis)
        table = self._count_table(counts, groups, groups.shape[1:])
        rows = rows_of(x, table.sum(axis=1).tolist())
        element = rows[0]
        pad = elements_of_word(element.itemsize * math.prod(element.shape[1:]))
        most = -(-int(table.max(initial=0)) // pad) * pad
        equal = np.zeros((*groups.shape, most, *element.shape[1:]), element.dtype)
        for row, lengths, blocks in zip(rows, table, equal, strict=True):
            for block, part in zip(blocks, np.split(row, np.cumsum(lengths)[:-1]), strict=True):
                block[: len(part)] = part
        result: Buffer | Request[Buffer] = self.scatter(
            equal.reshape(len(groups), -1, *element.shape[1:]), axis, wait=wait, **options
        )
        return result

    def gatherv(
        self,
        x: Buffer,
        axis: Axis,
        counts: ArrayLike | Buffer,
        *,
        wait: bool = True,
        **options: Unpack[Options],
    ) -> list[Array] | Request[list[Array]]:
        """gatherv: return one array per group, with the first counts[q] elements of x of each
        member q along an axis.

        counts: shape (N,), or (groups, N), or a buffer with one number per PE. Moves the bytes of
        the largest count from every PE. wait: as for the collectives.
        """
        self._refuse_batch("gatherv")
        groups, unit = self._groups_of(axis), unit_of("gatherv", x)
        table = self._count_table(counts, groups, groups.shape[1:])
        pad = elements_of_word(unit)
        most = min(-(-int(table.max(initial=0)) // pad) * pad, x.shape[0])
        if table.max(initial=0) > x.shape[0]:
            raise ArgumentError(
                f"counts has {table.max()}; {x!r} has {x.shape[0]} elements", "ERR_WINDOW"
            )

        def parts_of(rows: Array) -> list[Array]:
            members = rows.reshape(*groups.shape, most, *x.shape[1:])
            return [
                np.concatenate([part[:count] for part, count in zip(parts, lengths, strict=True)])
                for parts, lengths in zip(members, table, strict=True)
            ]

        gathered: Array | Request[Array] = self.gather(x[:most], axis, wait=wait, **options)
        return gathered._then(parts_of) if isinstance(gathered, Request) else parts_of(gathered)

    # ---- implementation

    def _refuse_batch(self, name: str) -> None:
        if self._collector() is not None:
            raise ArgumentError(
                f"{name} cannot run in a batch or stream, because it copies host arrays"
            )

    def _groups_of(self, axis: Axis) -> NDArray[np.int64]:
        """Return the PEs of each group in member order, shape (groups, N)."""
        mask = self.mask_of(axis)
        self._core.groups(mask)  # checks the mask
        return group_pes(self._axes.shape, mask)

    def _count_table(
        self, counts: ArrayLike | Buffer, groups: NDArray[np.int64], shape: tuple[int, ...]
    ) -> NDArray[np.int64]:
        """Return the counts of every group, shape (groups, *shape)."""
        if isinstance(counts, Buffer):
            self._require_own(counts)
            rows = counts.get()[groups]
            if rows[0, 0].size != math.prod(shape[1:]):
                raise ArgumentError(
                    f"counts is {counts!r}; it needs shape {shape[1:]}", "ERR_HOST_BUFFER"
                )
            return counts_of(rows.reshape(len(groups), *shape))
        return per_group("counts", counts_of(counts), (len(groups), *shape))

    def _permute(
        self,
        name: str,
        x: Buffer,
        groups: NDArray[np.int64],
        sources: Array,
        fill: float | None,
        out: Buffer | None,
        wait: bool,
        options: Options,
    ) -> Buffer | Request[Buffer]:
        size_bytes = words_of(require_buffer(name, x))
        table = np.broadcast_to(sources, groups.shape)
        receives = table != KEEP
        if out is None and fill is None and not receives.all():
            raise ArgumentError(f"{name}: members that receive nothing need out= or fill=")
        from_pe = np.take_along_axis(groups, np.where(receives, table, 0), axis=1)
        messages = messages_of(from_pe[receives], groups[receives], size_bytes)
        if fill is not None:
            filled = messages_of(FILL, groups[~receives], size_bytes)
            word = np.zeros(WORD_BYTES // x.dtype.itemsize or 1, x.dtype)
            value = x._converted(fill)
            if word.nbytes != WORD_BYTES or value.ndim:
                raise ArgumentError(
                    f"{name}: fill ({shown(fill)}) must be a number, for elements of 1, 2, 4 or 8"
                    " bytes"
                )
            word[:] = value
            filled["from"], filled["from_step"] = word.view(np.uint32)
            messages = np.concatenate([messages, filled])
        result = self.empty(x.shape, x.dtype) if out is None else out
        require_like(name, x, result)
        moved: Buffer | Request[Buffer] = self._send(
            messages, x, result, wait, lambda _: result, options
        )
        return moved

    def _move_blocks(
        self,
        name: str,
        x: Buffer,
        counts: Array,
        source: Array,
        target: Array,
        from_pe: Array,
        to_pe: Array,
        out: Buffer | None,
        wait: bool,
        options: Options,
    ) -> Buffer | Request[Buffer]:
        """Move blocks of counts elements; see `alltoallv`."""
        unit = unit_of(name, x)
        pad = elements_of_word(unit)
        for what, offsets in (("sdispls", source), ("rdispls", target)):
            if np.any(offsets < 0) or np.any(offsets * unit % WORD_BYTES):
                raise ArgumentError(
                    f"{name}: {what} must be 0 or positive multiples of {pad} elements of {unit}"
                    f" bytes, so that blocks begin at words of {WORD_BYTES} bytes",
                    "ERR_SIZE",
                )
        size = -(-counts * unit // WORD_BYTES) * WORD_BYTES
        messages = messages_of(from_pe, to_pe, size, source * unit, target * unit)
        if out is None:
            ends = np.where(counts > 0, target + -(-counts // pad) * pad, 0)
            out = self.empty((int(ends.max(initial=0)), *x.shape[1:]), x.dtype)
        elif unit_of(name, out) != unit:
            raise ArgumentError(f"{name}: out is {out!r}; its elements must be those of {x!r}")
        result = out
        moved: Buffer | Request[Buffer] = self._send(
            messages, x, result, wait, lambda _: result, options
        )
        return moved

    def _send(
        self,
        messages: Array,
        src: Window,
        dst: Window,
        wait: bool,
        result: Callable[[Any], T],
        options: Options,
    ) -> Any:
        self._require_own(src, dst)
        in_bytes, out_bytes = sizes_of_messages(messages)
        request = request_of_messages(src, dst, in_bytes, out_bytes)
        if self._heap_windows.has_moved:
            self._heap_windows.require_unmoved(request.src, in_bytes)
        collected, collector = None, self._collector()
        buffers = tuple(window for window in (src, dst) if isinstance(window, Buffer))
        if collector is not None and (len(buffers) == 2 or collector._takes_windows):
            messages = messages.copy()  # the caller may change them
            collected = Collected(result(None), buffers, uses_heap=len(buffers) < 2)
        data = as_bytes(np.ascontiguousarray(messages))
        arguments: CoreArguments = (request, data, None, option_codes(options))
        held = (src, dst)
        return self._run(NAME, arguments, wait, lambda trace, _=held: result(trace), collected)
