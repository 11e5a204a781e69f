"""The errors of the package: one for everything, one more for arguments, one more for memory."""

from __future__ import annotations


class Error(RuntimeError):
    """Report that a call failed; the message names the offending values and the rule.

    ``status`` is the name of the library's status, such as ``"ERR_SIZE"``.
    """

    def __init__(self, message: str, status: str = "ERR_INTERNAL") -> None:
        super().__init__(message)
        self.status = status


class ArgumentError(Error, ValueError):
    """Report an argument that breaks a rule; nothing has moved."""

    def __init__(self, message: str, status: str = "ERR_ARGUMENT") -> None:
        super().__init__(message, status)


class OutOfMemoryError(Error, MemoryError):
    """Report that the host ran out of memory."""

    def __init__(self, message: str, status: str = "ERR_MEMORY") -> None:
        super().__init__(message, status)


_CLASSES: dict[str, type[Error]] = {
    "ERR_SET": Error,
    "ERR_DEVICE": Error,
    "ERR_BUSY": Error,
    "ERR_INTERNAL": Error,
    "ERR_MEMORY": OutOfMemoryError,
}


def make_error(status: str, message: str) -> Error:
    """Return the exception for a status of the library."""
    return _CLASSES.get(status, ArgumentError)(message, status)
