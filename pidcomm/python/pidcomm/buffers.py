"""Buffers: arrays in the MRAM of PEs, whose places the library chooses."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import DTypeLike, NDArray

from pidcomm.arguments import (
    MAX_COUNT,
    Array,
    ArrayInput,
    ArrayOutput,
    as_bytes,
    as_integer,
    input_array,
    output_rows,
)
from pidcomm.errors import ArgumentError, Error, shown
from pidcomm.tables import WORD_BYTES

if TYPE_CHECKING:
    from types import EllipsisType

    from pidcomm import _core
    from pidcomm.places import Groups

__all__: list[str] = []


class Storage(Protocol):
    """Memory at the same address of several PEs, with a row for each PE."""

    @property
    def name(self) -> str:
        """Name for error sentences."""

    @property
    def grid(self) -> tuple[int, ...]:
        """Axis lengths of the PEs, last axis first. Their product is the number of rows."""

    @property
    def first(self) -> int:
        """Number in the set of the PE of the first row."""

    @property
    def address(self) -> int:
        """Address in PE programs."""

    @property
    def size_bytes(self) -> int:
        """Bytes per PE. The rest of the last word is padding."""

    @property
    def word_bytes(self) -> int:
        """Bytes of a word, which the host reads and writes whole."""

    @property
    def core_set(self) -> _core.Set:
        """The set of the PEs."""

    def require_valid(self) -> None:
        """Raise Error unless the PEs still have the memory."""

    def window_at(self, begin: int) -> int:
        """Return the window at byte `begin` for collectives. Raises ArgumentError outside MRAM."""

    def read_rows(self, begin: int, rows: NDArray[np.uint8]) -> None:
        """Fill rows, shape (PEs, bytes), from byte `begin` on. `begin` and bytes are words."""

    def write_rows(self, begin: int, rows: NDArray[np.uint8]) -> None:
        """Write rows, shape (PEs, bytes), from byte `begin` on. `begin` and bytes are words."""

    def write_same(self, begin: int, row: NDArray[np.uint8]) -> None:
        """Write one row to all PEs."""

    def read_pe(self, pe: int, begin: int, row: NDArray[np.uint8]) -> None:
        """Fill the row of one PE."""

    def write_pe(self, pe: int, begin: int, row: NDArray[np.uint8]) -> None:
        """Write the row of one PE."""


class Cube(Protocol):
    """The members of `Hypercube` that buffers use."""

    _core_set: _core.Set

    @property
    def shape(self) -> tuple[int, ...]:
        """Axis lengths, x first."""

    @property
    def first(self) -> int:
        """Number of the first PE in the set."""

    def empty(
        self, shape: int | Sequence[int], dtype: DTypeLike, *, name: str | None = None
    ) -> Buffer:
        """Return a new buffer."""

    def _number_in_set(self, pe: int) -> int:
        """Return the number in the set of a PE of the hypercube."""

    def _move(self, name: str, window: int, rows: NDArray[np.uint8]) -> None:
        """Move rows of PEs between the host and a window."""

    def _kept_groups(self, mask: str) -> Groups:
        """Return the number of groups and of PEs per group."""

    def _require_own(self, *windows: object) -> None:
        """Raise ArgumentError if a window is a buffer of another set."""


class Buffer:
    """An array in the memory of PEs: `shape` elements of `dtype` at the same address of every PE.

    `PeSet.buffer`, `Hypercube.empty`, `Hypercube.array` and `PeSet.symbol` make buffers.
    Collectives of the set take them, `numpy.asarray(buffer)` reads them, and ``buffer[:] = x``
    writes them. MRAM is freed with the last buffer or slice that uses it.

    Rows. The number of dimensions decides what an assigned array means: with the dimensions of
    `shape` or fewer, every PE gets the same elements, as NumPy broadcasts them; with one dimension
    more, row p is for PE p; with one more per axis of the hypercube, the first dimensions are the
    coordinates, x last: ``x[z, y, x]``. Reading returns one row per PE, shape (PEs, *shape);
    `grid` returns coordinates.

    ``buffer[i]``, ``buffer[2:5]`` and ``buffer[1, 2:5]`` are buffers on contiguous elements of
    every PE, without a copy; `at` selects a PE. Assigning to elements that do not fill words (of 8
    bytes in MRAM) reads and writes the words: two threads must not do this at once.
    """

    def __init__(
        self,
        storage: Storage,
        dtype: np.dtype[Any],
        shape: tuple[int, ...],
        begin: int = 0,
        pe: int | None = None,
    ) -> None:
        self._storage = storage
        self._dtype = dtype
        self._shape = shape
        self._begin = begin  # bytes from the start of the storage
        self._pe = pe
        self._size = math.prod(shape)

    @property
    def name(self) -> str:
        """Name in error sentences and in PE programs."""
        return self._storage.name

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the array of one PE."""
        return self._shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the elements."""
        return self._dtype

    @property
    def size(self) -> int:
        """Number of elements per PE."""
        return self._size

    @property
    def size_bytes(self) -> int:
        """Bytes per PE, without padding to words of 8 bytes."""
        return self.size * self.dtype.itemsize

    @property
    def pes(self) -> int:
        """Number of PEs that have a row."""
        return math.prod(self._storage.grid)

    @property
    def address(self) -> int:
        """Address in PE programs: WRAM begins at 0, MRAM at 0x08000000."""
        return self._storage.address + self._begin

    @property
    def window(self) -> int:
        """The window of the buffer for collectives with byte windows; they also take the buffer
        itself.

        Raises ArgumentError if the buffer is not in MRAM or does not begin at a word; Error if the
        PEs no longer have the memory.
        """
        return self._window_of(0)

    def reshape(self, *shape: int | tuple[int, ...]) -> Buffer:
        """Return the same elements with another shape per PE; one length may be -1.

        Raises ArgumentError if the number of elements differs.
        """
        lengths: Any = shape[0] if len(shape) == 1 else shape
        try:
            new = np.broadcast_to(np.False_, self.size).reshape(lengths).shape
        except (TypeError, ValueError) as error:
            raise ArgumentError(f"{self!r} cannot have shape {shown(lengths)}: {error}") from None
        return self._part(new, self._begin)

    def at(self, pe: int) -> Buffer:
        """Return the buffer on PE number pe alone: reading returns shape `shape`, and assigning
        changes only this PE.

        Raises ArgumentError if pe is out of range. Collectives do not take the result.
        """
        pe = as_integer("pe", pe, high=self.pes - 1)
        return Buffer(self._storage, self.dtype, self.shape, self._begin, pe)

    def get(self, out: ArrayOutput | None = None) -> Array:
        """Return the elements of all PEs, shape (PEs, *shape), or fill and return `out`.

        Raises ArgumentError if `out` is not a C-contiguous writable array of this shape and dtype.
        """
        shape = self.shape if self._pe is not None else (self.pes, *self.shape)
        rows = output_rows(out, shape, self.dtype)
        flat = as_bytes(rows).reshape(-1, self.size_bytes) if self.size_bytes else None
        if flat is not None:
            begin, behind = self._words()
            if (begin, behind) == (self._begin, self._begin + self.size_bytes):
                self._read(begin, flat)
            else:
                words = np.empty((len(flat), behind - begin), np.uint8)
                self._read(begin, words)
                flat[:] = words[:, self._begin - begin : self._begin - begin + self.size_bytes]
        return rows

    def grid(self) -> Array:
        """Return the elements of all PEs by coordinates, shape (..., len_y, len_x, *shape)."""
        self._require_all_pes()
        return self.get().reshape(*self._storage.grid, *self.shape)

    def set(self, values: ArrayInput) -> None:
        """Write values to the PEs; ``buffer[:] = values`` does the same. See the class for the
        shapes.

        Raises ArgumentError if the shape does not fit, if integers do not fit the dtype, or if the
        dtype is of a higher kind (float to integer).
        """
        array = self._converted(values)
        is_row_per_pe, rows = self._rows_of(array)
        if not self.size_bytes:
            return
        self._storage.require_valid()
        flat = as_bytes(np.ascontiguousarray(rows)).reshape(-1, self.size_bytes)
        begin, behind = self._words()
        if (begin, behind) != (self._begin, self._begin + self.size_bytes):
            first = self._begin - begin
            words = np.zeros((self.pes if self._pe is None else 1, behind - begin), np.uint8)
            self._read(begin, words)
            words[:, first : first + self.size_bytes] = flat
            flat, is_row_per_pe = words, True
        if self._pe is not None:
            self._storage.write_pe(self._pe, begin, flat[0])
        elif is_row_per_pe:
            self._storage.write_rows(begin, flat)
        else:
            self._storage.write_same(begin, flat[0])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """Return the elements; see `get`."""
        if copy is False:
            raise ValueError("the elements are in the memory of PEs: reading them copies them")
        rows = self.get()
        return rows if dtype is None else rows.astype(dtype, copy=False)

    def __len__(self) -> int:
        """Return the length of the first axis."""
        if not self.shape:
            raise TypeError(f"{self!r} has no axis")
        return self.shape[0]

    def __getitem__(self, index: int | slice | EllipsisType | tuple[Any, ...]) -> Buffer:
        """Return a buffer on contiguous elements of every PE.

        index: integers, then at most one slice with step 1. Raises ArgumentError for others and
        IndexError for integers out of range.
        """
        shape, first = self.shape, 0
        items = list(index) if isinstance(index, tuple) else [index]
        while items and (items[-1] is Ellipsis or _is_full(items[-1])):
            items.pop()
        if len(items) > len(shape):
            raise IndexError(f"{len(items)} indices for {self!r}")
        for axis, item in enumerate(items):
            length, rest = self.shape[axis], math.prod(self.shape[axis + 1 :])
            if isinstance(item, slice) and axis == len(items) - 1:
                start, stop = self._range_of(item, length)
                first += start * rest
                shape = (stop - start, *shape[1:])
                break
            if item is None or item is Ellipsis or isinstance(item, slice):
                raise ArgumentError(
                    f"index {shown(index)} of {self!r} does not select contiguous elements: use"
                    " integers, then one slice"
                )
            number = as_integer("index", item, low=-MAX_COUNT, high=MAX_COUNT)
            if not -length <= number < length:
                raise IndexError(f"index {number} is out of range for axis {axis} of {self!r}")
            first += number % length * rest
            shape = shape[1:]
        return self._part(shape, self._begin + first * self.dtype.itemsize)

    def _range_of(self, part: slice, length: int) -> tuple[int, int]:
        try:
            start, stop, step = part.indices(length)
        except (TypeError, ValueError) as error:
            raise ArgumentError(f"slice {shown(part)} of {self!r}: {error}") from None
        if step != 1:
            raise ArgumentError(f"a slice of {self!r} has step {step}; it must be 1")
        return (start, stop) if start < stop else (0, 0)

    def __setitem__(
        self, index: int | slice | EllipsisType | tuple[Any, ...], values: ArrayInput
    ) -> None:
        """Write values to the elements that an index selects; see `set`."""
        self[index].set(values)

    def __repr__(self) -> str:
        """Report the name, the shape and dtype per PE, and the PEs."""
        pes = f"PE {self._pe}" if self._pe is not None else f"{self.pes} PEs"
        return f"<Buffer {self.name}: {self.dtype}{list(self.shape)} on {pes}>"

    # ---- implementation

    def _part(self, shape: tuple[int, ...], begin: int) -> Buffer:
        return Buffer(self._storage, self.dtype, shape, begin, self._pe)

    def _is_of(self, core_set: _core.Set) -> bool:
        """Return whether PEs of the set have the buffer."""
        return self._storage.core_set is core_set

    def _window_of(self, size_bytes: int) -> int:
        """Return the window of the first `size_bytes` bytes. Raises errors as `window` does, and if
        the bytes pass the end of the buffer; padding behind the last element belongs to it.
        """
        self._require_all_pes()
        self._storage.require_valid()
        space = self.size_bytes
        if self._begin + space == self._storage.size_bytes:
            space += -space % WORD_BYTES
        if size_bytes > space:
            raise ArgumentError(
                f"{size_bytes} bytes at offset 0 pass the end of {self!r}", "ERR_WINDOW"
            )
        window = self._storage.window_at(self._begin)
        if window % WORD_BYTES:
            raise ArgumentError(
                f"{self!r} begins at address {self.address:#x}; collectives move whole words of"
                f" {WORD_BYTES} bytes",
                "ERR_WINDOW",
            )
        return window

    def _require_all_pes(self) -> None:
        if self._pe is not None:
            raise ArgumentError(f"{self!r} is on one PE; collectives need it on all PEs")

    def _words(self) -> tuple[int, int]:
        """Return the first byte of the elements and the byte behind them, both at words."""
        word_bytes = self._storage.word_bytes
        begin = self._begin - self.address % word_bytes
        end = self._begin + self.size_bytes
        return begin, begin - (begin - end) // word_bytes * word_bytes

    def _read(self, begin: int, rows: NDArray[np.uint8]) -> None:
        self._storage.require_valid()
        if self._pe is None:
            self._storage.read_rows(begin, rows)
        else:
            self._storage.read_pe(self._pe, begin, rows[0])

    def _converted(self, values: ArrayInput) -> Array:
        """Return values as an array of the buffer's dtype."""
        if isinstance(values, Buffer):
            values = values.get()
        array = input_array("values", values)
        if array.dtype == self.dtype:
            return array
        if self.dtype.kind in "iu" and array.dtype.kind in "iu":
            limits = np.iinfo(self.dtype)
            if array.size and not limits.min <= array.min() <= array.max() <= limits.max:
                raise ArgumentError(
                    f"values from {array.min()} to {array.max()} do not fit {self!r}",
                    "ERR_HOST_BUFFER",
                )
            return array.astype(self.dtype)
        try:
            return array.astype(self.dtype, casting="same_kind")
        except TypeError as error:
            raise ArgumentError(
                f"values for {self!r} have dtype {array.dtype}: {error}", "ERR_HOST_BUFFER"
            ) from None

    def _rows_of(self, array: Array) -> tuple[bool, Array]:
        """Return whether an array has one row per PE, and its rows."""
        extra = array.ndim - len(self.shape)
        grid = self._storage.grid
        if extra <= 0 or self._pe is not None:
            try:
                return False, np.broadcast_to(array, self.shape)[np.newaxis]
            except ValueError:
                pass
        elif extra == 1 and array.shape[0] == self.pes and array.shape[1:] == self.shape:
            return True, array
        elif extra == len(grid) and array.shape == (*grid, *self.shape):
            return True, array.reshape(self.pes, *self.shape)
        shapes = [self.shape]
        if self._pe is None:
            shapes += dict.fromkeys([(self.pes, *self.shape), (*grid, *self.shape)])
        raise ArgumentError(
            f"values for {self!r} have shape {array.shape}; it must be"
            f" {' or '.join(map(str, shapes))}",
            "ERR_HOST_BUFFER",
        )


