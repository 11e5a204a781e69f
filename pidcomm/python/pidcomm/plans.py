"""Plans of collectives. Plans do not need PEs."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import DTypeLike, NDArray

from pidcomm import _core
from pidcomm.arguments import (
    as_bytes,
    as_dtype,
    as_flag,
    as_integer,
    as_mask,
    as_shape,
    option_codes,
    row_of,
)
from pidcomm.axes import CHIPS, ORDERS
from pidcomm.buffers import Buffer
from pidcomm.errors import ArgumentError
from pidcomm.messages import group_pes, messages_of, request_of_messages, shift_sources
from pidcomm.notebook import html_table
from pidcomm.operators import codes_of_op
from pidcomm.programs import Window
from pidcomm.sizes import format_about
from pidcomm.tables import ROWS, WORD_BYTES, Collective

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from pidcomm._rows import CollectiveName
    from pidcomm.arguments import Options
    from pidcomm.operators import AnyOp
    from pidcomm.scans import ScanName

PlannedName: TypeAlias = "CollectiveName | ScanName | Literal['shift']"
SHIFT = "shift"


class Plan(dict[str, Any]):
    """The result of `plan`: a dict that prints as one line.

    To print the complete plan, print ``dict(plan)``.
    """

    def __repr__(self) -> str:
        """Report the collective, its parameters and the bytes that it moves."""
        if "hosts" in self:
            return (
                f"<Plan {self['collective']} of {self['dtype']}, {self['shape']} mask"
                f" {self['mask']}, {format_about(self['bytes_per_pe'])} per PE, host"
                f" {self['host']} of {self['hosts']}: {format_about(self['mram_bytes'])} moved in"
                f" MRAM, {format_about(self['row_bytes'])} of rows>"
            )
        read, written = (format_about(self[f"mram_bytes_{way}"]) for way in ("read", "written"))
        return (
            f"<Plan {self['collective']} of {self['dtype']}, {self['technique']}, {self['shape']}"
            f" mask {self['mask']}, {format_about(self['bytes_per_pe'])} per PE: {read} read and"
            f" {written} written in MRAM>"
        )

    def _repr_html_(self) -> str:
        return html_table(repr(self), self)


def make_request(
    collective: str,
    mask: str,
    size_bytes: int,
    src: Window,
    dst: Window,
    dtype: DTypeLike,
    op: object,
    groups: Callable[[str], Any] | None = None,
) -> _core.Request:
    """Return a collective as a request for the library.

    groups: returns the groups of a mask; without it, src and dst must be offsets. Raises
    ArgumentError for numbers and names out of range, and for windows that leave their buffer.
    """
    row = row_of(ROWS, "collective", collective)
    element = as_dtype(dtype)
    type_code, op_code, operation = codes_of_op(row.takes_op, op, element)
    size_bytes = as_integer("bytes", size_bytes)

    def offset_of(side: str, window: Window, is_used: bool, blocks: Callable[[int], int]) -> int:
        if groups is None or not isinstance(window, Buffer):
            return as_integer(side, window)
        if not is_used:
            return 0
        group_pes = groups(mask).group_pes
        return window._window_of(size_bytes // row.blocks_per_pe(group_pes) * blocks(group_pes))

    _require_elements(row, size_bytes, element, groups, mask)
    return _core.Request(
        row.code,
        as_mask(mask),
        size_bytes,
        offset_of("src", src, row.at_pes_before, row.blocks_before),
        offset_of("dst", dst, row.at_pes_after, row.blocks_after),
        type_code,
        op_code,
        operation,
    )


def make_planned(
    collective: str,
    shape: Sequence[int],
    mask: str,
    size_bytes: int,
    src: Window,
    dst: Window,
    dtype: DTypeLike,
    op: object,
    groups: Callable[[str], Any] | None = None,
) -> tuple[_core.Request, NDArray[np.uint8] | None]:
    """Return the request of a collective, as `make_request`, or of a shift with its messages."""
    if not isinstance(collective, str) or collective != SHIFT:
        return make_request(collective, mask, size_bytes, src, dst, dtype, op, groups), None
    size_bytes = as_integer("bytes", size_bytes)
    pes = group_pes(as_shape(shape), as_mask(mask))
    messages = messages_of(pes[:, shift_sources(pes.shape[1], 1, True)], pes, size_bytes)
    return request_of_messages(src, dst, size_bytes, size_bytes), as_bytes(messages)


def _require_elements(
    row: Collective,
    size_bytes: int,
    element: np.dtype[np.generic],
    groups: Callable[[str], Any] | None,
    mask: str,
) -> None:
    """Raise ArgumentError if blocks of whole words do not hold whole elements."""
    if WORD_BYTES % element.itemsize == 0 or groups is None:
        return
    block_bytes = size_bytes // row.blocks_per_pe(groups(mask).group_pes)
    if block_bytes % element.itemsize:
        raise ArgumentError(
            f"{row.name}: a block of {block_bytes} bytes holds no whole number of elements of"
            f" {element}, which have {element.itemsize} bytes",
            "ERR_SIZE",
        )


def plan(
    collective: PlannedName,
    shape: Sequence[int],
    mask: str,
    *,
    bytes: int,
    src: int = 0,
    dst: int = 0,
    dtype: DTypeLike = np.uint8,
    op: AnyOp | None = "sum",
    expand: bool = False,
    **options: Unpack[Options],
) -> Plan:
    """Return the plan of a collective on PEs arranged as `shape`: loop nests, strides and bytes.

    collective: a name of ``pidcomm.COLLECTIVES``, scan or exscan, or shift, by 1 and cyclic
    (`Batch.plans` has the plans of all movements). mask, bytes (per PE), dtype, op and options are
    as in the methods of `Hypercube`, and src and dst are offsets; only reductions use op. expand:
    whether to list every step.

    Raises the ArgumentError that the collective would raise; host arrays are not checked. Moves no
    bytes.
    """
    request, messages = make_planned(collective, shape, mask, bytes, src, dst, dtype, op)
    return plan_of(shape, request, option_codes(options), expand, messages=messages)


def plan_of(
    shape: Sequence[int],
    request: _core.Request,
    codes: _core.OptionCodes,
    expand: bool,
    order_code: int = ORDERS[CHIPS],
    messages: NDArray[np.uint8] | None = None,
) -> Plan:
    """Return the plan of a request. codes: of options. messages: as bytes."""
    text = _core.plan_json(
        as_shape(shape), order_code, request, codes, as_flag("expand", expand), messages
    )
    return Plan(json.loads(text))
