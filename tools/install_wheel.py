"""Installs a wheel in the environment of this Python, unless exactly its files are there.

Builds take files that are installed again for new files, and compile everything that includes them.

python tools/install_wheel.py WHEEL [OPTION OF PIP]...
"""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from zipfile import ZipFile


def is_same(installed: Distribution, wheel: Path) -> bool:
    """Whether an installed distribution has all files of a wheel, and no other file."""
    with ZipFile(wheel) as archive:
        wanted = {name: archive.read(name) for name in archive.namelist() if _is_kept(name)}
    found = {
        str(file): Path(str(file.locate())) for file in installed.files or () if _is_kept(str(file))
    }
    return found.keys() == wanted.keys() and all(
        path.is_file() and path.read_bytes() == wanted[name] for name, path in found.items()
    )


def _is_kept(name: str) -> bool:
    """Whether pip copies a file of a wheel, and neither writes nor changes it."""
    written = ("/RECORD", "/INSTALLER", "/REQUESTED", "/direct_url.json", ".pyc", "/")
    return not name.startswith("../") and not name.endswith(written)


def main(wheel: str, *options: str) -> None:
    """Install a wheel and its dependencies. Python compiles modules at their first import."""
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-compile", *options]
    try:
        installed = distribution(Path(wheel).name.partition("-")[0])
    except PackageNotFoundError:
        subprocess.run([*pip, wheel], check=True)
        return
    if not is_same(installed, Path(wheel)):
        subprocess.run([*pip, wheel], check=True)
        # The version of the installed wheel may be the same.
        subprocess.run([*pip, "--no-deps", "--force-reinstall", wheel], check=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
