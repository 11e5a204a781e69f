"""The paper's benchmark on the simulated machines, and as MPICH 1.2.5 executes it.

`pidcomm parcels bench --json mpich.jsonl` wrote the counts of MPICH 1.2.5, with callgrind 3.19.
MPICH: github.com/matthiasdiener/mpich, commit 4836f61d43b3e8f3fc0e8da1577b2ee499c5c4db,
`./configure --with-arch=LINUX --with-device=ch_p4 -opt=-O2 -rshnol -ar_nolocal`, gcc 12.2 for
x86-64. mpich_64k.jsonl: the same with 65536 in place of 128000 in mpid/ch2/chinit.c, when the
command ran each case once and did not count the misses of references apart.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

from pidcomm import Error
from pidcomm_studies.papers.figure import Request
from pidcomm_studies.parcels.build import ENGINES, HERE, build_folder, compile_program
from pidcomm_studies.parcels.host import COUNTED, ENTRY, Row
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
FILES = {REAL: "mpich.jsonl", REAL_64K: "mpich_64k.jsonl"}
_NO_MISSES = {"open_page": 0, "closed_page": 0, "l2": 0}
_IDEAL = {LAM: _NO_MISSES, MPICH: {**_NO_MISSES, "depth": 0}}

Case = tuple[str, str, int]
"""An implementation, a size and a percentage of posted receives."""


@dataclass(frozen=True)
class Results:
    """The runs of the benchmark by case, and copies on one machine.

    ideal: runs of the engine lam without delays of misses, and of mpich without any delays. rows:
    the counts behind the runs of MPICH 1.2.5. copies: instructions and cycles of a copy by machine
    and bytes.
    """

    runs: dict[Case, Run]
    ideal: dict[Case, Run]
    rows: dict[Case, list[Row]]
    copies: dict[tuple[str, int], tuple[float, float]]

    def of(self, name: str, size: str | None = None) -> list[Run]:
        """Return the runs of an implementation."""
        return [run for case, run in self.runs.items() if _selects(case, name, size)]

    def rows_of(self, name: str, size: str) -> list[Row]:
        """Return the counts behind the runs of MPICH 1.2.5."""
        return [
            row for case, rows in self.rows.items() if _selects(case, name, size) for row in rows
        ]


def _selects(case: Case, name: str, size: str | None) -> bool:
    return case[0] == name and size in (None, case[1])


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
    changes = {} if latency is None else {"latency": latency}
    with build_folder() as folder:
        program = compile_program(HERE / "programs" / "posted.c", folder)
        machines = {}
        for engine in ENGINES:
            step(f"{engine}: compiling")
            machines[engine] = Machine(
                engine, folder, **changes, **(pim or {} if engine == PIM else {})
            )
        runs: dict[Case, Run] = {}
        ideal: dict[Case, Run] = {}
        copies: dict[tuple[str, int], tuple[float, float]] = {}
        for engine, machine in machines.items():
            runs |= _run_cases(engine, machine, program, step)
        for engine, delays in _IDEAL.items():
            ideal |= _run_cases(engine, _with_changes(machines[engine], delays), program, step)
        if with_copies:
            by_rows = _with_changes(machines[PIM], {"row_copies": 1})
            runs |= _run_cases(ROWS, by_rows, program, step)
            copies = _run_copies({name: machines[name] for name in (PIM, MPICH)}, folder, step)
    rows = _read_rows()
    for case, rows_of_case in rows.items():
        # A block costs its issue cycles and the delays of its misses and of its misprediction
        # (machine/conventional.c). If all delays are 0, only the issue cycles remain.
        only_issue = ideal[(MPICH, *case[1:])]
        issue = overhead(only_issue, "cycles") / overhead(only_issue, "instructions")
        runs[case] = Run(
            case[0], 2, 0, 0, (), tuple(_price(row, issue) for row in rows_of_case), ""
        )
    return Results(runs, ideal, rows, copies)


def _with_changes(machine: Machine, changes: Mapping[str, int]) -> Machine:
    return machine.with_settings({**machine.settings, **changes})


def _run_cases(
    name: str, machine: Machine, program: Path, step: Callable[[str], None]
) -> dict[Case, Run]:
    """Run the benchmark in all cases."""
    runs = {}
    for size, number in SIZES.items():
        for posted in POSTED:
            step(f"{name}: {size}, {posted}% posted")
            runs[name, size, posted] = _run_checked(machine, program, 2, (number, posted))
    return runs


def _run_copies(
    machines: Mapping[str, Machine], folder: Path, step: Callable[[str], None]
) -> dict[tuple[str, int], tuple[float, float]]:
    """Return the instructions and cycles of copies by machine and bytes."""
    program = compile_program(HERE / "programs" / "copy.c", folder)
    copies = {}
    for name, machine in machines.items():
        step(f"{name}: copies")
        for number in COPY_BYTES:
            copies[name, number] = _copy(machine, program, number)
    return copies


def results_of(request: Request) -> Results:
    """Return the results for a request."""
    return measure(
        request.progress.phase,
        request.latency,
        request.pim,
        with_copies="parcels/fig7" in request.figures,
    )


def _read_rows() -> dict[Case, list[Row]]:
    """Return the counts of MPICH 1.2.5 that are overhead."""
    rows: dict[Case, list[Row]] = {}
    for name, file in FILES.items():
        for line in (Path(__file__).parent / file).read_text().splitlines():
            values = json.loads(line)
            row = Row(**{field.name: values.get(field.name) for field in fields(Row)})
            # An eager message does not depend on the limit of REAL_64K.
            if row.category in COUNTED and (name, row.size) != (REAL_64K, "eager"):
                rows.setdefault((name, row.size, row.posted), []).append(row)
    return rows


def miss_cycles(row: Row, page: str = "open_page") -> int:
    """Return the delays of a row's misses. page: of a miss to memory; open rows take the least
    time.
    """
    return _miss_cycles(row.cache_misses, row.memory_misses, page)


def data_miss_cycles(row: Row, page: str = "open_page") -> int:
    """Return the delays of a row's misses of references. Raises Error if they were not counted."""
    if row.data_misses is None or row.data_misses_to_memory is None:
        raise Error("the misses of references were not counted apart")
    return _miss_cycles(row.data_misses, row.data_misses_to_memory, page)


def _miss_cycles(first: int, second: int, page: str) -> int:
    delays = TABLE_1[CONVENTIONAL]
    return (first - second) * delays["l2"] + second * delays[page]


def misprediction_cycles(row: Row) -> int:
    """Return the delays of a row's mispredictions."""
    return row.mispredictions * TABLE_1[CONVENTIONAL]["depth"]


def _price(row: Row, issue: float) -> Counts:
    """Price a row as machine/conventional.c does. issue: cycles of an instruction."""
    delays = miss_cycles(row) + misprediction_cycles(row)
    category = "state" if row.category == ENTRY else row.category
    return Counts(
        row.call, category, row.instructions, row.references, row.instructions * issue + delays
    )


def _run_checked(machine: Machine, program: Path, nodes: int, arguments: Sequence[object]) -> Run:
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
    one, more = (_run_checked(machine, program, 1, (size, copies)) for copies in (1, 1 + COPIES))
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
