"""The paper's benchmark on the simulated machines, and as MPICH 1.2.5 executes it (mpich.jsonl)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pidcomm import Error
from pidcomm_studies.papers.figure import Request
from pidcomm_studies.parcels.build import ENGINES, HERE, build_folder, compile_program
from pidcomm_studies.parcels.host import OUTER, Row
from pidcomm_studies.parcels.run import (
    BENCHMARK,
    CONVENTIONAL,
    OVERHEAD,
    SIZES,
    TABLE_1,
    Counts,
    Machine,
    Run,
)

POSTED = (0, 20, 40, 60, 80, 100)
COPY_BYTES = tuple(1024 * kib for kib in (1, 2, 4, 8, 12, 16, 24, 32, 48, 64, 128, 256))
COPIES = 4
PIM, LAM, MPICH = ENGINES
ROWS = "pim, rows"
REAL, REAL_64K = "MPICH 1.2.5", "MPICH 1.2.5, rendezvous from 64 KiB"
_NO_DELAYS = {"open_page": 0, "closed_page": 0, "l2": 0, "depth": 0}


Case = tuple[str, str, int]
"""An implementation, a size and a percentage of posted receives."""


@dataclass(frozen=True)
class Results:
    """The runs of the benchmark by case, and copies on one machine.

    rows: the counts behind the runs of MPICH 1.2.5. copies: instructions and cycles of a copy by
    machine and bytes.
    """

    runs: dict[Case, Run]
    rows: dict[Case, list[Row]]
    copies: dict[tuple[str, int], tuple[float, float]]

    def of(self, name: str, size: str | None = None) -> list[Run]:
        """Return the runs of an implementation."""
        return [
            run
            for (of, name_of_size, _), run in self.runs.items()
            if of == name and size in (None, name_of_size)
        ]


def measure(
    step: Callable[[str], None] = lambda _: None,
    latency: int | None = None,
    pim: Mapping[str, int] | None = None,
    *,
    with_copies: bool = True,
) -> Results:
    """Run the benchmark on all engines.

    step: called with a few words before each part. latency: of the network of all machines. pim:
    other values of the machine of travelling threads, as for `Machine`. with_copies: also run the
    copies of figure 7.
    Raises Error if a process received a wrong byte.
    """
    runs: dict[Case, Run] = {}
    issue: dict[tuple[str, int], float] = {}
    copies: dict[tuple[str, int], tuple[float, float]] = {}
    with build_folder() as folder:
        program = compile_program(HERE / "programs" / "posted.c", folder)
        copier = compile_program(HERE / "programs" / "copy.c", folder)
        changes = {} if latency is None else {"latency": latency}
        for engine in ENGINES:
            step(f"{engine}: compiling")
            machine = Machine(engine, folder, **changes, **(pim or {} if engine == PIM else {}))
            by_rows = machine.with_settings({**machine.settings, "row_copies": 1})
            for size, number in SIZES.items():
                for posted in POSTED:
                    step(f"{engine}: {size}, {posted}% posted")
                    arguments = (number, posted)
                    runs[engine, size, posted] = _checked(machine, program, 2, arguments)
                    if engine == PIM and with_copies:
                        run = _checked(by_rows, program, 2, arguments)
                        runs[ROWS, size, posted] = run
                    if engine == MPICH:
                        ideal = machine.with_settings({**machine.settings, **_NO_DELAYS})
                        run = _checked(ideal, program, 2, arguments)
                        issue[size, posted] = overhead(run, "cycles") / overhead(
                            run, "instructions"
                        )
            if with_copies and engine in (PIM, MPICH):
                step(f"{engine}: copies")
                for number in COPY_BYTES:
                    copies[engine, number] = _copy(machine, copier, number)
    rows = {case: of for case, of in _rows().items() if case[1:] in issue}
    for case, of_case in rows.items():
        priced = tuple(_price(row, issue[case[1:]]) for row in of_case)
        runs[case] = Run(case[0], 2, 0, 0, (), priced, "")
    return Results(runs, rows, copies)


def results_of(request: Request) -> Results:
    """Return the results for a request."""
    return measure(
        request.progress.phase,
        request.latency,
        request.pim,
        with_copies="parcels/fig7" in request.figures,
    )


def _rows() -> dict[Case, list[Row]]:
    """Return the counts of MPICH 1.2.5. A line with its conditions precedes its rows."""
    rows: dict[Case, list[Row]] = {}
    name = ""
    for line in (Path(__file__).parent / "mpich.jsonl").read_text().splitlines():
        fields = json.loads(line)
        if "mpi" in fields:
            name = fields["mpi"]
        else:
            row = Row(**fields)
            rows.setdefault((name, row.size, row.posted), []).append(row)
    return rows


def memory_cycles(row: Row) -> int:
    """Return the delays of a row's cache misses, with open rows alone: the least time."""
    delays = TABLE_1[CONVENTIONAL]
    second = (row.cache_misses - row.memory_misses) * delays["l2"]
    return second + row.memory_misses * delays["open_page"]


def _price(row: Row, issue: float) -> Counts:
    """Price a row as machine/conventional.c does. issue: cycles of an instruction."""
    mispredictions = row.mispredictions * TABLE_1[CONVENTIONAL]["depth"]
    cycles = row.instructions * issue + memory_cycles(row) + mispredictions
    category = "state" if row.category == OUTER else row.category
    return Counts(row.call, category, row.instructions, row.references, cycles)


def _checked(machine: Machine, program: Path, nodes: int, arguments: Sequence[object]) -> Run:
    run = machine.run(program, nodes, arguments)
    if run.code or run.blocked:
        raise Error(
            f"{program.stem} on {machine.engine.name}:"
            f" {run.output.strip() or f'blocked: {run.blocked}'}"
        )
    return run


def _copy(machine: Machine, program: Path, size: int) -> tuple[float, float]:
    """Return the instructions and cycles of a copy after the first one: the difference of two
    runs.
    """
    one, more = (_checked(machine, program, 1, (size, copies)) for copies in (1, 1 + COPIES))
    instructions, cycles = (
        (more.total(field, ("application",)) - one.total(field, ("application",))) / COPIES
        for field in ("instructions", "cycles")
    )
    return instructions, cycles


def occupancy(
    run: Run, categories: Sequence[str] = OVERHEAD, calls: Sequence[str] = BENCHMARK
) -> float:
    """Return the cycles in which calls occupy the pipeline: issue slots of travelling threads,
    between which other threads can issue; all cycles of a single thread.
    """
    return run.total("instructions" if run.engine == PIM else "cycles", categories, calls)


def overhead(run: Run, field: str) -> float:
    """Return the overhead of the benchmark's calls: `occupancy` or a field of `Counts`."""
    return occupancy(run) if field == "occupancy" else run.total(field, OVERHEAD, BENCHMARK)
