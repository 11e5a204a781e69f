"""What is installed, and on what machine."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pidcomm
from pidcomm.machine import Flush, machine
from pidcomm.tables import COHERENCES, COLLECTIVES, DEFAULT_ISA, ISAS, OPS, TECHNIQUES, TYPES

REFERENCE_ROWS = "bench/reference"


def cpu_name() -> str:
    """Return the name of the CPU, as the operating system tells it."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return "unknown CPU"


def commit() -> str | None:
    """Return the commit of the project's work tree that the package or the working directory is in, if any.

    It ends in -dirty if files differ from it, other than reference rows of benchmarks: those are results.
    """
    for start in (Path(__file__).resolve().parent, Path.cwd()):
        for folder in (start, *start.parents):
            project = folder / "pyproject.toml"
            if project.is_file() and 'name = "pidcomm"' in project.read_text():
                found = _git(folder, "rev-parse", "--short", "HEAD")
                changed = _git(folder, "diff", "--name-only", "HEAD", "--", ".", f":(exclude){REFERENCE_ROWS}")
                return f"{found}-dirty" if found and changed else found
    return None


def _git(folder: Path, *arguments: str) -> str | None:
    command = ["git", "-C", str(folder), *arguments]
    try:
        result = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return result.stdout.strip() or None


def cpus() -> int:
    """Return the number of CPUs that this process may use."""
    return len(os.sched_getaffinity(0))


def geometry() -> str:
    """Return the emulated machine in words."""
    it = machine()
    pes = it.ranks * pidcomm.PES_PER_RANK
    return f"{it.ranks} ranks in {it.channels} channels, {pes} PEs of {pidcomm.MRAM_BYTES >> 20} MiB"


def _word(setting: Flush) -> str:
    return setting if isinstance(setting, str) else "on" if setting else "off"


def report() -> list[tuple[str, str]]:
    """Return what `pidcomm info` tells, as (name, value)."""
    it = machine()
    return [
        ("version", pidcomm.__version__ + (f" ({found})" if (found := commit()) else "")),
        ("CPU", f"{cpu_name()}, {cpus()} CPUs"),
        ("ISAs", ", ".join(name + ("" if isa.is_available else " (not here)") for name, isa in ISAS.items())),
        ("default ISA", DEFAULT_ISA),
        ("default threads", os.environ.get("OMP_NUM_THREADS") or str(cpus())),
        ("emulated machine", geometry()),
        (
            "emulated SDK",
            f"{it.threads} threads, flushes {_word(it.flush)}, strict {_word(it.strict)}",
        ),
        ("huge pages", _word(it.hugepages)),
        ("collectives", ", ".join(COLLECTIVES)),
        ("types", ", ".join(TYPES)),
        ("operators", ", ".join(OPS)),
        ("techniques", ", ".join(TECHNIQUES)),
        ("coherence", ", ".join(COHERENCES)),
    ]
