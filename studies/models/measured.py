"""Fit the constants of transfers, launches and loads to times that were measured on DIMMs.

The rows are the files transfers.csv and launches.csv of a folder, whose columns `pidcomm model
fit-dimms --help` lists, and kernels.csv if it exists. An experiment is a repository, or a folder of
it with results. One file, because all fits leave out rows and report errors in the same way.
"""

from __future__ import annotations

import csv
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import combinations
from math import ceil, nan
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

import numpy as np

from pidcomm import PES_PER_RANK, ArgumentError
from pidcomm.files import malformed, require_file
from pidcomm.model import PHASES, Machine
from pidcomm.model.prediction import PreparedCase
from pidcomm_studies.models.calibrate import fit_to_times, interval_constants

if TYPE_CHECKING:
    from pidcomm.tables import CollectiveName

DIRECT = "direct"
"""Part of the name of an API that accesses ranks without the SDK's transfers."""
BROADCAST = "broadcast"
"""Part of the name of an API that sends all PEs the same bytes."""
GEMV = "PrIM GEMV"
"""Start of the kinds of rows of this program, whose times no fit uses."""
MOST_PES = 2560
MOST_KERNEL_SHARE = 0.5  # of the time of a launch
MOST_MRAM_ELEMENTS = 512  # of an array that a load copies in a time that does not matter
WORD_BYTES = 4
_MOST_FITS = 20
JOB_BYTES = 48  # struct pidcomm_reorder_job
WRAM_BYTES = (32, 128)  # bytes per PE of transfers to WRAM to which jobs are fitted
HUGE_PAGE = 1 << 21


@dataclass(frozen=True)
class Program:
    """Facts about a program that the rows of its times lack, from its source.

    path: the start of the repositories and paths of its rows, which are one experiment. shared: the
    notes of transfers to PEs that send all PEs the same bytes. is_fresh: the program receives into
    memory that it has never touched. sockets: the number of sockets whose memory it uses.
    """

    path: str
    shared: str = "(?!)"  # no note
    is_fresh: bool = False
    sockets: int = 1


_MLP = "oscarferraz/MLP_UPMEM/Official_code"
PROGRAMS = (
    Program("Loremkang/upmem-sdk-light/results", sockets=2),  # numactl --interleave=all
    Program(f"{_MLP}/data_transfer_test", "", True),
    *(
        Program(f"{_MLP}/results/MRAM_{name}", "transfer [258] of ", True)
        for name in ("mem_transfers", "original_sizes")
    ),
)
LOADS = {
    f"{_MLP}/data_transfer_test/": (206,),
    f"{_MLP}/data_transfer_test_low_level_func/": (81,),
    f"{_MLP}/results/WRAM_mem_transfers2/lenet5/no_gemm/float/": (12191, 7533, 1454),
}
"""Instructions, and words in WRAM, of the programs that a file of a folder loads, in this order.

From the segments of the programs in the same commit (an instruction is 8 bytes of IRAM), without
the array of a row. The commit lacks the program of data_transfer_test: its size is the size of
data_transfer_test_low_level_func and of the routine __addsf3.
"""


@dataclass(frozen=True)
class Row:
    """The median of the times that an experiment measured for the same work.

    kind: to, to all (the same bytes), from (SDK), direct to, direct from, jobs, launch, load, or
    one of GEMV. bytes: per PE, of a transfer, or of a launched program's array; of a load,
    WORD_BYTES for each instruction and for each word in WRAM. sockets: as of `Program`. also: the
    kinds and bytes of further transfers in the same time.
    """

    kind: str
    experiment: str
    pes: int
    bytes: int
    sockets: int
    also: tuple[tuple[str, int], ...]
    seconds: float


Price = Callable[[Machine, Sequence[Row]], Callable[[Sequence[float]], list[float]]]
"""Returns a function that returns the modelled seconds of rows, from ``Machine.numbers``."""


@dataclass(frozen=True)
class Stage:
    """Constants that are fitted together, to rows of some kinds.

    error: the constants error.* that the errors of these rows become. checks: kinds of rows that
    only check the fit.
    """

    error: str
    kinds: tuple[str, ...]
    names: tuple[str, ...]
    price: Price
    checks: tuple[str, ...] = ()


