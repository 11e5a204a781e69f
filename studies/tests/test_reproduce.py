"""The paper's experiments: set-ups and statistics; modelled numbers are marked."""

from __future__ import annotations

import json
import re
import subprocess
import time
from math import prod
from pathlib import Path

import numpy as np
import pytest
import typer
from command_line import PIDCOMM, objects
from matplotlib.text import Annotation
from test_pictures import all_text, assert_legible, bars_of, legend_texts, plots_of

import pidcomm.bench.measure
from pidcomm import TECHNIQUES
from pidcomm.bench.measure import Trial
from pidcomm.bench.oracle import Problem, Verdict
from pidcomm.model import load_machine
from pidcomm_studies.cli.reproduce import reproduce
from pidcomm_studies.papers.figure import HERE, Request
from pidcomm_studies.papers.figures import NAMES as NAMES_OF_FIGURES
from pidcomm_studies.papers.figures import PAPERS, get
from pidcomm_studies.papers.pidcomm.experiments import (
    EXPERIMENTS,
    PAPER_BYTES,
    PAPER_PES,
    Cost,
    Statistic,
    modelled_costs,
    modelled_points,
    throughput_gb_s,
)
from pidcomm_studies.papers.pidcomm.figures import statistic_points
from pidcomm_studies.papers.pidcomm.published import PUBLISHED
from pidcomm_studies.papers.pidcomm.study import Measurements
from pidcomm_studies.pictures import reproduction

SMALL = ["--pes", "64", "--bytes", "8KiB", "--iters", "1"]
AVAILABLE = [name for name, experiment in EXPERIMENTS.items() if not experiment.missing]
FOUR = {"alltoall", "reduce_scatter", "allreduce", "allgather"}


def problems(figure: str) -> list[Problem]:
    return EXPERIMENTS[figure].problems(PAPER_PES, PAPER_BYTES)


def statistic(key: str) -> Statistic:
    return next(
        candidate
        for candidate in EXPERIMENTS[key.partition(".")[0]].statistics
        if candidate.key == key
    )


def cost(
    host_us: float, pe_us: float = 0.0, start_us: float | None = None, source: str = "measured"
) -> Cost:
    return Cost(host_us, pe_us, start_us, source)


# ---- set-ups


@pytest.mark.parametrize("figure", ["fig14", "fig16", "fig17", "fig23a"])
def test_most_experiments_are_on_32x32_pes_along_one_axis(figure: str) -> None:
    assert {(problem.shape, problem.mask, problem.bytes) for problem in problems(figure)} == {
        ((32, 32), "10", 8 << 20)
    }


def test_the_collectives_match_the_figures() -> None:
    collectives = {name: {problem.collective for problem in problems(name)} for name in EXPERIMENTS}
    assert len(collectives.pop("fig14")) == 8
    assert collectives.pop("fig23a") == {"allreduce"}
    assert all(names == FOUR for names in collectives.values())


def test_sizes_run_from_128_kib_to_8_mib_in_one_and_two_dimensions() -> None:
    wanted = problems("fig18")
    assert {(problem.shape, problem.mask) for problem in wanted} == {
        ((1024,), "1"),
        ((32, 32), "10"),
    }
    for shape in ((1024,), (32, 32)):
        sizes = sorted({problem.bytes for problem in wanted if problem.shape == shape})
        assert sizes == [kib << 10 for kib in (128, 256, 512, 1024, 2048, 4096, 8192)]
    assert len(wanted) == len(set(wanted)) == 2 * 7 * 4


def test_pes_run_from_64_to_1024_and_256_are_one_channel_of_the_papers_machine() -> None:
    assert sorted({problem.pes for problem in problems("fig19")}) == [64, 128, 256, 512, 1024]
    assert {problem.shape for problem in problems("fig19")} == {
        (8, 8),
        (16, 8),
        (16, 16),
        (32, 16),
        (32, 32),
    }


def test_three_dimensions_always_have_1024_pes_and_x_grows() -> None:
    shapes = list(dict.fromkeys(problem.shape for problem in problems("fig20")))
    assert [shape[0] for shape in shapes] == [8, 16, 32, 64, 128]
    assert all(prod(shape) == 1024 and len(shape) == 3 for shape in shapes)
    assert {problem.mask for problem in problems("fig20")} == {"100"}


