"""The figures of the paper's applications: prices, points and statements."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import fsum
from typing import Any

import pytest

from pidcomm.arguments import options_of
from pidcomm.model import PHASES, load_machine, predict
from pidcomm.model.prediction import PAPER_MACHINE
from pidcomm_studies import apps
from pidcomm_studies.papers.figure import MIXED, Point, Request
from pidcomm_studies.papers.pidcomm.application_runs import CASES, CATEGORIES, Case, Runs, price
from pidcomm_studies.papers.pidcomm.applications import (
    FIGURE_4,
    FIGURE_13,
    FIGURE_15,
    FIGURE_21,
    FIGURE_22,
    GAINS,
    OVER_CPU,
)
from pidcomm_studies.papers.pidcomm.experiments import BASE, ENDS, OURS, PAPER


def test_every_phase_of_the_model_is_in_one_category() -> None:
    assert sorted(name for names in CATEGORIES.values() for name in names) == sorted(PHASES)


def test_labels_are_unique() -> None:
    assert len({case.label for case in CASES}) == len(CASES)


def test_a_price_is_the_sum_of_the_predictions_of_the_calls() -> None:
    run = apps.run(apps.get("gnn").make(quick=True), pes=16, iters=1)
    machine = load_machine(PAPER_MACHINE)
    for technique in ENDS:
        priced = price(run, technique)
        predicted = [
            predict(
                call.collective,  # type: ignore[arg-type]
                run.shape,
                call.mask,
                bytes=call.bytes_per_pe,
                dtype=call.dtype,
                machine=PAPER_MACHINE,
                **options_of(technique=technique, scratch=2 * call.bytes_per_pe),
            ).seconds
            for call in run.calls
        ]
        assert len(predicted) > 5
        assert priced.communication == pytest.approx(fsum(predicted))
        assert priced.kernel == run.kernel.modelled > 0
        job_us = machine["pe.jobs_us"] + 16 * machine["pe.job_us"]
        launches = 1e-6 * (machine.launch_us(16) + job_us) * run.kernel.launches
        assert priced.other == pytest.approx(launches + run.host.measured)
        parts = fsum(priced.part(category) for category in CATEGORIES)
        assert parts == pytest.approx(priced.communication)
        assert priced.total == pytest.approx(priced.communication + priced.kernel + priced.other)


def test_quick_figures_share_their_runs_and_every_share_is_part_of_a_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started = []
    compare = apps.compare

    def counted(problem: apps.Application, **named: Any) -> Iterator[apps.Run]:
        started.append(problem.name)
        return compare(problem, **named)

    monkeypatch.setattr(apps, "compare", counted)
    request = Request(iters=1, pes=16, quick=True)
    gains = FIGURE_15.points(request)
    labels = list(dict.fromkeys(point.x for point in gains))
    assert len(labels) == 7
    here = [point for point in gains if point.on != PAPER_MACHINE]
    assert {point.series for point in here} == {PAPER, OURS}
    assert all(point.wrong == 0 and point.value > 0 for point in here)
    assert len(list(FIGURE_15.statements(request, gains))) == 2
    count = len(started)
    for figure in (FIGURE_4, FIGURE_13):
        points = list(figure.model(request))
        for panel in figure.panels:
            for label in labels:
                shares = [p.value for p in points if (p.panel, p.x) == (panel.name, label)]
                assert fsum(shares) == pytest.approx(100)
        assert len(list(figure.statements(request, points))) == 1
    assert len(started) == count
    assert not request.wrong
    for figure in (FIGURE_4, FIGURE_13, FIGURE_15, FIGURE_21, FIGURE_22):
        assert not list(figure.statements(request, []))


def test_a_case_that_does_not_fit_is_skipped_once() -> None:
    skipped: list[object] = []
    runs = Runs(Request(quick=True, skip=skipped.extend))
    too_large = Case("too large", "mlp", {"features": 1 << 12})
    assert not runs.prices(too_large, 1)
    assert not runs.prices(too_large, 1)
    assert len(skipped) == 1
    assert "too large, 1 PEs: a PE of 1 needs" in str(skipped[0])


def _points(values: Mapping[tuple[str, str, float | str], float]) -> list[Point]:
    return [
        Point(panel, series, x, value, MIXED, PAPER_MACHINE)
        for (panel, series, x), value in values.items()
    ]


def test_statements_of_figure_21_count_each_case_once_and_find_the_best_number_of_pes() -> None:
    points = _points(
        {
            (f"{OVER_CPU}, CC LG", PAPER, 64): 2.5,
            (f"{OVER_CPU}, CC LG", PAPER, 256): 2.5,
            (f"{OVER_CPU}, CC LG", PAPER, 1024): 2.5 / 8,
            (f"{OVER_CPU}, CC LG", BASE, 32): 1.25,
            (f"{OVER_CPU}, CC LJ", PAPER, 64): 2.5,
            (f"{OVER_CPU}, MLP 16k", PAPER, 1024): 7.0,
            (f"{OVER_CPU}, MLP 16k", BASE, 1024): 9.0,
        }
    )
    by_text = {s.published: s for s in FIGURE_21.statements(Request(), points)}
    mean = (1.25 * 2.5 * 7) ** (1 / 3)
    of_paper = by_text["pr+im+cm is 4.07x as fast as the CPUs (geometric mean)"]
    assert of_paper.here == f"{mean:.2f}x ({100 * (mean / 4.07 - 1):+.0f}%)"
    assert by_text["CC LG is fastest with 64 PEs with pr+im+cm"].agrees
    best = by_text["CC LG is fastest with 64 PEs with baseline"]
    assert (best.here, best.agrees) == ("with 32 PEs", False)
    assert by_text["CC LG is then 2.58x as fast as the CPUs"].here == "2.50x (-3%)"
    most = by_text["pr+im+cm is at most 7.89x as fast as the CPUs, for MLP"]
    assert most.here == "at most 7.00x (-11%)"
    assert most.agrees
    assert not by_text["baseline is at most 3.18x as fast as the CPUs, for MLP"].agrees


@pytest.mark.parametrize(("int8", "agrees"), [(1.64, True), (1.9, True), (1.3, False), (3, False)])
def test_the_statement_of_figure_22_compares_8_bits_with_more(int8: float, agrees: bool) -> None:
    points = _points(
        {
            (GAINS, PAPER, f"{label} {dtype}"): value
            for label in ("a", "b")
            for dtype, value in (("int8", int8), ("int16", 1.4), ("int32", 1.35))
        }
    )
    (statement,) = FIGURE_22.statements(Request(), points)
    assert statement.agrees == agrees
    assert statement.here.startswith(f"{int8:.2f}x (")
