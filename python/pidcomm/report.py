"""The report of a benchmark: a table with comments, JSON lines, or both."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import typer

import pidcomm
from pidcomm import info
from pidcomm.arguments import Options
from pidcomm.bench import BASE, Row
from pidcomm.errors import Error
from pidcomm.machine import machine
from pidcomm.measure import SdkCondition, sdk_flush
from pidcomm.sweep import Section

ONLY_JSON = "-"


class Report:
    """Write comments and rows to stdout, and rows to a file as JSON lines, too; or JSON lines alone to stdout."""

    def __init__(self, json_target: str | None) -> None:
        """Make the file empty, or ONLY_JSON go to stdout. Raises Error if the file cannot be written."""
        self._has_table = json_target != ONLY_JSON
        self._has_title = False
        self._file = Path(json_target) if json_target is not None and self._has_table else None
        self._facts = run_facts()
        if self._file is not None:
            try:
                self._file.write_text("")
            except OSError as error:
                raise Error(f"cannot write {self._file}: {error.strerror}") from None

    def comment(self, lines: Iterable[str]) -> None:
        """Write lines that are no rows."""
        for line in lines if self._has_table else ():
            typer.echo(f"# {line}")

    def skipped(self, errors: Iterable[Error]) -> None:
        """Say what is left out; never nowhere."""
        for error in errors:
            typer.echo(f"# skipped: {error}", err=not self._has_table)

    def rows(self, rows: Iterable[Row]) -> None:
        """Write rows."""
        for row in rows:
            line = json.dumps({**asdict(row), **self._facts})
            if not self._has_table:
                typer.echo(line)
                continue
            if not self._has_title:
                typer.echo(title_line())
                self._has_title = True
            typer.echo(row_line(row))
            if self._file is not None:
                with self._file.open("a") as file:
                    file.write(line + "\n")


def run_facts() -> dict[str, Any]:
    """Return what all rows of a run have in common, as each JSON line tells it."""
    return {
        "version": pidcomm.__version__,
        "commit": info.commit(),
        "machine": {"cpu": info.cpu_name(), "cpus": info.cpus()},
        "hugepages": machine().hugepages,
        "sdk_flush": sdk_flush(),
    }


def _flush_words() -> str:
    return {
        "off": "off",
        "once": "once, before the first load, as the collectives",
        "stock": "before and after each transfer, as the stock SDK; the collectives flush once",
    }[sdk_flush()]


def header(options: Options) -> Iterator[str]:
    """Yield the lines that go before the rows."""
    it = machine()
    yield f"pidcomm {pidcomm.__version__}, commit {info.commit() or 'unknown'}"
    yield f"CPU: {info.cpu_name()}, {info.cpus()} CPUs"
    yield f"threads {options.get('threads') or it.threads}, coherence policy {options.get('coherence')}"
    yield f"flushes of the emulated SDK: {_flush_words()}"
    yield f"geometry: {info.geometry()} (emulated); huge pages {'on' if it.hugepages else 'off'}"


def section_header(section: Section, condition: SdkCondition, hypercube_us: float) -> Iterator[str]:
    """Yield the lines that go before the rows of a section."""
    yield f"{section}; hypercube made in {hypercube_us:.0f} us"
    yield from condition.lines()
    if not condition.holds:
        yield "no speed-up over conventional is claimed"


COLUMNS = (
    ("collective", "{0.collective:<14}"),
    ("technique", "{0.technique:<12}"),
    ("dtype", "{0.dtype:<7}"),
    ("op", "{op:<4}"),
    ("shape", "{0.shape:<9}"),
    ("mask", "{0.mask:<5}"),
    ("bytes/PE", "{0.bytes_per_pe:>9}"),
    ("t_min_us", "{0.t_min_us:>9.0f}"),
    ("t_p50_us", "{0.t_p50_us:>9.0f}"),
    ("t_p99_us", "{0.t_p99_us:>9.0f}"),
    ("outside_us", "{0.outside_us:>10.1f}"),
    ("plan_us", "{0.plan_us:>8.1f}"),
    ("algbw", "{0.algbw_gb_s:>6.2f}"),
    ("bus", "{0.bus_gb_s:>6.2f}"),
    ("limit%", "{limit:>6}"),
    ("limit by", "{stream:<10}"),
    ("speed-up", "{speed_up:>8}"),
    ("wrong", "{0.wrong:>5}"),
    ("source", "{0.source:<8}"),
)


def title_line() -> str:
    """Return the names of the columns, aligned as the rows."""
    return " ".join(f"{name:{_width(form)}}" for name, form in COLUMNS)


def row_line(row: Row) -> str:
    """Return a row as a line."""
    fields = {
        "op": row.op or "-",
        "limit": "-" if row.limit_pct is None else f"{row.limit_pct:.0f}",
        "stream": row.limit_stream or "-",
        "speed_up": "-" if row.speed_up is None else f"{row.speed_up:.2f}x",
    }
    return " ".join(form.format(row, **fields) for _, form in COLUMNS)


def summary(rows: Sequence[Row]) -> Iterator[str]:
    """Yield a line for every collective and technique, and for every technique the mean over its collectives."""
    yield "summary: least / median / most of the rows"
    medians: dict[str, list[float]] = {}
    for collective, technique in dict.fromkeys((row.collective, row.technique) for row in rows):
        of_kind = [row for row in rows if (row.collective, row.technique) == (collective, technique)]
        limits = [row.limit_pct for row in of_kind if row.limit_pct is not None]
        gains = [row.speed_up for row in of_kind if row.speed_up is not None]
        if gains and technique != BASE:
            medians.setdefault(technique, []).append(float(np.median(gains)))
        yield (
            f"{collective:<14} {technique:<12} {len(of_kind):>4} rows, "
            f"limit% {_spread(limits, '5.0f')}, speed-up {_spread(gains, '6.2f')}"
        )
    for technique, values in medians.items():
        mean = np.exp(np.mean(np.log(values)))
        yield f"{technique}: geometric mean of the median speed-ups of {len(values)} collectives {mean:.2f}x"


def _spread(values: Sequence[float], form: str) -> str:
    return " / ".join(f"{it:{form}}" for it in (min(values), np.median(values), max(values))) if values else "-"


def _width(form: str) -> str:
    return form[1:-1].split(":")[1].split(".")[0]
