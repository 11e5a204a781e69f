"""Facts about the installed package and the machine."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pidcomm
from pidcomm import _core
from pidcomm._commit import COMMIT
from pidcomm.bench import platform
from pidcomm.bench.platform import Flush
from pidcomm.tables import COHERENCES, COLLECTIVES, DEFAULT_ISA, ISAS, OPS, TECHNIQUES, TYPES

__all__ = ["busy_cpus", "commit", "cpu_name", "cpus", "facts", "in_words"]

VARIABLE = "OMP_NUM_THREADS"


def cpu_name() -> str:
    """Return the name of the CPU, as the operating system reports it."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return "unknown CPU"


def commit() -> str | None:
    """Return the commit that the package was built from, or None if the build did not know it.

    The text ends in -dirty if the sources, other than measured rows, differed from the commit.
    """
    return COMMIT or None


def cpus() -> int:
    """Return the number of CPUs that this process may use."""
    return len(os.sched_getaffinity(0))


def busy_cpus(seconds: float = 1.0) -> float:
    """Return how many of the CPUs that this process may use were busy, on average over a wait of
    `seconds`.
    """
    allowed = {f"cpu{number}" for number in os.sched_getaffinity(0)}

    def idle_and_all() -> tuple[int, int]:
        lines = [line.split() for line in Path("/proc/stat").read_text().splitlines()]
        ticks = [[int(word) for word in line[1:9]] for line in lines if line[0] in allowed]
        return sum(row[3] + row[4] for row in ticks), sum(map(sum, ticks))

    idle, total = idle_and_all()
    time.sleep(seconds)
    later_idle, later_total = idle_and_all()
    passed = later_total - total
    if passed <= 0:
        return 0.0
    # The kernel may lower the time that it reports for waits for disks.
    return len(allowed) * min(max(1 - (later_idle - idle) / passed, 0.0), 1.0)


def geometry() -> str:
    """Return the geometry of the emulated machine in words, or on DIMMs the name of the SDK."""
    machine = platform.emulated()
    if machine is None:
        return platform.SDK
    pes = machine.ranks * pidcomm.PES_PER_RANK
    return (
        f"{machine.ranks} ranks in {machine.channels} channels, {pes} PEs of"
        f" {pidcomm.MRAM_BYTES >> 20} MiB"
    )


def has_hugepages() -> bool:
    """Return whether emulated MRAM is backed by huge pages; False on DIMMs."""
    machine = platform.emulated()
    return machine is not None and machine.hugepages


def _word(setting: Flush) -> str:
    return setting if isinstance(setting, str) else "on" if setting else "off"


def facts() -> dict[str, Any]:
    """Return the facts of `pidcomm info`: the package, the machine, and the names of all
    choices.
    """
    machine = platform.emulated()
    threads, is_ignored = _core.default_threads()
    return {
        "version": pidcomm.__version__,
        "commit": commit(),
        "machine": {"cpu": cpu_name(), "cpus": cpus()},
        "tuning": _core.tuning_source(),
        "default_isa": DEFAULT_ISA,
        "default_threads": threads,
        "ignored_omp_num_threads": os.environ.get(VARIABLE) if is_ignored else None,
        "sdk": platform.SDK,
        "emulated_machine": (
            None
            if machine is None
            else {
                **asdict(machine),
                "pes": machine.ranks * pidcomm.PES_PER_RANK,
                "mram_bytes": pidcomm.MRAM_BYTES,
            }
        ),
        "isas": {name: isa.is_available for name, isa in ISAS.items()},
        "collectives": list(COLLECTIVES),
        "types": list(TYPES),
        "operators": list(OPS),
        "techniques": list(TECHNIQUES),
        "coherence": list(COHERENCES),
    }


def in_words(facts: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield facts as pairs of name and text."""
    emulated = facts["emulated_machine"]
    yield "version", facts["version"] + (f" ({facts['commit']})" if facts["commit"] else "")
    yield "CPU", f"{facts['machine']['cpu']}, {facts['machine']['cpus']} CPUs"
    yield (
        "ISAs",
        ", ".join(
            name + ("" if is_here else " (not here)") for name, is_here in facts["isas"].items()
        ),
    )
    yield "tuning", facts["tuning"]
    yield "default ISA", facts["default_isa"]
    ignored = facts["ignored_omp_num_threads"]
    note = (
        ""
        if ignored is None
        else f" ({VARIABLE} {ignored!r} is ignored: it must begin with a whole number from 1)"
    )
    yield "default threads", f"{facts['default_threads']}{note}"
    yield "SDK", facts["sdk"]
    if emulated is not None:
        yield "emulated machine", geometry()
        yield (
            "emulated SDK",
            (
                f"{emulated['threads']} threads, flushes {_word(emulated['flush'])}, strict"
                f" {_word(emulated['strict'])}"
            ),
        )
        yield "huge pages", _word(emulated["hugepages"])
    for name in ("collectives", "types", "operators", "techniques", "coherence"):
        yield name, ", ".join(facts[name])
