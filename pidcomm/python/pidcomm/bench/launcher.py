"""Start programs in MPI processes, each of which is a host."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from pidcomm import _core
from pidcomm.bench import info
from pidcomm.errors import ArgumentError, Error

VARIABLE = "PIDCOMM_MPIEXEC"
"""The environment variable with the command that starts MPI processes, such as "mpiexec -f
hosts.txt".
"""
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
        path=os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]),
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
    variables.setdefault("OMP_NUM_THREADS", str(max(1, info.cpus() // hosts)))
    return variables


def command(hosts: int, program: Sequence[str]) -> list[str]:
    """Return the command that runs a program in `hosts` processes."""
    return [*mpiexec(), "-n", str(hosts), *program]


def run(hosts: int, program: Sequence[str], pes: int | None = None) -> int:
    """Run a program in MPI processes to its end; return the exit code of the launcher."""
    words = command(hosts, program)
    try:
        return subprocess.run(words, env=environment(hosts, pes), check=False).returncode
    except OSError as error:
        raise Error(f"cannot start {words[0]}: {error.strerror}", "ERR_DEVICE") from None
