"""Compile PE programs with the compiler of the SDK for which the library was built."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from dpuemu.tools import temporary_folder
from pidcomm import _core, emulated
from pidcomm.arguments import MAX_COUNT, as_integer, as_words
from pidcomm.buffers import Buffer
from pidcomm.errors import ArgumentError, Error, shown
from pidcomm.installation import package
from pidcomm.programs import Symbol
from pidcomm.tables import TYPES, WORD_BYTES

__all__ = ["compiled", "compiler_options", "header_of", "run_compiler"]

# PE programs see floats of 16 bits as their bits.
C_TYPES = {
    name: "uint16_t" if row.c_type.startswith("pidcomm_") else row.c_type
    for name, row in TYPES.items()
}

DEFAULT_OPTIMISATION = "-O2"
NO_COMPILER = 127  # the exit code of the emulated SDK's compiler if gcc is missing


def compiler_command() -> list[str]:
    """Return the command of the compiler of PE programs.

    The emulated SDK's compiler is a Python program.
    """
    compiler = package().pe_compiler
    return [sys.executable, compiler] if _core.IS_EMULATED else shlex.split(compiler)


def compiler_options(
    tasklets: int | None, stack_bytes: int | None, options: Sequence[str]
) -> list[str]:
    """Return the compiler's arguments.

    Raises ArgumentError for numbers below 1 and for options that are not str.
    """
    words = as_words("options", options)
    if tasklets is not None:
        words.append(f"-DNR_TASKLETS={as_integer('tasklets', tasklets, 1, MAX_COUNT)}")
    if stack_bytes is not None:
        words.append(f"-DSTACK_SIZE_DEFAULT={as_integer('stack_bytes', stack_bytes, 1, MAX_COUNT)}")
    return words


@contextmanager
def compiled(
    sources: str | Sequence[Path], options: Sequence[str], header: str = ""
) -> Iterator[tuple[Path, str]]:
    """Compile C files, or C source text, to a program in a temporary folder; yield its path and the
    warnings. header: C text that precedes each source.

    Cost: a run of gcc. If the compiler refuses the sources, raises ArgumentError with the
    compiler's messages. Raises Error if the compiler cannot be run or gcc is missing.
    """
    with temporary_folder("pidcomm") as folder:
        program = folder / "program"
        extra = [] if any(option.startswith("-O") for option in options) else [DEFAULT_OPTIMISATION]
        if isinstance(sources, str):
            text = program.with_suffix(".c")
            text.write_text(sources if sources.endswith("\n") else sources + "\n")
            sources = [text]
            extra += ["-iquote", os.curdir, f"-ffile-prefix-map={folder}{os.sep}="]
        if header:
            declarations = folder / "buffers.h"
            declarations.write_text(header)
            extra += ["-include", str(declarations)]
        command = [*compiler_command(), *extra, *options, "-o", str(program), *map(str, sources)]
        yield (
            program,
            run_compiler(
                "compiler of PE programs", command, folder, **emulated.compiler_variables()
            ),
        )


def run_compiler(name: str, command: Sequence[str], folder: Path, **variables: str) -> str:
    """Run a compiler on files in a folder; return its warnings, without the path of the folder.

    name: for error sentences. variables: more environment variables. Raises ArgumentError with the
    compiler's messages if it refuses the sources, and Error if it cannot be run.
    """
    try:
        process = subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            stdin=subprocess.DEVNULL,
            env={**os.environ, **variables},
        )
    except OSError as error:
        raise Error(f"the {name} cannot be run: {error}") from None
    messages = process.stderr.replace(f"{folder}{os.sep}", "").strip()
    if process.returncode == NO_COMPILER:
        raise Error(messages)
    if process.returncode:
        raise ArgumentError(messages or f"the {name} ended with code {process.returncode}")
    return messages


def header_of(buffers: Sequence[Buffer], core_set: _core.Set) -> str:
    """Return C declarations of buffers for PE programs, "" without buffers.

    Raises ArgumentError for buffers of another set, outside MRAM, and names that are no C name.
    """
    if isinstance(buffers, Buffer) or not isinstance(buffers, Sequence):
        raise ArgumentError(f"buffers ({shown(buffers)}) must be a sequence of buffers")
    lines: list[str] = []
    names: set[str] = set()
    for buffer in buffers:
        if not isinstance(buffer, Buffer) or not buffer._is_of(core_set):
            raise ArgumentError(f"{shown(buffer)} is no buffer of this set of PEs")
        if not re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", buffer.name, re.ASCII):
            raise ArgumentError(f"the name of {buffer!r} is no name of C")
        buffer._window_of(0)
        if (
            buffer.address != buffer._storage.address
            or buffer.size_bytes != buffer._storage.size_bytes
        ):
            raise ArgumentError(f"{buffer!r} is a part of a buffer; give the whole buffer")
        if isinstance(buffer, Symbol):
            raise ArgumentError(f"{buffer!r} is a variable of the program that is replaced")
        if buffer.name in names:
            raise ArgumentError(f"two buffers have the name {buffer.name}")
        names.add(buffer.name)
        name, pointer = buffer.name, f"__mram_ptr {C_TYPES.get(buffer.dtype.name, 'uint8_t')} *"
        padded_bytes = buffer.size_bytes + -buffer.size_bytes % WORD_BYTES
        lines += [
            f"static {pointer}const {name} __attribute__((unused)) ="
            f" ({pointer}){buffer.address:#x};",
            f"enum {{ {name}_elements = {buffer.size}, {name}_bytes = {padded_bytes} }};",
        ]
    return "\n".join(["#include <mram.h>", "#include <stdint.h>", *lines, ""]) if lines else ""
