"""Reports of benchmarks: tables with comments, JSON lines, or both."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import cached_property
from typing import Any

import numpy as np

import pidcomm
from pidcomm import _core
from pidcomm.arguments import Options
from pidcomm.bench import info, platform
from pidcomm.bench.ablation import MIN_ROUNDS, Assumed, Step
from pidcomm.bench.columns import Column, Lines
from pidcomm.bench.measure import SdkCondition, sdk_flush
from pidcomm.bench.over_hosts import HostsCase, measure_over_hosts
from pidcomm.bench.results import Results
from pidcomm.bench.sweep import Section
from pidcomm.bench.timing import BASE, Row
from pidcomm.errors import Error
from pidcomm.sizes import format_duration, format_shape, format_size

__all__ = ["Report", "header", "run_facts", "technique_label"]


MOST_SPREAD = 0.25  # of a row without a comment


class Report:
    """Write comments and rows. Rows are also written as JSON lines."""

    def __init__(self, results: Results, *, is_wide: bool = False) -> None:
        self._results = results
        self._is_wide = is_wide
        self._titles = self._about = ""

    @cached_property
    def facts(self) -> dict[str, Any]:
        """Return the facts of the run."""
        return run_facts()

    def comment(self, lines: Iterable[str]) -> None:
        """Write comment lines."""
        self._results.text(*(f"# {line}" for line in lines))

    def skipped(self, errors: Iterable[Error]) -> None:
        """Report each skipped case in the text, or on stderr if stdout is for JSON."""
        for error in errors:
            self._results.note(f"# skipped: {error}")

    def rows(self, rows: Iterable[Row | Step]) -> None:
        """Write rows.

        Titles precede the first row of each kind; mask and type precede the first row of a case.
        """
        for row in rows:
            about = f"mask {row.mask}, {row.dtype}" + (f" {row.op}" if row.op else "")
            if about != self._about:
                self.comment([about])
                self._about = about
            if (
                titles := Lines(COLUMNS[type(row)], is_wide=self._is_wide).titles()
            ) != self._titles:
                self._results.text(titles)
                self._titles = titles
            # Before the text: the file has all shown rows.
            self._results.json_lines([json_row(row, self.facts)])
            self._results.text(
                row_line(row, is_wide=self._is_wide), style="red" if row.wrong else None
            )
            if isinstance(row, Row) and row.spread > MOST_SPREAD:
                self.comment(
                    [
                        f"{row.technique} varies: a quarter of the times is below"
                        f" {row.t_p25_us:.0f} us, and a quarter above {row.t_p75_us:.0f} us"
                    ]
                )


def show_over_hosts(
    results: Results, cases: Sequence[HostsCase], iters: int, warmup: int, *, is_wide: bool = False
) -> int:
    """Measure cases over hosts and write the rows. Return the number of wrong elements."""
    lines = Lines(_OVER_HOSTS, is_wide=is_wide)
    shapes = list(dict.fromkeys(case.shape for case in cases))
    wrong = 0
    facts = run_facts()
    for shape in shapes:
        rows = measure_over_hosts([case for case in cases if case.shape == shape], iters, warmup)
        results.json_lines({**asdict(row), **facts} for row in rows)
        link, threads = rows[0].link, rows[0].threads
        for size_bytes in dict.fromkeys(row.bytes_per_pe for row in rows):
            results.text(
                f"# {shape[-1]} processes as {format_shape(shape)} share the CPUs, {threads}"
                f" threads each; {format_size(size_bytes)} per PE; {link}; {rows[0].source}"
            )
            of_size = [row for row in rows if row.bytes_per_pe == size_bytes]
            results.text(lines.titles(), *(lines.line(row) for row in of_size))
        wrong += sum(row.wrong or 0 for row in rows)
    results.text(f"every element checked: {wrong} wrong", style="red" if wrong else "green")
    return wrong


_OVER_HOSTS = (
    Column("collective", "{0.collective:<14}"),
    Column("technique", "{0.technique:<12}"),
    Column("mask", "{0.mask:<5}"),
    Column("overlap", "{0.overlap:<7}", is_wide=True),
    Column("bytes/PE", "{0.bytes_per_pe:>9}", is_wide=True),
    Column("t_min_us", "{0.t_min_us:>9.0f}", is_wide=True),
    Column("t_p50_us", "{0.t_p50_us:>9.0f}"),
    Column("t_p99_us", "{0.t_p99_us:>9.0f}", is_wide=True),
    Column("passes_us", "{0.passes_us:>9.0f}"),
    Column("exchange_us", "{0.exchange_us:>11.0f}"),
    Column("sent", "{0.bytes_sent:>11}", is_wide=True),
    Column("algbw", "{0.algbw_gb_s:>6.2f}"),
    Column("wrong", "{0.wrong:>6}"),
)


def json_row(row: Row | Step, facts: dict[str, Any]) -> dict[str, Any]:
    """Return a row for JSON, with the fields of the row and the facts of the run."""
    return {**asdict(row), **facts}


def run_facts() -> dict[str, Any]:
    """Return the facts of a run, which every JSON line repeats."""
    return {
        "version": pidcomm.__version__,
        "commit": info.commit(),
        "machine": {
            "cpu": info.cpu_name(),
            "cpus": info.cpus(),
            "busy_cpus": round(info.busy_cpus(0.2), 2),
        },
        "tuning": _core.tuning_source(),
        "hugepages": info.has_hugepages(),
        "sdk_flush": sdk_flush(),
    }


def _flush_words() -> str:
    return {
        "off": "off",
        "once": "once, before the first load, as in collectives",
        "stock": "before and after each transfer, as in the stock SDK; the collectives flush once",
    }[sdk_flush()]


def header(options: Options, facts: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines above the rows. facts: those of the run."""
    machine = facts["machine"]
    yield f"pidcomm {pidcomm.__version__}, commit {info.commit() or 'unknown'}"
    yield (
        f"CPU: {machine['cpu']}, {machine['cpus']} CPUs; other programs used"
        f" {machine['busy_cpus']:.1f} of them before"
    )
    yield (
        f"threads {options.get('threads') or platform.threads()}, coherence policy"
        f" {options.get('coherence')}; tuning: {facts['tuning']}"
    )
    if platform.IS_EMULATED:
        yield f"flushes of the emulated SDK: {_flush_words()}"
        yield (
            f"geometry: {info.geometry()} (emulated); huge pages"
            f" {'on' if info.has_hugepages() else 'off'}"
        )
    else:
        yield f"DIMMs of {platform.SDK}"


