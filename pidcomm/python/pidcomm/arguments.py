"""Checks of numbers, names, dtypes and arrays in arguments.

The library checks all other properties of arguments.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from typing import (
    TYPE_CHECKING,
    Any,
    Literal,
    Protocol,
    SupportsFloat,
    TypeAlias,
    TypedDict,
    TypeVar,
    cast,
)

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from pidcomm._rows import CoherenceName, IsaName, TechniqueName
from pidcomm.errors import ArgumentError, shown, unknown
from pidcomm.tables import COHERENCES, ISAS, TECHNIQUES, TYPES, Choice, Type

if TYPE_CHECKING:
    from pidcomm import _core

__all__ = [
    "AUTO",
    "MAX_COUNT",
    "Array",
    "as_flag",
    "as_integer",
    "as_shape",
    "as_text",
    "option_codes",
    "options_of",
    "with_scratch",
]

AUTO = "auto"
AUTO_CODE = -1
MAX_SIZE = 2**64 - 1
MAX_COUNT = 2**32 - 1
MOST_AXES = 64  # so that a check of an endless iterator ends; the library allows fewer
LOOK_LIKE_DIGITS = str.maketrans({"O": "0", "o": "0", "l": "1", "I": "1", ",": None, " ": None})


class SupportsDLPack(Protocol):
    """A tensor of any library that supports DLPack."""

    def __dlpack__(self, **how: Any) -> Any:
        """Return the tensor in a capsule."""

    def __dlpack_device__(self) -> tuple[Any, Any]:
        """Return the device of the tensor."""


Array = NDArray[Any]
ArrayInput: TypeAlias = ArrayLike | SupportsDLPack
ArrayOutput: TypeAlias = Array | bytearray | memoryview | SupportsDLPack
Axis: TypeAlias = str | Sequence[str]
"""Axes of a hypercube: a mask such as "10", the name of an axis, or several names."""
_Row = TypeVar("_Row", bound=Choice)


class Options(TypedDict, total=False):
    """Options that select how a collective runs. Only techniques affect results, by the order in
    which they add floats.

    technique: a name of ``pidcomm.TECHNIQUES`` (names with pr, baseline, ring and tree are
    techniques of the PID-Comm paper) or auto, which chooses a fast technique
    (docs/performance.md). Auto considers techniques that need scratch only if scratch is given.
    Default: auto, without scratch. isa: a name of ``pidcomm.ISAS`` (default: the best instruction
    set of this machine).
    threads: 1 to 1024 host threads (default, or 0: see docs/performance.md, "Threads").
    coherence: a name of ``pidcomm.COHERENCES`` (default: none on emulated DIMMs). scratch: MRAM
    offset in bytes, not 0. Techniques that run a PE program may overwrite scratch of the size of a
    PE's input; techniques without a PE program do not use scratch.
    """

    technique: TechniqueName | Literal["auto"] | None
    isa: IsaName | None
    threads: int | None
    coherence: CoherenceName | None
    scratch: int | None


def options_of(**values: Any) -> Options:
    """Return options whose names are known only at run time.

    The called function checks the names.
    """
    return cast("Options", values)


def as_integer(name: str, value: object, low: int = 0, high: int = MAX_SIZE) -> int:
    """Return a value of any integer type as int.

    Raises ArgumentError if the value is not an integer, or not between low and high. This check
    prevents overflows in the library.
    """
    if isinstance(value, (bool, np.bool_)):
        raise ArgumentError(f"{name} ({value}) must be an integer, not a truth value")
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except Exception:  # of any type: __index__ belongs to the caller
        raise ArgumentError(
            f"{name} ({shown(value)}) must be an integer, not {type(value).__name__}"
        ) from None
    if not low <= number <= high:
        raise ArgumentError(f"{name} ({shown(number)}) must be between {low} and {high}")
    return number


def as_sizes(name: str, values: object) -> tuple[int, ...]:
    """Return sizes in bytes. Raises ArgumentError unless the values are a list or tuple of one or
    more positive integers.
    """
    if not isinstance(values, (list, tuple)) or not values:
        raise ArgumentError(f"{name} ({shown(values)}) must be a list or tuple of sizes, not empty")
    return tuple(as_integer(name, value, low=1) for value in values)


def as_number(name: str, value: object, low: float = -math.inf) -> float:
    """Return a number of any type as float.

    Raises ArgumentError for values of other types, infinity, NaN, integers too large for a float,
    and numbers below low.
    """
    number = math.nan
    if isinstance(value, SupportsFloat) and not isinstance(value, (bool, np.bool_)):
        with suppress(Exception):  # of any type: __float__ belongs to the caller
            number = float(value)
    if not math.isfinite(number):
        raise ArgumentError(f"{name} ({shown(value)}) must be a finite number")
    if number < low:
        raise ArgumentError(f"{name} ({shown(value)}) must be at least {low:g}")
    return number


def as_timeout(value: object) -> float:
    """Return a time-out in seconds. Raises ArgumentError for 0, which is the library's default."""
    seconds = as_number("timeout", value)
    if seconds == 0:
        raise ArgumentError(f"timeout ({shown(value)}) must not be 0")
    return seconds