def test_every_published_point_is_a_statistic_of_its_figure_and_says_where_it_is_stated() -> None:
    keys = [stated.key for experiment in EXPERIMENTS.values() for stated in experiment.statistics]
    assert len(keys) == len(set(keys))
    assert set(PUBLISHED) <= set(keys)
    for key, point in PUBLISHED.items():
        assert key == point.key
        assert key.startswith(f"{point.figure}.")
        assert (statistic(key).what, statistic(key).unit) == (point.what, point.unit)
        assert point.source.startswith("PID-Comm (ISCA 2024), section ")


def test_only_experiments_whose_techniques_are_missing_are_skipped() -> None:
    for name, experiment in EXPERIMENTS.items():
        assert bool(modelled_costs(experiment)) == (not experiment.missing), name
        assert set(experiment.missing) == set(experiment.techniques) - set(TECHNIQUES)


# ---- statistics


def test_a_speed_up_is_the_geometric_mean_of_ratios_of_whole_calls() -> None:
    a, b = problems("fig16")[:2]
    costs = {
        (a, "baseline"): cost(800),
        (a, "pr"): cost(60, 30, 10, "modelled"),
        (b, "baseline"): cost(200),
        (b, "pr"): cost(70, 30, None, "mixed"),
    }
    assert statistic("fig16.pr").of(costs) == pytest.approx(4)  # of 8 and 2
    assert statistic("fig16.pr").source(costs) == "mixed"


def test_a_statistic_without_one_of_its_costs_is_none() -> None:
    a, b = problems("fig16")[:2]
    costs = {(a, "baseline"): cost(8), (a, "pr"): cost(4), (b, "conventional"): cost(2)}
    assert statistic("fig16.pr").of(costs) is None
    assert statistic("fig16.pr").source(costs) is None
    assert statistic("fig16.pr").of({}) is None


def test_cross_domain_modulation_is_rated_only_where_it_applies() -> None:
    costs = {(call, name): cost(1) for call in problems("fig16") for name in ("pr+im", "pr+im+cm")}
    for problem in problems("fig16"):
        if problem.collective in ("alltoall", "allgather"):
            costs[problem, "pr+im"] = cost(1.5)
    assert statistic("fig16.cm").of(costs) == pytest.approx(1.5)


def test_the_share_of_reordering_excludes_launches_and_loads() -> None:
    costs = {(problem, "pr+im+cm"): cost(90, 6, 4, "modelled") for problem in problems("fig17")}
    assert statistic("fig17.reorder").of(costs) == pytest.approx(6)


def test_a_statistic_without_one_of_its_calls_is_none() -> None:
    """A mean over eight collectives needs all eight, even if one has no cost because all its
    results were wrong.
    """
    wanted = problems("fig14")
    costs = {
        (problem, name): cost(1)
        for problem in wanted[1:]
        for name in ("baseline", "pr+im+cm", "tile")
    }
    assert statistic("fig14.geomean").of(costs, wanted) is None
    assert statistic("fig14.geomean").of(costs) == pytest.approx(1)


def test_mixed_numbers_also_have_a_value_of_host_times_alone() -> None:
    experiment = EXPERIMENTS["fig23a"]
    here = {
        (problem, name): cost(10)
        for problem in problems("fig23a")
        for name in experiment.techniques
    }
    mixed = {(problem, "pr+im+cm"): cost(4, 1, None, "mixed") for problem in problems("fig23a")}
    costs = {**here, **mixed}
    point = next(
        candidate
        for candidate in statistic_points(experiment, costs, HERE, PAPER_PES, PAPER_BYTES)
        if candidate.facts["statistic"] == "fig23a.tree"
    )
    assert point.source == "mixed"
    assert point.value == pytest.approx(2)
    assert point.facts["host_alone"] == pytest.approx(2.5)
    assert point.facts["ratio"] == pytest.approx(2 / PUBLISHED["fig23a.tree"].value)
    fewer = statistic_points(experiment, costs, HERE, 64, PAPER_BYTES)
    assert all(candidate.facts["ratio"] is None for candidate in fewer)