def section_header(section: Section, condition: SdkCondition, hypercube_us: float) -> Iterator[str]:
    """Yield the lines above the rows of a section."""
    yield f"{section}; hypercube made in {format_duration(hypercube_us * 1e-6)}"
    yield from condition.lines()
    if not condition.holds:
        yield "therefore the rows have no speed-up over conventional"


_PROBLEM = (
    Column("collective", "{0.collective:<14}"),
    Column("technique", "{technique:<12}"),
    Column("dtype", "{0.dtype:<7}", is_wide=True),
    Column("op", "{op:<4}", is_wide=True),
    Column("shape", "{0.shape:<9}", is_wide=True),
    Column("mask", "{0.mask:<5}", is_wide=True),
    Column("bytes/PE", "{0.bytes_per_pe:>9}", is_wide=True),
)
_ROW = (
    *_PROBLEM,
    Column("t_min_us", "{0.t_min_us:>9.0f}", is_wide=True),
    Column("t_p25_us", "{0.t_p25_us:>9.0f}", is_wide=True),
    Column("t_p50_us", "{0.t_p50_us:>9.0f}"),
    Column("t_p75_us", "{0.t_p75_us:>9.0f}", is_wide=True),
    Column("t_p99_us", "{0.t_p99_us:>9.0f}", is_wide=True),
    Column("outside_us", "{0.outside_us:>10.1f}", is_wide=True),
    Column("plan_us", "{0.plan_us:>8.1f}", is_wide=True),
    Column("pe_us", "{0.pe_us:>6.0f}"),
    Column("algbw", "{0.algbw_gb_s:>6.2f}"),
    Column("bus", "{0.bus_gb_s:>6.2f}"),
    Column("limit%", "{limit:>6}"),
    Column("limit by", "{copy_order:<10}", is_wide=True),
    Column("speed-up", "{speed_up:>8}"),
    Column("wrong", "{0.wrong:>5}"),
    Column("source", "{0.source:<8}", is_wide=True),
)
_STEP = (
    *_PROBLEM,
    Column("host_us", "{0.host_us:>8.0f}"),
    Column("step", "{step_gain:>7}"),
    Column("quartiles", "{quartiles:<11}", is_wide=True),
    Column("from", "{0.from_us:>7.0f}", is_wide=True),
    Column("work", "{0.work_us:>7.0f}", is_wide=True),
    Column("to", "{0.to_us:>7.0f}", is_wide=True),
    Column("outside", "{0.outside_us:>7.0f}", is_wide=True),
    Column("bus", "{0.bus_us:>6.0f}"),
    Column("host mem", "{0.host_memory_us:>8.0f}", is_wide=True),
    Column("DT", "{dt:>6}"),
    Column("modul.", "{0.modulation_us:>6.0f}", is_wide=True),
    Column("PE_us", "{0.pe_us:>6.0f}"),
    Column("launches", "{0.launches:>8}", is_wide=True),
    Column("loads", "{0.loads:>5}", is_wide=True),
    Column("total_us", "{0.total_us:>8.0f}"),
    Column("PE%", "{pe_pct:>5}", is_wide=True),
    Column("launch%", "{launch_pct:>7}", is_wide=True),
    Column("load%", "{load_pct:>5}", is_wide=True),
    Column("MRAM MB", "{mram_mb:>8}", is_wide=True),
    Column("host MB", "{host_mb:>8}", is_wide=True),
    Column("PE MB", "{pe_mb:>8}", is_wide=True),
    Column("wrong", "{0.wrong:>5}"),
    Column("source", "{0.source:<8}", is_wide=True),
)
COLUMNS = {Row: _ROW, Step: _STEP}


