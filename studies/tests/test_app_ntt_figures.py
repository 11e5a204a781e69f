"""The clocks of a number-theoretic transform, and the figure of them."""

from __future__ import annotations

import pytest
from test_pictures import assert_legible

from pidcomm.model import load_machine
from pidcomm_studies.apps.ntt import Ntt
from pidcomm_studies.papers.figure import Point, Request
from pidcomm_studies.papers.scalability import ntt as figures
from pidcomm_studies.papers.scalability.ntt_clocks import COMPLETE, clocks, modelled
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


def test_figure_14_has_every_clock_and_statement(monkeypatch: pytest.MonkeyPatch) -> None:
    """With few PEs and one technique."""
    monkeypatch.setattr(figures, "PES", (64, 128))
    monkeypatch.setattr(figures, "TECHNIQUES", ("tile",))
    figure = figures.FIGURE_14
    points = figure.points(Request(iters=1))
    assert len(points) == 2 * (7 + 1) + 2 * (6 + 1)
    assert not any(point.wrong for point in points)
    kernels = {
        (point.series, point.x): point.value
        for point in points
        if point.source == "modelled" and point.panel == "tile"
    }
    assert 1.8 < kernels["kernel 1", 64] / kernels["kernel 1", 128] < 2.1
    statements = [*figure.statements(Request(), points)]
    assert_legible(of_papers.draw(figure, points, statements))
    assert [statement.here.split(":")[0] for statement in statements] == 3 * ["mixed, tile"] + 3 * [
        "modelled, tile"
    ]
    assert not any(statement.agrees for statement in statements)  # 2x instead of 63.5x


def test_statements_of_figure_14_accept_only_values_near_the_published_ones() -> None:
    """Invented clocks, as in the paper except for one."""

    def agreeing(kernels: float, total: float, share: float) -> list[str]:
        rows = {
            "kernel 1": (1.0, 1 / kernels),
            "kernel 2": (1.0, 1 / kernels),
            "total": (9.0, 9 / total),
        }
        points = [
            Point("tile", name, pes, value, "modelled", figures.MACHINE)
            for name, values in rows.items()
            for pes, value in zip((32, 2048), values, strict=True)
        ]
        points += [
            Point("share", "tile", pes, share, "modelled", figures.MACHINE) for pes in (32, 2048)
        ]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(figures, "TECHNIQUES", ("tile",))
            patch.setattr(figures, "PES", (32, 2048))
            return [
                statement.published
                for statement in figures.FIGURE_14.statements(Request(), points)
                if statement.agrees
            ]

    every = agreeing(63.5, 9.7, 40.3)
    assert len(every) == 3
    assert agreeing(63.5, 42, 40.3) == [every[0], every[2]]
    assert agreeing(63.5, 9.7, 3.7) == every[:2]
    assert agreeing(100, 5, 40.3) == every[2:]
