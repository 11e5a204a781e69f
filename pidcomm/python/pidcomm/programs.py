"""PE programs: the files of programs, and the variables of programs as arrays."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from pidcomm import _core
from pidcomm.arguments import MAX_COUNT, Array, as_bytes, as_dtype, as_integer, as_text
from pidcomm.buffers import Buffer
from pidcomm.debug_types import DebugTypes
from pidcomm.errors import ArgumentError, Error, shown
from pidcomm.tables import WORD_BYTES

if TYPE_CHECKING:
    from pidcomm.arguments import Options

MRAM_ADDRESS = 0x08000000
IRAM_ADDRESS = 0x80000000
WRAM_WORD_BYTES = 4

MRAM_WINDOW = 1 << 63  # PIDCOMM_MRAM_WINDOW

PathText: TypeAlias = str | os.PathLike[str]


class Variable:
    """The memory of a variable of the loaded program; a `Storage`."""

    def __init__(self, core_set: _core.Set, name: str) -> None:
        self.name = name
        self.grid = (core_set.pes,)
        self.first = 0
        self.core_set = core_set
        self._loads = core_set.loads
        self.address, self.size_bytes = core_set.symbol(as_text("name of a symbol", name))
        self.is_in_mram = MRAM_ADDRESS <= self.address < IRAM_ADDRESS
        self.word_bytes = WORD_BYTES if self.is_in_mram else WRAM_WORD_BYTES
        self._before = self.address % self.word_bytes  # bytes of the first word that precede it
        words = -(-(self._before + self.size_bytes) // self.word_bytes)
        self._words = self.address - self._before, words * self.word_bytes  # address and bytes

    def require_valid(self) -> None:
        """Raise Error if the program has been replaced."""
        if self.core_set.loads != self._loads:
            raise Error(
                f"variable {self.name} belongs to a program that has been replaced; get the symbol"
                " again"
            )

    def window_at(self, begin: int) -> int:
        """Return the window at byte `begin`."""
        if not self.is_in_mram:
            raise ArgumentError(
                f"variable {self.name} is not in MRAM; collectives work on MRAM", "ERR_WINDOW"
            )
        return MRAM_WINDOW | (self.address - MRAM_ADDRESS + begin)

    def read_rows(self, begin: int, rows: NDArray[np.uint8]) -> None:
        """Read rows."""
        self.core_set.read_rows(self._words, self._before + begin, as_bytes(rows))

    def write_rows(self, begin: int, rows: NDArray[np.uint8]) -> None:
        """Write rows."""
        self.core_set.write_rows(self._words, self._before + begin, as_bytes(rows))

    def write_same(self, begin: int, row: NDArray[np.uint8]) -> None:
        """Write a row to all PEs."""
        self.core_set.write_same(self._words, self._before + begin, row)

    def read_pe(self, pe: int, begin: int, row: NDArray[np.uint8]) -> None:
        """Read the row of a PE."""
        self.core_set.read_pe(pe, self._words, self._before + begin, row)

    def write_pe(self, pe: int, begin: int, row: NDArray[np.uint8]) -> None:
        """Write the row of a PE."""
        self.core_set.write_pe(pe, self._words, self._before + begin, row)


class Symbol(Buffer):
    """A variable, in WRAM or MRAM, of the program that is loaded on all PEs of a set.
    `PeSet.symbol` makes a symbol.

    A symbol is a `Buffer`, whose dtype and shape come from the debug information of the program
    (option -g). Row p belongs to PE p; `PeSet` describes the order. `write` and `read` move parts
    at byte offsets and need no debug information; in WRAM, offset and size are multiples of 4
    bytes, in MRAM of 8. Calls raise Error while the PEs run, and after the set has loaded a program
    again. They raise ArgumentError before any byte moves if the range is not inside the symbol.
    Calls release the GIL.
    """

    def __init__(self, core_set: _core.Set, name: str, types: DebugTypes) -> None:
        """Find a symbol; see `PeSet.symbol`."""
        variable = Variable(core_set, name)
        super().__init__(variable, np.dtype(np.uint8), ())
        self._core = core_set
        self._variable = variable
        self._types = types

    @cached_property
    def _type(self) -> tuple[np.dtype[Any], tuple[int, ...]]:
        if self.name == _core.HEAP_NAME:
            raise ArgumentError(f"{self!r} has no type; use PeSet.buffer, or read and write")
        return self._types.type_of(self.name, self.size_bytes)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the elements.

        Raises ArgumentError if the program has no debug information about the variable, or if NumPy
        has no such type.
        """
        return self._type[0]

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the array of one PE; () for a variable that is no array. Raises as `dtype`."""
        return self._type[1]

    @property
    def size(self) -> int:
        """Number of elements per PE."""
        return math.prod(self.shape)

    @property
    def size_bytes(self) -> int:
        """Size of the symbol in bytes. The MRAM heap has all MRAM that the program does not use."""
        return self._variable.size_bytes

    def write(self, values: ArrayLike, offset: int = 0, *, dtype: DTypeLike | None = None) -> None:
        """Write values to every PE, `offset` bytes behind the start of the symbol.

        values: an array of shape (pes, n), with row p for PE p; or an array of shape (n,) or a
        single value, which every PE gets. The dtype of the values must be the type of the
        variable's elements; all types of fixed size are allowed, also structured types. Values
        without a dtype, such as a list, need `dtype`. As an exception, a Python int or float at
        offset 0 gets the size of the variable if the variable has 1, 2, 4 or 8 bytes. A single
        value at offset 0 without `dtype` must have the size of the variable. Moves n *
        itemsize bytes per PE.
        """
        offset = as_integer("offset", offset, high=MAX_COUNT)
        array = self._elements(values, offset, dtype)
        if array.ndim > 2 or (array.ndim == 2 and array.shape[0] != self._core.pes):
            raise ArgumentError(
                f"values for {self!r} have shape {array.shape}; the shape must be"
                f" ({self._core.pes}, n), one row per PE, or (n,) for all PEs",
                "ERR_HOST_BUFFER",
            )
        row_bytes = array.nbytes if array.ndim < 2 else int(array.shape[1]) * array.itemsize
        offset = self._require_inside(offset, row_bytes)
        if row_bytes:
            move = self._variable.write_rows if array.ndim == 2 else self._variable.write_same
            move(offset, as_bytes(np.ascontiguousarray(array)))

    def read(self, dtype: DTypeLike, count: int | None = None, offset: int = 0) -> Array:
        """Read `count` elements of every PE at `offset` bytes in the symbol. Return an array of
        shape (pes, count).

        dtype: a dtype of fixed size. count: None reads to the end of the symbol; the MRAM heap
        needs a number. Moves count * itemsize bytes per PE.
        """
        element = as_dtype(dtype)
        if count is None:
            if self.name == _core.HEAP_NAME:
                raise ArgumentError(
                    f"reading {self!r} needs a count: the heap is all MRAM that is free"
                )
            left = self.size_bytes - self._require_inside(offset, 0)
            if left % element.itemsize:
                raise ArgumentError(
                    f"the {left} bytes of {self!r} from offset {offset} are not a multiple of"
                    f" {element.itemsize}, the bytes of an element; give a count"
                )
            count = left // element.itemsize
        count = as_integer("count", count)
        offset = self._require_inside(offset, count * element.itemsize)
        rows = np.empty((self._core.pes, count), element)
        if count:
            self._variable.read_rows(offset, rows)
        return rows

    def __repr__(self) -> str:
        """Report the name, size and address."""
        return f"<Symbol {self.name}: {self.size_bytes} bytes at {self.address:#x}>"

    def _elements(self, values: ArrayLike, offset: int, dtype: DTypeLike | None) -> Array:
        if dtype is None and not hasattr(values, "dtype"):
            if offset != 0 or isinstance(values, bool) or not isinstance(values, (int, float)):
                raise ArgumentError(
                    f"values for {self!r} have no dtype ({type(values).__name__}); give dtype="
                )
            kind = "f" if isinstance(values, float) else "i" if values < 0 else "u"
            if self.size_bytes not in ((2, 4, 8) if kind == "f" else (1, 2, 4, 8)):
                raise ArgumentError(
                    f"a single {type(values).__name__} does not fill {self!r}; give dtype="
                )
            dtype = f"{kind}{self.size_bytes}"
        try:
            array = np.asarray(values, None if dtype is None else as_dtype(dtype))
        except (TypeError, ValueError, OverflowError) as error:
            raise ArgumentError(
                f"values for {self!r} are not an array: {error}", "ERR_HOST_BUFFER"
            ) from None
        as_dtype(array.dtype)
        if array.ndim == 0 and dtype is None and offset == 0 and array.nbytes != self.size_bytes:
            raise ArgumentError(
                f"a single {array.dtype} does not fill {self!r}; give dtype=", "ERR_HOST_BUFFER"
            )
        return array

    def _require_inside(self, offset: int, row_bytes: int) -> int:
        """Return the offset.

        Raises ArgumentError if `row_bytes` bytes from the offset pass the end of the symbol, or do
        not fill words of MRAM.
        """
        self._variable.require_valid()
        offset = as_integer("offset", offset, high=MAX_COUNT)
        if offset + row_bytes > self.size_bytes:
            raise ArgumentError(
                f"{row_bytes} bytes at offset {offset} pass the end of {self!r}", "ERR_WINDOW"
            )
        if self.address & MRAM_ADDRESS and ((self.address + offset) | row_bytes) % WORD_BYTES:
            raise ArgumentError(
                f"{row_bytes} bytes at offset {offset} of {self!r}: in MRAM, the host reaches whole"
                f" words of {WORD_BYTES} bytes",
                "ERR_WINDOW",
            )
        return offset


Window: TypeAlias = int | Buffer
"""A window in MRAM: an offset in bytes from the start of the heap, or a buffer."""


class HeapWindows:
    """The ranges of heap offsets that calls of a set have written, to detect that a load has moved
    the heap away from them. Windows of buffers do not move.
    """

    def __init__(self) -> None:
        self._written: dict[int, int] = {}  # ends by begins
        self._moved: list[tuple[int, int, int]] = []  # begin, end, address of the heap at the write
        self._heap = MRAM_ADDRESS

    @property
    def has_moved(self) -> bool:
        """Whether a load has moved windows that have not been written again."""
        return bool(self._moved)

    def write(self, offset: int, size_bytes: int) -> None:
        """Note that a call has written a window."""
        if offset >= MRAM_WINDOW or not size_bytes:
            return
        end = offset + size_bytes
        if self._written.get(offset, 0) < end:
            self._written[offset] = end
        if self._moved:
            self._moved = [
                (begin, stop, heap)
                for first, last, heap in self._moved
                for begin, stop in ((first, min(last, offset)), (max(first, end), last))
                if begin < stop
            ]

    def require_unmoved(self, offset: int, size_bytes: int) -> None:
        """Raise ArgumentError if a call reads a window that a load has moved."""
        for begin, end, heap in self._moved:
            if begin < offset + size_bytes and offset < end:
                raise ArgumentError(
                    f"offsets {begin} to {end} were written when the heap began at {heap:#x}; a"
                    f" program that was loaded later has its heap at {self._heap:#x}, so the"
                    " offsets have other bytes now; write them again, or use a buffer",
                    "ERR_WINDOW",
                )

    def launch(self) -> None:
        """Note that PEs run, which may write every window."""
        self._moved = []

    def load(self, heap: int) -> None:
        """Note that a load has moved the start of the heap to an address."""
        if heap != self._heap:
            self._moved += [(begin, end, self._heap) for begin, end in self._written.items()]
            # Ranges that were written at this start of the heap are right again.
            self._moved = [moved for moved in self._moved if moved[2] != heap]
            self._written, self._heap = {}, heap


def is_at_mram_byte(window: object) -> bool:
    """Return whether a window does not depend on the start of the heap."""
    if isinstance(window, (int, np.integer)):
        return bool(window >= MRAM_WINDOW)
    return isinstance(window, Buffer)


def at_mram_bytes(
    core_set: _core.Set, src: Window, dst: Window, options: Options
) -> tuple[Window, Window, Options]:
    """Return the windows of a plan and its options.

    Plans do not know the heap base. If a window does not depend on it, the offsets become MRAM
    bytes, which can be compared with this window.
    """
    if not (is_at_mram_byte(src) or is_at_mram_byte(dst)):
        return src, dst, options
    heap = Variable(core_set, _core.HEAP_NAME).window_at(0)

    def placed(name: str, window: Window) -> Window:
        return window if is_at_mram_byte(window) else heap + as_integer(name, window)

    if scratch := options.get("scratch"):  # 0 means no scratch
        options = {**options, "scratch": placed("scratch", scratch)}  # type: ignore[typeddict-item]
    return placed("src", src), placed("dst", dst), options


def is_source_text(program: object) -> bool:
    """Return whether a program is C source text (it has a line break or a brace), not a path."""
    return isinstance(program, str) and ("\n" in program or "{" in program)


def as_files(program: object) -> list[Path]:
    """Return the files of a path or a sequence of paths.

    Raises ArgumentError if a file does not exist, and if one of several files is not a C file.
    """
    words = [program] if isinstance(program, (str, os.PathLike)) else program
    if not isinstance(words, Sequence) or isinstance(words, (bytes, bytearray)) or not words:
        raise ArgumentError(
            f"the program ({shown(program)}) must be a path, a sequence of paths of C files, or C"
            " source text"
        )
    files: list[Path] = []
    for word in words:
        if (
            not isinstance(word, (str, os.PathLike))
            or not os.fspath(word)
            or "\0" in str(os.fspath(word))
        ):
            raise ArgumentError(f"{shown(word)} is not the path of a PE program")
        files.append(Path(os.fspath(word)))
    if len(files) > 1 and (other := next((file for file in files if not is_source(file)), None)):
        raise ArgumentError(
            f"{other} is not a C file; if a program has several files, all must be C files"
        )
    for file in files:
        if not os.path.isfile(file):  # unlike Path.is_file, also for names that are too long
            raise ArgumentError(
                f"there is no file {file}" if not os.path.exists(file) else f"{file} is not a file"
            )
    return files


def is_source(file: Path) -> bool:
    """Return whether a file must be compiled."""
    return file.suffix == ".c"
