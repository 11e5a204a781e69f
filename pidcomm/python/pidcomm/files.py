"""Checks of input files, which the readers call before they read."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import NoReturn

from pidcomm.errors import ArgumentError, FileContentError

__all__ = ["malformed", "require_file"]


def require_file(path: Path, most_bytes: int | None = None) -> int:
    """Return the size of a file in bytes.

    Raises ArgumentError if the file does not exist or is no regular file: readers open a file more
    than once, which loses data of a pipe. Raises FileContentError if the file is larger than
    `most_bytes`.
    """
    try:
        status = os.stat(path)
    except (OSError, ValueError) as error:  # ValueError: the path contains a null character
        raise ArgumentError(
            f"cannot read {path}: {getattr(error, 'strerror', None) or error}"
        ) from None
    if not stat.S_ISREG(status.st_mode):
        what = "a folder" if stat.S_ISDIR(status.st_mode) else "a pipe or device"
        raise ArgumentError(f"cannot read {path}: it is {what}; give a regular file")
    if most_bytes is not None and status.st_size > most_bytes:
        malformed(path, None, f"{status.st_size} bytes; at most {most_bytes} are possible")
    return status.st_size


def malformed(path: Path, line: int | None, rule: str) -> NoReturn:
    """Raise FileContentError with the name of a file and the number of a line: ``graph.txt:7:
    ...``.
    """
    raise FileContentError(f"{path}: {rule}" if line is None else f"{path}:{line}: {rule}")
