"""Rows, pictures and the command of applications."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Optional

import numpy as np
import pytest
from matplotlib.patches import Rectangle
from test_apps import COMPARED, PES, Scaled, invoke
from test_pictures import assert_legible

import pidcomm
from pidcomm.bench.ablation import Assumed
from pidcomm.bench.measure import SdkCondition
from pidcomm_studies import apps
from pidcomm_studies.apps.report import Conditions, rows_of
from pidcomm_studies.apps.stage import Cost
from pidcomm_studies.pictures import applications as picture

# ---- rows and pictures

SDK = SdkCondition(
    to_pes_gb_s=5, from_pes_gb_s=4, limits_gb_s={"plain": 8}, contiguous_gb_s=8, has_flushes=False
)
FAIR = Conditions(3, {"coherence": "hardware", "threads": 2}, 4096, SDK)


def runs_of(costs: Mapping[str, float]) -> list[apps.Run]:
    """Return runs by technique whose allreduces took `costs` seconds on the host, with a kernel
    of 3 s.
    """
    nothing = np.zeros(0, np.int32)
    return [
        apps.Run(
            "scaled",
            {"input": "words", "words": 3},
            (4, pes // 4),
            technique,
            nothing,
            0,
            {
                "kernel": Cost(modelled=3.0, launches=2, calls=2),
                "host": Cost(measured=1.0, low=0.5, high=2.0),
                "allreduce": Cost(
                    measured=seconds, low=seconds / 2, high=2 * seconds, loads=2, calls=1
                ),
            },
            Cost(measured=9.0),
            12.0,
        )
        for technique, seconds in costs.items()
        for pes in (8,)
    ]


def test_rows_separate_measured_modelled_and_assumed_times() -> None:
    base, tile = rows_of(runs_of({"conventional": 3.0, "tile": 1.0}), FAIR)
    assert (tile.kernel_us, tile.host_us, tile.collectives_us, tile.reorder_us) == (
        3e6,
        1e6,
        1e6,
        0,
    )
    assert (tile.total_us, tile.communication_us) == (5e6, 1e6)
    assert (tile.collectives_p25_us, tile.collectives_p75_us) == (0.5e6, 2e6)
    assert (tile.total_p25_us, tile.total_p75_us, tile.spread_pct) == (4e6, 7e6, 60)
    assert tile.assumed_us == pytest.approx(2 * Assumed().launch_us + 2 * Assumed().load_us)
    assert tile.setup_us == 9e6
    assert tile.communication_speed_up == 3
    assert tile.speed_up == pytest.approx(7 / 5)
    # The CPUs launch nothing.
    assert tile.cpu_speed_up == pytest.approx(12e6 / (5e6 + tile.assumed_us))
    assert (tile.coherence, tile.threads, tile.iters) == ("hardware", 2, 3)
    assert (tile.fair_bytes_per_pe, tile.sdk_share_pct) == (4096, 50)
    assert (base.communication_speed_up, base.speed_up) == (1.0, 1.0)
    assert tile.source == "mixed"
    assert tile.kernel_pct == 60
    assert (tile.input, tile.facts, tile.shape, tile.pes) == ("words", {"words": 3}, "4x2", 8)
    assert [
        row.speed_up
        for row in rows_of(runs_of({"conventional": 3.0, "tile": 1.0}), Conditions(3, {}))
    ] == [
        None,
        None,
    ]
    assert rows_of(runs_of({"tile": 1.0}), FAIR)[0].speed_up is None


def test_the_bars_of_a_picture_add_up_and_mark_modelled_times() -> None:
    rows = rows_of(runs_of({"conventional": 3.0, "tile": 1.0}), FAIR)
    figure = picture.draw(rows)
    bars = [patch for patch in figure.axes[0].patches if isinstance(patch, Rectangle)]
    assert sum(bar.get_width() for bar in bars) == pytest.approx(
        sum(row.total_us for row in rows) / 1e3
    )
    for bar in bars:
        assert bool(bar.get_hatch()) == (bar.get_gid() == "modelled")
    text = " ".join(artist.get_text() for artist in figure.findobj() if hasattr(artist, "get_text"))
    for wanted in (
        "kernel (modelled)",
        "mixed",
        "policy hardware",
        "words 3",
        f"pidcomm {pidcomm.__version__}",
    ):
        assert wanted in text
    assert_legible(figure)


def test_several_numbers_of_pes_get_lines_of_gains() -> None:
    rows = rows_of(runs_of({"conventional": 3.0, "tile": 1.0}), FAIR)
    more = [replace(row, pes=16, cpu_speed_up=2.0) for row in rows]
    figure = picture.draw([*rows, *more])
    lines = {
        line.get_gid(): np.asarray(line.get_ydata()).tolist()
        for line in figure.axes[1].get_lines()
        if line.get_gid()
    }
    assert list(lines.values()) == [[row.cpu_speed_up, 2.0] for row in rows]
    assert figure.axes[1].get_ylabel() == "gain over the CPUs"
    assert_legible(figure)


# ---- the command


@pytest.fixture
def scaled_command(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The command ``app scaled``."""
    from pidcomm_studies.cli import apps as command

    before = list(command.applications.registered_commands)
    command.add(Scaled)
    yield
    command.applications.registered_commands[:] = before


