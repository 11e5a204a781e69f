"""Cache compiled archives in a folder of the user.

An entry is the checksum of the archive, then the archive. Entries that another user can have
written, and damaged entries, are compiled again.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import tempfile
import time
from pathlib import Path

UNFINISHED_SECONDS = 3600  # no process needs this long to copy an archive into the cache
_PREFIX = f"runtime-{os.geteuid()}-"  # users may share the folder


def _folder() -> Path | None:
    """Return DPUEMU_CACHE, else XDG_CACHE_HOME/dpuemu, else ~/.cache/dpuemu."""
    chosen = os.environ.get("DPUEMU_CACHE")
    if chosen:
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME")
    if base:
        return Path(base) / "dpuemu"
    home = os.environ.get("HOME")
    return Path(home) / ".cache" / "dpuemu" if home else None


def cached(key: str) -> bytes | None:
    """Return the archive of a key, or None."""
    folder = _folder()
    if folder is None:
        return None
    with contextlib.suppress(OSError):
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
        with open(os.open(folder / f"{_PREFIX}{key}", flags), "rb") as file:
            status = os.fstat(file.fileno())
            is_own = status.st_uid == os.geteuid() and not status.st_mode & 0o022
            if is_own and stat.S_ISREG(status.st_mode):
                checksum, archive = file.read(hashlib.sha256().digest_size), file.read()
                return archive if hashlib.sha256(archive).digest() == checksum else None
    return None


def keep(key: str, archive: bytes) -> None:
    """Write the entry of a key if the folder can be written."""
    folder = _folder()
    if folder is None:
        return
    with contextlib.suppress(OSError):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, unfinished = tempfile.mkstemp(dir=folder, prefix="new-")
        with open(handle, "wb") as file:
            file.write(hashlib.sha256(archive).digest() + archive)
        os.replace(unfinished, folder / f"{_PREFIX}{key}")
        _forget_old(folder)


def _forget_old(folder: Path, most: int = 8) -> None:
    """Remove all entries except the newest, and unfinished entries of killed processes.

    A process that still needs a removed entry compiles it again.
    """
    for unfinished in folder.glob("new-*"):
        if time.time() - unfinished.stat().st_mtime > UNFINISHED_SECONDS:
            unfinished.unlink(missing_ok=True)
    entries = sorted(
        folder.glob(f"{_PREFIX}*"), key=lambda file: file.stat().st_mtime, reverse=True
    )
    for old in entries[most:]:
        old.unlink(missing_ok=True)
