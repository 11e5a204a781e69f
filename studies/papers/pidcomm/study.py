"""The measured calls of the experiments of the PID-Comm paper."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import pidcomm
from pidcomm import Options
from pidcomm.arguments import options_of
from pidcomm.bench import info, platform
from pidcomm.bench.measure import Scratch, SdkCondition, make_transfers_alike, measure_sdk
from pidcomm.bench.oracle import Problem
from pidcomm.bench.sweep import Section, affordable, even_shape
from pidcomm.bench.timing import Row, Schedule, measure_rows
from pidcomm.sizes import format_shape, format_size
from pidcomm_studies.papers.figure import Request
from pidcomm_studies.papers.pidcomm.experiments import (
    EXPERIMENTS,
    PAPER_BYTES,
    Cost,
    Costs,
    Experiment,
    Pair,
)

WARMUP = 1


def pairs_of(
    experiments: Iterable[Experiment], pes: int, size_bytes: int
) -> dict[Problem, list[str]]:
    """Return the cases of experiments for `pes` PEs and `size_bytes`, each with the techniques
    that run it.
    """
    techniques: dict[Problem, list[str]] = {}
    for problem, technique in dict.fromkeys(
        pair for experiment in experiments for pair in experiment.pairs(pes, size_bytes)
    ):
        techniques.setdefault(problem, []).append(technique)
    return techniques


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
    sections: dict[tuple[tuple[int, ...], int], Section] = {}
    for problem in problems:
        key = problem.shape, problem.bytes
        sections.setdefault(key, Section(*key, isa, [])).problems.append(problem)
    return list(sections.values())


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

        If the emulated SDK was too slow, techniques that use it are left out.
        """
        return {
            (problem, name): cost
            for (problem, name), cost in costs.items()
            if problem not in self.unfair or not pidcomm.TECHNIQUES[name].uses_sdk
        }


class Study:
    """The measured calls of all wanted experiments. Each call is measured once."""

    def __init__(self, request: Request) -> None:
        """Check all calls before the first call runs, and report the calls that need too much
        memory.
        """
        self._request = request
        even_shape(request.pes, 1)  # raises ArgumentError unless pes is a power of two
        experiments = [
            experiment
            for name, experiment in EXPERIMENTS.items()
            if f"pidcomm/{name}" in request.figures
        ]
        self._options = options_of(
            coherence=platform.COHERENCE, threads=platform.threads(), isa=pidcomm.DEFAULT_ISA
        )
        self._schedule = Schedule(request.iters, WARMUP, with_limit=False)
        self._measurements = Measurements()
        self._techniques = pairs_of(experiments, request.pes, request.size_bytes)
        require_valid(self._techniques, self._options)
        pidcomm.allocate(pes=request.pes).free()  # raises Error if the machine has fewer PEs
        every = list(dict.fromkeys(name for names in self._techniques.values() for name in names))
        sections, refusals = affordable(sections_of(self._techniques, pidcomm.DEFAULT_ISA), every)
        if not sections:
            raise refusals[0]
        request.skip(refusals)
        is_smaller = request.size_bytes < PAPER_BYTES
        if is_smaller and any(experiment.has_sizes for experiment in experiments):
            request.comment(
                [
                    f"sizes above {format_size(request.size_bytes)} are not measured; --bytes"
                    f" {PAPER_BYTES >> 20}MiB measures all sizes that fit in memory"
                ]
            )
        make_transfers_alike(self._options)
        self._affordable = {problem for section in sections for problem in section.problems}
        self._scratch = Scratch(list(self._affordable))

    def problems(self, experiment: Experiment) -> list[Problem]:
        """Return the cases of an experiment that fit in memory."""
        wanted = experiment.problems(self._request.pes, self._request.size_bytes)
        return [problem for problem in wanted if problem in self._affordable]

    def measure(self, experiment: Experiment) -> Costs:
        """Measure the cases of an experiment that are not measured yet, and return its costs."""
        progress, measurements = self._request.progress, self._measurements
        wanted = [
            problem
            for problem in self.problems(experiment)
            if (problem, experiment.techniques[0]) not in measurements.rows
        ]
        rounds = self._schedule.iters + self._schedule.warmup
        progress.phase(
            experiment.name, sum(rounds + len(self._techniques[problem]) for problem in wanted)
        )
        for section in sections_of(wanted, pidcomm.DEFAULT_ISA):
            progress.describe(f"{experiment.name}: {section}")
            condition = measurements.add(
                section,
                self._techniques,
                self._options,
                self._schedule,
                self._scratch,
                progress.step,
            )
            if not condition.holds:
                self._request.comment(
                    [
                        f"{section}: no speed-up over transfers of the SDK is claimed",
                        *condition.lines(),
                    ]
                )
        self._request.wrong += [
            f"{row.collective} with {row.technique} on {format_shape(problem.shape)}:"
            f" {row.wrong} wrong elements"
            for problem in wanted
            for name in self._techniques[problem]
            if (row := measurements.rows[problem, name]).wrong
        ]
        return measurements.costs(experiment.pairs(self._request.pes, self._request.size_bytes))

    def fair(self, costs: Costs) -> dict[Pair, Cost]:
        """Return the costs that are fair to compare, as `Measurements.fair`."""
        return self._measurements.fair(dict(costs))

    def conditions(self, costs: Costs) -> str:
        """Return the conditions of measured costs."""
        sizes = sorted({problem.bytes for problem, _ in costs})
        most = "up to " if len(sizes) > 1 else ""
        size = f"{most}{format_size(sizes[-1])} per PE" if sizes else "not measured"
        return (
            f"here: up to {self._request.pes} PEs, {size}; {info.cpu_name()}, {info.cpus()} CPUs;"
            " launches and loads of PE programs left out"
        )
