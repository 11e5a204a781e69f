"""Compile the simulated machine, an engine of MPI and an MPI program with gcc, so that they
count as they run.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpuemu.supervised import supervised
from dpuemu.tools import temporary_folder
from pidcomm import ArgumentError, Error
from pidcomm_studies.parcels.count import MAX_REFERENCES, CountError, count

HERE = Path(__file__).parent
COMPILER = "gcc"
_COMMON = ["-std=gnu11", "-O2", "-g0", f"-I{HERE}"]
# One basic block per label, no red zone below the stack pointer, r11 for the counting code.
_COUNTED = [
    "-S",
    "-ffixed-r11",
    "-mno-red-zone",
    "-fno-asynchronous-unwind-tables",
    "-fno-stack-protector",
    "-fcf-protection=none",
    "-fno-reorder-blocks-and-partition",
    "-mmemcpy-strategy=unrolled_loop:-1:noalign",  # no repeated string instructions
    "-mmemset-strategy=unrolled_loop:-1:noalign",
]
# The protocol uses no libc and no vector registers: gcc must not make calls of memcpy from its
# loops.
_PROTOCOL = [
    "-mgeneral-regs-only",
    "-ffreestanding",
    "-fno-tree-loop-distribute-patterns",
    "-fno-pic",
]
# exit() ends one process of the program, not the machine. A call that mpi.h leaves out is an error.
_PROGRAM = [
    "-Dmain=parcels_main",
    "-Dexit=parcels_exit",
    "-Werror=implicit-function-declaration",
    "-fstack-clash-protection",  # so that a large frame hits the page below the stack
]
CACHES = {"WAYS": 8, "L1_SETS": 128, "L1_LINE": 32, "L2_SETS": 512, "L2_LINE": 64}
"""Ways, sets and bytes of a line of the conventional machine's caches: macros of
machine/conventional.c. Table 1 does not print them; they are those of the PowerPC MPC7450."""
_MACHINE = [
    *(f"-D{name}={value}" for name, value in CACHES.items()),
    "-mgeneral-regs-only",
    "-fno-tree-loop-distribute-patterns",
    "-fno-pic",
    "-Wall",
    "-Wextra",
]


@dataclass(frozen=True)
class Engine:
    """An implementation of MPI. machine: the machine of table 1 that it runs on."""

    name: str
    about: str
    sources: tuple[str, ...]
    is_conventional: bool


ENGINES = {
    engine.name: engine
    for engine in (
        Engine(
            "pim", "travelling threads", ("pim/queues.c", "pim/protocol.c", "pim/check.c"), False
        ),
        Engine("lam", "a progress engine in the manner of LAM", ("engines/lam.c",), True),
        Engine("mpich", "a progress engine in the manner of MPICH", ("engines/mpich.c",), True),
    )
}


def cache_bytes(name: str) -> int:
    """Return the size of the cache L1 (of data or of instructions) or L2."""
    return CACHES["WAYS"] * CACHES[f"{name}_SETS"] * CACHES[f"{name}_LINE"]


def categories() -> list[str]:
    """Return the names of `enum pim_category` in pim/hooks.h."""
    text = (HERE / "pim" / "hooks.h").read_text()
    body = re.search(r"enum pim_category \{(.*?)\}", text, re.DOTALL)
    names = re.findall(r"\bPIM_(\w+),", body[1] if body else "")
    if not names:
        raise Error("pim/hooks.h lists no categories")
    return names


def compile_program(source: Path, folder: Path, *, counts: bool = True) -> Path:
    """Compile an MPI program in C to a shared object in a folder.

    counts: whether the program's own instructions count and take time, too.
    Raises ArgumentError with the messages of gcc if the program does not compile.
    """
    if not source.is_file():
        raise ArgumentError(f"{source} is not a file; give an MPI program in C")
    library = folder / f"{source.stem}.so"
    assembly = folder / f"{source.stem}.program.s"
    options = [f"-I{HERE / 'mpi'}", "-fPIC", *_PROGRAM]
    if counts:
        _counted(source, assembly, "application", options)
    else:
        _gcc([*_COMMON, "-S", *options, str(source), "-o", str(assembly)])
    own = folder / "addresses.c"
    own.write_text(
        '__attribute__((visibility("hidden"))) unsigned long'
        f" machine_addresses[{MAX_REFERENCES + 1}];\n"
    )
    _gcc(
        [
            *_COMMON,
            "-fPIC",
            "-shared",
            "-Wl,-z,now",
            "-o",
            str(library),
            str(assembly),
            str(own),
            "-lm",
        ]
    )
    return library


def compile_machine(engine: Engine, folder: Path) -> Path:
    """Compile the machine with an engine to an executable in a folder."""
    names = categories()
    table = folder / "categories.c"
    table.write_text(
        "extern const char *const machine_categories[];\nconst char *const machine_categories[] ="
        f" {{{', '.join(f'{chr(34)}{name}{chr(34)}' for name in names)}}};\n"
    )
    counted = []
    for name in ("mpi/calls.c", *engine.sources):
        assembly = folder / f"{engine.name}-{Path(name).stem}.s"
        _counted(HERE / name, assembly, "state", _PROTOCOL)
        counted.append(str(assembly))
    fast = folder / f"{engine.name}-threads.o"
    parts = []
    for name in ("threads.c", "conventional.c", "pim.c"):
        object_file = fast.with_name(f"{engine.name}-{name}.o")
        _gcc([*_COMMON, *_MACHINE, "-c", str(HERE / "machine" / name), "-o", str(object_file)])
        parts.append(str(object_file))
    rest = [str(HERE / "machine" / name) for name in ("main.c", "switch.S")]
    machine = folder / f"machine-{engine.name}"
    # The functions of the other machine are not linked: an engine that used them would not link.
    _gcc(
        [
            *_COMMON,
            "-fno-pic",
            "-no-pie",
            "-rdynamic",
            "-Wall",
            "-Wextra",
            "-o",
            str(machine),
            *rest,
            *parts,
            *counted,
            str(table),
            "-ldl",
        ]
    )
    return machine


@contextmanager
def build_folder() -> Iterator[Path]:
    """Make a temporary folder for compiled files."""
    with temporary_folder("pidcomm") as folder:
        yield folder


def _counted(source: Path, assembly: Path, default: str, options: Sequence[str]) -> None:
    _gcc([*_COMMON, *_COUNTED, "-Wall", *options, str(source), "-o", str(assembly)])
    try:
        assembly.write_text(count(assembly.read_text(), categories(), default))
    except CountError as error:
        raise ArgumentError(f"{source}: {error}") from None


def run_command(
    words: Sequence[str], seconds: float | None = None, **options: Any
) -> subprocess.CompletedProcess[str]:
    """Run a command, whose processes end with it and with this one, and return its output.

    options: for `subprocess.Popen`. Raises TimeoutError after `seconds`.
    """
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    try:
        with supervised(words, text=True, errors="replace", **pipes, **options) as process:
            output, errors = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired as error:
        raise TimeoutError from error
    return subprocess.CompletedProcess(words, process.returncode, output, errors)


def _gcc(words: Sequence[str]) -> None:
    try:
        process = run_command([COMPILER, *words], env={**os.environ, "LC_ALL": "C"})
    except OSError as error:
        raise Error(
            f"the simulated machine needs {COMPILER}, which cannot be run: {error}"
        ) from None
    if process.returncode:
        raise ArgumentError(
            process.stderr.strip() or f"{COMPILER} ended with code {process.returncode}"
        )
