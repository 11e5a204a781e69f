"""Parse and format the sizes, shapes and lists of the command line."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from fractions import Fraction
from typing import Any, TypeVar

from pidcomm.errors import ArgumentError, unknown

__all__ = [
    "format_about",
    "format_duration",
    "format_gain",
    "format_interval",
    "format_shape",
    "format_size",
    "parse_count",
    "parse_names",
    "parse_positive_size",
    "parse_shape",
    "parse_size",
]

BINARY_UNITS = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
DECIMAL_UNITS = {"kB": 10**3, "MB": 10**6, "GB": 10**9}
SIZE_EXAMPLES = "4096, 64KiB, 1MiB, 1MB or 1e6"
SIZE_RULE = (
    f"write a whole number of bytes as {SIZE_EXAMPLES} "
    "(KiB, MiB, GiB are powers of 1024; kB, MB, GB are powers of 1000)"
)
MAX_SIZE = 2**64 - 1

_Name = TypeVar("_Name", bound=str)
_UNITS = {"": 1, "b": 1, "byte": 1, "bytes": 1}
_UNITS.update({name.lower(): unit for name, unit in (BINARY_UNITS | DECIMAL_UNITS).items()})
_SIZE = re.compile(
    r"\s*([0-9]{1,20}(?:\.[0-9]{1,20})?(?:e\+?[0-9]{1,2})?)\s*([a-z]*)\s*", re.IGNORECASE | re.ASCII
)


def parse_size(text: str) -> int:
    """Return the number of bytes in a text that follows SIZE_RULE. Raises ArgumentError."""
    match = _SIZE.fullmatch(text)
    if match and (letter := match[2].upper()) in ("K", "M", "G"):
        binary, decimal = f"{match[1]}{letter}iB", f"{match[1]}{'k' if letter == 'K' else letter}B"
        raise ArgumentError(f"size {text!r} has two meanings; write {binary} or {decimal}")
    unit = _UNITS.get(match[2].lower()) if match else None
    if match is None or unit is None:
        raise ArgumentError(f"size {text!r} is not a size; {SIZE_RULE}")
    size = Fraction(match[1]) * unit
    if size.denominator != 1:
        raise ArgumentError(f"size {text!r} is not a whole number of bytes; {SIZE_RULE}")
    if size > MAX_SIZE:
        raise ArgumentError(f"size {text!r} is too large; the largest is {MAX_SIZE} bytes")
    return int(size)


def parse_positive_size(text: str) -> int:
    """Return the number of bytes in a text.

    Raises ArgumentError if the number is 0 or the text is not a size.
    """
    if (size := parse_size(text)) == 0:
        raise ArgumentError("0 bytes per PE cannot be timed; give at least 8")
    return size


def parse_count(text: str) -> int:
    """Return the number in a text. Raises ArgumentError unless the number is at least 1."""
    if not _is_number(text) or int(text) == 0:
        raise ArgumentError(f"count {text!r} is not a count; write a number of at least 1")
    return int(text)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 20


def parse_shape(text: str) -> tuple[int, ...]:
    """Return the axis lengths in a text such as "32x32", x first. Raises ArgumentError."""
    parts = text.lower().split("x")
    if not all(map(_is_number, parts)):
        raise ArgumentError(
            f"shape {text!r} is not a shape; write axis lengths as 32x32", "ERR_SHAPE"
        )
    return tuple(int(part) for part in parts)


def parse_names(
    text: str, table: Collection[_Name], kind: str, everything: Sequence[_Name] | None = None
) -> list[_Name]:
    """Return the names in a comma-separated list without repetitions. "all" in the list means
    `everything` (default: the table).

    Raises ArgumentError for unknown names.
    """
    names: list[Any] = []
    for name in text.split(","):
        if name != "all" and name not in table:
            raise ArgumentError(unknown(kind, name, ["all", *table]))
        names += (table if everything is None else everything) if name == "all" else [name]
    return list(dict.fromkeys(names))


def format_size(size_bytes: int) -> str:
    """Return an exact size in the largest binary unit that divides the size, or else in bytes."""
    for name, unit in reversed(BINARY_UNITS.items()):
        if size_bytes and size_bytes % unit == 0:
            return f"{size_bytes // unit} {name}"
    return "1 byte" if size_bytes == 1 else f"{size_bytes} bytes"


def format_about(size_bytes: float) -> str:
    """Return a rounded size in the binary unit that makes the size easy to read."""
    for name, unit in reversed(BINARY_UNITS.items()):
        if size_bytes >= unit:
            return f"{size_bytes / unit:.4g} {name}"
    return f"{size_bytes:.4g} bytes"


def format_duration(seconds: float) -> str:
    """Return a time with three digits in a suitable unit: 174 us, 52.3 ms, 4.5 s, 2 min 5 s."""
    if seconds >= 60:
        minutes, rest = divmod(round(seconds), 60)
        return f"{minutes} min {rest} s"
    for name, unit in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= 0.9995 * unit:  # the rounded value is at least 1 in this unit
            return f"{seconds / unit:.3g} {name}"
    return f"{seconds / 1e-6:.3g} us"


def format_interval(interval: tuple[float, float]) -> str:
    """Return two times with two digits: "3.6 to 4.9 ms", or "940 us to 1.5 ms"."""
    low, high = (format_duration(float(f"{seconds:.2g}")) for seconds in interval)
    number, _, unit = low.partition(" ")
    return f"{number if high.endswith(f' {unit}') else low} to {high}"


def format_gain(gain: float) -> str:
    """Return a speed-up as "4.45x", "0.94x" or "0.031x"."""
    return f"{gain:.2f}x" if gain >= 0.1 else f"{gain:.2g}x"


def format_shape(shape: tuple[int, ...]) -> str:
    """Return axis lengths as text, such as "32x32"."""
    return "x".join(map(str, shape))
