"""Sizes, shapes and lists as people type them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from pidcomm.errors import ArgumentError

_UNITS = {"": 1, "b": 1, "k": 10**3, "m": 10**6, "g": 10**9, "kib": 2**10, "mib": 2**20, "gib": 2**30}
_UNITS.update({"kb": 10**3, "mb": 10**6, "gb": 10**9})
_SIZE = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?(?:e[0-9]+)?)\s*([a-z]*)\s*", re.IGNORECASE)


def parse_size(text: str) -> int:
    """Return a number of bytes: "1MiB", "64KiB", "1e6", "4096". Raises ArgumentError unless it is a whole number."""
    match = _SIZE.fullmatch(text)
    unit = _UNITS.get(match[2].lower()) if match else None
    if match is None or unit is None:
        raise ArgumentError(f"size {text!r} is none; write it as 4096, 64KiB, 1MiB, 1GiB, 1MB or 1e6")
    number = int(match[1]) if match[1].isdigit() else float(match[1])
    size = number * unit
    if size != int(size):
        raise ArgumentError(f"size {text!r} is no whole number of bytes")
    return int(size)


def parse_positive_size(text: str) -> int:
    """Return a number of bytes, at least 1. Raises ArgumentError."""
    if (size := parse_size(text)) == 0:
        raise ArgumentError("there is nothing to time in 0 bytes per PE")
    return size


def parse_count(text: str) -> int:
    """Return a number of at least 1. Raises ArgumentError."""
    if not (text.isascii() and text.isdigit()) or int(text) == 0:
        raise ArgumentError(f"count {text!r} is none; write a number from 1")
    return int(text)


def parse_shape(text: str) -> tuple[int, ...]:
    """Return axis lengths: "32x32", x first. Raises ArgumentError."""
    parts = text.lower().split("x")
    if not all(part.isascii() and part.isdigit() for part in parts):
        raise ArgumentError(f"shape {text!r} is none; write axis lengths as 32x32", "ERR_SHAPE")
    return tuple(int(part) for part in parts)


def parse_names(
    text: str, table: Mapping[str, object], kind: str, everything: Sequence[str] | None = None
) -> list[str]:
    """Return the names of a comma-separated list; for "all" everything, by default all of the table.

    Raises ArgumentError for unknown ones.
    """
    names = list(table if everything is None else everything) if text == "all" else text.split(",")
    for name in names:
        if name not in table:
            raise ArgumentError(f"{kind} {name!r} is unknown; use all, {', '.join(table)}")
    return names


def format_size(size_bytes: float) -> str:
    """Return a size with the largest binary unit that keeps it exact enough to read."""
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if size_bytes < 1024 or unit == "GiB":
            break
        size_bytes /= 1024
    return f"{size_bytes:.4g} {unit}"


def format_shape(shape: tuple[int, ...]) -> str:
    """Return axis lengths as typed: "32x32"."""
    return "x".join(map(str, shape))
