"""Figures 14 to 20 and 23a of the PID-Comm paper: its experiments, measured on this host and
modelled on the paper's machine.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pidcomm.bench import info
from pidcomm.bench.oracle import Problem
from pidcomm.bench.report import run_facts
from pidcomm.model import PHASES
from pidcomm.model.prediction import PAPER_MACHINE
from pidcomm.sizes import format_shape, format_size
from pidcomm_studies.papers.figure import (
    HERE,
    MIXED,
    MODELLED,
    PUBLISHED,
    Figure,
    Panel,
    Point,
    Request,
)
from pidcomm_studies.papers.pidcomm.experiments import (
    EXPERIMENTS,
    PAPER_BYTES,
    PAPER_PES,
    Costs,
    Experiment,
    Statistic,
    modelled_costs,
    throughput_gb_s,
)
from pidcomm_studies.papers.pidcomm.published import PAPER
from pidcomm_studies.papers.pidcomm.study import Study

CALLS, PHASE_PANEL = "calls", "phases"
NOTE = (
    f"Modelled values are predictions, never measured, for {PAPER_MACHINE} with {PAPER_PES} PEs and"
    f" {format_size(PAPER_BYTES)} per PE where these do not vary. They are whole calls, with"
    " launches and loads of PE programs. A statistic of several calls is their geometric mean."
)


def statistics_panel(unit: str) -> str:
    """Return the name of the panel of the statistics with a unit."""
    return f"statistics, {'factor' if unit == 'x' else unit}"


def call_points(costs: Costs, on: str, facts: Mapping[str, Any]) -> Iterator[Point]:
    """Yield the throughput of each call. on: name of the machine. facts: fields of all points."""
    for (problem, technique), cost in costs.items():
        reorder = f" + {cost.reorder_us / 1e3:.4g}" if cost.reorder_us else ""
        yield Point(
            CALLS,
            technique,
            f"{problem.collective} {format_shape(problem.shape)} {format_size(problem.bytes)}",
            throughput_gb_s(problem, cost),
            cost.source,
            on,
            facts={
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
                **facts,
            },
            detail=f"{cost.host_us / 1e3:.4g}{reorder}",
        )


def phase_points(costs: Costs) -> Iterator[Point]:
    """Yield the phases of modelled calls. Phases that take no time are omitted."""
    for (problem, technique), cost in costs.items():
        for name in PHASES:
            if cost.phases_us and cost.phases_us[name]:
                x = f"{problem.collective} {technique}"
                milliseconds = cost.phases_us[name] / 1e3
                yield Point(PHASE_PANEL, name, x, milliseconds, MODELLED, PAPER_MACHINE)


def statistic_points(
    experiment: Experiment,
    costs: Costs,
    on: str,
    pes: int,
    size_bytes: int,
    problems: Sequence[Problem] | None = None,
) -> Iterator[Point]:
    """Yield the statistics of an experiment that have all their costs.

    pes, size_bytes: of the largest calls. problems: the cases that must have costs (default: all
    cases with a cost).
    """
    alone = {pair: replace(cost, pe_us=0.0, start_us=None) for pair, cost in costs.items()}
    for statistic in experiment.statistics:
        value, source = statistic.of(costs, problems), statistic.source(costs, problems)
        if value is None or source is None:
            continue
        is_modelled = source == MODELLED
        ratio = value / statistic.published.value if statistic.published else None
        facts = {
            "host_alone": statistic.of(alone, problems) if source == MIXED else None,
            "most_pes": pes,
            "most_bytes_per_pe": size_bytes,
            "error_pct": 100 * (ratio - 1) if is_modelled and ratio is not None else None,
            "ratio": ratio if not is_modelled and pes == PAPER_PES else None,
        }
        yield _statistic_point(statistic, value, source, on, facts)


def published_points(experiment: Experiment) -> Iterator[Point]:
    """Yield the statistics that the paper states."""
    for statistic in experiment.statistics:
        if statistic.published:
            facts = dict.fromkeys(
                ("host_alone", "most_pes", "most_bytes_per_pe", "error_pct", "ratio")
            )
            yield _statistic_point(
                statistic, statistic.published.value, PUBLISHED, statistic.published.source, facts
            )


def _statistic_point(
    statistic: Statistic, value: float, source: str, on: str, facts: Mapping[str, Any]
) -> Point:
    facts = {"statistic": statistic.key, "unit": statistic.unit, **facts}
    panel = statistics_panel(statistic.unit)
    return Point(panel, statistic.techniques[0], statistic.what, value, source, on, facts=facts)


def _figure(name: str) -> Figure:
    experiment = EXPERIMENTS[name]

    def model(_: Request) -> Iterator[Point]:
        costs = modelled_costs(experiment)
        yield from call_points(costs, PAPER_MACHINE, {"commit": info.commit()})
        if experiment.has_phases:
            yield from phase_points(costs)
        yield from published_points(experiment)
        yield from statistic_points(experiment, costs, PAPER_MACHINE, PAPER_PES, PAPER_BYTES)

    def measure(request: Request) -> Iterator[Point]:
        study = request.shared(Study)
        costs = study.measure(experiment)
        request.conditions[f"pidcomm/{name}"] = study.conditions(costs)
        yield from call_points(costs, HERE, run_facts())
        most = request.pes, request.size_bytes
        yield from statistic_points(
            experiment, study.fair(costs), HERE, *most, study.problems(experiment)
        )

    def check(request: Request) -> None:
        if request.iters:
            request.shared(Study)

    phases = [Panel(PHASE_PANEL, "ms of a call by phase", "collective, technique")]
    units = dict.fromkeys(statistic.unit for statistic in experiment.statistics)
    return Figure(
        f"pidcomm/{name}",
        PAPER,
        experiment.title,
        [
            Panel(
                CALLS,
                "throughput in GB/s",
                "collective, shape, bytes/PE",
                detail="ms: host + PEs",
            ),
            *(phases if experiment.has_phases else []),
            *(
                Panel(
                    statistics_panel(unit),
                    "factor" if unit == "x" else unit,
                    "statistic",
                    unit=unit,
                )
                for unit in units
            ),
        ],
        model,
        measure=measure,
        note=f"The paper varies: {experiment.varies}. {NOTE}",
        options=("--bytes", "--pes", "--wide"),
        check=check,
    )


FIGURE_14 = _figure("fig14")
FIGURE_16 = _figure("fig16")
FIGURE_17 = _figure("fig17")
FIGURE_18 = _figure("fig18")
FIGURE_19 = _figure("fig19")
FIGURE_20 = _figure("fig20")
FIGURE_23A = _figure("fig23a")
