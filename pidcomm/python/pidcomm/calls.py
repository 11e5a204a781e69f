"""Calls of collectives on windows: the checks of their arguments, and their results."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import DTypeLike, NDArray

from pidcomm import _core
from pidcomm.arguments import (
    Array,
    ArrayInput,
    ArrayOutput,
    as_bytes,
    as_integer,
    input_rows,
    option_codes,
    output_rows,
    row_of,
)
from pidcomm.errors import ArgumentError
from pidcomm.plans import make_request
from pidcomm.programs import HeapWindows, Window
from pidcomm.tables import ROWS, WORD_BYTES, Collective

if TYPE_CHECKING:
    from pidcomm.arguments import Options
    from pidcomm.places import Groups

__all__: list[str] = []

CoreArguments: TypeAlias = (
    "tuple[_core.Request, NDArray[np.uint8] | None, NDArray[np.uint8] | None, _core.OptionCodes]"
)
"""The arguments of `run` and `start` of a core cube."""


def prepare_call(
    name: str,
    mask: str,
    groups: Callable[[str], Groups],
    validate: Callable[[_core.Request, _core.OptionCodes], None],
    heap_windows: HeapWindows,
    *,
    options: Options,
    bytes: int | None = None,
    src: Window = 0,
    dst: Window = 0,
    dtype: DTypeLike = np.uint8,
    op: object = None,
    host: ArrayInput | None = None,
    out: ArrayOutput | None = None,
    has_rows: bool = True,
) -> Call:
    """Check the arguments of a collective and allocate its result.

    groups: returns the groups of a mask with rows at this host. has_rows: whether this host has the
    rows. validate: raises errors before memory is allocated. heap_windows: of the set; raises
    errors if a load has moved the window that the call reads.
    """
    row = row_of(ROWS, "collective", name)
    codes = option_codes(options)
    host_in = host_out = None
    if not row.at_pes_before and has_rows:
        mask_groups = groups(mask)
        host_in = input_rows("host", () if host is None else host, mask_groups.groups, "group")
        dtype = host_in.dtype
        if bytes is None:
            bytes = _bytes_per_pe(host_in, row.blocks_before(mask_groups.group_pes))
    bytes = as_integer("bytes", bytes)
    request = make_request(name, mask, bytes, src, dst, dtype, op, groups)
    if not row.at_pes_after and has_rows:
        validate(request, codes)
        mask_groups = groups(mask)
        row_bytes = bytes * row.blocks_after(mask_groups.group_pes)
        host_out = output_rows(
            out, (mask_groups.groups, row_bytes // np.dtype(dtype).itemsize), dtype
        )
    if row.at_pes_before and heap_windows.has_moved:
        heap_windows.require_unmoved(request.src, sizes_of(row, request, groups)[0])
    rows_in, rows_out = (None if rows is None else as_bytes(rows) for rows in (host_in, host_out))
    return Call(request, rows_in, rows_out, codes, host_out)


class Call(NamedTuple):
    """The core's arguments for a collective, and the host array that the collective fills, or
    None.
    """

    request: _core.Request
    rows_in: NDArray[np.uint8] | None
    rows_out: NDArray[np.uint8] | None
    codes: _core.OptionCodes
    out: Array | None

    @property
    def arguments(self) -> CoreArguments:
        """The arguments of `run` and `start` of a core cube."""
        return self[:4]


def require_words(name: str, count: int, dtype: np.dtype[Any]) -> None:
    if count * dtype.itemsize % WORD_BYTES:
        raise ArgumentError(
            f"{name} of {count} elements of {dtype} moves {count * dtype.itemsize} bytes per PE;"
            f" the number of bytes must be a multiple of {WORD_BYTES}",
            "ERR_SIZE",
        )


def _bytes_per_pe(rows: Array, blocks: int) -> int:
    row_bytes = int(rows.shape[1]) * rows.itemsize
    if row_bytes % blocks:
        raise ArgumentError(
            f"rows of {row_bytes} bytes cannot be divided among the {blocks} members of a group",
            "ERR_SIZE",
        )
    return row_bytes // blocks


def sizes_of(
    row: Collective, request: _core.Request, groups: Callable[[str], Groups]
) -> tuple[int, int]:
    """Return the bytes that a call reads and writes at a PE."""
    if not (row.per_member_before or row.per_member_after):
        return request.bytes, request.bytes
    group_pes = groups(request.mask).group_pes
    block_bytes = request.bytes // row.blocks_per_pe(group_pes)
    return block_bytes * row.blocks_before(group_pes), block_bytes * row.blocks_after(group_pes)
