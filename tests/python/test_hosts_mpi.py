"""Collectives over hosts, which are MPI processes, with MPICH and with Open MPI."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest
from pidcomm import installation

ROOT = Path(__file__).resolve().parents[2]
OPEN_MPI = ROOT / "build" / "openmpi"
PROGRAM = ROOT / "tests" / "python" / "hosts_program.py"


@dataclass(frozen=True)
class Mpi:
    """An MPI library: its folder, and the options of its mpiexec."""

    folder: Path
    options: tuple[str, ...] = ()

    @property
    def launcher(self) -> list[str]:
        """The command that starts processes."""
        return [str(self.folder / "bin" / "mpiexec"), *self.options]

    @property
    def variables(self) -> dict[str, str]:
        """The environment of programs."""
        library = next(self.folder.glob("lib/libmpi.so.*"))
        return {
            **os.environ,
            "MPI4PY_LIBMPI": str(library),
            "OMP_NUM_THREADS": "1",
            "CAMPAIGN_FOLDER": "build/campaign",
        }

    def run(self, processes: int, *words: str, seconds: float = 120) -> subprocess.CompletedProcess[str]:
        """Run a command in processes; fails if it does not end."""
        return subprocess.run(
            [*self.launcher, "-n", str(processes), *words],
            capture_output=True,
            text=True,
            check=False,
            timeout=seconds,
            env=self.variables,
            cwd=ROOT,
        )

    def program(self, processes: int, test: str, seconds: float = 120) -> subprocess.CompletedProcess[str]:
        """Run a function of hosts_program.py in processes."""
        return self.run(processes, sys.executable, str(PROGRAM), test, seconds=seconds)


@pytest.fixture(params=["mpich", "openmpi"])
def mpi(request: pytest.FixtureRequest) -> Mpi:
    """An MPI library. Sums of uint8 saturate in the AVX component of Open MPI, so the definition runs without it."""
    if request.param == "mpich":
        return Mpi(Path(sys.prefix))
    if not OPEN_MPI.is_dir():
        pytest.skip(f"make test-python installs Open MPI in {OPEN_MPI}")
    return Mpi(OPEN_MPI, ("--allow-run-as-root", "--oversubscribe", "--mca", "op", "^avx"))


def test_random_calls_equal_plain_mpi(mpi: Mpi) -> None:
    variables = {**mpi.variables, "CAMPAIGN_CASES": "75", "MPIEXEC": " ".join(mpi.launcher)}
    done = subprocess.run(
        [sys.executable, "tests/campaign/hosts.py", "60", "11"],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env=variables,
        cwd=ROOT,
    )
    assert "finding" not in done.stdout
    assert done.stdout.splitlines()[-1:] == ["cases: 75"], done.stderr


def test_the_example_in_c_has_no_wrong_element(mpi: Mpi, tmp_path: Path) -> None:
    program = tmp_path / "hosts"
    flags = [*installation.package().cflags.split(), *installation.package().libs.split()]
    words = [str(mpi.folder / "bin" / "mpicc"), "-Wall", "-Wextra", "-Wpedantic", "-Werror", "examples/hosts.c", *flags]
    compiled = subprocess.run(
        [*words, f"-Wl,-rpath,{mpi.folder / 'lib'}", "-o", str(program)],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    assert compiled.returncode == 0, compiled.stderr
    (tmp_path / "twice.cpp").write_text("#include <pidcomm/mpi.h>\n#include <pidcomm/mpi.h>\n")
    words = [
        str(mpi.folder / "bin" / "mpicxx"),
        "-std=c++17",
        *words[1:5],
        "-fsyntax-only",
        str(tmp_path / "twice.cpp"),
    ]
    compiled = subprocess.run([*words, *flags], capture_output=True, text=True, check=False, env=mpi.variables)
    assert compiled.returncode == 0, compiled.stderr
    for processes in (1, 3, 8):
        done = mpi.run(processes, str(program))
        lines = [f"host {host} of {processes}: 0 wrong elements" for host in range(processes)]
        assert sorted(done.stdout.splitlines()) == lines, done.stderr


@pytest.mark.parametrize("name", ["hosts", "bfs_over_hosts", "pool"])
def test_the_examples_in_python_have_no_wrong_element(mpi: Mpi, name: str) -> None:
    done = mpi.run(3, sys.executable, str(ROOT / "examples" / f"{name}.py"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.findall(r"\b(\d+) wrong elements", done.stdout) == ["0"] * (1 if name == "bfs_over_hosts" else 3)


@pytest.mark.parametrize(
    "name",
    [
        "errors_are_the_same_everywhere",
        "a_wait_needs_a_thread_level",
        "a_late_host_is_a_time_out",
        "a_pool_in_a_window_of_mpi",
        "one_host",
    ],
)
def test_calls_over_hosts(mpi: Mpi, name: str) -> None:
    done = mpi.program(1 if name == "one_host" else 3, name)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("passed") == (1 if name == "one_host" else 3)


def test_the_launcher_ends_all_hosts_if_one_dies(mpi: Mpi) -> None:
    begin = time.monotonic()
    done = mpi.program(3, "a_host_dies", seconds=60)
    assert done.returncode != 0
    assert "passed" not in done.stdout
    assert time.monotonic() - begin < 30  # far less than the time-out of the calls
