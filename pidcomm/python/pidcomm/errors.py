"""Errors of the package: Error, and the subclasses of Error for arguments and for memory."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from importlib.util import find_spec

__all__ = ["MAX_SHOWN", "FileContentError", "require", "shown", "unknown"]


def __dir__() -> list[str]:
    return __all__


MAX_SHOWN = 40  # characters of a long value that an error sentence quotes


class Error(RuntimeError):
    """Report that a call failed. The message has the wrong values and the rule that the values
    break.

    ``status`` is the name of the library's status, such as ``"ERR_SIZE"``.
    """

    def __init__(self, message: str, status: str = "ERR_INTERNAL") -> None:
        super().__init__(message)
        self.status = status


class ArgumentError(Error, ValueError):
    """Report that an argument breaks a rule. No byte has moved."""

    def __init__(self, message: str, status: str = "ERR_ARGUMENT") -> None:
        super().__init__(message, status)


class FileContentError(ArgumentError):
    """Report that the content of an input file breaks a rule."""


def shown(value: object) -> str:
    """Return the representation of a value for an error sentence; a long representation is cut."""
    if isinstance(value, int) and abs(value) >= 10**MAX_SHOWN:
        return f"an integer of {value.bit_length()} bits"
    try:
        text = repr(value)
    except Exception:  # of any type: the value belongs to the caller
        return f"a value of type {type(value).__name__}"
    return text if len(text) <= 2 * MAX_SHOWN else f"{text[:MAX_SHOWN]}... ({len(text)} characters)"


def unknown(kind: str, name: object, names: Iterable[str], rest: str = "") -> str:
    """Return a sentence that lists the known names and suggests the nearest name, or the first
    FOLDER/NAME for NAME. rest: valid values without a name.
    """
    known = list(names)
    near: list[str] = []
    if isinstance(name, str):
        near = [path for path in known if path.endswith(f"/{name}")]
        near = near or get_close_matches(name.lower(), known, n=1)
    suggestion = f"; did you mean {near[0]!r}?" if near else ""
    return f"{kind} {shown(name)} is unknown; use {', '.join(known)}{rest}{suggestion}"


class OutOfMemoryError(Error, MemoryError):
    """Report that the host ran out of memory."""

    def __init__(self, message: str, status: str = "ERR_MEMORY") -> None:
        super().__init__(message, status)


def require(module: str, purpose: str) -> None:
    """Raise ArgumentError unless a module of the extra `studies` is installed."""
    if find_spec(module) is None:
        raise ArgumentError(
            f"{purpose} needs {module}, which is not installed: pip install {module}"
        )


_CLASSES: dict[str, type[Error]] = {
    "ERR_SET": Error,
    "ERR_DEVICE": Error,
    "ERR_BUSY": Error,
    "ERR_FUNCTION": Error,
    "ERR_INTERNAL": Error,
    "ERR_MEMORY": OutOfMemoryError,
}


def make_error(status: str, message: str) -> Error:
    """Return the exception for a status of the library."""
    return _CLASSES.get(status, ArgumentError)(message, status)