def test_the_largest_size_and_numbers_of_pes_choose_their_problems() -> None:
    by_size = {
        (problem, name): cost(problem.bytes if name == "baseline" else 1)
        for problem in problems("fig18")
        for name in NAMES
    }
    assert statistic("fig18.largest").of(by_size) == pytest.approx(8 << 20)
    assert statistic(f"fig18.{128 << 10}").of(by_size) == pytest.approx(128 << 10)
    by_pes = {
        (problem, name): cost(problem.pes if name == "baseline" else 1)
        for problem in problems("fig19")
        for name in NAMES
    }
    assert [statistic(f"fig19.{pes}").of(by_pes) for pes in (64, 1024)] == pytest.approx([64, 1024])


NAMES = ("baseline", "pr+im+cm")


def test_throughput_is_the_larger_side_over_the_whole_call() -> None:
    problem = Problem("reduce_scatter", (32, 32), "10", 1 << 20, "int32")
    assert problem.larger_side_bytes == 1 << 30
    assert Problem("allgather", (32, 32), "10", 1 << 20, "int32").larger_side_bytes == 1 << 30
    assert throughput_gb_s(problem, cost(600, 300, 100)) == pytest.approx((1 << 30) / 1e6)
    scattered = [call for call in problems("fig20") if call.collective == "reduce_scatter"]
    costs = {(call, "pr+im+cm"): cost(1000 - 100 * number) for number, call in enumerate(scattered)}
    assert statistic("fig20.reduce_scatter").of(costs) == pytest.approx((8 << 30) / 600 / 1e3)
    assert statistic("fig20.reduce_scatter.growth").of(costs) == pytest.approx(1000 / 600)


@pytest.mark.skipif("ring" not in TECHNIQUES, reason="the library has no ring")
def test_ring_is_compared_with_the_hypercube() -> None:
    (problem,) = problems("fig23a")
    costs = {(problem, "ring"): cost(6), (problem, "pr+im+cm"): cost(3), (problem, "tile"): cost(2)}
    assert [
        statistic(f"fig23a.ring{ending}").of(costs) for ending in ("", ".tile")
    ] == pytest.approx([2, 3])


def test_modelled_points_are_fast_complete_and_follow_the_machine() -> None:
    machine = load_machine("isca24")
    modelled_points(machine)
    begin = time.perf_counter()
    points = modelled_points(machine)
    assert time.perf_counter() - begin < 10
    assert set(points) == {key for key in PUBLISHED if PUBLISHED[key].figure in AVAILABLE}
    slower = modelled_points(
        machine.with_values({"pe.dma_cycles_per_byte": 2 * machine["pe.dma_cycles_per_byte"]})
    )
    assert slower["fig17.reorder"] > points["fig17.reorder"]
    assert slower["fig20.alltoall"] < points["fig20.alltoall"]


def test_no_speed_up_is_claimed_where_the_emulated_sdk_is_too_slow() -> None:
    experiment = EXPERIMENTS["fig14"]
    costs = {
        (problem, name): cost(1) for problem in problems("fig14") for name in experiment.techniques
    }
    unfair = Measurements(unfair={problems("fig14")[0]}).fair(costs)
    assert statistic("fig14.alltoall").of(unfair) is None
    assert statistic("fig14.allreduce").of(unfair) == pytest.approx(1)


# ---- the command


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, list[dict[str, object]], str]:
    """The output, the rows and the picture of a small run."""
    folder = tmp_path_factory.mktemp("reproduce")
    command = [
        *PIDCOMM,
        "reproduce",
        "pidcomm/fig14,pidcomm/fig17",
        *SMALL,
        "--json",
        "rows.jsonl",
        "--plot",
        "figures.svg",
    ]
    process = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=600, check=False
    )
    assert process.returncode == 0, process
    return (
        process.stdout,
        objects((folder / "rows.jsonl").read_text()),
        "".join(path.read_text() for path in sorted(folder.glob("figures-pidcomm-fig1?.svg"))),
    )


