"""The stand-in SDK that belongs to the package: where its tools are, and what finds them."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from pidcomm import _core
from pidcomm.errors import ArgumentError, Error

COMPILER = "dpu-upmem-dpurte-clang"
LIBRARY = "libdpuemu.so*"
OWN_LIBRARY = "libpidcomm.so*"
DEFAULT_OPTIMISATION = "-O2"
NO_COMPILER = 127  # the compiler's exit code if there is no gcc


@cache
def sdk_root() -> Path:
    """Return the folder that holds the stand-in tools, in bin/, and their headers.

    Installed that is sdk/ in the package, in a source tree emulator/. Raises Error if neither is there.
    """
    package = Path(__file__).resolve().parent
    for folder in (package / "sdk", *(parent / "emulator" for parent in package.parents)):
        if (folder / "bin" / COMPILER).is_file():
            return folder
    raise Error(f"the tools that compile PE programs are missing; {package / 'sdk'} should hold them")


def library_folder() -> Path:
    """Return the folder of the libdpuemu that this process uses."""
    return Path(_core.__file__).resolve().parent


def artifact_root() -> Path:
    """Return the folder with what programs of the published artifact need. Raises Error if it is missing."""
    root = sdk_root()
    for folder in (root / "artifact", root.parent / "artifact"):
        if (folder / "include" / "pidcomm.h").is_file():
            return folder
    raise Error(f"the header for programs of the published artifact is missing; {root / 'artifact'} should hold it")


def environment(*, strict: bool = False, artifact: bool = False) -> dict[str, str]:
    """Return the variables with which programs find the stand-in tools, whatever they are now. PATH is folders only.

    strict: whether DPUEMU_STRICT is on. artifact: whether <pidcomm.h> of the published artifact is found.
    DPUEMU_LIBDIR and PIDCOMM_LIBDIR are there only if the tools would not find the libraries without them.
    """
    root = sdk_root()
    variables = {"PATH": str(root / "bin")}
    if not any(any(folder.glob(LIBRARY)) for folder in (root / "lib", root.parent)):
        variables["DPUEMU_LIBDIR"] = str(library_folder())
    if artifact:
        variables["PATH"] = put_first(str(artifact_root() / "bin"), "PATH", variables)
        if not any(root.parent.glob(OWN_LIBRARY)):
            variables["PIDCOMM_LIBDIR"] = str(library_folder())
    if strict:
        variables["DPUEMU_STRICT"] = "1"
    return variables


def put_first(folder: str, variable: str, variables: Mapping[str, str]) -> str:
    """Return a search path such as PATH with one folder put before what it is now."""
    return os.pathsep.join(filter(None, (folder, variables.get(variable))))


@contextmanager
def compiled(sources: str | Sequence[Path], options: Sequence[str]) -> Iterator[tuple[Path, str]]:
    """Compile C files, or C source text, to a program in a temporary folder; yield its path and the warnings.

    Takes about as long as gcc does. Raises ArgumentError with the compiler's messages if it refuses the sources, Error
    if it cannot be run or there is no gcc.
    """
    with tempfile.TemporaryDirectory(prefix="pidcomm-") as folder:
        program = Path(folder) / "program"
        extra = [] if any(option.startswith("-O") for option in options) else [DEFAULT_OPTIMISATION]
        if isinstance(sources, str):
            text = program.with_suffix(".c")
            text.write_text(sources if sources.endswith("\n") else sources + "\n")
            sources = [text]
            extra += ["-iquote", os.curdir]
        compiler = str(sdk_root() / "bin" / COMPILER)
        command = [sys.executable, compiler, *extra, *options, "-o", str(program), *map(str, sources)]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, errors="replace", check=False, stdin=subprocess.DEVNULL
            )
        except OSError as error:
            raise Error(f"the compiler of PE programs cannot be run: {error}") from None
        messages = done.stderr.replace(f"{folder}{os.sep}", "").strip()
        if done.returncode == NO_COMPILER:
            raise Error(messages)
        if done.returncode:
            raise ArgumentError(messages or f"the compiler of PE programs ended with code {done.returncode}")
        yield program, messages
