"""The oracle computes results of collectives and scans from their definitions, and payloads that
reveal wrong routes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pidcomm._rows import CollectiveName, OpName
from pidcomm.arguments import as_bytes
from pidcomm.bench import _verify
from pidcomm.operators import LibraryOpName, ScaledSum
from pidcomm.scans import ScanName
from pidcomm.tables import OPS, ROWS, TYPES, WORD_BYTES, Collective

__all__ = ["Problem", "Verdict", "is_defined"]

ByteRows = NDArray[np.uint8]
FILLS = ("distinct", "exact", "special", "rounding")
PLACES = ("argmin", "argmax")
OracleOp: TypeAlias = OpName | LibraryOpName | ScaledSum


class Verdict(NamedTuple):
    """Number of wrong elements, and a sentence about the first wrong element."""

    wrong: int
    first: str


@dataclass(frozen=True)
class Rows:
    """`count` rows of `row_bytes` bytes. Each row belongs to a PE or to a group."""

    count: int
    row_bytes: int
    at_pes: bool

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of an array of bytes with these rows."""
        return self.count, self.row_bytes


@dataclass(frozen=True)
class Problem:
    """A case: one collective or scan on one hypercube, with `bytes` per PE. Only reductions use
    `op`. dtype: of the elements; for argmin and argmax, of their values.
    """

    collective: CollectiveName | ScanName
    shape: tuple[int, ...]
    mask: str
    bytes: int
    dtype: str
    op: OracleOp = "sum"

    @property
    def row(self) -> Collective:
        """The row of the collective in ROWS."""
        return ROWS[self.collective]

    @property
    def element(self) -> np.dtype[Any]:
        """Dtype of the elements."""
        return element_of(self.dtype, self.op if self.row.takes_op else "sum")

    @property
    def pes(self) -> int:
        """Number of PEs."""
        return int(np.prod(self.shape, dtype=np.uint64))

    @cached_property
    def _native(self) -> _verify.Problem:
        operation: str = ""
        factor = 0.0
        if self.row.takes_op and isinstance(self.op, ScaledSum):
            operation, factor = "scaled_sum", self.op.factor
        elif self.row.takes_op and self.op not in OPS:
            operation = str(self.op)
        return _verify.Problem(
            self.row.code, self.shape, self.mask, self.bytes, TYPES[self.dtype].code, self._op_code,
            operation, factor,
        )  # fmt: skip

    @property
    def _op_code(self) -> int:
        return OPS[self.op if isinstance(self.op, str) and self.op in OPS else "sum"].code

    @cached_property
    def before(self) -> Rows:
        """Input rows."""
        return Rows(*self._native.rows_before())

    @cached_property
    def after(self) -> Rows:
        """Output rows."""
        return Rows(*self._native.rows_after())

    @property
    def larger_side_bytes(self) -> int:
        """Bytes of the larger of input and output, summed over PEs (or host rows)."""
        return max(rows.count * rows.row_bytes for rows in (self.before, self.after))

    def _fill(self, kind: str | None) -> _verify.Fill:
        if kind is not None:
            fill: _verify.Fill = getattr(_verify.Fill, kind)
            return fill
        return _verify.fill_for(self.row.takes_op, TYPES[self.dtype].code, self._op_code)

    def payload_key(self, seed: int, kind: str | None = None) -> tuple[object, ...]:
        """Return a value that is equal for cases with equal payloads."""
        fill = self._fill(kind)
        depends_on_type = fill != _verify.Fill.distinct
        return seed, fill, self.before.shape, (self.dtype, self.op) if depends_on_type else None

    def payload(self, seed: int, kind: str | None = None, out: ByteRows | None = None) -> ByteRows:
        """Return the input rows, in `out` if given.

        By default, choose the kind that reveals the most errors.
        """
        rows = np.empty(self.before.shape, np.uint8) if out is None else out
        if not rows.size:
            return rows
        if self.element.fields is not None:
            rows[:] = places(seed, self.element, rows.shape)
            return rows
        type_code = TYPES[self.dtype].code
        _verify.fill(
            self._fill(kind), type_code, self._op_code, seed, rows.shape[1], as_bytes(rows)
        )
        return rows

    def expected(self, before: ByteRows) -> ByteRows:
        """Return the expected output rows."""
        after = np.empty(self.after.shape, np.uint8)
        self._native.expected(as_bytes(before), as_bytes(after))
        return after

    def check(self, before: ByteRows, got: ByteRows) -> Verdict:
        """Compare every element of the output rows with the element that the oracle expects."""
        return Verdict(*self._native.check(as_bytes(before), as_bytes(got)))


def distinct_bytes(seed: int, rows: int, row_bytes: int) -> ByteRows:
    """Return rows in which every 8-byte word is unique."""
    filled = np.empty((rows, row_bytes), np.uint8)
    if filled.size:
        _verify.fill(
            _verify.Fill.distinct, TYPES["uint64"].code, 0, seed, row_bytes, as_bytes(filled)
        )
    return filled


def element_of(dtype: str, op: OracleOp) -> np.dtype[Any]:
    """Return the dtype of the elements that an operator combines: for argmin and argmax, values of
    `dtype` and indices.
    """
    if op not in PLACES:
        return np.dtype(dtype)
    index = "uint64" if TYPES[dtype].size_bytes == WORD_BYTES else "uint32"
    return np.dtype([("value", dtype), ("index", index)], align=True)


def places(seed: int, element: np.dtype[Any], shape: tuple[int, int]) -> ByteRows:
    """Return rows of values and indices, of which many are equal, as bytes."""
    numbers = distinct_bytes(seed, *shape).view(np.uint64)[:, :: element.itemsize // WORD_BYTES]
    rows = np.zeros((shape[0], shape[1] // element.itemsize), element)
    value = element["value"]
    limits = np.iinfo(value) if value.kind in "iu" else None
    some = (limits.min, 0, 1, 2, limits.max) if limits else (-np.inf, -0.0, 0, 1, np.inf, np.nan)
    rows["value"] = np.array(some, value)[numbers % len(some)]
    rows["index"] = numbers >> np.uint64(60)
    return rows.view(np.uint8)


def is_defined(op: OracleOp, dtype: str) -> bool:
    """Report whether an operator exists for an element type."""
    if isinstance(op, ScaledSum):
        return TYPES[dtype].is_float
    return op not in OPS or _verify.is_defined(OPS[op].code, TYPES[dtype].code)