def _is_full(index: object) -> bool:
    return isinstance(index, slice) and index.start is index.stop is index.step is None


def shape_of(shape: object) -> tuple[int, ...]:
    """Return the shape of an array. Raises ArgumentError unless it is an integer, or a list or
    tuple of integers.
    """
    lengths = shape if isinstance(shape, (list, tuple)) else (shape,)
    return tuple(as_integer("length of an axis", length, high=MAX_COUNT) for length in lengths)


class Block:
    """MRAM that the library allocated on the PEs of a hypercube; a `Storage`."""

    word_bytes = WORD_BYTES

    def __init__(self, cube: Cube, core: _core.Block, name: str) -> None:
        self.name = name
        self.grid = cube.shape[::-1]
        self.first = cube.first
        self.address, self.size_bytes = core.address, core.size_bytes
        self.lost = ""  # the reason why the PEs no longer have the memory
        self._cube = cube
        self._core = core  # owns the memory
        self._window = core.window
        self._words = core.address, core.size_bytes + -core.size_bytes % WORD_BYTES

    @property
    def core_set(self) -> _core.Set:
        """The set of the PEs."""
        return self._cube._core_set

    def require_valid(self) -> None:
        """Raise Error if a program has overwritten the memory."""
        if self.lost:
            raise Error(self.lost, "ERR_WINDOW")

    def window_at(self, begin: int) -> int:
        """Return the window at byte `begin`."""
        return self._window + begin

    def read_rows(self, begin: int, rows: NDArray[np.uint8]) -> None:
        """Gather rows."""
        self._cube._move("gather", self.window_at(begin), rows)

    def write_rows(self, begin: int, rows: NDArray[np.uint8]) -> None:
        """Scatter rows."""
        self._cube._move("scatter", self.window_at(begin), rows)

    def write_same(self, begin: int, row: NDArray[np.uint8]) -> None:
        """Broadcast a row."""
        self._cube._move("broadcast", self.window_at(begin), row)

    def read_pe(self, pe: int, begin: int, row: NDArray[np.uint8]) -> None:
        """Copy the row of a PE to the host."""
        self.core_set.read_pe(self._cube._number_in_set(pe), self._words, begin, row)

    def write_pe(self, pe: int, begin: int, row: NDArray[np.uint8]) -> None:
        """Copy a row to a PE."""
        self.core_set.write_pe(self._cube._number_in_set(pe), self._words, begin, row)
