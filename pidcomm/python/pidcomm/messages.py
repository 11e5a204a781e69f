"""Messages between PEs as NumPy arrays: their fields, their windows, and lists of messages for
movements.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from pidcomm import _core
from pidcomm._core import MRAM_BYTES
from pidcomm.arguments import Array, as_dtype, as_integer, input_array
from pidcomm.buffers import Buffer, shape_of
from pidcomm.errors import ArgumentError, shown
from pidcomm.tables import TYPES, WORD_BYTES

if TYPE_CHECKING:
    from pidcomm.programs import Window

__all__: list[str] = []

MESSAGE = np.dtype(
    [
        (name, np.uint32)
        for name in ("from_pe", "to_pe", "from", "to", "bytes", "runs", "from_step", "to_step")
    ]
)
"""A message of `Hypercube.sendrecv`: `runs` runs of `bytes` bytes move from PE from_pe to PE to_pe.
Run i begins at byte from + i * from_step of the source window and at byte to + i * to_step of the
destination window. Bytes and steps are multiples of 8; 0 runs means 1.
"""
FILL = 2**32 - 1  # from_pe of a message that writes a word
KEEP = -1  # the source of a member that keeps its content


def displacements(counts: ArrayLike, dtype: DTypeLike, shape: Sequence[int] = ()) -> Array:
    """Return where blocks of `counts` elements begin that lie one after another, each at a word of
    8 bytes: element offsets, shape of `counts`.

    counts: along the last axis, the elements of each block. dtype, shape: of an element; shape is
    for buffers with more than one axis. Raises ArgumentError for negative counts.
    """
    element_bytes = as_dtype(dtype).itemsize * math.prod(shape_of(shape))
    return begins_of(counts_of(counts), element_bytes)


def sizes_of_messages(messages: Array) -> tuple[int, int]:
    """Return the bytes of the source and destination windows of messages."""
    ends = [0, 0]
    moving = messages[messages["bytes"] != 0]
    for number, side in enumerate(("from", "to")):
        rows = moving if side == "to" else moving[moving["from_pe"] != FILL]
        wide = {name: rows[name].astype(np.int64) for name in (side, f"{side}_step", "runs")}
        last = wide[side] + wide[f"{side}_step"] * np.maximum(wide["runs"] - 1, 0) + rows["bytes"]
        ends[number] = int(last.max(initial=0))
    return ends[0], ends[1]


def messages_of(
    from_pe: Any,
    to_pe: Any,
    size_bytes: Any,
    from_byte: Any = 0,
    to_byte: Any = 0,
    runs: Any = 1,
    steps: Any = 0,
) -> Array:
    """Return messages of one or several runs, without empty ones."""
    fields = dict(
        zip(
            MESSAGE.names or (),
            (from_pe, to_pe, from_byte, to_byte, size_bytes, runs, steps, steps),
            strict=True,
        )
    )
    messages = np.empty(
        np.broadcast_shapes(*(np.shape(value) for value in fields.values())), MESSAGE
    )
    for name, value in fields.items():
        values = np.asarray(value)
        if values.size and not 0 <= values.min() <= values.max() <= FILL:
            raise ArgumentError(
                f"messages: {name} has values from {values.min()} to {values.max()}; it must be"
                f" from 0 to {FILL}",
                "ERR_SIZE",
            )
        messages[name] = values
    moving: Array = messages[messages["bytes"] != 0]
    return moving


def request_of_messages(src: Window, dst: Window, in_bytes: int, out_bytes: int) -> _core.Request:
    """Return the request of a sendrecv. in_bytes, out_bytes: of the windows, which a buffer must
    have.
    """
    src_offset, dst_offset = (
        window._window_of(size_bytes) if isinstance(window, Buffer) else as_integer(side, window)
        for side, window, size_bytes in (("src", src, in_bytes), ("dst", dst, out_bytes))
    )
    return _core.Request(
        _core.SENDRECV, "", 0, src_offset, dst_offset, TYPES["uint8"].code, 0, None
    )


def group_pes(shape: Sequence[int], mask: str) -> NDArray[np.int64]:
    """Return the PEs of each group in member order, shape (groups, N)."""
    if len(mask) != len(shape) or set(mask) - {"0", "1"}:
        raise ArgumentError(
            f"mask {mask!r} must have one 0 or 1 for each of {len(shape)} axes", "ERR_MASK"
        )
    pes = np.arange(math.prod(shape), dtype=np.int64).reshape(shape[::-1])
    order = [dimension for bit in "01" for dimension, own in enumerate(mask[::-1]) if own == bit]
    members = math.prod(n for n, bit in zip(shape, mask, strict=True) if bit == "1")
    return pes.transpose(order).reshape(-1, members)


def shift_sources(members: int, by: int, is_cyclic: bool) -> NDArray[np.int64]:
    """Return the member from which each member receives in a shift, or KEEP."""
    sources = np.arange(members) - by
    if is_cyclic:
        return sources % members
    return np.where((sources >= 0) & (sources < members), sources, KEEP)


def require_buffer(name: str, x: object) -> Buffer:
    if not isinstance(x, Buffer):
        raise ArgumentError(f"{name} needs a buffer, not {shown(x)}")
    return x


def unit_of(name: str, x: Buffer) -> int:
    """Return the bytes of an element along the first axis."""
    if not require_buffer(name, x).shape:
        raise ArgumentError(f"{name} needs a buffer with an axis for the elements", "ERR_SIZE")
    return math.prod(x.shape[1:]) * x.dtype.itemsize


def words_of(x: Buffer) -> int:
    """Return the bytes of the words of a buffer."""
    return x.size_bytes + -x.size_bytes % WORD_BYTES


def elements_of_word(unit: int) -> int:
    """Return the number of elements of `unit` bytes that fill words."""
    return WORD_BYTES // math.gcd(WORD_BYTES, unit) if unit else 1


def begins_of(counts: NDArray[np.int64], unit: int) -> NDArray[np.int64]:
    pad = elements_of_word(unit)
    padded = -(-counts // pad) * pad
    return np.cumsum(padded, axis=-1) - padded


def as_integers(name: str, values: ArrayLike) -> Array:
    """Return values as an array of integers."""
    table = input_array(name, values)
    if table.dtype.kind not in "iu":
        raise ArgumentError(
            f"{name} has dtype {table.dtype}; it must have integers", "ERR_HOST_BUFFER"
        )
    return table


def counts_of(counts: ArrayLike) -> NDArray[np.int64]:
    """Return counts of elements."""
    table = as_integers("counts", counts)
    if table.size and not 0 <= table.min() <= table.max() <= MRAM_BYTES:
        raise ArgumentError(
            f"counts has values from {table.min()} to {table.max()}; counts are 0 to {MRAM_BYTES}",
            "ERR_SIZE",
        )
    return table.astype(np.int64)


def per_group(name: str, values: ArrayLike, shape: tuple[int, ...]) -> NDArray[np.int64]:
    """Return one table for all groups, or one per group, as one per group."""
    table = as_integers(name, values)
    if table.shape not in (shape, shape[1:]):
        raise ArgumentError(
            f"{name} has shape {table.shape}; it must have shape {shape[1:]} or {shape}",
            "ERR_HOST_BUFFER",
        )
    return np.broadcast_to(table.astype(np.int64), shape)


def displacements_or(
    name: str, values: ArrayLike | None, counts: NDArray[np.int64], unit: int
) -> NDArray[np.int64]:
    """Return the displacements that a caller gives, or those of blocks one after another."""
    return begins_of(counts, unit) if values is None else per_group(name, values, counts.shape)


def rows_of(x: object, lengths: list[int]) -> list[Array]:
    """Return the rows of groups, which have `lengths` elements."""
    if not isinstance(x, Sequence) and not (isinstance(x, np.ndarray) and x.ndim):
        raise ArgumentError(f"x ({shown(x)}) must be a sequence of rows", "ERR_HOST_BUFFER")
    if len(x) != len(lengths):
        raise ArgumentError(
            f"x ({shown(x)}) must have {len(lengths)} rows, one per group", "ERR_HOST_BUFFER"
        )
    rows = [input_array("x", row) for row in x]
    for row in rows[:1]:
        as_dtype(row.dtype)
    found = [len(row) if row.ndim else 0 for row in rows]
    if found != lengths or any(
        (row.dtype, row.shape[1:]) != (rows[0].dtype, rows[0].shape[1:]) for row in rows
    ):
        raise ArgumentError(
            f"x has rows of {shown(found)} elements; the counts need {shown(lengths)} of one dtype",
            "ERR_HOST_BUFFER",
        )
    return rows


def require_like(name: str, x: Buffer, out: object) -> None:
    if not isinstance(out, Buffer) or (out.size, out.dtype) != (x.size, x.dtype):
        raise ArgumentError(
            f"{name}: out ({shown(out)}) must be a buffer of {x.size} elements of {x.dtype}",
            "ERR_WINDOW",
        )


def dimensions_of(axes: object, x: Buffer, width: int) -> dict[str, int]:
    if not isinstance(axes, Mapping) or not axes:
        raise ArgumentError(
            f"axes ({shown(axes)}) must map axes of the hypercube to dimensions of x"
        )
    dimensions: dict[str, int] = {}
    for axis, value in axes.items():
        dimension = as_integer("a dimension in axes", value, high=max(len(x.shape) - 1, 0))
        if dimension in dimensions.values() or not x.shape:
            raise ArgumentError(
                f"axes ({shown(dict(axes))}) must name different dimensions of {x!r}"
            )
        if x.shape[dimension] < 3 * width:
            raise ArgumentError(
                f"dimension {dimension} of {x!r} has {x.shape[dimension]} planes; {width} ghost"
                f" planes at both ends need at least {3 * width}",
                "ERR_SIZE",
            )
        dimensions[axis] = dimension
    return dimensions


def runs_of(
    x: Buffer, ranges: Sequence[tuple[int, int]]
) -> tuple[NDArray[np.int64], int, int, int]:
    """Return the runs of adjacent bytes of a part of x: the bytes at which series of runs begin,
    the bytes of a run, the runs of a series, and the bytes from one run to the next.
    """
    strides = [math.prod(x.shape[d + 1 :]) * x.dtype.itemsize for d in range(len(x.shape))]
    run_bytes = x.dtype.itemsize
    loops: list[tuple[int, int]] = []  # count and step, slowest first
    for d, (first, last) in enumerate(ranges):
        count, step = last - first, strides[d]
        if loops and loops[-1][1] == count * step:
            count, step = loops.pop()[0] * count, step
        loops.append((count, step))
    begin = sum(first * step for (first, _), step in zip(ranges, strides, strict=True))
    if loops[-1][1] == run_bytes:
        run_bytes *= loops.pop()[0]
    if run_bytes % WORD_BYTES or begin % WORD_BYTES or any(s % WORD_BYTES for _, s in loops):
        raise ArgumentError(
            f"halo: planes of {x!r} have runs of {run_bytes} bytes from byte {begin} on; runs must"
            f" begin at and have multiples of {WORD_BYTES} bytes",
            "ERR_SIZE",
        )
    runs, step = loops.pop() if loops else (1, 0)
    begins = [
        begin + sum(i * s for i, (_, s) in zip(index, loops, strict=True))
        for index in itertools.product(*(range(count) for count, _ in loops))
    ]
    return np.array(begins, np.int64), run_bytes, runs, step


def halo_messages(
    from_pe: Array,
    to_pe: Array,
    runs: tuple[NDArray[np.int64], int, int, int],
    distance: int,
) -> Array:
    """Return the messages of one direction of a halo; they move by `distance` bytes."""
    begins, run_bytes, count, step = runs
    return messages_of(
        from_pe[:, None], to_pe[:, None], run_bytes, begins, begins + distance, count, step
    ).ravel()


def halo_passes(
    x: Buffer,
    dimensions: Mapping[str, int],
    groups: Mapping[str, NDArray[np.int64]],
    width: int,
    is_cyclic: bool,
    has_corners: bool,
) -> list[Array]:
    """Return the messages of each pass of `Hypercube.halo`.

    groups: the PEs of the groups of each axis in member order, shape (groups, N).
    """
    inside = [
        (width, n - width) if d in dimensions.values() else (0, n) for d, n in enumerate(x.shape)
    ]
    passes: list[list[Array]] = [[]]
    for axis, dimension in dimensions.items():
        pes = groups[axis]
        n = x.shape[dimension]
        for to_next in (True, False):
            send = n - 2 * width if to_next else width
            receive = 0 if to_next else n - width
            from_pe, to_pe = (pes[:, :-1], pes[:, 1:])
            if is_cyclic:
                from_pe, to_pe = pes, np.roll(pes, -1, axis=1)
            if not to_next:
                from_pe, to_pe = to_pe, from_pe
            ranges = list(inside)
            ranges[dimension] = (send, send + width)
            runs = runs_of(x, ranges)
            distance = (receive - send) * math.prod(x.shape[dimension + 1 :]) * x.dtype.itemsize
            passes[-1].append(halo_messages(from_pe.ravel(), to_pe.ravel(), runs, distance))
        if has_corners:
            passes.append([])
            inside[dimension] = (0, n)
    return [np.concatenate(messages) for messages in passes if messages]
