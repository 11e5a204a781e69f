"""The clocks of a number-theoretic transform, and the figure of them."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf
from types import ModuleType
from typing import Any

import pytest
from test_pictures import assert_legible

from pidcomm.model import load_machine
from pidcomm_studies.apps.ntt import Ntt
from pidcomm_studies.papers.figure import Figure, Point, Request, series_of
from pidcomm_studies.papers.scalability import ntt as figures
from pidcomm_studies.papers.scalability import ntt_log_q, ntt_one_pe, server_cpu
from pidcomm_studies.papers.scalability.ntt_clocks import COMPLETE, MACHINE, clocks, modelled
from pidcomm_studies.papers.scalability.ntt_factor import Times, factor_of_gain
from pidcomm_studies.pictures import points as of_papers


def test_clocks_of_a_transform_add_up() -> None:
    problem = Ntt.make(size=256, limbs=4)
    measured = clocks(problem, (16, 1, 1, 2), "tile", 2)
    assert measured.wrong == 0
    assert len(measured.kernels) == 2
    assert list(measured.named()) == [
        "kernel 1",
        "kernel 2",
        "CPU to PEs",
        "between PEs",
        "PEs to CPU",
        "total",
        COMPLETE,
    ]
    *parts, total, complete = measured.named().values()
    assert min(parts) > 0
    assert total == pytest.approx(sum(parts))
    assert measured.host is not None
    assert complete == pytest.approx(total + measured.host)
    assert measured.host > 0
    there = modelled(problem, (16, 1, 1, 2), "conventional", load_machine("upmem-2560"), measured)
    assert there.kernels == measured.kernels
    assert there.between != measured.between
    assert list(there.named())[-1] == "total"  # the host was measured here


def test_more_tasklets_use_more_of_the_pipeline() -> None:
    """Until 11, as long as the butterflies are a multiple of the tasklets."""
    use = [
        clocks(
            Ntt.make(size=256, limbs=1, steps="1", radix=16, tasklets=tasklets),
            (1, 1, 1, 1),
            "tile",
            1,
        ).pipeline_pct
        for tasklets in (1, 8, 15, 16)
    ]
    assert use[0] < use[1] < use[3]
    assert use[2] < use[3]


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Figures of transforms of 256 coefficients, on few PEs."""
    small_values: dict[ModuleType, dict[str, Any]] = {
        figures: {
            "SIZE": 256,
            "BALANCED": "16x16",
            "DIMENSIONS": {
                "2D": ("16x16", (16, 1, 1, 1)),
                "3D": ("4x8x8", (4, 8, 1, 1)),
                "4D": ("4x4x4x4", (4, 4, 4, 1)),
            },
            "STEP_SIZES": ("4x64", "16x16", "64x4"),
            "PES": (8, 16),
        },
        ntt_log_q: {"SIZE": 256, "LOG_Q": (60, 120), "HYBRID_PES": (8, 16)},
        ntt_one_pe: {"TASKLETS": (*range(8, 17), 24)},
    }
    for module, values in small_values.items():
        for name, value in values.items():
            monkeypatch.setattr(module, name, value)
    yield
    figures._problem.cache_clear()
    figures._ran.clear()


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(
    ("figure", "claims"),
    [
        (ntt_one_pe.FIGURE_12, 7),
        (figures.FIGURE_13, 4),
        (figures.FIGURE_14, 4),
        (ntt_log_q.FIGURE_15, 5),
    ],
)
@pytest.mark.parametrize("iters", [0, 1])
def test_every_statement_is_judged_and_names_the_cause_if_it_differs(
    figure: Figure, claims: int, iters: int
) -> None:
    points = figure.points(Request(iters=iters))
    assert not any(point.wrong for point in points)
    statements = [*figure.statements(Request(iters=iters), points)]
    assert len({statement.published for statement in statements}) == claims
    for statement in statements:
        if "by definition" in statement.published or "a tie" in statement.here:
            assert statement.agrees is None
            continue
        assert statement.agrees is not None
        assert statement.cause
    assert_legible(of_papers.draw(figure, points, statements))
    by_width = {
        width: [statement.here for statement in statements if width in statement.here]
        for width in figures.WIDTHS
    }
    assert len(set(map(len, by_width.values()))) == 1


