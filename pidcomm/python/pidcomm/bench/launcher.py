"""Start programs in MPI processes, each of which is a host."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dpuemu.supervised import supervised
from pidcomm import _core, uncaught
from pidcomm.bench import info
from pidcomm.bench.measure import require_bytes
from pidcomm.errors import ArgumentError, Error
from pidcomm.installation import module_command

VARIABLE = "PIDCOMM_MPIEXEC"
"""The environment variable with the command that starts MPI processes, such as "mpiexec -f
hosts.txt".
"""
ROW, FAILURE = "row: ", "failure: "
"""Begin the lines that the processes of `run_work` print: a row, and the time and sentence of a
failure.
"""
MOST_PER_CPU = 16
"""The largest number of processes of `run_work` per CPU: MPI processes poll while they wait."""
PROCESS_BYTES = 32 << 20
"""Memory of a process of `run_work` without its data."""
INSTALL = "install an MPI, for example pip install 'pidcomm[mpi]' mpich"


def mpiexec() -> list[str]:
    """Return the command that starts MPI processes: of VARIABLE, or mpiexec beside Python, or in
    PATH.

    Open MPI gets options, so that root may start more processes than there are CPUs. Raises
    ArgumentError if there is no MPI.
    """
    if chosen := shlex.split(os.environ.get(VARIABLE, "")):
        return chosen
    program = shutil.which(
        "mpiexec",
        # Without PATH, or with an empty folder in PATH, there is no search in the current folder.
        path=os.pathsep.join([str(Path(sys.executable).parent), *filter(None, os.get_exec_path())]),
    )
    if program is None:
        raise ArgumentError(f"there is no mpiexec: {INSTALL}, or set {VARIABLE} to the command")
    try:
        version = subprocess.run(
            [program, "--version"], capture_output=True, text=True, check=False, timeout=60
        ).stdout
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Error(f"{program} --version fails: {error}", "ERR_DEVICE") from None
    if "Open MPI" not in version and "OpenRTE" not in version and "prte" not in version.lower():
        return [program]
    return [program, "--oversubscribe", *(["--allow-run-as-root"] if os.geteuid() == 0 else [])]


def environment(hosts: int, pes: int | None) -> dict[str, str]:
    """Return the environment of the processes. pes: PEs of the emulated machine of each process
    (default: unchanged).

    The processes share the CPUs of this machine, unless OMP_NUM_THREADS gives the threads of each
    process.
    """
    variables = {**os.environ}
    if _core.IS_EMULATED:
        from dpuemu.run import program_environment

        ranks = None if pes is None else -(-pes // _core.PES_PER_RANK)
        variables = program_environment(variables, ranks=ranks)
    elif pes is not None:
        raise ArgumentError(f"--pes {pes} does not apply: it sets the size of the emulated machine")
    variables[uncaught.VARIABLE] = "1"
    variables.setdefault("OMP_NUM_THREADS", str(max(1, info.cpus() // hosts)))
    return variables


def command(hosts: int, program: Sequence[str]) -> list[str]:
    """Return the command that runs a program in `hosts` processes."""
    return [*mpiexec(), "-n", str(hosts), *program]


def run(hosts: int, program: Sequence[str], pes: int | None = None) -> int:
    """Run a program in MPI processes to its end; return the exit code of the launcher."""
    variables = environment(hosts, pes)
    # A command in VARIABLE may start the program on other machines, and "-" begins an option of
    # mpiexec.
    is_here = VARIABLE not in os.environ and not program[0].startswith("-")
    if is_here and shutil.which(program[0], path=variables.get("PATH")) is None:
        raise ArgumentError(f"the program {program[0]} is not in PATH, or is not executable")
    with _started(command(hosts, program), variables) as process:
        return process.wait()


@contextmanager
def _started(
    words: Sequence[str], variables: Mapping[str, str], **options: Any
) -> Iterator[subprocess.Popen[Any]]:
    """Start a command whose processes end with the body; options as for `supervised`."""
    try:
        with supervised(words, env=variables, **options) as process:
            yield process
    except OSError as error:
        raise Error(f"cannot start {words[0]}: {error.strerror}", "ERR_DEVICE") from None


def require_room(hosts: int, data_bytes: int = 0) -> None:
    """Raise ArgumentError if this machine lacks CPUs or memory for the processes of `run_work`.

    data_bytes: of all processes together.
    """
    if VARIABLE in os.environ:  # the processes may run on other machines
        return
    cpus = info.cpus()
    if hosts > MOST_PER_CPU * cpus:
        raise ArgumentError(
            f"{hosts} processes are more than {MOST_PER_CPU} for each of the {cpus} CPUs"
        )
    require_bytes(hosts * PROCESS_BYTES + data_bytes, f"{hosts} processes with their data")


def run_work(
    module: str, work: object, hosts: int, pes: int | None, count: int, data_bytes: int = 0
) -> list[dict[str, Any]]:
    """Run a module of this package in MPI processes, and return the `count` rows that they print.

    The module calls `do_work` with a function of `work`, which must fit into JSON. Raises Error
    with the first failure of a process, or if rows are missing; ArgumentError as `require_room`.
    """
    require_room(hosts, data_bytes)
    words = command(hosts, module_command(module, json.dumps(work)))
    streams: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with _started(words, environment(hosts, pes), **streams) as process:
        output, messages = process.communicate()
    rows = [json.loads(text) for text in _after(ROW, output)]
    if process.returncode != 0 or len(rows) != count:
        failures = [json.loads(text) for text in _after(FAILURE, messages)]
        lines = (messages.strip() or output.strip()).splitlines()
        cause = min(failures)[1] if failures else " ".join(lines[-3:])
        raise Error(f"{words[0]} ends with code {process.returncode}: {cause}", "ERR_DEVICE")
    return rows


def do_work(function: Callable[[Any], None]) -> None:
    """Call a function with the work of this process. If it fails, print the failure; then the
    exception ends all processes (`uncaught`).
    """
    from mpi4py import MPI

    try:
        function(json.loads(sys.argv[1]))
    except Exception as error:
        sentence = "".join(traceback.format_exception_only(error)).strip()
        failure = [time.time(), f"host {MPI.COMM_WORLD.rank}: {sentence}"]
        print(FAILURE + json.dumps(failure), file=sys.stderr, flush=True)
        raise


def _after(beginning: str, text: str) -> list[str]:
    """Return the rest of each line that has this beginning."""
    return [
        line.removeprefix(beginning) for line in text.splitlines() if line.startswith(beginning)
    ]