def row_line(row: Row | Step, *, is_wide: bool = True) -> str:
    """Return a row as a line of text."""
    fields = _row_fields(row) if isinstance(row, Row) else _step_fields(row)
    return Lines(COLUMNS[type(row)], is_wide=is_wide).line(row, op=row.op or "-", **fields)


def technique_label(asked: str, carried_out: str) -> str:
    """Return the name of a technique. For auto, add the technique that auto chose."""
    return asked if asked == carried_out else f"{asked}={carried_out}"


def _number(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)


def _gain(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}x"


def _step_gain(step: Step) -> str:
    gain, low, high = step.step_gain, step.step_low, step.step_high
    is_unsure = gain is not None and (low is None or high is None or low <= 1 <= high)
    return _gain(gain) + "?" * is_unsure


def _quartiles(step: Step) -> str:
    return (
        "-"
        if step.step_low is None or step.step_high is None
        else f"{step.step_low:.2f}-{step.step_high:.2f}"
    )


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
        "quartiles": _quartiles(step),
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
        "ablation: host_us is the measured median; step is the gain over the previous line, the"
        " median of the rounds (?: 1 lies between the quartiles, or there are fewer than"
        f" {MIN_ROUNDS} rounds); a technique with the plan of another technique has no line"
    )
    yield (
        "measured phases of techniques that go through host memory: from the PEs, work on the host,"
        " to the PEs. Parts of host_us: outside = all except the pass over memory, measured; bus ="
        " the streaming limit for the same bytes of MRAM; host mem = an ordinary copy of the bytes"
        " of host rows and host buffers; DT = domain transfers, pr+im less pr+im+cm (below 0:"
        " noise; -: unknown); modul. = the remainder, with the domain transfers where DT is -."
        " Parts overlap: if the pass is faster than the sum of the other parts, the remainder is"
        " below 0"
    )
    launch, load = (
        format_duration(cost_us * 1e-6) for cost_us in (assumed.launch_us, assumed.load_us)
    )
    yield (
        f"PE_us is modelled; a launch is assumed to take {launch} and the load of a program {load}"
        " (two loads: the reorder program, and the caller's again); total_us is the sum"
    )


def summary(rows: Sequence[Row]) -> Iterator[str]:
    """Yield a line for every collective and technique, and then a line with the mean of every
    technique.
    """
    yield "summary: minimum / median / maximum of the rows"
    medians: dict[str, list[float]] = {}
    for collective, technique in dict.fromkeys((row.collective, row.technique) for row in rows):
        of_kind = [
            row for row in rows if (row.collective, row.technique) == (collective, technique)
        ]
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
        yield (
            f"{technique}: geometric mean of the median speed-ups of {len(values)} collectives"
            f" {mean:.2f}x"
        )


def _spread(values: Sequence[float], form: str) -> str:
    return (
        " / ".join(f"{value:{form}}" for value in (min(values), np.median(values), max(values)))
        if values
        else "-"
    )