@dataclass(frozen=True)
class Modelled:
    """A row and its modelled seconds."""

    row: Row
    modelled: float

    @property
    def error_pct(self) -> float:
        """Return the modelled minus the measured time, in percent of the measured time."""
        return 100 * (self.modelled / self.row.seconds - 1)


def fit_to_rows(start: Machine, rows: Sequence[Row]) -> tuple[Machine, list[Modelled]]:
    """Return the machine with constants that are fitted to rows, and the rows that were held out:
    with times from a fit to the other experiments (if there is one experiment, to the other rows).
    Rows of GEMV have times from the fit to all others.

    The errors of rows that were held out become the machine's constants error.*. Each fit starts
    from the result before, until two are equal: a fit from its own result returns it.
    """
    for _ in range(_MOST_FITS):
        fitted, held_out = _fit_once(start, rows)
        if list(fitted.numbers) == list(start.numbers):
            break
        start = fitted
    return fitted, held_out


def _fit_once(machine: Machine, rows: Sequence[Row]) -> tuple[Machine, list[Modelled]]:
    held_out: list[Modelled] = []
    for stage in STAGES:
        own = [row for row in rows if row.kind in stage.kinds]
        if len(own) < len(stage.names):
            raise ArgumentError(
                f"the rows have {len(own)} times of kind {' or '.join(stage.kinds)}; the fit of"
                f" {', '.join(stage.names)} needs at least {len(stage.names)}"
            )
        for tested in _parts(own):
            others = [row for row in own if row not in tested]
            held_out += _modelled(_fit(machine, stage, others), stage, tested)
        machine = _fit(machine, stage, own)
        held_out += _modelled(machine, stage, [row for row in rows if row.kind in stage.checks])
    for error in dict.fromkeys(stage.error for stage in STAGES):
        kinds = kinds_of(error)
        tests = [test for test in held_out if test.row.kind in kinds]
        ratios = [test.row.seconds / test.modelled for test in tests]
        machine = machine.with_values(
            interval_constants(error, ratios),
            f"fitted: to errors of held-out rows of {_source_of([test.row for test in tests])}",
        )
    return machine, held_out


def kinds_of(error: str) -> list[str]:
    """Return the kinds of rows whose errors become the constants error.*."""
    stages = [stage for stage in STAGES if stage.error == error]
    return [kind for stage in stages for kind in (*stage.kinds, *stage.checks)]


def _modelled(machine: Machine, stage: Stage, rows: Sequence[Row]) -> list[Modelled]:
    return list(map(Modelled, rows, stage.price(machine, rows)(machine.numbers)))


def _parts(rows: Sequence[Row]) -> list[list[Row]]:
    """Return the rows of each experiment, or each row alone if there is only one experiment."""
    experiments: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        experiments[row.experiment].append(row)
    parts = list(experiments.values())
    return parts if len(parts) > 1 else [[row] for row in rows]


def _fit(machine: Machine, stage: Stage, rows: Sequence[Row]) -> Machine:
    measured = [row.seconds for row in rows]
    modelled = stage.price(machine, rows)
    source = f"fitted: to {_source_of(rows)}"
    return fit_to_times(machine, stage.names, modelled, measured, source)


def _calls(technique: str) -> Price:
    """Return the price of scatters, broadcasts and gathers to a window of each PE."""

    def case(pes: int, kind: str, size: int) -> PreparedCase:
        name: CollectiveName = (
            "gather"
            if kind.endswith("from")
            else "broadcast"
            if kind.endswith("to all")
            else "scatter"
        )
        return PreparedCase(name, (pes,), "1", bytes=size, dst=0, technique=technique)

    def price(machine: Machine, rows: Sequence[Row]) -> Callable[[Sequence[float]], list[float]]:
        cases = [
            [case(row.pes, kind, size) for kind, size in ((row.kind, row.bytes), *row.also)]
            for row in rows
        ]
        # No launch came before the direct accesses, so the ranks were still switched to the host.
        mux = list(PHASES).index("mux")
        host = machine.places["sdk.host_gb_s"]

        def seconds(row: Row, own: Sequence[PreparedCase], numbers: Sequence[float]) -> float:
            changed = list(numbers)
            changed[host] *= row.sockets
            phases = [case.phase_seconds(changed) for case in own]
            return sum(sum(each) - each[mux] for each in phases)

        return lambda numbers: [
            seconds(row, own, numbers) for row, own in zip(rows, cases, strict=True)
        ]

    return price


