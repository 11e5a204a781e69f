"""The experiments of the PID-Comm paper, measured on this host and modelled on the paper's
machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from pidcomm.arguments import Options, options_of
from pidcomm.bench.measure import Scratch, SdkCondition, measure_sdk
from pidcomm.bench.oracle import Problem
from pidcomm.bench.sweep import Section
from pidcomm.bench.timing import BASE, Row, Schedule, measure_rows
from pidcomm.model.prediction import SOURCE as MODELLED
from pidcomm.sizes import format_shape
from pidcomm_studies.papers.pidcomm.experiments import (
    Cost,
    Costs,
    Experiment,
    Pair,
    Statistic,
    throughput_gb_s,
)
from pidcomm_studies.papers.pidcomm.published import SOURCE as PUBLISHED

import pidcomm

HERE = "emulated DIMMs of this host"


def pairs_of(
    experiments: Iterable[Experiment], pes: int, size_bytes: int
) -> dict[Problem, list[str]]:
    """Return the cases of experiments for `pes` PEs and `size_bytes`, each with the techniques
    that run it.
    """
    found: dict[Problem, list[str]] = {}
    for problem, technique in dict.fromkeys(
        it for experiment in experiments for it in experiment.pairs(pes, size_bytes)
    ):
        found.setdefault(problem, []).append(technique)
    return found


def require_valid(pairs: dict[Problem, list[str]], options: Options) -> None:
    """Raise the library's error for the first invalid case. Moves no bytes."""
    for problem, techniques in pairs.items():
        for technique in techniques:
            sides: dict[str, Any] = {
                "bytes": problem.bytes,
                "dst": problem.bytes,
                "dtype": problem.dtype,
            }
            variant = options_of(
                **{**options, "technique": technique, "scratch": 2 * problem.bytes}
            )
            pidcomm.plan(
                problem.collective, problem.shape, problem.mask, op=problem.op, **sides, **variant
            )


def sections_of(problems: Iterable[Problem], isa: str) -> list[Section]:
    """Return sections of cases with equal shape and size."""
    found: dict[tuple[tuple[int, ...], int], Section] = {}
    for problem in problems:
        key = problem.shape, problem.bytes
        found.setdefault(key, Section(*key, isa, [])).problems.append(problem)
    return list(found.values())


@dataclass
class Measurements:
    """The measured rows. unfair: cases for which the emulated SDK was too slow for a fair
    comparison.
    """

    rows: dict[Pair, Row] = field(default_factory=dict)
    unfair: set[Problem] = field(default_factory=set)

    def add(
        self,
        section: Section,
        techniques: dict[Problem, list[str]],
        options: Options,
        schedule: Schedule,
        scratch: Scratch,
        on_step: Callable[[], None] = lambda: None,
    ) -> SdkCondition:
        """Measure the cases of a section. Every result is compared with the oracle."""
        with pidcomm.allocate(pes=section.pes) as pes:
            condition = measure_sdk(
                pes.hypercube(*section.shape), section.size_bytes, options, scratch
            )
            for problem in section.problems:
                names = techniques[problem]
                rows, _ = measure_rows(
                    pes, problem, names, options, schedule, scratch, condition, on_step
                )
                self.rows.update(
                    ((problem, name), row) for name, row in zip(names, rows, strict=True)
                )
        if not condition.holds:
            self.unfair.update(section.problems)
        return condition

    def costs(self, pairs: Iterable[Pair]) -> dict[Pair, Cost]:
        """Return the measured costs of calls. Calls with wrong results and unmeasured calls are
        left out.

        Costs exclude launches and loads, because their time on emulated DIMMs does not predict
        their time on DIMMs.
        """
        rows = ((pair, self.rows[pair]) for pair in pairs if pair in self.rows)
        return {
            pair: Cost(row.t_p50_us, row.pe_us, None, row.source)
            for pair, row in rows
            if not row.wrong
        }

    def fair(self, costs: Costs) -> dict[Pair, Cost]:
        """Return the costs that are fair to compare.

        If the emulated SDK was too slow, `conventional` is left out.
        """
        return {
            (it, name): cost
            for (it, name), cost in costs.items()
            if name != BASE or it not in self.unfair
        }

    def wrong(self) -> list[tuple[Problem, Row]]:
        """Return the cases and rows of wrong results."""
        return [(problem, row) for (problem, _), row in self.rows.items() if row.wrong]


