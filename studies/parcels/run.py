"""Run MPI programs on the simulated machine and read what it counted."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pidcomm import ArgumentError, Error
from pidcomm.errors import unknown
from pidcomm_studies.parcels.build import ENGINES, Engine, compile_machine, run_command

PIM, CONVENTIONAL = "pim", "conventional"
MAX_NODES = 4096
MAX_BANKS = 64  # as in machine/machine.h
MAX_VALUE = 2**31
STACK_BYTES = 2**20  # of a process: MAIN_STACK_BYTES of machine/main.c

# Cycles and bytes. The latencies and the depth are those of the paper's table 1. The paper does not
# print the other numbers: a row of a PIM node is the 2,048 bits that section 2 names, with one row
# open per memory; the conventional machine has four banks with rows of 4 KiB, as SDRAM of its time;
# one network for both, as no figure includes it.
_NETWORK = {"latency": 200, "bytes_per_cycle": 8}
TABLE_1: dict[str, dict[str, int]] = {
    PIM: {
        "open_page": 4,
        "closed_page": 11,
        "depth": 4,
        "row_bytes": 256,
        "banks": 1,
        "row_copies": 0,
        **_NETWORK,
    },
    CONVENTIONAL: {
        "open_page": 20,
        "closed_page": 44,
        "l2": 6,
        "depth": 4,
        "row_bytes": 4096,
        "banks": 4,
        **_NETWORK,
    },
}

SIZES = {"eager": 256, "rendezvous": 80 * 1024}
"""The message sizes of the paper's benchmark in bytes, by protocol."""
BENCHMARK = ("MPI_Irecv", "MPI_Send", "MPI_Recv", "MPI_Barrier", "MPI_Probe", "MPI_Waitall")
"""The benchmark's calls; MPI_Init and MPI_Finalize are not in it."""
OVERHEAD = ("state", "cleanup", "queue", "juggling")
"""The categories that the paper calls overhead: without network, copies and checks."""

_WRONG, _DEADLOCK, _REFUSED = 3, 4, 5  # exit codes of machine/main.c


@dataclass(frozen=True)
class Counts:
    """What the calls of one name executed in one category, over all nodes.

    references: of memory. cycles: of the nodes' time while these instructions ran or waited for
    memory; threads of a node that run at the same time share it. Waiting for messages is not in it.
    """

    call: str
    category: str
    instructions: int
    references: int
    cycles: float


@dataclass(frozen=True)
class Run:
    """A run of a program.

    cycles: until the last event. code: the first exit code of a process that is not 0, or 0.
    events: of the trace, if it was wanted.
    """

    engine: str
    nodes: int
    cycles: int
    code: int
    blocked: tuple[tuple[int, str], ...]
    counts: tuple[Counts, ...]
    output: str
    events: tuple[dict[str, Any], ...] = ()

    def total(
        self, field: str, categories: Iterable[str] = OVERHEAD, calls: Iterable[str] | None = None
    ) -> float:
        """Return a sum of `instructions`, `references` or `cycles` over categories and calls
        (default: all).
        """
        wanted, names = set(categories), None if calls is None else set(calls)
        return sum(
            float(getattr(row, field))
            for row in self.counts
            if row.category in wanted and (names is None or row.call in names)
        )


def engine_of(name: str) -> Engine:
    """Return an engine. Raises ArgumentError with the valid names."""
    if name not in ENGINES:
        raise ArgumentError(unknown("engine", name, ENGINES))
    return ENGINES[name]


def check_nodes(nodes: int) -> None:
    """Raise ArgumentError if a machine cannot have this number of nodes."""
    if not 1 <= nodes <= MAX_NODES:
        raise ArgumentError(f"the number of nodes ({nodes}) must be 1 to {MAX_NODES}")


class Machine:
    """A compiled machine with an engine. folder: for its files; it must exist while the machine
    is used.
    """

    def __init__(self, engine: str, folder: Path, **changes: int) -> None:
        """Compile the machine. changes: fields of table 1 with other values."""
        self.engine = engine_of(engine)
        self.settings = dict(TABLE_1[CONVENTIONAL if self.engine.is_conventional else PIM])
        for name, value in changes.items():
            if name not in self.settings:
                raise ArgumentError(unknown("field of the machine", name, self.settings))
            low = 0 if name in ("latency", "row_copies") else 1
            high = {"banks": MAX_BANKS, "row_copies": 1}.get(name, MAX_VALUE)
            if not low <= value <= high:
                raise ArgumentError(f"{name} ({value}) must be {low} to {high}")
            self.settings[name] = value
        self._folder = folder
        self._path = compile_machine(self.engine, folder)

    def with_settings(self, settings: Mapping[str, int]) -> Machine:
        """Return the same compiled machine with other values, which are not checked."""
        machine = copy(self)
        machine.settings = dict(settings)
        return machine

    def run(
        self,
        program: Path,
        nodes: int,
        arguments: Sequence[object] = (),
        *,
        checks: bool = False,
        trace: bool = False,
        seconds: float | None = None,
    ) -> Run:
        """Run a compiled program.

        checks: check the queues after each step of an engine. trace: also return threads, parcels
        and queues.
        seconds: the longest time on this computer; a process that polls for ever has no other end.
        Raises ArgumentError for a number of nodes outside 1..4096, Error if the program ends in an
        error of MPI, the queues are wrong or the time is over.
        """
        check_nodes(nodes)
        report, events = self._folder / "report.json", self._folder / "trace.jsonl"
        fields = {
            **self.settings,
            "nodes": nodes,
            "conventional": int(self.engine.is_conventional),
            "checks": int(checks or trace),
        }
        words = [f"{name}={value}" for name, value in fields.items()] + [f"report={report}"]
        if trace:
            words.append(f"trace={events}")
        try:
            process = run_command(
                [str(self._path), *words, str(program), *map(str, arguments)], seconds
            )
        except TimeoutError:
            raise Error(f"{program.stem} on {nodes} nodes did not end in {seconds:g} s") from None
        if process.returncode == _REFUSED and process.stderr:
            raise ArgumentError(f"{program.stem} {process.stderr.strip()}")
        if process.returncode not in (0, _DEADLOCK):
            why = process.stderr.strip() or _end(process.returncode)
            raise Error(f"{why}\n{process.stdout}".strip() if process.returncode == _WRONG else why)
        written = report.read_text()
        if not written:
            raise Error(
                f"{program.stem} ended the simulated machine before all processes had ended"
            )
        result = json.loads(written)
        return Run(
            self.engine.name,
            nodes,
            result["cycles"],
            result["code"],
            tuple((wait["rank"], wait["call"]) for wait in result["blocked"]),
            tuple(Counts(**counts) for counts in result["counts"]),
            process.stdout,
            tuple(json.loads(line) for line in events.read_text().splitlines()) if trace else (),
        )


def _end(code: int) -> str:
    if code >= 0:
        return f"the program ended with code {code}"
    return (
        f"the program ended with {signal.Signals(-code).name}; the stack of a process has"
        f" {STACK_BYTES // 2**20} MiB"
    )