def _linear(kind: str, terms: Mapping[str, Callable[[Row], float]]) -> Stage:
    """Return the stage of a kind whose time is a sum. terms: the constants in us, and how many
    times they occur in a row's time.
    """

    def price(machine: Machine, rows: Sequence[Row]) -> Callable[[Sequence[float]], list[float]]:
        places = [machine.places[name] for name in terms]
        counts = [[count(row) for count in terms.values()] for row in rows]

        def seconds(own: Sequence[float], numbers: Sequence[float]) -> float:
            return 1e-6 * sum(
                count * numbers[place] for count, place in zip(own, places, strict=True)
            )

        return lambda numbers: [seconds(own, numbers) for own in counts]

    return Stage(kind, (kind,), tuple(terms), price)


def _jobs(machine: Machine, rows: Sequence[Row]) -> Callable[[Sequence[float]], list[float]]:
    """Price transfers to WRAM: the fixed costs of a transfer, and per byte the rest of the time of
    jobs, which are sent and read back.
    """
    places = ("sdk.to_call_us", "sdk.pe_us", "pe.jobs_us", "pe.job_us")
    call, pe, jobs, job = (machine.places[name] for name in places)

    def microseconds(row: Row, numbers: Sequence[float]) -> float:
        empty = numbers[call] + row.pes * numbers[pe]
        one_way = (numbers[jobs] + row.pes * numbers[job]) / 2
        return max(1, empty + row.bytes / JOB_BYTES * (one_way - empty))

    return lambda numbers: [1e-6 * microseconds(row, numbers) for row in rows]


def _ranks(row: Row) -> float:
    return ceil(row.pes / PES_PER_RANK)


def _words(row: Row) -> float:
    return row.bytes / WORD_BYTES


STAGES = (
    Stage(
        "sdk",
        ("to", "to all", "from"),
        (
            *("sdk.to_call_us", "sdk.from_call_us", "sdk.pe_us", "sdk.least_pes"),
            *("sdk.from_gb_s", "sdk.to_gb_s", "sdk.thread_to_gb_s", "sdk.host_gb_s"),
            "sdk.thread_start_gb_s",
        ),
        _calls("conventional"),
        (f"{GEMV} to", f"{GEMV} from"),
    ),
    Stage(
        "pass",
        ("direct to", "direct from"),
        ("memory.read_gb_s", "memory.write_gb_s", "isa.avx512bw.transpose_ns"),
        _calls("tile"),
    ),
    Stage("launch", ("jobs",), ("pe.jobs_us", "pe.job_us"), _jobs),
    _linear("launch", {"pe.launch_us": lambda _: 1, "pe.launch_rank_us": _ranks}),
    _linear(
        "load",
        {
            "pe.load_us": lambda _: 1,
            "pe.load_rank_us": _ranks,
            "pe.load_word_us": _words,
            "pe.load_rank_word_us": lambda row: _ranks(row) * _words(row),
        },
    ),
)


def check(machine: Machine, rows: Sequence[Row]) -> list[Modelled]:
    """Return the rows with the times that a machine models, by kind."""
    checked: list[Modelled] = []
    for stage in STAGES:
        own = [row for row in rows if row.kind in stage.kinds]
        checked += map(Modelled, own, stage.price(machine, own)(machine.numbers))
    return checked


def is_in_interval(machine: Machine, test: Modelled) -> bool:
    """Return whether the measured time lies in the machine's interval of the modelled time."""
    [error] = {stage.error for stage in STAGES if test.row.kind in kinds_of(stage.error)}
    ratio = test.row.seconds / test.modelled
    return machine[f"error.{error}_low"] <= ratio <= machine[f"error.{error}_high"]