def as_flag(name: str, value: object) -> bool:
    """Return a truth value.

    Raises ArgumentError for a value without a truth value, such as an array.
    """
    try:
        return bool(value)
    except Exception:  # of any type: __bool__ belongs to the caller
        raise ArgumentError(
            f"{name} ({shown(value)}) must be True or False, not {type(value).__name__}"
        ) from None


def as_text(name: str, value: object) -> str:
    """Return a text. Raises ArgumentError unless the value is a str that C programs can read."""
    if (
        not isinstance(value, str)
        or "\0" in value
        or (not value.isascii() and _has_surrogates(value))
    ):
        raise ArgumentError(
            f"{name} ({shown(value)}) must be a str without null characters and lone surrogates"
        )
    return value


def as_words(name: str, values: object) -> list[str]:
    """Return the words of a command line.

    Raises ArgumentError unless the values are a sequence of texts, but no text.
    """
    if isinstance(values, str) or not isinstance(values, Sequence):
        raise ArgumentError(
            f"{name} ({shown(values)}) must be a sequence of str, one per word of the command line"
        )
    return [as_text(f"a word of {name}", word) for word in values]


def _has_surrogates(text: str) -> bool:
    return any("\ud800" <= character <= "\udfff" for character in text)


def as_mask(mask: object) -> str:
    """Return an axis mask. Raises ArgumentError unless it is a str of '0' and '1'."""
    if not isinstance(mask, str):
        raise ArgumentError(
            f"the axis mask ({shown(mask)}) must be a str of '0' and '1', one per axis", "ERR_MASK"
        )
    if mask.strip("01"):
        strange = set(mask) - {"0", "1"}
        meant = mask.translate(LOOK_LIKE_DIGITS)
        suggestion = f"; did you mean {meant!r}?" if not set(meant) - {"0", "1"} else ""
        raise ArgumentError(
            f"the axis mask {shown(mask)} contains {min(strange)!r}; it has one '0' or '1' per"
            f" axis{suggestion}",
            "ERR_MASK",
        )
    return mask


def as_shape(lengths: object) -> list[int]:
    """Return axis lengths as a list.

    Raises ArgumentError unless lengths is a sequence of integers.
    """
    items: list[object] | None = None
    if not isinstance(
        lengths, (str, bytes, set, frozenset, Mapping)
    ):  # sets and mappings have no order
        with suppress(Exception):  # of any type: __iter__ belongs to the caller
            items = list(islice(lengths, MOST_AXES + 1))  # type: ignore[call-overload]
    if items is None or len(items) > MOST_AXES:
        raise ArgumentError(
            f"the shape ({shown(lengths)}) must be a sequence of at most {MOST_AXES} axis lengths",
            "ERR_SHAPE",
        )
    shape = [as_integer("axis length", length, high=MAX_COUNT) for length in items]
    if not shape:
        raise ArgumentError("the shape is empty; a hypercube has at least one axis", "ERR_SHAPE")
    return shape


