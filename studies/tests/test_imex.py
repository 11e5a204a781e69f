"""The figure of the paper on allgather over a memory pool."""

from __future__ import annotations

import pytest

import pidcomm.model
from pidcomm_studies.papers.figure import Point, Request, series_of
from pidcomm_studies.papers.imex import figures


def test_gains_with_a_link_per_host_follow_from_the_links() -> None:
    machine = pidcomm.model.load_machine("isca24")
    points = list(figures.modelled(machine))
    for point in points:
        assert point.source == "modelled"
        assert point.value == point.facts["messages_us"] / point.facts["pool_us"]
    series = figures.Media(figures.TCP, figures.CXL).name
    by_hosts = list(series_of(points, "nodes", series).values())
    # Beyond 4 hosts the devices limit the ports.
    assert by_hosts[0] < by_hosts[1] > by_hosts[2] > by_hosts[3] > 1
    wide = machine.with_values({"pool.devices": 100})
    more = list(series_of(figures.modelled(wide), "nodes", series).values())
    assert more == sorted(more)


def test_gains_on_one_machine_grow_with_the_processes_of_other_nodes() -> None:
    points = list(figures.modelled(pidcomm.model.load_machine("isca24")))
    for axis, others in (("nodes", [1, 3, 7, 9]), ("ppn", [1, 2, 4, 6])):
        gains = series_of(points, axis, figures.ONE_MACHINE).values()
        assert list(gains) == pytest.approx(others, rel=0.02)


def test_statements_compare_growths_and_name_causes() -> None:
    points = list(figures.ALLGATHER.model(Request()))
    statements = list(figures.statements(Request(), points))
    verdicts = {statement.published.partition(":")[0]: statement.agrees for statement in statements}
    assert [verdicts[axis] for axis in figures.AXES] == [True, True, False]
    assert all(statement.cause for statement in statements if statement.agrees is False)
    # Four times the gain of the last point: the growth differs, so the verdict does.
    changed = [
        Point(**{**vars(point), "value": 4 * point.value})
        if (point.panel, point.series, point.x) == ("nodes", figures.ONE_MACHINE, 10)
        else point
        for point in points
    ]
    assert next(figures.statements(Request(), changed)).agrees is False


def test_cases_without_memory_are_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pidcomm.bench.measure.available_bytes", lambda: 1 << 20)
    skipped: list[str] = []
    request = Request(iters=1, skip=lambda errors: skipped.extend(map(str, errors)))
    assert list(figures.measured(request)) == []
    assert len(skipped) == sum(map(len, figures.AXES.values()))
    assert "4 processes with their data need about" in skipped[1]
