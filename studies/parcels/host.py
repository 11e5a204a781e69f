"""Count what an MPI of this host executes for the paper's benchmark, with callgrind.

The functions of MPICH 1.2 have categories (the paper, section 4.2); those of another MPI have none.
Callgrind also simulates the caches of the conventional machine and a branch prediction.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pidcomm import Error
from pidcomm_studies.parcels.build import CACHES, HERE, build_folder, cache_bytes, run_command
from pidcomm_studies.parcels.run import BENCHMARK, OVERHEAD, SIZES

COLUMNS = ["size", ">% posted", "category", ">instructions", ">references"]
NOTE = "overhead: the functions of MPICH 1.2 without network, libc, lookups and byte order"
REPEATS = 4
POSTED = (0, 20, 40, 60, 80, 100)
OTHER, ENTRY = "other", "entry"
COUNTED = (*OVERHEAD, ENTRY)
"""The categories that are overhead here: `entry` are the functions that the program calls, which
also check arguments."""
_TOOLS = {"valgrind": "valgrind", "mpicc": "PIDCOMM_MPICC", "mpiexec": "PIDCOMM_MPIEXEC"}
_MPICH = "MPID_CH_Check_incoming"  # only MPICH 1 has it
# The first pattern that matches a function's name. Everything else in the program is the network.
_CATEGORIES = {
    "juggling": r"PMPI_Waitall|MPID_DeviceCheck|MPID_CH_Check_incoming|MPID_(Recv|Send)Complete"
    r"|MPID_WaitForComplete\w+",
    "queue": r"MPID_Search_\w+|MPID_Msg_arrived|MPID_Enqueue",
    "cleanup": r"MPID_SBfree|MPID_Dequeue",
    "checks": r"MPIR_\w+|MPID_\w+Datatype|MPID_Msg_rep|MPID_CH_Pkt_(un)?pack",
    ENTRY: r"PMPI_\w+",
    "state": r"MPID_\w+|intra_\w+",
    "network": r".*",
}


@dataclass(frozen=True)
class Row:
    """What the calls of one name executed in one category, in both processes.

    posted: percentage of posted receives. references: of data. cache_misses: of the first caches,
    for data and for instructions; memory_misses: of the second cache, too. data_misses and
    data_misses_to_memory: those of references; None if they were not counted apart.
    """

    size: str
    posted: int
    call: str
    category: str
    instructions: int
    references: int
    cache_misses: int
    memory_misses: int
    branches: int
    mispredictions: int
    data_misses: int | None = None
    data_misses_to_memory: int | None = None


def require() -> dict[str, str]:
    """Return the paths of valgrind, mpicc and mpiexec. Raises Error if one is missing."""
    tools = {}
    for name, variable in _TOOLS.items():
        path = shutil.which(os.environ.get(variable, name))
        if path is None:
            hint = "" if variable == name else f", or set {variable}"
            raise Error(f"the count needs {name}, which is not installed{hint}")
        tools[name] = path
    return tools


def measure() -> list[Row]:
    """Run the benchmark with this host's MPI under callgrind.

    A process polls while it waits, so of REPEATS runs the one with the fewest instructions counts.
    Raises Error with the messages of a failed command.
    """
    tools = require()
    rows = []
    with build_folder() as folder:
        program, counted = folder / "posted", folder / "counted"
        _run(
            [tools["mpicc"], "-O2", "-o", str(program), str(HERE / "programs" / "posted.c")], folder
        )
        # mpiexec starts a script that starts valgrind, because MPICH 1.2 adds arguments to those of
        # the second process.
        command = [tools["valgrind"], *_options(folder / "counts.%p"), str(program)]
        counted.write_text(
            f"#!{sys.executable}\nimport os, sys\n"
            f"os.execv({command[0]!r}, [*{command!r}, *sys.argv[1:]])\n"
        )
        counted.chmod(0o755)
        for name, size in SIZES.items():
            for posted in POSTED:
                words = [tools["mpiexec"], "-np", "2", str(counted), str(size), str(posted)]
                attempts = []
                for _ in range(REPEATS):
                    _run(words, folder)
                    files = list(folder.glob("counts.*"))
                    attempts.append(rows_of(name, posted, [file.read_text() for file in files]))
                    for file in files:
                        file.unlink()
                rows += min(attempts, key=lambda some: sum(row.instructions for row in some))
    return rows


def _options(out: Path) -> Iterator[str]:
    first, second = (
        f"{cache_bytes(name)},{CACHES['WAYS']},{CACHES[f'{name}_LINE']}" for name in ("L1", "L2")
    )
    yield from ("-q", "--tool=callgrind", "--toggle-collect=main", "--separate-callers=99")
    yield from ("--compress-strings=no", "--compress-pos=no", "--dump-line=no", "--branch-sim=yes")
    yield from ("--cache-sim=yes", f"--I1={first}", f"--D1={first}", f"--LL={second}")
    yield f"--callgrind-out-file={out}"


def rows_of(size: str, posted: int, texts: Sequence[str]) -> list[Row]:
    """Return the rows of the files that callgrind wrote; helper processes call no MPI.

    Raises Error if two processes did not call MPI.
    """
    ran = [text for text in texts if "MPI_Send'" in text]
    if len(ran) != 2:
        raise Error(f"callgrind counted the calls of {len(ran)} processes in place of 2")
    is_mpich = any(_MPICH in text for text in ran)
    totals: dict[tuple[str, str], Counter[str]] = {}
    for text in ran:
        for library, callers, events in _functions(text):
            names = [
                name.removeprefix("P") for name in callers if name.startswith(("MPI_", "PMPI_"))
            ]
            if not names or names[-1] not in BENCHMARK:  # names: from the inner call to the outer
                continue
            category = _category(library, callers[0]) if is_mpich else OTHER
            totals.setdefault((names[-1], category), Counter()).update(events)
    return [
        Row(
            size,
            posted,
            call,
            category,
            events["Ir"],
            events["Dr"] + events["Dw"],
            events["I1mr"] + events["D1mr"] + events["D1mw"],
            events["ILmr"] + events["DLmr"] + events["DLmw"],
            events["Bc"] + events["Bi"],
            events["Bcm"] + events["Bim"],
            events["D1mr"] + events["D1mw"],
            events["DLmr"] + events["DLmw"],
        )
        for (call, category), events in sorted(totals.items())
    ]


def _functions(text: str) -> Iterator[tuple[str, list[str], dict[str, int]]]:
    """Yield for each line of costs the library, the function with its callers, and the events
    without those of called functions.
    """
    library, callers, is_of_call = "", [""], False
    names: list[str] = []
    for line in text.splitlines():
        name, _, value = line.partition("=")
        if line.startswith("events:"):
            names = line.split()[1:]
        elif name == "ob":
            library = Path(value).name
        elif name == "fn":
            callers = value.split("'")
        elif name == "calls":
            is_of_call = True
        elif line[:1].isdigit():
            if not is_of_call:
                numbers = map(int, line.split()[1:])  # callgrind leaves out zeros at the end
                yield library, callers, dict(zip(names, numbers, strict=False))
            is_of_call = False


def _category(library: str, function: str) -> str:
    if library.startswith(("libc", "ld-", "libm")):
        return "libc"
    name = function.split(".")[0]  # without suffixes of gcc
    return next(
        category for category, pattern in _CATEGORIES.items() if re.fullmatch(pattern, name)
    )


def totals(rows: Sequence[Row]) -> Iterator[list[str]]:
    """Yield a line of the table for each run: all instructions, and the overhead if it is known."""
    for size, posted in dict.fromkeys((row.size, row.posted) for row in rows):
        of_run = [row for row in rows if (row.size, row.posted) == (size, posted)]
        for category, some in (
            ("all", of_run),
            ("overhead", [row for row in of_run if row.category in COUNTED]),
        ):
            if some:
                instructions = sum(row.instructions for row in some)
                references = sum(row.references for row in some)
                yield [size, str(posted), category, f"{instructions:,}", f"{references:,}"]


def _run(command: list[str], folder: Path) -> None:
    process = run_command(command, cwd=folder)
    if process.returncode:
        raise Error(
            f"{Path(command[0]).name} ended with code {process.returncode}:"
            f" {process.stderr.strip()[-500:]}"
        )
