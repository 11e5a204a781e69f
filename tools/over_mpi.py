"""The MPI libraries with which tests run programs over hosts."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

OPEN_MPI = Path(__file__).resolve().parents[1] / "build" / "openmpi"


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

    def run(
        self, processes: int, *words: str, seconds: float = 120
    ) -> subprocess.CompletedProcess[str]:
        """Run a command in processes; fails if it does not end."""
        return subprocess.run(
            [*self.launcher, "-n", str(processes), *words],
            capture_output=True,
            text=True,
            check=False,
            timeout=seconds,
            env=self.variables,
        )


@pytest.fixture(params=["mpich", "openmpi"])
def mpi(request: pytest.FixtureRequest) -> Mpi:
    """An MPI library.

    Sums of uint8 saturate in the AVX component of Open MPI, so the definition runs without it.
    """
    if request.param == "mpich":
        return Mpi(Path(sys.prefix))
    if not OPEN_MPI.is_dir():
        pytest.skip(f"make test-python installs Open MPI in {OPEN_MPI}")
    return Mpi(OPEN_MPI, ("--allow-run-as-root", "--oversubscribe", "--mca", "op", "^avx"))
