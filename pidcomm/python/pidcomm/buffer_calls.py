"""Collectives on buffers: their windows and sizes, and their results."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pidcomm import _core
from pidcomm.arguments import (
    Array,
    as_bytes,
    input_array,
    option_codes,
    output_rows,
)
from pidcomm.buffers import Buffer, Cube
from pidcomm.errors import ArgumentError, shown
from pidcomm.operators import codes_of_op
from pidcomm.tables import ROWS, TECHNIQUES, WORD_BYTES, Collective

if TYPE_CHECKING:
    from pidcomm.arguments import Options
    from pidcomm.trace import Trace

__all__: list[str] = []


class BufferCall(NamedTuple):
    """The arguments of a core cube for a collective on buffers, and its result."""

    request: _core.Request
    rows_in: Array | None
    rows_out: Array | None
    codes: _core.OptionCodes
    result: Buffer | Array
    padded: Array | None  # the host rows with padding, from which the result is copied
    held: tuple[Any, ...]  # what else must exist until the end of the call: x and scratch

    @property
    def copies_host_rows(self) -> bool:
        """Whether the rows of the call are copies of the host array."""
        x = self.held[0]
        copies_input = self.rows_in is not None and not (
            isinstance(x, np.ndarray) and np.shares_memory(self.rows_in, x)
        )
        return self.padded is not None or copies_input

    def finish(self, _: Trace) -> Buffer | Array:
        """Return the result after the end of the collective."""
        if self.padded is not None and isinstance(self.result, np.ndarray):
            flat = as_bytes(self.result).reshape(len(self.padded), -1)
            flat[:] = self.padded[:, : flat.shape[1]]
        return self.result


def prepare_buffers(
    cube: Cube,
    name: str,
    x: Any,
    mask: str,
    op: object,
    out: Any,
    options: Options,
) -> BufferCall:
    """Check the buffers of a collective and allocate its result.

    x: a buffer, or host rows for collectives from the host. Blocks lie along the first axis. Raises
    ArgumentError before a byte moves.
    """
    row = ROWS[name]
    groups, group_pes = cube._kept_groups(mask)
    host: Array | None = None
    if row.at_pes_before:
        if not isinstance(x, Buffer):
            raise ArgumentError(
                f"{name} with an axis needs a buffer, not {shown(x)}; give byte windows with src="
                " and bytes=, or arrays to cube.arrays"
            )
        cube._require_own(x)
        dtype, shape = x.dtype, x.shape
    else:
        host = input_array("x", x)
        if host.ndim == 0 or len(host) != groups:
            raise ArgumentError(
                f"x has shape {host.shape}; it needs ({groups}, ...), one row per group",
                "ERR_HOST_BUFFER",
            )
        dtype, shape = host.dtype, host.shape[1:]
    block = _block_of(row, shape, group_pes)
    result_shape = (group_pes * block[0], *block[1:]) if row.per_member_after else block
    type_code, op_code, operation = codes_of_op(row.takes_op, op, dtype)

    has_blocks = row.per_member_before or row.per_member_after
    block_bytes = math.prod(block) * dtype.itemsize
    if not has_blocks:
        block_bytes += -block_bytes % WORD_BYTES  # padding
    elif block_bytes % WORD_BYTES:
        raise ArgumentError(
            f"{name}: a block of {math.prod(block)} elements of {dtype} has {block_bytes} bytes;"
            f" the bytes of a block must be a multiple of {WORD_BYTES}",
            "ERR_SIZE",
        )
    src = dst = 0
    in_bytes = block_bytes * row.blocks_before(group_pes)
    out_bytes = block_bytes * row.blocks_after(group_pes)
    if row.at_pes_before:
        src = x._window_of(in_bytes)
    codes, scratch = _scratch_of(cube, options, in_bytes)
    rows_in = rows_out = padded = None
    result: Buffer | Array
    if host is not None:
        rows_in = _padded_rows(host, in_bytes)
    if row.at_pes_after:
        result = cube.empty(result_shape, dtype) if out is None else out
        _require_result(cube, result, result_shape, dtype)
        dst = result._window_of(out_bytes)
    else:
        result = output_rows(out, (groups, *result_shape), dtype)
        rows_out = as_bytes(result)
        if rows_out.size != groups * out_bytes:
            padded = np.empty((groups, out_bytes), np.uint8)
            rows_out = as_bytes(padded)
    size_bytes = block_bytes * row.blocks_per_pe(group_pes)
    request = _core.Request(row.code, mask, size_bytes, src, dst, type_code, op_code, operation)
    return BufferCall(request, rows_in, rows_out, codes, result, padded, (x, scratch))


def _block_of(row: Collective, shape: tuple[int, ...], group_pes: int) -> tuple[int, ...]:
    """Return the shape of a block of an array that has one block, or one per member of a group."""
    if not shape and (row.per_member_before or row.per_member_after):
        raise ArgumentError(f"{row.name} needs an array with an axis for the blocks", "ERR_SIZE")
    blocks = row.blocks_before(group_pes)
    if shape and shape[0] % blocks:
        raise ArgumentError(
            f"{row.name} divides the first axis among the {blocks} members of a group; its length"
            f" is {shape[0]}",
            "ERR_SIZE",
        )
    return (shape[0] // blocks, *shape[1:]) if shape else ()


def _require_result(cube: Cube, out: object, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    if not isinstance(out, Buffer):
        raise ArgumentError(f"out ({shown(out)}) must be a buffer")
    cube._require_own(out)
    if out.size != math.prod(shape) or out.dtype != dtype:
        raise ArgumentError(
            f"out is {out!r}; it needs {math.prod(shape)} elements of {dtype}", "ERR_WINDOW"
        )


def _padded_rows(rows: Array, row_bytes: int) -> Array:
    """Return rows as bytes, each with zeros up to row_bytes."""
    flat = as_bytes(np.ascontiguousarray(rows)).reshape(len(rows), -1)
    if flat.shape[1] != row_bytes:
        flat = np.pad(flat, ((0, 0), (0, row_bytes - flat.shape[1])))
    return flat.reshape(-1)


def _scratch_of(
    cube: Cube, options: Options, size_bytes: int
) -> tuple[_core.OptionCodes, Buffer | None]:
    """Return the codes of options. If the technique needs scratch and the options have none, the
    codes have new scratch, which is also returned.
    """
    codes = option_codes(options)
    technique = TECHNIQUES.get(options.get("technique") or "") if options else None
    if technique is None or not technique.runs_pe_program or codes[-1] or not size_bytes:
        return codes, None
    scratch = cube.empty(size_bytes, np.uint8, name="scratch")
    return (*codes[:-1], scratch.window), scratch