def test_every_json_row_says_its_source_and_where(
    small: tuple[str, list[dict[str, object]], str],
) -> None:
    calls = [row for row in small[1] if row.get("panel") == "calls"]
    assert {(row["source"], row["on"]) for row in calls} == {
        ("measured", "emulated DIMMs of this host"),
        ("mixed", "emulated DIMMs of this host"),
        ("modelled", "isca24"),
    }
    for row in calls:
        assert (row["source"] == "modelled") == (row["start_us"] is not None)
        assert row["source"] != "measured" or row["pe_us"] == 0
        parts = [row["host_us"], row["pe_us"], row["start_us"] or 0]
        assert row["total_us"] == pytest.approx(sum(map(float, parts)))  # type: ignore[arg-type]
        phases_us = row["phases_us"]
        assert (phases_us is not None) == (row["source"] == "modelled")
        if isinstance(phases_us, dict):
            assert sum(phases_us.values()) == pytest.approx(row["total_us"])
    here = [row for row in calls if row["source"] != "modelled"]
    assert {(row["shape"], row["bytes_per_pe"]) for row in here} == {("8x8", 8192)}
    assert len(here) == 8 * 4 + 4 * 5
    numbers = [row for row in small[1] if "statistic" in row]
    for row in numbers:
        assert row["source"] in ("published", "measured", "mixed", "modelled")
        assert (row["on"] == "isca24") == (row["source"] == "modelled")
        assert (row["source"] == "published") == str(row["on"]).startswith("PID-Comm (ISCA 2024)")
    stated = {row["statistic"]: row["value"] for row in numbers if row["source"] == "published"}
    assert stated == {
        key: point.value for key, point in PUBLISHED.items() if point.figure in ("fig14", "fig17")
    }


def test_tables_and_pictures_mark_modelled_numbers(
    small: tuple[str, list[dict[str, object]], str],
) -> None:
    text, _, picture = small
    assert re.search(r"measured \(.*pr\+im.*: mixed\) on emulated DIMMs", text)
    assert "calls: throughput in GB/s; modelled on isca24" in text
    assert picture.count("</svg>") == 2  # a file per figure
    assert "launches and loads of PE programs left out" in text
    assert "ms of a call by phase; modelled on isca24" in text
    # Whether a picture of such small calls has `measured` speed-ups over conventional depends on
    # the SDK.
    for words in (
        reproduction.LOOKS["mixed"][0],
        reproduction.LOOKS["modelled"][0],
        "published, PID-Comm (ISCA 2024)",
    ):
        assert words in picture


@pytest.mark.parametrize("name", AVAILABLE)
def test_a_picture_has_bars_of_every_number_and_marks_of_the_published_ones(name: str) -> None:
    experiment = EXPERIMENTS[name]
    here = {
        (problem, technique): Cost(
            cost.host_us, cost.pe_us, None, "mixed" if cost.pe_us else "measured"
        )
        for (problem, technique), cost in modelled_costs(experiment).items()
    }
    of_paper = get(f"pidcomm/{name}")
    points = [
        *statistic_points(experiment, here, HERE, PAPER_PES, PAPER_BYTES),
        *(point for point in of_paper.model(Request()) if "statistic" in point.facts),
    ]
    figure = reproduction.draw(of_paper, points, "measured: synthetic")
    assert_legible(figure)
    bars = [bar for axes in plots_of(figure) for bar in bars_of(axes)]
    for source in reproduction.LOOKS:
        expected = [point for point in points if point.source == source]
        drawn = [bar for bar in bars if bar.get_gid() == source]
        assert sorted(bar.get_width() for bar in drawn) == pytest.approx(
            sorted(point.value for point in expected)
        )
        assert all(bool(bar.get_hatch()) == (source != "measured") for bar in drawn)
    marks = [
        mark
        for axes in plots_of(figure)
        for mark in axes.get_lines()
        if mark.get_gid() == "published"
    ]
    assert len(marks) == len([point for point in points if point.source == "published"])
    assert ("published, PID-Comm (ISCA 2024)" in legend_texts(figure)) == bool(marks)
    for axes in plots_of(figure):
        values = [note for note in axes.texts if isinstance(note, Annotation)]
        stated = [note for note in values if note.get_gid() == "value published"]
        at = [
            axes.transData.transform(np.asarray(mark.get_xydata())[0]) for mark in axes.get_lines()
        ]
        assert len(stated) == len(at)
        for text in set(values) - set(stated):
            box, end = text.get_window_extent(), axes.transData.transform(text.xy)
            is_tied = text.arrow_patch is not None
            for (
                x,
                y,
            ) in at:  # no mark between a value and its bar's end, unless a line connects them
                is_between = min(end[0], box.x0) + 1 < x < max(end[0], box.x0) - 1
                assert (
                    is_tied
                    or text.get_horizontalalignment() == "right"
                    or not (is_between and abs(y - end[1]) < box.height)
                )
                assert not box.contains(x, y)
    used = {str(bar.get_gid()) for bar in bars}
    assert used >= {"mixed", "modelled"}
    assert {reproduction.LOOKS[source][0] for source in used} <= set(legend_texts(figure))
    assert "predictions, never measured" in all_text(figure).replace("\n", " ")


