"""Fit the constants of transfers, launches and loads to times that were measured on DIMMs.

The rows are the files transfers.csv and launches.csv of a folder, whose columns `pidcomm model
fit-dimms --help` lists. An experiment is a repository, or a folder of it with results.
"""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from math import ceil, nan
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from pidcomm import PES_PER_RANK, ArgumentError
from pidcomm.files import malformed, require_file
from pidcomm.model import PHASES, Machine
from pidcomm.model.prediction import PreparedCase
from pidcomm_studies.models.calibrate import fit_to_times, interval_constants

DIRECT = "direct"
"""Part of the name of an API that accesses ranks without the SDK's transfers."""
MOST_PES = 2560
MOST_ELEMENTS = 16  # of a kernel whose time is small beside its launch
_MOST_FITS = 20
JOB_BYTES = (32, 64)  # bytes per PE of a transfer to WRAM that costs as much as sending jobs


@dataclass(frozen=True)
class Row:
    """The median of the times that an experiment measured for the same work.

    kind: to, from (SDK), direct to, direct from, jobs, launch or load. bytes: per PE, of a
    transfer.
    """

    kind: str
    experiment: str
    pes: int
    bytes: int
    seconds: float


Price = Callable[[Machine, Sequence[Row]], Callable[[Sequence[float]], list[float]]]
"""Returns a function that returns the modelled seconds of rows, from ``Machine.numbers``."""


@dataclass(frozen=True)
class Stage:
    """Constants that are fitted together, to rows of some kinds.

    error: the constants error.* that the errors of these rows become.
    """

    error: str
    kinds: tuple[str, ...]
    names: tuple[str, ...]
    price: Price


@dataclass(frozen=True)
class Modelled:
    """A row and its modelled seconds."""

    row: Row
    modelled: float

    @property
    def error_pct(self) -> float:
        """Return the modelled minus the measured time, in percent of the measured time."""
        return 100 * (self.modelled / self.row.seconds - 1)


def fit_to_rows(start: Machine, rows: Sequence[Row], source: str) -> tuple[Machine, list[Modelled]]:
    """Return the machine with constants that are fitted to rows, and the rows that were held out:
    with times from a fit to the other experiments (if there is one experiment, to the other rows).
    Rows that move far more bytes than these are not among them.

    source: the end of the constants' sources. The errors of the rows that were held out become the
    machine's constants error.*. Each fit starts from the result before, until two are equal: a fit
    from its own result returns it.
    """
    for _ in range(_MOST_FITS):
        fitted, held_out = _fit_once(start, rows, source)
        if list(fitted.numbers) == list(start.numbers):
            break
        start = fitted
    return fitted, held_out


def _fit_once(machine: Machine, rows: Sequence[Row], source: str) -> tuple[Machine, list[Modelled]]:
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
            fitted = _fit(machine, stage, others, source)
            near = [row for row in tested if _is_near(row, others)]
            seconds = stage.price(machine, near)(fitted.numbers)
            held_out += map(Modelled, near, seconds)
        machine = _fit(machine, stage, own, source)
    for error in dict.fromkeys(stage.error for stage in STAGES):
        kinds = [kind for stage in STAGES if stage.error == error for kind in stage.kinds]
        ratios = [test.row.seconds / test.modelled for test in held_out if test.row.kind in kinds]
        machine = machine.with_values(
            interval_constants(error, ratios), f"fitted: to errors of held-out rows of {source}"
        )
    return machine, held_out


def _parts(rows: Sequence[Row]) -> list[list[Row]]:
    """Return the rows of each experiment, or each row alone if there is only one experiment."""
    experiments: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        experiments[row.experiment].append(row)
    parts = list(experiments.values())
    return parts if len(parts) > 1 else [[row] for row in rows]


def _is_near(row: Row, others: Sequence[Row]) -> bool:
    """Return whether the row moves at most twice the bytes of the other rows of its kind.

    A fit to the others says nothing about larger transfers, which leave the caches.
    """
    moved = [other.pes * other.bytes for other in others if other.kind == row.kind]
    return row.pes * row.bytes <= 2 * max(moved, default=0)


def _fit(machine: Machine, stage: Stage, rows: Sequence[Row], source: str) -> Machine:
    measured = [row.seconds for row in rows]
    modelled = stage.price(machine, rows)
    return fit_to_times(machine, stage.names, modelled, measured, f"fitted: to {source}")


def _calls(technique: str) -> Price:
    """Return the price of scatters and gathers to a window of each PE."""

    def price(machine: Machine, rows: Sequence[Row]) -> Callable[[Sequence[float]], list[float]]:
        cases = [
            PreparedCase(
                "scatter" if row.kind.endswith("to") else "gather",
                (row.pes,),
                "1",
                bytes=row.bytes,
                technique=technique,
            )
            for row in rows
        ]
        # No launch came before the direct accesses, so the ranks were still switched to the host.
        mux = list(PHASES).index("mux")
        return lambda numbers: [
            sum(phases) - phases[mux] for phases in (case.phase_seconds(numbers) for case in cases)
        ]

    return price