def test_figure_14_has_every_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """With few PEs and one technique."""
    monkeypatch.setattr(figures, "PES", (64, 128))
    monkeypatch.setattr(figures, "TECHNIQUES", ("conventional",))
    figure = figures.FIGURE_14
    points = figure.points(Request(iters=1))
    assert len(points) == 2 * (2 * (7 + 1) + 2 * (6 + 1))
    assert not any(point.wrong for point in points)
    for width in figures.WIDTHS:
        kernels = series_of(points, f"conventional, {width}", "kernel 1", "modelled")
        assert 1.8 < kernels[64] / kernels[128] < 2.1
    statements = [*figure.statements(Request(), points)]
    assert [statement.here.split(":")[0] for statement in statements] == [
        f"{source}, {width}"
        for source in ("mixed", "modelled")
        for width in ("54 bits", "30 bits")
        for _ in range(4)
    ]
    assert not any(statement.agrees for statement in statements if "63.5" in statement.published)


def test_statements_of_figure_14_accept_only_values_near_the_published_ones() -> None:
    """Invented clocks, as in the paper except for one."""

    def agreeing(kernels: float, total: float, share: float) -> list[str]:
        rows = {
            "kernel 1": (4.0, 4 / kernels),
            "kernel 2": (4.0, 4 / kernels),
            "total": (9.0, 9 / total),
            "between PEs": (0.1, 9 / total * share / 100),
        }
        points = [
            Point(f"conventional, {width}", name, pes, value, "modelled", MACHINE)
            for width in figures.WIDTHS
            for name, values in rows.items()
            for pes, value in zip((32, 2048), values, strict=True)
        ]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(figures, "TECHNIQUES", ("conventional",))
            patch.setattr(figures, "PES", (32, 2048))
            return [
                statement.published
                for statement in figures.FIGURE_14.statements(Request(), points)
                if statement.agrees and statement.here.startswith("modelled, 54 bits")
            ]

    gain, total, few, share = agreeing(63.5, 9.7, 40.3)
    assert agreeing(63.5, 42, 40.3) == [gain, few, share]
    assert agreeing(63.5, 9.7, 3.7) == [gain, total, few]
    assert agreeing(100, 5, 40.3) == [few, share]


def test_factors_make_the_statements_true() -> None:
    few, many = Times(1000.0, 5.0, 10.0), Times(16.0, 8.0, 4.0)
    factor = factor_of_gain(few, many, 9.7)
    assert few.total(factor) / many.total(factor) == pytest.approx(9.7)
    assert many.share_pct(many.factor_of_share(40.3)) == pytest.approx(40.3)
    assert factor_of_gain(few, many, 99) == inf
    assert many.factor_of_share(67) == inf


def test_the_cpu_of_the_server_is_limited_by_cycles_or_by_memory() -> None:
    machine = load_machine(MACHINE)
    of_cycles = server_cpu.time_of(4e10, 0, 0, machine)
    assert of_cycles.limit == "cycles"
    assert of_cycles.seconds == pytest.approx(4e10 / 2.5e9 / 16)
    of_memory = server_cpu.time_of(1, 10**9, 0, machine)
    assert of_memory.limit == "memory"
    assert of_memory.seconds == pytest.approx(8 / 36.2)
    one, two = (server_cpu.transform_time(limbs, 2**16, 64, machine) for limbs in (16, 32))
    assert two.seconds == pytest.approx(2 * one.seconds)


def test_a_cpu_with_the_cycles_of_the_cause_is_as_fast_as_the_pes() -> None:
    machine = load_machine(MACHINE)
    cycles = server_cpu.cycles_per_butterfly(0.047, 52, 2**16, machine["host.threads"])
    total = cycles * server_cpu.butterflies(52, 2**16)
    assert server_cpu.time_of(total, 0, 0, machine).seconds == pytest.approx(0.047)
