"""The report of a benchmark: a table with comments, JSON lines, or both."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import typer

import pidcomm
from pidcomm.arguments import Options
from pidcomm.errors import Error
from pidcomm.evaluation import info, platform
from pidcomm.evaluation.ablation import MIN_ROUNDS, Assumed, Step
from pidcomm.evaluation.bench import BASE, Row
from pidcomm.evaluation.measure import SdkCondition, sdk_flush
from pidcomm.evaluation.results import Results
from pidcomm.evaluation.sweep import Section
from pidcomm.sizes import format_duration


class Report:
    """Write comments and rows, and the rows also as JSON lines."""

    def __init__(self, results: Results) -> None:
        self._results = results
        self._title: str | None = None
        self._facts = run_facts()

    def comment(self, lines: Iterable[str]) -> None:
        """Write comment lines."""
        self._results.text(*(f"# {line}" for line in lines))

    def skipped(self, errors: Iterable[Error]) -> None:
        """Report skipped cases, to stderr if stdout is for JSON."""
        for error in errors:
            typer.echo(f"# skipped: {error}", err=not self._results.has_text)

    def rows(self, rows: Iterable[Row | Step]) -> None:
        """Write rows, with the names of the columns before the first row of a kind."""
        for row in rows:
            if (title := title_line(COLUMNS[type(row)])) != self._title:
                self._results.text(title)
                self._title = title
            self._results.json_lines([json_row(row, self._facts)])  # first, so the file has every row shown
            self._results.text(row_line(row))


def json_row(row: Row | Step, facts: dict[str, Any]) -> dict[str, Any]:
    """Return a row for JSON: its fields, and the facts of the run."""
    return {**asdict(row), **facts}


def run_facts() -> dict[str, Any]:
    """Return the facts of a run, which every JSON line repeats."""
    return {
        "version": pidcomm.__version__,
        "commit": info.commit(),
        "machine": {"cpu": info.cpu_name(), "cpus": info.cpus()},
        "hugepages": info.has_hugepages(),
        "sdk_flush": sdk_flush(),
    }


def _flush_words() -> str:
    return {
        "off": "off",
        "once": "once, before the first load, as the collectives",
        "stock": "before and after each transfer, as the stock SDK; the collectives flush once",
    }[sdk_flush()]


def header(options: Options) -> Iterator[str]:
    """Yield the lines above the rows."""
    yield f"pidcomm {pidcomm.__version__}, commit {info.commit() or 'unknown'}"
    yield f"CPU: {info.cpu_name()}, {info.cpus()} CPUs"
    yield f"threads {options.get('threads') or platform.threads()}, coherence policy {options.get('coherence')}"
    if platform.IS_EMULATED:
        yield f"flushes of the emulated SDK: {_flush_words()}"
        yield f"geometry: {info.geometry()} (emulated); huge pages {'on' if info.has_hugepages() else 'off'}"
    else:
        yield f"DIMMs of {platform.SDK}"


def section_header(section: Section, condition: SdkCondition, hypercube_us: float) -> Iterator[str]:
    """Yield the lines above the rows of a section."""
    yield f"{section}; hypercube made in {format_duration(hypercube_us * 1e-6)}"
    yield from condition.lines()
    if not condition.holds:
        yield "so the rows have no speed-up over conventional"


_PROBLEM = (
    ("collective", "{0.collective:<14}"),
    ("technique", "{technique:<12}"),
    ("dtype", "{0.dtype:<7}"),
    ("op", "{op:<4}"),
    ("shape", "{0.shape:<9}"),
    ("mask", "{0.mask:<5}"),
    ("bytes/PE", "{0.bytes_per_pe:>9}"),
)
_ROW = (
    *_PROBLEM,
    ("t_min_us", "{0.t_min_us:>9.0f}"),
    ("t_p50_us", "{0.t_p50_us:>9.0f}"),
    ("t_p99_us", "{0.t_p99_us:>9.0f}"),
    ("outside_us", "{0.outside_us:>10.1f}"),
    ("plan_us", "{0.plan_us:>8.1f}"),
    ("pe_us", "{0.pe_us:>8.0f}"),
    ("algbw", "{0.algbw_gb_s:>6.2f}"),
    ("bus", "{0.bus_gb_s:>6.2f}"),
    ("limit%", "{limit:>6}"),
    ("limit by", "{copy_order:<10}"),
    ("speed-up", "{speed_up:>8}"),
    ("wrong", "{0.wrong:>5}"),
    ("source", "{0.source:<8}"),
)
_STEP = (
    *_PROBLEM,
    ("host_us", "{0.host_us:>8.0f}"),
    ("step", "{step_gain:<20}"),
    ("from", "{0.from_us:>7.0f}"),
    ("work", "{0.work_us:>7.0f}"),
    ("to", "{0.to_us:>7.0f}"),
    ("outside", "{0.outside_us:>7.0f}"),
    ("bus", "{0.bus_us:>7.0f}"),
    ("host mem", "{0.host_memory_us:>8.0f}"),
    ("DT", "{dt:>6}"),
    ("modul.", "{0.modulation_us:>6.0f}"),
    ("PE_us", "{0.pe_us:>6.0f}"),
    ("launches", "{0.launches:>8}"),
    ("loads", "{0.loads:>5}"),
    ("total_us", "{0.total_us:>8.0f}"),
    ("PE%", "{pe_pct:>5}"),
    ("launch%", "{launch_pct:>7}"),
    ("load%", "{load_pct:>5}"),
    ("MRAM MB", "{mram_mb:>8}"),
    ("host MB", "{host_mb:>8}"),
    ("PE MB", "{pe_mb:>8}"),
    ("wrong", "{0.wrong:>5}"),
    ("source", "{0.source:<8}"),
)
COLUMNS: dict[type, Sequence[tuple[str, str]]] = {Row: _ROW, Step: _STEP}


def title_line(columns: Sequence[tuple[str, str]]) -> str:
    """Return the names of the columns, aligned as the rows."""
    return " ".join(f"{name:{_width(form)}}" for name, form in columns)


def row_line(row: Row | Step) -> str:
    """Return a row as a line."""
    fields = _row_fields(row) if isinstance(row, Row) else _step_fields(row)
    return " ".join(form.format(row, op=row.op or "-", **fields) for _, form in COLUMNS[type(row)])


def technique_label(asked: str, carried_out: str) -> str:
    """Return the name of a technique; for auto, also the one that it chose."""
    return asked if asked == carried_out else f"{asked}={carried_out}"


def _number(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)


def _gain(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}x"


def _step_gain(step: Step) -> str:
    gain, low, high = step.step_gain, step.step_low, step.step_high
    if low is None or high is None:
        return "-" if gain is None else f"{_gain(gain)}?"
    return f"{_gain(gain)}{'?' if low <= 1 <= high else ''} ({low:.2f}-{high:.2f})"


def _row_fields(row: Row) -> dict[str, str]:
    return {
        "technique": technique_label(row.technique, row.carried_out),
        "limit": _number(row.limit_pct, ".0f"),
        "copy_order": row.limit_copy_order or "-",
        "speed_up": _gain(row.speed_up),
    }


def _step_fields(step: Step) -> dict[str, str]:
    return {
        "technique": step.technique,
        "step_gain": _step_gain(step),
        "dt": _number(step.dt_us, ".0f"),
        "pe_pct": f"{step.share_pct(step.pe_us):.1f}",
        "launch_pct": f"{step.share_pct(step.launch_us):.1f}",
        "load_pct": f"{step.share_pct(step.load_us):.1f}",
        "mram_mb": f"{step.mram_bytes / 1e6:.1f}",
        "host_mb": f"{step.host_bytes / 1e6:.1f}",
        "pe_mb": f"{step.pe_bytes / 1e6:.1f}",
    }


def ablation_header(assumed: Assumed) -> Iterator[str]:
    """Yield the lines above an ablation."""
    yield (
        "ablation: host_us is measured (median); step = gain over the line before, median and quartiles over rounds "
        f"(?: 1 lies between the quartiles, or there are fewer than {MIN_ROUNDS} rounds); a technique that works as "
        "another has no line"
    )
    yield (
        "measured phases of techniques that go through host memory: from the PEs, work on the host, to the PEs. Parts "
        "of host_us: outside = all except the pass over memory, measured; bus = the streaming limit for the same bytes "
        "of MRAM; host mem = an ordinary copy of the bytes of host rows and host buffers; DT = domain transfers, pr+im "
        "less pr+im+cm (below 0: noise; -: unknown); modul. = the remainder, with the domain transfers where DT is -. "
        "Parts overlap: if the pass is faster than the sum of the other parts, the remainder is below 0"
    )
    launch, load = (format_duration(cost_us * 1e-6) for cost_us in (assumed.launch_us, assumed.load_us))
    yield (
        f"PE_us is modelled; a launch is assumed to take {launch} and the load of a program {load} (two loads: the "
        "reorder program, and the caller's again); total_us is the sum"
    )


def summary(rows: Sequence[Row]) -> Iterator[str]:
    """Yield a line for every collective and technique, then for every technique the mean over its collectives."""
    yield "summary: minimum / median / maximum of the rows"
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
