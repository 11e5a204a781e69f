"""Count the instructions of this host's MPI for the paper's benchmark, with callgrind.

It is another machine.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from pidcomm import Error
from pidcomm_studies.parcels.build import HERE, build_folder
from pidcomm_studies.parcels.run import BENCHMARK, SIZES

COLUMNS = ["size", ">% posted", ">instructions"]
NOTE = "includes network, copies, checks and waiting: an MPI of today polls while it waits"
POSTED = (0, 100)
_TOOLS = {"valgrind": "valgrind", "mpicc": "PIDCOMM_MPICC", "mpiexec": "PIDCOMM_MPIEXEC"}


@dataclass(frozen=True)
class Row:
    """Instructions of all calls of the benchmark in both processes. posted: percentage of posted
    receives.
    """

    size: str
    posted: int
    instructions: int
    source: str = "measured on another machine"


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

    Raises Error with the messages of a failed command.
    """
    tools = require()
    rows = []
    with build_folder() as folder:
        program = folder / "posted"
        _run(
            [tools["mpicc"], "-O2", "-o", str(program), str(HERE / "programs" / "posted.c")], folder
        )
        collect = [f"--toggle-collect=*{call}" for call in BENCHMARK]
        for name, size in SIZES.items():
            for posted in POSTED:
                out = folder / f"{name}-{posted}.%p"
                command = [
                    tools["mpiexec"],
                    "-n",
                    "2",
                    tools["valgrind"],
                    "--tool=callgrind",
                    *collect,
                ]
                _run(
                    [*command, f"--callgrind-out-file={out}", str(program), str(size), str(posted)],
                    folder,
                )
                totals = [
                    int(matched[1])
                    for file in folder.glob(f"{name}-{posted}.*")
                    if (
                        matched := re.search(
                            r"^(?:summary|totals): (\d+)", file.read_text(), re.MULTILINE
                        )
                    )
                ]
                if len(totals) != 2 or not all(totals):
                    raise Error(f"callgrind counted no call of MPI in {program.name}: {totals}")
                rows.append(Row(name, posted, sum(totals)))
    return rows


def _run(command: list[str], folder: Path) -> None:
    process = subprocess.run(
        command, capture_output=True, text=True, errors="replace", check=False, cwd=folder
    )
    if process.returncode:
        raise Error(
            f"{Path(command[0]).name} ended with code {process.returncode}:"
            f" {process.stderr.strip()[-500:]}"
        )