def _source_of(rows: Sequence[Row]) -> str:
    """Return the repositories of rows and the date, as the source of constants."""
    repositories = sorted({"/".join(row.experiment.split("/")[:2]) for row in rows})
    return f"times measured on DIMMs by {' and '.join(repositories)}, {date.today()}"


# The fields of a row without its time.
Key = tuple[str, str, int, int, int, tuple[tuple[str, int], ...]]


def read_rows(folder: Path) -> list[Row]:
    """Return the rows of a folder. Raises ArgumentError for a file that is missing, is no CSV file,
    lacks a column or a field, or has a wrong number or direction.
    """
    seconds: dict[Key, list[float]] = defaultdict(list)
    for key, took in (*_transfers(folder), *_runs(folder), *_gemv(folder)):
        if 0 < key[2] <= MOST_PES:  # some rows have the number of an allocation of all DPUs
            seconds[key].append(took)
    return [Row(*key, float(np.median(times))) for key, times in sorted(seconds.items())]


def _records(file: Path, texts: Iterable[str], numbers: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield the records of a file whose last number is positive. texts, numbers: the columns; an
    empty number becomes 0.
    """
    require_file(file)
    with file.open(encoding="utf-8", newline="") as lines:
        records = csv.DictReader(lines)
        try:
            columns = records.fieldnames or ()
            if missing := {*texts, *numbers} - set(columns):
                malformed(file, 1, f"the column {min(missing)} is missing")
            for record in records:
                if None in record or None in record.values():
                    rule = f"the line does not have {len(columns)} fields, as the first line has"
                    malformed(file, records.line_num, rule)
                values: dict[str, Any] = {name: record[name] for name in texts}
                for name in numbers:
                    values[name] = _number(record[name])
                    if not 0 <= values[name] < 1e12:
                        rule = f"{name} is {record[name]!r}; it must be a number from 0 to 1e12"
                        malformed(file, records.line_num, rule)
                if values[numbers[-1]] > 0:
                    yield values
        except (UnicodeDecodeError, csv.Error) as error:
            malformed(file, None, f"not a CSV file: {error}")


def _number(text: str) -> float:
    """Return the number that a field contains: 0 for an empty field, NaN for other text."""
    try:
        return float(text or 0)
    except ValueError:
        return nan


def _experiment(record: dict[str, Any]) -> str:
    """Return the repository and up to four folders of the path of a record."""
    return "/".join((record["repository"], *PurePosixPath(record["path"]).parent.parts[:4]))


def _program(record: dict[str, Any]) -> Program:
    """Return the program of PROGRAMS that measured a record, or one without special facts."""
    path = f"{record['repository']}/{record['path']}"
    known = (program for program in PROGRAMS if path.startswith(program.path))
    return next(known, Program(_experiment(record)))


def _transfers(folder: Path) -> Iterator[tuple[Key, float]]:
    texts = ("api", "direction", "space", "note", "repository", "path")
    for record in _records(folder / "transfers.csv", texts, ("dpus", "bytes_per_dpu", "ms")):
        pes, size = int(record["dpus"]), int(record["bytes_per_dpu"])
        program, kind = _program(record), record["direction"].removesuffix("_dpu")
        if kind not in ("to", "from"):
            rule = f"direction {record['direction']!r} is unknown; use to_dpu or from_dpu"
            malformed(folder / "transfers.csv", None, rule)
        if record["space"] == "wram" and kind == "to":
            if pes < PES_PER_RANK or not WRAM_BYTES[0] <= size <= WRAM_BYTES[1]:
                continue
            kind = "jobs"
        elif record["space"] != "mram" or size == 0:
            continue
        elif DIRECT in record["api"]:
            kind = f"{DIRECT} {kind}"
        elif kind == "from" and program.is_fresh and pes * size > HUGE_PAGE:
            continue  # a page fault takes more time: in five runs, 2.9 MB take 1.1 to 2.4 ms
        elif kind == "to" and (
            BROADCAST in record["api"] or re.match(program.shared, record["note"])
        ):
            kind = "to all"
        yield (kind, program.path, pes, size, program.sockets, ()), 1e-3 * record["ms"]


def _gemv(folder: Path) -> Iterator[tuple[Key, float]]:
    """Yield the times in which PrIM's GEMV sends arguments, rows of the matrix and the vector, and
    receives the result. The program has one argument struct of 16 bytes and an even number of rows
    per PE.
    """
    if not (file := folder / "kernels.csv").exists():
        return
    for column, direction in (("h2d_ms", "to"), ("d2h_ms", "from")):
        for record in _records(file, ("program", "args", "repository", "path"), ("dpus", column)):
            if record["program"] != GEMV:
                continue
            height, width = map(int, re.findall(r"-[mn] (\d+)", record["args"]))
            pes = int(record["dpus"])
            own = 2 * ceil(height / pes / 2)
            also = (("to", 16), ("to all", 4 * width)) if direction == "to" else ()
            size = 4 * own * (width if direction == "to" else 1)
            key = (f"{GEMV} {direction}", _experiment(record), pes, size, 1, also)
            yield key, 1e-3 * record[column]


def _runs(folder: Path) -> Iterator[tuple[Key, float]]:
    """Yield launches without the time of their kernel, and loads of programs of known size."""
    texts = ("operation", "note", "repository", "path")
    records = list(_records(folder / "launches.csv", texts, ("dpus", "elements", "ms")))
    launches = [
        record
        for record in records
        if record["operation"] == "dpu_launch_sync" and record["elements"]
    ]
    yield from _launches(launches)
    arrays = {(record["repository"], record["path"]): record for record in launches}
    places: Counter[tuple[str, str]] = Counter()
    for record in records:
        if record["operation"] != "dpu_load":
            continue
        file = record["repository"], record["path"]
        words = next(
            (words for path, words in LOADS.items() if "/".join(file).startswith(path)), ()
        )
        place, array = places[file], arrays.get(file)
        places[file] += 1
        if place >= len(words):
            continue
        in_wram = array is not None and array["note"].endswith("WRAM")
        elements = array["elements"] if array is not None else 0
        if in_wram or elements <= MOST_MRAM_ELEMENTS:
            size = WORD_BYTES * int(words[place] + (elements if in_wram else 0))
            key = ("load", _experiment(record), int(record["dpus"]), size, 1, ())
            yield key, 1e-3 * record["ms"]


def _launches(records: Sequence[dict[str, Any]]) -> Iterator[tuple[Key, float]]:
    """Yield the launches of complete ranks whose kernel takes at most MOST_KERNEL_SHARE.

    In a rank of which a chip has no PE, the SDK switches MRAM to the PEs in eight steps instead of
    one (ci_start_thread_rank), so a launch of 1 PE takes 0.1 ms longer than a launch of 64. The
    time per element of a kernel is the median over pairs of its launches on the same number of PEs.
    """
    kernels: dict[tuple[str, str], dict[int, list[tuple[float, float]]]] = {}
    for record in records:
        by_pes = kernels.setdefault(_kernel(record), defaultdict(list))
        by_pes[int(record["dpus"])].append((record["elements"], record["ms"]))
    slopes = {
        kernel: np.median(
            [
                (ms - other_ms) / (elements - others)
                for times in by_pes.values()
                for (elements, ms), (others, other_ms) in combinations(times, 2)
                if elements != others
            ]
            or [nan]
        )
        for kernel, by_pes in kernels.items()
    }
    for record in records:
        kernel_ms = record["elements"] * slopes[_kernel(record)]
        if record["dpus"] % PES_PER_RANK == 0 and kernel_ms <= MOST_KERNEL_SHARE * record["ms"]:
            size = WORD_BYTES * int(record["elements"])
            key = ("launch", _experiment(record), int(record["dpus"]), size, 1, ())
            yield key, 1e-3 * (record["ms"] - kernel_ms)


def _kernel(record: dict[str, Any]) -> tuple[str, str]:
    """Return the experiment, and the description of a kernel without its number of elements."""
    return _experiment(record), record["note"].replace(f"i<{record['elements']:.0f}", "")