def _affine(per: Callable[[Row], float], *names: str) -> Stage:
    """Return the stage of a constant in us and a constant in us per unit. per: units of a row."""

    def price(machine: Machine, rows: Sequence[Row]) -> Callable[[Sequence[float]], list[float]]:
        fixed, each = (machine.places[name] for name in names)
        return lambda numbers: [1e-6 * (numbers[fixed] + per(row) * numbers[each]) for row in rows]

    kind = names[0].removeprefix("pe.").removesuffix("_us")
    return Stage("pe", (kind,), names, price)


def _ranks(row: Row) -> float:
    return ceil(row.pes / PES_PER_RANK)


STAGES = (
    Stage(
        "sdk",
        ("to", "from"),
        (
            *("sdk.to_call_us", "sdk.from_call_us", "sdk.pe_us", "sdk.least_pes"),
            *("sdk.from_gb_s", "sdk.to_gb_s", "sdk.thread_from_gb_s", "sdk.thread_to_gb_s"),
            *("sdk.start_kib", "sdk.thread_start_from_gb_s", "sdk.thread_start_to_gb_s"),
        ),
        _calls("conventional"),
    ),
    Stage(
        "pass",
        ("direct to", "direct from"),
        ("memory.read_gb_s", "memory.write_gb_s", "isa.avx512bw.transpose_ns"),
        _calls("tile"),
    ),
    _affine(lambda row: row.pes, "pe.jobs_us", "pe.job_us"),
    _affine(_ranks, "pe.launch_us", "pe.launch_rank_us"),
    _affine(_ranks, "pe.load_us", "pe.load_rank_us"),
)


def check(machine: Machine, rows: Sequence[Row]) -> list[Modelled]:
    """Return the rows with the times that a machine models, by kind."""
    checked: list[Modelled] = []
    for stage in STAGES:
        own = [row for row in rows if row.kind in stage.kinds]
        checked += map(Modelled, own, stage.price(machine, own)(machine.numbers))
    return checked


def source_of(rows: Sequence[Row]) -> str:
    """Return the repositories of rows and the date, as the source of constants."""
    repositories = sorted({"/".join(row.experiment.split("/")[:2]) for row in rows})
    return f"times measured on DIMMs by {' and '.join(repositories)}, {date.today()}"


Key = tuple[str, str, int, int]  # the fields of a row without its time


def read_rows(folder: Path) -> list[Row]:
    """Return the rows of a folder. Raises ArgumentError for a file that is missing, is no CSV file,
    lacks a column or a field, or has a wrong number or direction.
    """
    seconds: dict[Key, list[float]] = defaultdict(list)
    for key, took in (*_transfers(folder), *_runs(folder)):
        if 0 < key[2] <= MOST_PES:  # some rows have the number of an allocation of all DPUs
            seconds[key].append(took)
    return [Row(*key, float(np.median(times))) for key, times in sorted(seconds.items())]


def _records(file: Path, texts: Iterable[str], numbers: Iterable[str]) -> Iterator[dict[str, Any]]:
    """Yield the records of a file. texts, numbers: the columns; an empty number becomes 0."""
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
                if values["ms"] > 0:
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


def _transfers(folder: Path) -> Iterator[tuple[Key, float]]:
    texts = ("api", "direction", "space", "repository", "path")
    for record in _records(folder / "transfers.csv", texts, ("dpus", "bytes_per_dpu", "ms")):
        pes, size = int(record["dpus"]), int(record["bytes_per_dpu"])
        kind = record["direction"].removesuffix("_dpu")
        if kind not in ("to", "from"):
            rule = f"direction {record['direction']!r} is unknown; use to_dpu or from_dpu"
            malformed(folder / "transfers.csv", None, rule)
        if record["space"] == "wram" and kind == "to":
            if pes < PES_PER_RANK or not JOB_BYTES[0] <= size <= JOB_BYTES[1]:
                continue
            kind = "jobs"
        elif record["space"] != "mram" or size == 0:
            continue
        elif DIRECT in record["api"]:
            kind = f"{DIRECT} {kind}"
        yield (kind, _experiment(record), pes, size), 1e-3 * record["ms"]


def _runs(folder: Path) -> Iterator[tuple[Key, float]]:
    """Yield launches without the time of their kernel, and loads of the same programs."""
    texts = ("operation", "note", "repository", "path")
    records = list(_records(folder / "launches.csv", texts, ("dpus", "elements", "ms")))
    launches = [
        record
        for record in records
        if record["operation"] == "dpu_launch_sync" and record["elements"]
    ]
    slopes: dict[tuple[str, str], float] = {}  # ms per element of the longest kernel, by kernel
    for record in sorted(launches, key=lambda record: record["elements"]):
        slopes[_kernel(record)] = record["ms"] / record["elements"]
    for record in launches:
        ms = record["ms"] - record["elements"] * slopes[_kernel(record)]
        if ms > 0 and record["elements"] <= MOST_ELEMENTS:
            yield ("launch", _experiment(record), int(record["dpus"]), 0), 1e-3 * ms
    programs = {(record["repository"], record["path"]) for record in launches}
    for record in records:
        if record["operation"] == "dpu_load" and (record["repository"], record["path"]) in programs:
            yield ("load", _experiment(record), int(record["dpus"]), 0), 1e-3 * record["ms"]


def _kernel(record: dict[str, Any]) -> tuple[str, str]:
    """Return the repository, and the description of a kernel without its number of elements."""
    return record["repository"], record["note"].replace(f"i<{record['elements']:.0f}", "")
