"""The figures of embedding tables: their models, runs, statements, table, JSON and picture."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest
from test_pictures import assert_legible
from typer.testing import CliRunner

from pidcomm import COLLECTIVES
from pidcomm.cli import app
from pidcomm.model import load_machine, predict
from pidcomm_studies import apps
from pidcomm_studies.apps.embedding import Model
from pidcomm_studies.models import LINKS
from pidcomm_studies.papers import figures
from pidcomm_studies.papers.figure import (
    HERE,
    MEASURED,
    MIXED,
    MODELLED,
    PUBLISHED,
    Figure,
    Point,
    Request,
    Statement,
    series_of,
)
from pidcomm_studies.papers.scalability import embedding_links as figures_links
from pidcomm_studies.papers.scalability.embedding_cases import row_ns, run_cases
from pidcomm_studies.papers.scalability.embedding_links import (
    DOMAINS,
    FAST_LINKS,
    FED,
    FED_LINKS,
    GAIN,
    LITTLE,
    LITTLE_GAIN,
    PAPER_LINKS,
    REDUCE_LINKS,
    SHAPE,
    SIZES,
    at_rate,
    seconds_of,
)
from pidcomm_studies.papers.scalability.embedding_price import MACHINE, Work
from pidcomm_studies.papers.scalability.embedding_scaling import FIGURE_6
from pidcomm_studies.papers.scalability.paper import (
    CPU,
    WAYS,
    crossing,
    falls,
    flat_from,
    near,
    priced,
    steady,
)
from pidcomm_studies.pictures import points as of_papers

LINKED = load_machine(figures_links.MACHINE)
TINY = Model(1, 256, 8, 4, 16)


def assert_valid(figure: Figure, points: Iterable[Point]) -> None:
    """Check that all values are finite, unique and in a panel of the figure."""
    points = list(points)
    names = {panel.name for panel in figure.panels}
    assert points
    assert all(
        point.panel in names and math.isfinite(point.value) and point.value >= 0 and not point.wrong
        for point in points
    )
    keys = [(point.panel, point.series, point.x, point.source, point.on) for point in points]
    assert len(keys) == len(set(keys))


def test_every_row_names_its_figure() -> None:
    for name in figures.NAMES:
        assert figures.get(name).name == name


@pytest.mark.parametrize("number", [*range(5, 12), 18])
def test_a_figure_and_its_statements_follow_from_the_prices(number: int) -> None:
    figure = figures.get(f"scalability/fig{number}")
    points = figure.points(Request())
    assert_valid(figure, points)
    assert {point.source for point in points} <= {MODELLED, PUBLISHED}
    statements = list(figure.statements(Request(), points))
    assert all(statement.published and statement.here for statement in statements)
    unjudged = [statement for statement in statements if statement.agrees is None]
    assert [statement.here for statement in unjudged] == ["not measured"] * (number == 9)
    assert not any(statement.cause for statement in unjudged)
    differing = [statement for statement in statements if statement.agrees is False]
    assert all(re.search(r"\d", statement.cause) for statement in differing), differing
    assert_legible(of_papers.draw(figure, points, statements))
    if figure.name == "scalability/fig7":
        assert not differing
    if figure is figures_links.FIGURE_18:
        assert set(series_of(points, "collectives", LINKS)) == set(COLLECTIVES)
        assert set(series_of(points, "applications", LINKS)) == set(apps.NAMES)


def test_types_on_the_cpu_are_judged_by_measured_times() -> None:
    priced_points = figures.get("scalability/fig9").points(Request())

    def judged(float_ns: float) -> Statement:
        measured = [row_ns("int32", 1e-3), row_ns("float32", float_ns * 1e-3)]
        points = [*priced_points, *measured]
        return list(figures.get("scalability/fig9").statements(Request(), points))[-1]

    assert judged(1.5).agrees is True
    assert judged(3.0).agrees is False
    assert re.search(r"\d at float32", judged(3.0).cause)


def test_a_slow_measured_cpu_explains_a_published_ratio() -> None:
    """RM3 needs a CPU that takes 17 us for each of 1600 rows."""
    figure = figures.get("scalability/fig11")
    points = figure.points(Request())
    for each_us, is_explained in ((8.0, False), (9.0, True)):
        measured = Point("t", CPU, "rm3", 1600 * each_us, MEASURED, HERE)
        cause = next(
            statement.cause
            for statement in figure.statements(Request(), [*points, measured])
            if "13.2x the CPU" in statement.published
        )
        assert f"the CPU here takes {1e3 * each_us:.0f}" in cause
        assert ("too fast" in cause) is not is_explained


def test_the_cpu_is_ahead_by_construction_only_at_the_pes_that_imply_it() -> None:
    """A total that is smaller than the implied CPU changes the verdict; the total at the PEs
    that imply the CPU does not.
    """
    points = FIGURE_6.points(Request())

    def verdict(pes: int) -> bool | None:
        changed = [
            replace(point, value=1.0)
            if (point.panel, point.x) == ("b", pes) and point.series.startswith("row")
            else point
            for point in points
        ]
        return next(
            statement.agrees
            for statement in FIGURE_6.statements(Request(), changed)
            if statement.published == "in total the CPU is always ahead"
            and "by construction" in statement.here
        )

    assert verdict(32) is False
    assert verdict(64) is True


def test_verdicts_about_links_depend_on_every_domain() -> None:
    """A gain of 1 in one domain contradicts all statements; the published gains everywhere agree
    with them.
    """

    def verdicts(last: float | None) -> list[bool | None]:
        points = []
        for number, domain in enumerate(DOMAINS):
            for label in (PAPER_LINKS, FED_LINKS, REDUCE_LINKS, FAST_LINKS):
                for panel, x in (
                    ("a", LITTLE),
                    ("a", 1.0),
                    ("a, RM2 and batch 256", 1.0),
                    ("b", 0.35),
                    ("b", 3.5),
                ):
                    gain = LITTLE_GAIN if x == LITTLE else GAIN
                    if number == len(DOMAINS) - 1 and last is not None:
                        gain = last
                    points.append(Point(panel, f"{domain}: {label}", x, gain, MODELLED, MACHINE))
        return [
            statement.agrees for statement in figures_links.FIGURE_18.statements(Request(), points)
        ]

    assert verdicts(None) == [True] * 4
    assert verdicts(1.0) == [False] * 4


def test_values_are_near_a_number_within_a_factor_of_two() -> None:
    assert [near(value, 10) for value in (4.9, 5, 10, 20, 20.1)] == [False, True, True, True, False]


def test_runs_have_points_of_both_ways_without_wrong_elements() -> None:
    works: dict[float | str, dict[str, Work]] = {
        8: {"row": Work(TINY, (1, 8, 1)), "column": Work(TINY, (1, 1, 8))}
    }
    points = list(run_cases(works, Request(iters=1)))
    assert_valid(FIGURE_6, points)
    assert {point.on for point in points} == {HERE}
    assert {point.series for point in points if point.panel == "b"} == {
        f"{partition}, {way}" for partition in ("row", "column") for way in WAYS
    } | {"CPU"}
    assert all(
        point.source == MIXED for point in points if point.panel == "b" and point.series != "CPU"
    )
    assert not priced(points)
    for way in WAYS:
        shares = [
            point.value
            for point in points
            if point.panel.startswith("c ") and point.series == f"row, {way}"
        ]
        assert sum(shares) == pytest.approx(100)


def test_links_gain_nothing_without_global_reduction_and_more_with_more() -> None:
    for mask in DOMAINS.values():
        gains = [
            (seconds := seconds_of(SIZES["a"], ratio, mask, LINKED))["conventional"]
            / seconds[LINKS]
            for ratio in (0, 0.1, 1)
        ]
        assert gains[0] == 1
        assert gains == sorted(gains)
    free, fed = (seconds_of(SIZES["a"], 1.0, "0100", LINKED)[way] for way in (LINKS, FED))
    assert fed > free


def test_the_host_gathers_the_partial_sums_and_the_rest() -> None:
    size, members = SIZES["a"], 8
    seconds = seconds_of(size, 0.5, "0100", LINKED)
    bytes_per_pe = size // 2 + size // 2 // members
    whole = predict(
        "gather", SHAPE, "0100", bytes=bytes_per_pe, machine=LINKED, technique="conventional"
    )
    assert seconds["conventional"] == whole.seconds


def test_slower_links_take_longer() -> None:
    slow, fast = (
        seconds_of(SIZES["a"], 0.5, "1110", at_rate(LINKED, rate))[LINKS] for rate in (0.35, 3.5)
    )
    assert slow > fast
    assert at_rate(LINKED, 0.35).links["rank"].gb_s == pytest.approx(0.35)


def test_the_words_of_comparisons() -> None:
    level = {1: 5.0, 2: 5.0, 4: 5.0, 8: 5.0}
    assert crossing({1: 9.0, 2: 4.0, 4: 6.0, 8: 5.0}, level) == 8
    assert crossing({1: 9.0, 2: 8.0, 4: 7.0, 8: 6.0}, level) is None
    assert flat_from({1: 9.0, 2: 8.0, 4: 4.0, 8: 3.5, 16: 5.0}, 1.25) == 4
    assert flat_from({1: 8.0, 2: 7.9, 4: 4.0}, 1.25) is None
    assert falls({1: 3.0, 2: 3.0, 4: 1.0})
    assert not falls({1: 3.0, 2: 4.0})
    assert steady({1: 10.0, 2: 10.4}, 0.05)
    assert not steady({1: 10.0, 2: 11.0}, 0.05)


def test_the_command_writes_the_points_and_draws_a_picture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    words = "reproduce scalability/fig7 --no-measure --json rows.jsonl --plot figure.svg"
    result = CliRunner().invoke(app, words.split())
    assert result.exit_code == 0, result
    assert "columns: imbalance has no effect" in result.stdout
    assert f"modelled on {MACHINE}" in result.stdout
    rows = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text().splitlines()]
    assert {row["figure"] for row in rows} == {"scalability/fig7"}
    assert any("agrees" in row for row in rows)
    text = (tmp_path / "figure.svg").read_text()
    assert text.count("modelled row, paper") >= 2
    assert "imbalance" in text


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["scalability/fig7", "--pes", "64"],
            "--pes 64 does not apply: no figure of scalability/fig7 has this option",
        ),
        (["scalability/fig4"], "figure 'scalability/fig4' is unknown"),
    ],
)
def test_wrong_words_are_refused(words: list[str], message: str) -> None:
    result = CliRunner().invoke(app, ["reproduce", *words])
    assert result.exit_code == 2
    assert message in result.stderr