@pytest.mark.parametrize("name", apps.NAMES)
def test_a_command_checks_and_times_every_technique(name: str, tmp_path: Path) -> None:
    words = (
        name,
        "--quick",
        "--pes",
        str(PES),
        "--iters",
        "1",
        "--cpu",
        "--json",
        str(tmp_path / "rows.jsonl"),
    )
    result = invoke(*words, "--plot", str(tmp_path / "plot.svg"))
    assert result.exit_code == 0, result.output
    rows = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text().splitlines()]
    assert [row["technique"] for row in rows] == COMPARED
    for row in rows:
        assert (row["application"], row["wrong"], row["pes"], row["source"]) == (
            name,
            0,
            PES,
            "mixed",
        )
        for part in ("total", "collectives"):
            assert (
                0
                < row[f"{part}_p25_us"]
                <= row[f"{part}_us"] * (1 + 1e-9)
                <= row[f"{part}_p75_us"] * (1 + 2e-9)
            )
        assert row["total_us"] == pytest.approx(
            row["kernel_us"] + row["host_us"] + row["collectives_us"] + row["reorder_us"]
        )
        phases = row["phases"]
        assert sum(
            phase["measured_us"] + phase["modelled_us"] for phase in phases
        ) == pytest.approx(row["total_us"])
        assert row["cpu_speed_up"] == pytest.approx(
            row["cpu_us"] / (row["total_us"] + row["assumed_us"])
        )
        assert row["speed_up"] is None  # of one timing each
        assert row["technique"] in result.output
    assert "modelled" in (tmp_path / "plot.svg").read_text()


@pytest.mark.usefixtures("scaled_command")
def test_a_wrong_result_is_an_exit_code() -> None:
    assert invoke("scaled", "--pes", "8", "--iters", "1").exit_code == 0
    result = invoke(
        "scaled", "--pes", "8", "--iters", "1", "--is-wrong", "--technique", "tile", "--json", "-"
    )
    assert result.exit_code == 1
    assert [json.loads(line)["wrong"] for line in result.output.splitlines()] == [1]


@pytest.mark.usefixtures("scaled_command")
def test_the_options_of_an_application_come_from_its_problem() -> None:
    text = invoke("scaled", "--help").output
    assert "--is-wrong" in text
    assert "Whether the reference is wrong." in text
    assert "Scale words." in text
    assert "--is-wrong" not in invoke("bfs", "--help").output


@pytest.mark.usefixtures("scaled_command")
@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--pes", "8", "--shape", "8x1"), "give --pes (8) or --shape (8x1), not both"),
        (("--shape", "8"), "needs a shape of 2 axes"),
        (("--technique", "tree"), "technique 'tree' is unknown; use all, tile"),
        (("--pes", "eight"), "count 'eight' is not a count"),
        (("--pes", "8,100000"), "pes (100000) must be between 1 and 2560"),
        (("--plot", "x.pdf"), "must end in .svg or .png"),
        (("--json", "no/such/folder"), "cannot write"),
    ],
)
def test_wrong_usage_is_one_sentence(words: tuple[str, ...], sentence: str) -> None:
    result = invoke("scaled", *words)
    assert result.exit_code == 2
    assert sentence in " ".join(result.output.split())


@pytest.mark.usefixtures("scaled_command")
def test_techniques_that_a_shape_does_not_allow_are_skipped_and_named() -> None:
    result = invoke("scaled", "--pes", "6", "--iters", "1")
    assert result.exit_code == 0
    assert "# skipped: " in result.output
    assert "pr+im+cm" in re.findall("# skipped: (.*)", result.output)[0]
    assert re.findall(r"^ +6 (\S+) +\d", result.output, re.MULTILINE)[:2] == [
        "conventional",
        "tile",
    ]
    assert invoke("scaled", "--pes", "6", "--technique", "pr").exit_code == 2


@pytest.mark.usefixtures("scaled_command")
def test_several_numbers_of_pes_are_run_in_turn(tmp_path: Path) -> None:
    result = invoke(
        "scaled", "--pes", "8,16,8", "--iters", "1", "--technique", "tile", "--json", "-"
    )
    assert [json.loads(line)["pes"] for line in result.output.splitlines()] == [8, 16]


def test_options_keep_their_texts_if_their_hints_are_optional() -> None:
    """Python 3.10 makes the hints of defaults of None optional."""
    from pidcomm_studies.cli.apps import _hints

    def make(size: Annotated[int, "the size"] | None = None) -> None:
        """Do nothing."""

    make.__annotations__ = {"size": Optional[Annotated[int, "the size"]]}  # noqa: UP045
    assert _hints(make) == {"size": Annotated[int, "the size"]}
