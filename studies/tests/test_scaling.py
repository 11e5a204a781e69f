"""Scaling studies: points, stops and their reasons, the command and the picture."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_pictures import all_text, assert_legible
from typer.testing import CliRunner

import pidcomm
from pidcomm.cli import app
from pidcomm.cli.app import ExitCode
from pidcomm.model import NETWORK_PHASES, PHASES, load_machine, machine_names, predict
from pidcomm.tables import CollectiveName
from pidcomm_studies.cli.model import scale as command
from pidcomm_studies.models import scaling
from pidcomm_studies.models.scaling import STUDIES, Point, model_points
from pidcomm_studies.models.stops import Stop, stops_of
from pidcomm_studies.pictures import scaling as picture

BETWEEN_PES: tuple[CollectiveName, ...] = ("alltoall", "reduce_scatter", "allreduce", "allgather")
MACHINE = load_machine("upmem-2560")


def run(*arguments: str) -> Any:
    """Run the command."""
    return CliRunner().invoke(app, ["model", "scale", *arguments])


def points_of(
    study: str, collectives: Sequence[CollectiveName] = BETWEEN_PES, machine: str = "upmem-2560"
) -> list[Point]:
    """Return the modelled points of a study."""
    on = load_machine(machine)
    points, refusals = model_points(
        STUDIES[study], collectives, on, STUDIES[study].values(on.pes), None
    )
    assert refusals == []
    return points


def series_of(points: Sequence[Point]) -> Iterator[list[Point]]:
    """Yield the points of each collective and technique, by value."""
    for key in dict.fromkeys((point.collective, point.technique) for point in points):
        yield sorted(
            (point for point in points if (point.collective, point.technique) == key),
            key=lambda point: point.value,
        )


# ---- points


@pytest.mark.parametrize("machine", machine_names())
@pytest.mark.parametrize("study", STUDIES)
def test_every_study_varies_only_its_quantity(study: str, machine: str) -> None:
    if not STUDIES[study].can_be_on(load_machine(machine)):
        with pytest.raises(pidcomm.Error, match="emulated DIMMs have no separate channels"):
            points_of(study, machine=machine)
        return
    points = points_of(study, list(pidcomm.COLLECTIVES), machine)
    values = list(STUDIES[study].values(load_machine(machine).pes))
    fixed = {"hosts", "pes", "group_pes", "bytes_per_pe"} - {STUDIES[study].varies}
    if study == "hosts":  # all PEs of all hosts are one group
        fixed -= {"pes", "group_pes"}
    for series in series_of(points):
        assert [point.value for point in series] == values
        for name in fixed:
            assert len({getattr(point, name) for point in series}) == 1, name
    for point in points:
        assert (point.source, point.where, point.wrong, point.limit_pct) == (
            "modelled",
            machine,
            None,
            None,
        )
        assert point.seconds == pytest.approx(sum(point.phases.values()))
        assert list(point.phases) == [*PHASES, *NETWORK_PHASES]
        assert point.algbw_gb_s == pytest.approx(
            point.pes * point.bytes_per_pe / point.seconds / 1e9
        )
    assert {point.technique for point in points} == {"tile", "conventional"}


def test_pes_reach_2560_and_bytes_8_mib_and_hosts_1024() -> None:
    assert max(STUDIES["pes"].values(2560)) == 2560
    assert [*STUDIES["bytes"].values(2560)][:: len(STUDIES["bytes"].values(2560)) - 1] == [
        1 << 10,
        8 << 20,
    ]
    assert [*STUDIES["hosts"].values(2560)] == [2**n for n in range(11)]
    assert [*STUDIES["channels"].values(2560)] == [1, 2, 4, 8, 10]


@pytest.mark.parametrize(
    ("study", "order"), [("pes", 1), ("bytes", 1), ("hosts", 1), ("channels", -1)]
)
def test_more_work_takes_longer_and_more_channels_do_not(study: str, order: int) -> None:
    for series in series_of(points_of(study)):
        for before, after in pairwise(series):
            assert order * (after.seconds - before.seconds) >= -1e-12


def test_all_channels_of_a_machine_predict_the_machine_itself() -> None:
    (last,) = (
        point
        for point in points_of("channels", ["alltoall"])
        if (point.value, point.technique) == (10, "tile")
    )
    prediction = predict("alltoall", (32, 80), "10", bytes=last.bytes_per_pe, machine=MACHINE)
    assert last.seconds == pytest.approx(prediction.seconds)
    assert last.channels == 10
    assert [*STUDIES["channels"].values(16 * 64)] == [
        1,
        2,
        4,
        8,
    ]  # 16 ranks on 10 channels would take up 8


def test_a_speed_up_is_over_conventional_at_the_same_value() -> None:
    points = points_of("groups")
    for point in points:
        (base,) = (
            candidate
            for candidate in points
            if (candidate.collective, candidate.value, candidate.technique)
            == (point.collective, point.value, "conventional")
        )
        assert point.speed_up == pytest.approx(base.seconds / point.seconds)


# ---- stops


def line(
    rates: dict[int, float], study: str = "channels", **phases: Sequence[float]
) -> list[Point]:
    """Return points with these rates.

    The work is constant if channels vary; otherwise it grows with the value.
    """
    template = points_of("bytes", ["alltoall"])[0]
    points = []
    for number, (value, rate) in enumerate(rates.items()):
        changes: Any = {STUDIES[study].varies: value, "study": study}
        parts = {name: of[number] for name, of in phases.items()} or {"bus": 1 / rate}
        points.append(
            replace(template, **changes, algbw_gb_s=rate, seconds=sum(parts.values()), phases=parts)
        )
    return points


def stop(points: Sequence[Point]) -> Stop:
    """Return the only stop of points, in any order."""
    (only,) = stops_of(points[::-1])
    return only


def test_a_stop_is_the_first_value_from_which_doubling_gains_less_than_a_tenth() -> None:
    reached = stop(line({1: 1, 2: 1.9, 4: 2.1, 8: 2.2}))
    assert (
        reached.stops_at,
        round(reached.gain_pct, 1),
        reached.resumes_at,
        reached.regained_at,
    ) == (
        4,
        4.8,
        None,
        None,
    )
    assert stop(line({1: 1, 2: 1.9, 4: 2.1, 8: 2.4})).stops_at is None
    assert "scales to the end" in str(stop(line({1: 1, 2: 2})))


def test_the_gain_of_a_step_is_scaled_to_a_doubling() -> None:
    assert stop(line({8: 1, 10: 1.04})).stops_at is None  # 13% per doubling
    reached = stop(line({8: 1, 10: 1.02}))
    assert (reached.stops_at, reached.next_at, round(reached.gain_pct, 1)) == (8, 10, 2.0)
    assert "stops at channels 8: the step to 10 gains 2%" in str(reached)


def test_the_loss_of_a_step_is_not_scaled_to_a_doubling() -> None:
    points = [
        replace(point, source="measured", limit_pct=90.0)
        for point in line({2048: 5, 2560: 5}, "pes")
    ]
    for limit_pct, stops_at in ((90 * 0.97, None), (90 * 0.91, None), (90 * 0.89, 2048)):
        assert stop([points[0], replace(points[1], limit_pct=limit_pct)]).stops_at == stops_at


def test_a_stop_says_where_it_scales_again_and_where_it_recovers_a_loss() -> None:
    reached = stop(line({1: 10, 2: 2, 4: 2.1, 8: 4, 16: 8, 32: 16}, "hosts"))
    assert (
        reached.stops_at,
        round(reached.gain_pct, 1),
        reached.resumes_at,
        reached.regained_at,
        reached.ends_at,
    ) == (
        1,
        -80.0,
        4,
        32,
        None,
    )
    assert str(reached).endswith("scales again from 4; back at the same rate at 32")
    assert "doubling costs 80%" in str(reached)


def test_a_stop_says_where_it_stops_for_good_if_it_has_scaled_again() -> None:
    reached = stop(line({1: 1, 2: 1, 4: 2, 8: 2, 16: 4, 32: 4.1, 64: 4.2}, "hosts"))
    assert (reached.stops_at, reached.resumes_at, reached.ends_at) == (1, 2, 16)
    assert str(reached).endswith("scales again from 2; finally stops at 16")
    assert stop(line({1: 1, 2: 1, 4: 1}, "hosts")).ends_at is None


def test_throughput_should_stay_constant_over_groups() -> None:
    assert stop(line({2: 10, 4: 9.5, 8: 9.1}, "groups")).stops_at is None
    assert stop(line({2: 10, 4: 9.5, 8: 8}, "groups")).stops_at == 4


def test_the_reason_is_the_phase_that_takes_more_than_scaling_allows() -> None:
    # The bus time halves as it should. The shuffle time stays, although it is less than the bus
    # time.
    reached = stop(line({1: 1, 2: 1.08}, bus=[1.0, 0.5], shuffle=[0.4, 0.4], call=[0.0, 0.1]))
    assert (reached.phase, round(reached.phase_pct, 1)) == ("shuffle", 40.0)
    # Twice the work on twice the hosts: phases may stay constant; the phase that grows is the
    # reason.
    reached = stop(line({1: 1, 2: 1.08}, "hosts", bus=[1.0, 1.0], network=[0.0, 0.85]))
    assert reached.phase == "network"


def test_measured_pes_should_stay_near_the_limit_as_they_share_one_memory() -> None:
    points = [
        replace(point, source="measured", limit_pct=90.0)
        for point in line({64: 5, 128: 5, 256: 4}, "pes")
    ]
    assert stop(points).stops_at is None
    points[-1] = replace(points[-1], limit_pct=70.0)
    assert stop(points).stops_at == 128
    assert stop(line({64: 5, 128: 5, 256: 4}, "pes")).stops_at == 64


def test_modelled_and_measured_points_are_different_series() -> None:
    points = line({64: 5, 128: 10}, "pes")
    both = [
        *points,
        *(
            replace(point, source="measured", where="emulated here", limit_pct=90.0)
            for point in points
        ),
    ]
    assert [series_stop.source for series_stop in stops_of(both)] == ["modelled", "measured"]


# ---- the command


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, list[dict[str, Any]], Path]:
    """The output, the rows and the picture of a small study."""
    folder = tmp_path_factory.mktemp("scale")
    arguments = [
        "pes",
        "alltoall",
        "reduce",
        "--measure",
        "--bytes",
        "8KiB",
        "--up-to",
        "128",
        "--iters",
        "1",
    ]
    result = run(
        *arguments, "--json", str(folder / "rows.jsonl"), "--plot", str(folder / "rows.svg")
    )
    assert result.exit_code == ExitCode.RIGHT, result.output
    rows = [json.loads(text) for text in (folder / "rows.jsonl").read_text().splitlines()]
    return result.output, rows, folder / "rows.svg"


def test_measured_rows_are_right_and_have_more_fields_than_modelled_rows(
    written: tuple[str, list[dict[str, Any]], Path],
) -> None:
    rows = [row for row in written[1] if "seconds" in row]
    assert len(rows) == 2 * 2 * 2 * 2  # sources, collectives, techniques, values
    for row in rows:
        is_measured = row["source"] == "measured"
        assert is_measured == (row["source"] != "modelled")
        assert (row["wrong"], row["where"]) == (
            (0, "emulated here") if is_measured else (None, "upmem-2560")
        )
        assert (row["limit_pct"] is not None, "machine" in row) == (is_measured, is_measured)
        # Medians of parts may add up to more than the median of calls; then the pass, the
        # remainder, is 0.
        timed = sum(seconds for name, seconds in row["phases"].items() if name != "pass")
        assert sum(row["phases"].values()) == pytest.approx(max(row["seconds"], timed))
    stops = [row for row in written[1] if "stops_at" in row]
    assert [stop["source"] for stop in stops] == ["modelled"] * 4 + ["measured"] * 4


def test_every_line_and_picture_marks_modelled_numbers(
    written: tuple[str, list[dict[str, Any]], Path],
) -> None:
    output, rows, path = written
    shown = re.findall(r"^(?:alltoall|reduce) .* (measured|modelled)$", output, re.MULTILINE)
    assert shown == [row["source"] for row in rows if "seconds" in row]
    assert all(
        "modelled" in text or "measured" in text
        for text in output.splitlines()
        if "scales to" in text
    )
    drawn = path.read_text()
    for words in (
        "source: measured, modelled",
        "alltoall, modelled",
        "alltoall, measured",
        "on upmem-2560",
    ):
        assert words in drawn


def test_a_wrong_element_fails_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    original = scaling.measure_points
    monkeypatch.setattr(
        command,
        "measure_points",
        lambda *arguments: (replace(point, wrong=3) for point in original(*arguments)),
    )
    arguments = [
        "pes",
        "gather",
        "--measure",
        "--bytes",
        "64",
        "--up-to",
        "64",
        "--iters",
        "1",
        "--warmup",
        "0",
    ]
    assert run(*arguments).exit_code == ExitCode.WRONG_RESULT


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["colours"], "study 'colours' is unknown; use all, pes, channels, bytes, groups, hosts"),
        (["pes", "allsum"], "collective 'allsum' is unknown"),
        (["pes", "--machine", "abacus"], "machine 'abacus' is unknown"),
        (["hosts", "--measure"], "study hosts cannot be measured"),
        (["channels", "--measure"], "study channels cannot be measured"),
        (["bytes", "--up-to", "512"], "study bytes starts at 1024; no value is at most 512"),
        (["pes", "alltoall", "--bytes", "100"], "needs bytes (100) divisible by"),
        (["channels", "--machine", "emulated-host"], "emulated DIMMs have no separate channels"),
        (["all", "--up-to", "0"], "study pes starts at 64; no value is at most 0"),
    ],
)
def test_invalid_studies_are_errors_of_one_sentence(arguments: list[str], sentence: str) -> None:
    result = run(*arguments)
    assert result.exit_code == ExitCode.USAGE
    assert sentence in result.output.replace("\n", " ")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["all", "--plot", "all.svg"], "there is room for 4 collectives"),
        (["alltoall", "--plot", "pes.pdf"], "its name must end in .svg or .png"),
        (
            ["alltoall", "--plot", "nowhere/pes.svg"],
            "cannot write nowhere/pes.svg: there is no folder nowhere",
        ),
    ],
)
def test_invalid_pictures_are_refused_before_the_study_runs(
    arguments: list[str], sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("model_points", "measured_sections", "measure_points"):
        monkeypatch.setattr(command, name, None)
    result = run("pes", *arguments, "--measure", "--up-to", "64")
    assert result.exit_code == ExitCode.USAGE, result.exception
    assert sentence in result.output.replace("\n", " ")


def test_a_repeated_name_counts_once() -> None:
    once, twice = run("pes", "alltoall"), run("pes,pes", "alltoall,alltoall", "alltoall")
    assert twice.exit_code == ExitCode.RIGHT
    assert twice.output == once.output


def test_a_limit_cuts_only_the_studies_that_start_below_it() -> None:
    result = run("all", "alltoall", "--up-to", "128", "--json", "-")
    rows = [row for row in map(json.loads, result.stdout.splitlines()) if "seconds" in row]
    largest = {
        name: max(row[STUDIES[name].varies] for row in rows if row["study"] == name)
        for name in STUDIES
    }
    assert largest == {"pes": 128, "channels": 10, "bytes": 8 << 20, "groups": 128, "hosts": 128}
    assert (
        "# study bytes shows all values: it starts above 128"
        in run("all", "alltoall", "--up-to", "128").output
    )


def test_all_skips_studies_that_the_machine_cannot_have() -> None:
    result = run("all", "alltoall", "--machine", "emulated-host")
    assert result.exit_code == ExitCode.RIGHT
    assert "# study channels is left out: emulated-host has no separate channels" in result.output
    assert "# study channels:" not in result.output


def test_points_that_do_not_fit_are_named_and_skipped() -> None:
    result = run("hosts", "alltoall", "--bytes", "640KiB")  # blocks for 32 hosts of 2560 PEs
    assert result.exit_code == ExitCode.RIGHT
    assert "# skipped: mask 11 of 2560x64 selects 163840 PEs" in result.output


def test_points_larger_than_memory_are_named_and_not_measured(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("pidcomm.bench.measure.available_bytes", lambda: 6 << 20)
    result = run(
        "pes",
        "gather",
        "--measure",
        "--bytes",
        "8KiB",
        "--up-to",
        "128",
        "--iters",
        "1",
        "--json",
        "-",
    )
    rows = [json.loads(text) for text in result.stdout.splitlines() if text.startswith("{")]
    assert {row["pes"] for row in rows if row.get("pes") and row["source"] == "measured"} == {64}
    assert {row["pes"] for row in rows if row.get("pes") and row["source"] == "modelled"} == {
        64,
        128,
    }
    assert "8 KiB for each of 128 PEs need about 8 MiB of memory" in result.stderr


# ---- the picture


def test_no_text_of_the_picture_overlaps() -> None:
    points = [point for study in STUDIES for point in points_of(study)]
    measured = [
        replace(point, source="measured", limit_pct=50.0)
        for point in points
        if point.study in ("pes", "bytes")
    ]
    assert_legible(picture.draw([*points, *measured]))
    assert_legible(picture.draw(points_of("hosts", ["alltoall"])))


def test_the_picture_has_every_point_and_a_ring_at_every_stop() -> None:
    points = points_of("hosts")
    figure = picture.draw(points)
    lines = [drawn_line for axes in figure.get_axes() for drawn_line in axes.get_lines()]
    rings = [drawn_line for drawn_line in lines if str(drawn_line.get_gid()).startswith("stop")]
    stops = [series_stop for series_stop in stops_of(points) if series_stop.stops_at is not None]
    assert len(rings) == len(stops) > 0
    assert sum(np.size(drawn_line.get_xdata()) for drawn_line in lines) - len(rings) == len(points)
    assert "source: modelled" in all_text(figure)
