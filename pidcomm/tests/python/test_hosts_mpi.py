"""Collectives over hosts, which are MPI processes, with MPICH and with Open MPI."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from over_mpi import Mpi
from over_mpi import mpi as mpi

from pidcomm import installation
from pidcomm.bench import launcher

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "tests" / "python" / "hosts_program.py"


def run_program(
    mpi: Mpi, processes: int, test: str, seconds: float = 120
) -> subprocess.CompletedProcess[str]:
    """Run a function of hosts_program.py in processes."""
    return mpi.run(processes, sys.executable, str(PROGRAM), test, seconds=seconds)


def test_random_calls_equal_plain_mpi(mpi: Mpi) -> None:
    """A sample; the campaign makes more calls."""
    variables = {**mpi.variables, "CAMPAIGN_CASES": "25", "MPIEXEC": " ".join(mpi.launcher)}
    result = subprocess.run(
        [sys.executable, "tests/campaign/hosts.py", "60", "11"],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env=variables,
        cwd=ROOT,
    )
    assert "finding" not in result.stdout
    assert result.stdout.splitlines()[-1:] == ["cases: 25"], result.stderr


def test_the_example_in_c_has_no_wrong_element(mpi: Mpi, tmp_path: Path) -> None:
    program = tmp_path / "hosts"
    flags = [*installation.package().cflags.split(), *installation.package().libs.split()]
    words = [
        str(mpi.folder / "bin" / "mpicc"),
        "-Wall",
        "-Wextra",
        "-Wpedantic",
        "-Werror",
        "examples/hosts.c",
        *flags,
    ]
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
    compiled = subprocess.run(
        [*words, *flags], capture_output=True, text=True, check=False, env=mpi.variables
    )
    assert compiled.returncode == 0, compiled.stderr
    for processes in (1, 3, 8):
        result = mpi.run(processes, str(program))
        lines = [f"host {host} of {processes}: 0 wrong elements" for host in range(processes)]
        assert sorted(result.stdout.splitlines()) == lines, result.stderr


@pytest.mark.parametrize("name", ["hosts", "pool"])
def test_the_examples_in_python_have_no_wrong_element(mpi: Mpi, name: str) -> None:
    result = mpi.run(3, sys.executable, str(ROOT / "examples" / f"{name}.py"))
    assert result.returncode == 0, result.stdout + result.stderr
    assert re.findall(r"\b(\d+) wrong elements", result.stdout) == ["0"] * 3


@pytest.mark.parametrize(
    "name",
    [
        "errors_are_the_same_everywhere",
        "a_wait_needs_a_thread_level",
        "a_late_host_is_a_time_out",
        "a_host_that_does_not_call_is_recorded",
        "a_pool_in_a_window_of_mpi",
        "one_host",
        "the_order_of_dpu_foreach",
    ],
)
def test_calls_over_hosts(mpi: Mpi, name: str) -> None:
    result = run_program(mpi, 1 if name == "one_host" else 3, name)
    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stdout.count("passed") == (1 if name == "one_host" else 3)


ENDS_SECONDS = 120  # far less than the time-out of the calls


def test_the_launcher_ends_all_hosts_if_one_dies(mpi: Mpi) -> None:
    result = run_program(mpi, 3, "a_host_dies", seconds=ENDS_SECONDS)
    assert result.returncode != 0
    assert "passed" not in result.stdout


def test_an_uncaught_exception_ends_all_hosts(mpi: Mpi) -> None:
    result = run_program(mpi, 3, "a_host_raises", seconds=ENDS_SECONDS)
    assert result.returncode != 0
    assert "passed" not in result.stdout
    assert "LookupError: no row for host 1" in result.stderr


def test_hosts_run_ends_all_hosts_after_an_exception_before_they_connect(mpi: Mpi) -> None:
    command = [str(Path(sys.executable).parent / "pidcomm"), "hosts", "run", "-n", "3"]
    words = [sys.executable, str(PROGRAM), "a_host_raises_before_it_connects"]
    result = subprocess.run(
        [*command, "--", *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=ENDS_SECONDS,
        env={**mpi.variables, launcher.VARIABLE: shlex.join(mpi.launcher)},
    )
    assert result.returncode != 0
    assert "LookupError: no row for host 1" in result.stderr