def test_the_modelled_half_measures_nothing() -> None:
    names = {f"pidcomm/{name}" for name in (*EXPERIMENTS, "fig23b")}
    command = [*PIDCOMM, "reproduce", ",".join(names), "--no-measure", "--json", "-"]
    process = subprocess.run(command, capture_output=True, text=True, timeout=600, check=True)
    rows = objects(process.stdout)
    assert {row["source"] for row in rows if "source" in row} == {"modelled", "published"}
    assert {row["figure"] for row in rows} == names
    assert {
        row["statistic"]: row["value"]
        for row in rows
        if row.get("statistic") and row["source"] == "modelled"
    }.items() >= (modelled_points().items())


def test_a_wrong_result_exits_with_1_and_is_in_no_statistic(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(
        Trial, "check", lambda self, options: Verdict(int(self.problem.collective == "gather"), "x")
    )
    rows = tmp_path / "rows.jsonl"
    with pytest.raises(typer.Exit) as error:
        reproduce("pidcomm/fig14", size="8KiB", pes=64, iters=1, json_target=str(rows))
    assert error.value.exit_code == 1
    assert "gather with tile on 8x8: 1 wrong elements" in capfd.readouterr().err
    json_rows = [json.loads(line) for line in rows.read_text().splitlines()]
    here = {
        row["collective"]
        for row in json_rows
        if row.get("panel") == "calls" and row["source"] != "modelled"
    }
    assert len(here) == 7
    assert "gather" not in here


def test_sizes_that_do_not_fit_memory_are_skipped_and_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(pidcomm.bench.measure, "available_bytes", lambda: 10 * 64 * (300 << 10))
    rows = tmp_path / "rows.jsonl"
    reproduce("pidcomm/fig18", size="512KiB", pes=64, iters=1, json_target=str(rows))
    text = capfd.readouterr().out
    assert "# skipped: 512 KiB for each of 64 PEs need about" in text
    assert "# sizes above 512 KiB are not measured" in text
    assert "here: up to 64 PEs, up to 256 KiB per PE" in text
    json_rows = objects(rows.read_text())
    here = {
        row["bytes_per_pe"]
        for row in json_rows
        if row.get("panel") == "calls" and row["source"] != "modelled"
    }
    assert here == {128 << 10, 256 << 10}
    monkeypatch.setattr(pidcomm.bench.measure, "available_bytes", lambda: 1 << 20)
    with pytest.raises(pidcomm.Error, match="of memory"):
        reproduce("pidcomm/fig18", size="512KiB", pes=64, iters=1)


def test_without_a_figure_the_command_lists_the_figures_of_all_papers() -> None:
    command = [*PIDCOMM, "reproduce"]
    process = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    lines = [line.strip().split(maxsplit=1) for line in process.stdout.splitlines()[3:]]
    assert lines == [[name, get(name).title] for name in NAMES_OF_FIGURES]
    assert {name.partition("/")[0] for name, _ in lines} == set(PAPERS)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["pidcomm/fig99"], "figure 'pidcomm/fig99' is unknown"),
        (["--no-measure"], "--no-measure does not apply: without a figure"),
        (["parcels/fig4", "--iters", "1"], "nothing is measured for parcels/fig4"),
        (["parcels/fig4", "--pim", "depth"], "'depth' is not NAME=NUMBER"),
        (["pidcomm/fig14", "--pes", "100"], "100 PEs are not a power of two"),
        (["pidcomm/fig14", "--plot", "x.gif"], "must end in .svg or .png"),
        (["pidcomm/fig18", "--bytes", "100"], "100"),
    ],
)
def test_wrong_usage_is_one_sentence_before_anything_is_measured(
    arguments: list[str], message: str
) -> None:
    process = subprocess.run(
        [*PIDCOMM, "reproduce", *arguments],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert process.returncode == 2
    assert process.stderr.count("\n") == 1
    assert message in process.stderr
    assert process.stdout == ""
