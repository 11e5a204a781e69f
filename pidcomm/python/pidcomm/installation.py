"""Compiler flags and folders for C and C++ programs, from the pkg-config file of this
installation.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path

from pidcomm import _core
from pidcomm.errors import Error

# `python -m` would import modules of the current folder, such as a json.py of the user.
_RUN_MODULE = (
    "import sys; sys.path = [folder for folder in sys.path if folder]; import runpy;"
    " runpy.run_module(sys.argv.pop(1), run_name='__main__', alter_sys=True)"
)
_REFERENCE = re.compile(r"\$\{(\w+)\}")


@dataclass(frozen=True)
class Package:
    """Compiler flags, quoted for a shell, and the folders of the package for CMake and
    pkg-config.
    """

    cflags: str
    libs: str
    pe_compiler: str
    cmake_dir: Path
    pkgconfig_dir: Path


def library_folder() -> Path:
    """Return the folder of the package's libraries and programs."""
    return Path(_core.__file__).resolve().parent


def module_command(module: str, *arguments: str) -> list[str]:
    """Return the command that runs a module in a new process, which imports nothing from its
    current folder.
    """
    return [sys.executable, "-c", _RUN_MODULE, module, *arguments]


def artifact_root() -> Path:
    """Return the folder with the headers for programs of the published artifact.

    Raises Error if the folder is missing.
    """
    root = library_folder()
    for folder in (root / "artifact", *(parent / "artifact" for parent in root.parents)):
        if (folder / "include" / "pidcomm_artifact.h").is_file():
            return folder
    raise Error(
        f"this installation lacks the headers of the published artifact: {root / 'artifact'} should"
        " hold them"
    )


def artifact_environment() -> dict[str, str]:
    """Return environment variables for builds with the artifact's <pidcomm.h>.

    PATH names only the folder to add to the PATH of the shell.
    """
    root = artifact_root()
    variables = {"PATH": str(root / "bin")}
    if root.parent != library_folder():
        variables["PIDCOMM_LIBDIR"] = str(library_folder())
    return variables


def package() -> Package:
    """Return the flags and folders of this installation.

    Raises Error if the installation has no headers.
    """
    root = library_folder()
    file = root / "pkgconfig" / "pidcomm.pc"
    if not file.is_file():
        raise Error(f"this installation cannot build programs: {file} is missing")
    fields = {"pcfiledir": str(file.parent)}
    for line in file.read_text().splitlines():
        if field := re.fullmatch(r"(\w+)(?:=|: )(.*)", line):
            fields[field[1]] = field[2]

    def value(name: str) -> str:
        return _REFERENCE.sub(lambda reference: value(reference[1]), fields[name])

    fields["prefix"] = os.path.normpath(value("prefix"))

    def flags(name: str) -> str:
        words = (
            _REFERENCE.sub(lambda reference: value(reference[1]), word)
            for word in shlex.split(fields[name])
        )
        return shlex.join(words)

    return Package(
        cflags=flags("Cflags"),
        libs=flags("Libs"),
        pe_compiler=value("pe_compiler"),
        cmake_dir=root / "cmake",
        pkgconfig_dir=file.parent,
    )