def row_of(
    table: Mapping[str, _Row],
    kind: str,
    name: object,
    status: str = "ERR_ARGUMENT",
    others: Iterable[str] = (),
) -> _Row:
    """Return the row of a name. Raises ArgumentError with the valid names. others: valid names
    without a row.
    """
    row = table.get(name) if isinstance(name, str) else None
    if row is None:
        raise ArgumentError(unknown(kind, name, [*table, *others]), status)
    return row


_TYPES_BY_DTYPE = {
    np.dtype(name): row for name, row in TYPES.items()
}  # the name of a dtype is slow to find


def as_dtype(dtype: DTypeLike) -> np.dtype[np.generic]:
    """Return a dtype.

    Raises ArgumentError unless elements of the dtype have a fixed size in bytes.
    """
    if dtype is None:  # NumPy reads None as float64
        raise ArgumentError(f"dtype is missing; use {', '.join(TYPES)}", "ERR_TYPE")
    try:
        numpy_dtype = np.dtype(dtype)
    except (TypeError, ValueError, SyntaxError):
        raise ArgumentError(f"dtype {shown(dtype)} is not a NumPy dtype", "ERR_TYPE") from None
    if numpy_dtype.hasobject or numpy_dtype.itemsize == 0 or not numpy_dtype.isnative:
        raise ArgumentError(
            f"dtype {numpy_dtype} has no fixed size, or another byte order than a PE", "ERR_TYPE"
        )
    return numpy_dtype


# Types whose elements, or parts of elements, an operator combines as another type.
_COMBINED_AS: dict[tuple[np.dtype[Any], str], Type] = {
    **{(np.dtype("?"), op): TYPES["uint8"] for op in ("min", "max", "and", "or", "xor")},
    (np.dtype("c8"), "sum"): TYPES["float32"],
    (np.dtype("c16"), "sum"): TYPES["float64"],
}


def as_type(dtype: DTypeLike, op: str | None = None) -> Type:
    """Return the element type with which a collective treats a dtype.

    op: the operator, or None for movements, which take each dtype of a fixed size. Raises
    ArgumentError with the valid types.
    """
    numpy_dtype = as_dtype(dtype)
    if (row := _TYPES_BY_DTYPE.get(numpy_dtype)) is not None:
        return row
    if op is None:
        return TYPES["uint8"]
    if (row := _COMBINED_AS.get((numpy_dtype, op))) is not None:
        return row
    operators = [name for combined, name in _COMBINED_AS if combined == numpy_dtype]
    choices = (
        f"its operators are {', '.join(operators)}" if operators else f"use {', '.join(TYPES)}"
    )
    raise ArgumentError(f"operator {op} is not for dtype {numpy_dtype.name!r}; {choices}", "ERR_OP")


def option_codes(options: Options) -> _core.OptionCodes:
    """Return the codes of options.

    Raises TypeError for unknown keywords and ArgumentError for unknown names.
    """
    if not isinstance(options, Mapping):
        raise ArgumentError(f"options ({shown(options)}) must be a dict of options", "ERR_OPTION")
    if not options:
        return (0, 0, 0, 0, 0)
    if unknown := options.keys() - Options.__annotations__.keys():
        raise TypeError(
            f"unexpected keyword argument {min(unknown)!r}; the options are"
            f" {', '.join(Options.__annotations__)}"
        )

    def code(table: Mapping[str, Choice], kind: str, name: str | None, *others: str) -> int:
        return 0 if name is None else row_of(table, kind, name, "ERR_OPTION", others).code

    threads, scratch = options.get("threads"), options.get("scratch")
    return (
        AUTO_CODE
        if _is_auto(options)
        else code(TECHNIQUES, "technique", options.get("technique"), AUTO),
        code(ISAS, "ISA", options.get("isa")),
        0 if threads is None else as_integer("threads", threads, high=2**31 - 1),
        code(COHERENCES, "coherence", options.get("coherence")),
        0 if scratch is None else as_integer("scratch", scratch),
    )


def with_scratch(options: Options, offset: int) -> Options:
    """Return options with scratch, except for technique ``auto``: scratch would change the
    choice of ``auto``.
    """
    return options if _is_auto(options) else {**options, "scratch": offset}


def _is_auto(options: Options) -> bool:
    technique = options.get("technique")
    return isinstance(technique, str) and technique == AUTO


