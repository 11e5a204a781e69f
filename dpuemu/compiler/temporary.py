"""Make temporary folders, and remove the folders that killed processes have left behind."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# A process makes its folder, locks it, then writes files. So an empty folder may lack the lock of a
# living process.
_LEAST_AGE_OF_EMPTY_SECONDS = 60


@contextmanager
def temporary_folder(product: str) -> Iterator[Path]:
    """Make a folder PRODUCT-tmp-... and remove it at the end; before, remove such folders of dead
    processes.

    The owner locks its folder (flock), so a folder of this user without a lock belongs to no
    process. If a file system has no locks, no folder is removed. Symbolic links are not followed.
    """
    prefix = f"{product}-tmp-"
    with tempfile.TemporaryDirectory(prefix=prefix) as name:
        folder = Path(name)
        with _opened(folder) as lock:
            with contextlib.suppress(OSError):
                fcntl.flock(lock, fcntl.LOCK_EX)
            _remove_left_over(folder.parent, prefix)
            yield folder


@contextmanager
def _opened(folder: Path) -> Iterator[int]:
    number = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        yield number
    finally:
        os.close(number)


def _remove_left_over(parent: Path, prefix: str) -> None:
    pattern = re.compile(re.escape(prefix) + r"\w{6,8}", re.ASCII)
    try:
        names = os.listdir(parent)
    except OSError:  # the user may not list the folder
        return
    for name in names:
        if pattern.fullmatch(name) is None:
            continue
        # A folder of another user, or a folder that has just vanished, stays as it is.
        with contextlib.suppress(OSError), _opened(parent / name) as lock:
            status = os.fstat(lock)
            is_young = time.time() - status.st_mtime < _LEAST_AGE_OF_EMPTY_SECONDS
            if status.st_uid != os.getuid() or (is_young and not os.listdir(lock)):
                continue
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # raises OSError if the owner is alive
            shutil.rmtree(parent / name)