def format_value(value: float, unit: str) -> str:
    """Return a value as text with its unit."""
    return f"{value:.2f}x" if unit == "x" else f"{value:.1f} {unit}"


class Value(NamedTuple):
    """A value and the source of the value: published, measured, modelled or mixed.

    host_alone: for a mixed value, the measured value without the modelled time of the PEs.
    """

    value: float
    source: str
    host_alone: float | None = None


@dataclass(frozen=True)
class Line:
    """The published, measured and modelled values of a statistic; None if a value is missing."""

    statistic: Statistic
    published: Value | None
    here: Value | None
    modelled: Value | None

    @property
    def ratio(self) -> float | None:
        """Return the measured value over the published value."""
        return self.here.value / self.published.value if self.here and self.published else None

    @property
    def error_pct(self) -> float | None:
        """Return the error of the model in percent of the published value."""
        return (
            100 * (self.modelled.value / self.published.value - 1)
            if self.modelled and self.published
            else None
        )


def lines_of(
    experiment: Experiment, here: Costs, modelled: Costs, problems: Sequence[Problem] | None = None
) -> list[Line]:
    """Return the statistics of an experiment.

    problems: the cases that must be measured (default: all cases with a cost).
    """
    alone = {pair: replace(cost, pe_us=0.0, start_us=None) for pair, cost in here.items()}

    def value(it: Statistic, costs: Costs, of: Sequence[Problem] | None = None) -> Value | None:
        number, source = it.of(costs, of), it.source(costs, of)
        if number is None or source is None:
            return None
        return Value(number, source, it.of(alone, of) if source == "mixed" else None)

    return [
        Line(
            it,
            Value(it.published.value, PUBLISHED) if it.published else None,
            value(it, here, problems),
            value(it, modelled),
        )
        for it in experiment.statistics
    ]


def case_rows(
    experiment: Experiment, costs: Costs, on: str, facts: dict[str, Any]
) -> list[dict[str, Any]]:
    """Return the calls of an experiment as rows for JSON. on: name of the machine. facts: fields
    of all rows.
    """
    return [
        {
            "figure": experiment.name,
            "collective": problem.collective,
            "technique": technique,
            "dtype": problem.dtype,
            "op": problem.op if problem.row.takes_op else None,
            "shape": format_shape(problem.shape),
            "mask": problem.mask,
            "bytes_per_pe": problem.bytes,
            "host_us": cost.host_us,
            "pe_us": cost.pe_us,
            "start_us": cost.start_us,
            "total_us": cost.total_us,
            "phases_us": cost.phases_us,
            "throughput_gb_s": throughput_gb_s(problem, cost),
            "source": cost.source,
            "on": on,
            **facts,
        }
        for (problem, technique), cost in costs.items()
    ]


def statistic_rows(
    experiment: Experiment,
    lines: Sequence[Line],
    machine: str,
    measured: tuple[int, int],
    modelled: tuple[int, int],
) -> list[dict[str, Any]]:
    """Return the statistics of an experiment as rows for JSON. Every value has a separate row with
    its source.

    measured, modelled: the largest number of PEs and the largest bytes per PE of the calls.
    """
    most = {HERE: measured, machine: modelled}
    rows = []
    for line in lines:
        it = line.statistic
        places = (
            (line.published, it.published and it.published.source),
            (line.here, HERE),
            (line.modelled, machine),
        )
        for value, on in places:
            if value is not None:
                rows.append(
                    {
                        "figure": experiment.name,
                        "statistic": it.key,
                        "what": it.what,
                        "unit": it.unit,
                        "value": value.value,
                        "host_alone": value.host_alone,
                        "source": value.source,
                        "on": on,
                        "most_pes": most[on][0] if on in most else None,
                        "most_bytes_per_pe": most[on][1] if on in most else None,
                        "error_pct": line.error_pct if value.source == MODELLED else None,
                    }
                )
    return rows