def input_array(name: str, values: ArrayInput) -> Array:
    """Return values as an array. values: an array, a buffer or a CPU tensor.

    Raises ArgumentError for values of other types.
    """
    try:
        return np.from_dlpack(values) if _is_tensor(values) else np.asarray(values)  # type: ignore[arg-type]
    except (TypeError, ValueError, RuntimeError, BufferError) as error:
        raise ArgumentError(f"{name} is not an array: {error}", "ERR_HOST_BUFFER") from None


def input_rows(name: str, values: ArrayInput, rows: int, row_name: str) -> Array:
    """Return values as a C-contiguous array. Copies values only if they are not C-contiguous.

    values: as of `input_array`. Raises ArgumentError unless values are two-dimensional with `rows`
    rows and a dtype of a fixed size.
    """
    array = input_array(name, values)
    as_dtype(array.dtype)
    if array.ndim != 2 or array.shape[0] != rows:
        raise ArgumentError(
            f"{name} has shape {array.shape}; it needs ({rows}, n), one row per {row_name}",
            "ERR_HOST_BUFFER",
        )
    return np.ascontiguousarray(array)


def output_rows(out: object, shape: tuple[int, ...], dtype: DTypeLike) -> Array:
    """Return the memory of `out` as an array, or a new array if `out` is None.

    Raises ArgumentError unless `out` is a writable C-contiguous array, buffer or CPU tensor with
    the given shape and dtype.
    """
    if out is None:
        return np.empty(shape, dtype)
    out = _view_of(out)
    if out.shape != shape or out.dtype != np.dtype(dtype):
        raise ArgumentError(
            f"out has shape {out.shape} and dtype {out.dtype}; it needs {shape} and"
            f" {np.dtype(dtype)}",
            "ERR_HOST_BUFFER",
        )
    return _require_writable(out)


def output_elements(out: object, count: int, dtype: np.dtype[np.generic]) -> Array:
    """Return the memory of `out` as an array, or a new array if `out` is None.

    Raises ArgumentError unless `out` is as for `output_rows`, with `count` elements in any shape.
    """
    if out is None:
        return np.empty(count, dtype)
    out = _view_of(out)
    if out.size != count or out.dtype != dtype:
        raise ArgumentError(
            f"out has {out.size} elements of {out.dtype}; it needs {count} of {dtype}",
            "ERR_HOST_BUFFER",
        )
    return _require_writable(out)


def _require_writable(out: Array) -> Array:
    if not out.flags.c_contiguous:
        raise ArgumentError(
            "out must be C-contiguous: results are written in place", "ERR_HOST_BUFFER"
        )
    if not out.flags.writeable:
        raise ArgumentError("out is read-only", "ERR_HOST_BUFFER")
    return out


def _is_tensor(values: object) -> bool:
    return hasattr(values, "__dlpack__") and not isinstance(values, (np.ndarray, np.generic))


def _view_of(out: object) -> Array:
    """Return the memory of an array, buffer or CPU tensor.

    Raises ArgumentError for objects of other types.
    """
    if isinstance(
        out, (np.matrix, np.ma.MaskedArray)
    ):  # their rows and elements differ from those of arrays
        raise ArgumentError(
            f"out must be an array, not {type(out).__name__}; give a view: numpy.asarray(out)"
        )
    if isinstance(out, np.ndarray):
        return out
    try:
        if not _is_tensor(out):
            return np.asarray(memoryview(out))  # type: ignore[arg-type]
        view: Array = np.from_dlpack(out)  # type: ignore[arg-type]
        if not view.flags.writeable and hasattr(
            out, "__array__"
        ):  # old exporters cannot mark memory as writable
            array = np.asarray(out)
            view = array if np.may_share_memory(array, view) else view
    except (TypeError, ValueError, RuntimeError, BufferError) as error:
        raise ArgumentError(
            f"out must be an array, a writable buffer or a CPU tensor, not {type(out).__name__}:"
            f" {error}",
            "ERR_HOST_BUFFER",
        ) from None
    return view


def as_bytes(array: Array) -> NDArray[np.uint8]:
    """Return the bytes of a C-contiguous array without a copy."""
    return array.reshape(-1).view(np.uint8)
