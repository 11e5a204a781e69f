"""Collectives on arrays.

One call writes the input to the PEs, runs the collective and reads the result.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from numpy.typing import DTypeLike

from pidcomm._rows import ArrayCollectivesBase
from pidcomm.arguments import (
    Array,
    ArrayInput,
    ArrayOutput,
    Axis,
    as_integer,
    input_rows,
    output_rows,
)
from pidcomm.batches import refuse_in_stream
from pidcomm.errors import ArgumentError
from pidcomm.tables import COLLECTIVES, Collective
from pidcomm.trace import Trace

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from pidcomm.arguments import Options


T = TypeVar("T")


class Cube(Protocol):
    """The members of a `Hypercube` that array collectives use."""

    last_trace: Trace | None

    @property
    def pes(self) -> int:
        """Number of PEs."""

    def mask_of(self, axis: Axis) -> str:
        """Return the mask that selects axes."""

    def groups(self, mask: Axis) -> Any:
        """Return the number of groups and of PEs per group."""

    def write(self, x: ArrayInput, offset: int = 0, **options: Unpack[Options]) -> Trace:
        """Write rows to the PEs."""

    def read(
        self,
        count: int,
        dtype: DTypeLike,
        offset: int = 0,
        *,
        out: ArrayOutput | None = None,
        **options: Unpack[Options],
    ) -> Array:
        """Read rows of the PEs."""

    @property
    def validate(self) -> Callable[..., None]:
        """Check a collective without running it."""

    @property
    def carry_out(self) -> Callable[..., tuple[Trace, Array | None]]:
        """Run a collective by name."""


class ArrayCollectives(ArrayCollectivesBase):
    """Run collectives that take a NumPy array and return a NumPy array. ``cube.arrays`` makes an
    object of this class.

    An array at the PEs has one row per PE. An array at the host has one row per group. N is the
    number of PEs per group. n is the number of elements per block; n * itemsize is a multiple of 8
    bytes. The result has the dtype of x.
    ``mask``, ``op`` and ``**options`` are as in `Hypercube`. Each call works in place in an MRAM
    window at ``base_offset`` (in bytes, default 0). The window is as large as the input or the
    output of a PE, whichever is larger. Techniques that run a PE program also overwrite scratch of
    the size of the window, behind the window or at ``scratch``. If ``out=`` is given, the call
    fills and returns ``out``. The trace is ``cube.last_trace``.

    Cost: in addition to the collective, x and the result cross the memory bus once. Raises
    `ArgumentError` before any byte moves. Source of the collectives: PID-Comm (ISCA 2024).
    """

    def __init__(self, cube: Cube) -> None:
        self._cube = cube

    def __repr__(self) -> str:
        """Report the hypercube."""
        return f"<ArrayCollectives on {str(self._cube).strip('<>')}>"

    def _checked(self, check: Callable[[], T]) -> T:
        """Return check(), which may raise errors of arguments."""
        return check()

    def _sizes(self, row: Collective, x: ArrayInput, mask: str) -> tuple[Array, int, int, Any]:
        """Return the input rows, the number of elements per block, the bytes per PE, and the
        groups.
        """
        groups = self._cube.groups(mask)
        rows = input_rows(
            "x", x, *((self._cube.pes, "PE") if row.at_pes_before else (groups.groups, "group"))
        )
        blocks = row.blocks_before(groups.group_pes)
        if rows.shape[1] % blocks:
            raise ArgumentError(
                f"mask {mask} selects {groups.group_pes} PEs; {row.name} needs x with a number of"
                f" columns ({rows.shape[1]}) divisible by {blocks}",
                "ERR_SIZE",
            )
        count = rows.shape[1] // blocks
        return rows, count, count * row.blocks_per_pe(groups.group_pes) * rows.itemsize, groups

    def _has_rows(self, mask: str, **root: int) -> bool:
        """Return whether this host has the rows of groups."""
        return True

    def _round_trip(
        self,
        name: str,
        x: ArrayInput,
        mask: Axis,
        op: str | None,
        base_offset: int,
        out: ArrayOutput | None,
        options: Options,
        **root: int,
    ) -> Array | None:
        self._checked(lambda: refuse_in_stream(f"arrays.{name}"))
        cube, row = self._cube, COLLECTIVES[name]
        mask = selected = self._checked(lambda: cube.mask_of(mask))
        rows, count, size_bytes, groups = self._checked(lambda: self._sizes(row, x, selected))
        offset = self._checked(lambda: as_integer("base_offset", base_offset))
        transfers: Options = {
            **options,
            "technique": None,
        }  # the paper's techniques do not support all shapes
        if options.get("scratch") is None:
            options = {**options, "scratch": offset + size_bytes}
        src, dst = (offset if at_pes else 0 for at_pes in (row.at_pes_before, row.at_pes_after))
        # All checks come before the write, which is the first step that changes memory.
        shape = (
            cube.pes if row.at_pes_after else groups.groups,
            count * row.blocks_after(groups.group_pes),
        )
        has_rows = self._checked(lambda: self._has_rows(selected, **root))
        result = None
        if row.at_pes_after or has_rows:
            result = self._checked(lambda: output_rows(out, shape, rows.dtype))
        cube.validate(
            name,
            mask,
            bytes=size_bytes,
            src=src,
            dst=dst,
            dtype=rows.dtype,
            op=op,
            **root,
            **options,
        )
        if row.at_pes_before:
            cube.write(rows, offset, **transfers)
        trace, _ = cube.carry_out(
            name,
            mask,
            bytes=size_bytes,
            src=src,
            dst=dst,
            dtype=rows.dtype,
            op=op,
            host=None if row.at_pes_before or not has_rows else rows,
            out=None if row.at_pes_after else result,
            options=options,
            **root,
        )
        if row.at_pes_after:
            cube.read(shape[1], rows.dtype, offset, out=result, **transfers)
        cube.last_trace = trace
        return result
