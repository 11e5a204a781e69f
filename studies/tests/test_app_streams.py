"""Applications as streams of work."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import pidcomm
from pidcomm import ArgumentError
from pidcomm.arguments import Array
from pidcomm.cli import app
from pidcomm_studies import apps
from pidcomm_studies.apps import Application
from pidcomm_studies.apps.placement import Placement
from pidcomm_studies.apps.stage import Stage
from pidcomm_studies.apps.streamed import LAYOUT_PARTS, STREAM, StreamedStage

PES, RANKS, WORDS = 128, 2, 64


class Sums(Application):
    """Words that PEs scale and allreduce adds, with all kinds of steps in one stream or several."""

    name, about, axes, data_help, generate_help = "sums", "Add words.", 2, "none", "none"

    def __init__(self, waits: bool = False, is_wrong: bool = False) -> None:
        self.waits, self.is_wrong = waits, is_wrong

    @classmethod
    def make(cls, *, data: Any = None, generate: Any = None, quick: bool = False) -> Sums:
        return cls()

    @property
    def facts(self) -> Mapping[str, int | str]:
        return {"input": "words"}

    def shape_of(self, pes: int) -> tuple[int, ...]:
        return pes // RANKS, RANKS

    def place(self, shape: Sequence[int]) -> Placement:
        size = 4 * WORDS
        return Placement(
            Path(__file__).with_name("scaled.c"),
            {},
            {"x": size, "y": size},
            tasklets=4,
            defines={"WORDS": WORDS},
        )

    def run(self, stage: Stage) -> Array:
        """Compute 5 (3 (3 x + own) + own) + own. The second launch changes no variable."""

        def fill(slices: slice, rows: Array) -> None:
            rows[...] = np.arange(len(rows))[:, None] + slices.start + np.arange(rows.shape[1])

        rows = stage.lay_out(np.empty((RANKS, PES // RANKS * WORDS), np.uint32), fill)
        stage.scatter("11", rows.reshape(1, -1), dst="x")
        own = np.arange(PES)
        stage.launch(factor=3, own=own)
        stage.allgather("00", bytes=4 * WORDS, src="y", dst="x")
        if self.waits:
            stage.wait()
        stage.launch()
        stage.allgather("00", bytes=4 * WORDS, src="y", dst="x")
        stage.launch(factor=5)
        stage.allreduce("10", bytes=4 * WORDS, src="y", dst="y", dtype=np.uint32)
        sums = stage.gather("11", bytes=4 * WORDS, src="y", dtype=np.uint32, wait=False)
        out = np.empty((RANKS, PES // RANKS * WORDS), np.uint32)
        by_rank = sums.reshape(RANKS, -1)

        def negate(slices: slice, rows: Array) -> None:
            rows[...] = -by_rank[slices]

        stage.lay_out(out, negate, reads=by_rank)
        stage.wait()
        return out

    def reference(self) -> Array:
        x = np.arange(RANKS)[:, None] + np.arange(PES // RANKS * WORDS)
        own = np.arange(PES)[:, None]
        y = 5 * (3 * (3 * x.reshape(PES, WORDS) + own) + own) + own
        sums = y.reshape(RANKS, -1, WORDS).sum(axis=1, keepdims=True)
        result = -np.broadcast_to(sums, (RANKS, PES // RANKS, WORDS)).astype(np.uint32)
        return result.reshape(RANKS, -1) + np.uint32(self.is_wrong)


def streamed(problem: Application, **arguments: Any) -> apps.Run:
    """Run a problem one after another and as streams."""
    return apps.run(problem, **{"pes": PES, "iters": 2, "stream": RANKS, **arguments})


@pytest.mark.parametrize("groups", [0, 1, RANKS])
@pytest.mark.parametrize("waits", [False, True])
@pytest.mark.parametrize("technique", ["tile", "conventional"])
def test_a_stream_has_the_result_of_its_steps(technique: str, waits: bool, groups: int) -> None:
    """All runs of a stream begin with equal windows and variables."""
    run = streamed(Sums(waits), technique=technique, stream=groups)
    assert run.streamed is not None
    assert (run.wrong, run.streamed.wrong, run.streamed.rank_groups) == (0, 0, groups)
    for cost in (run.streamed.cost, run.streamed.in_sequence):
        assert cost is not None
        assert 0 < cost.low <= cost.total <= cost.high


def test_a_wrong_result_of_a_stream_is_counted() -> None:
    run = streamed(Sums(is_wrong=True))
    assert run.streamed is not None
    assert run.streamed.wrong == PES * WORDS


@pytest.mark.parametrize("name", apps.NAMES)
def test_every_application_has_equal_results_as_streams(name: str) -> None:
    own: dict[str, dict[str, Any]] = {
        "dlrm": {"replicas": RANKS, "chunks": 3},
        "ntt": {"chunks": 2, "operation": "product"},
    }
    problem = apps.get(name).make(quick=True, **own.get(name, {}))
    run = streamed(problem, iters=1)
    assert run.streamed is not None
    assert (run.wrong, run.streamed.wrong) == (0, 0)


def test_techniques_that_replace_the_program_run_without_streams() -> None:
    runs = apps.compare(Sums(), pes=PES, techniques=["pr", "tile", "auto"], iters=1, stream=RANKS)
    assert [run.streamed is not None for run in runs] == [False, True, False]


@pytest.fixture
def stage() -> Iterator[StreamedStage]:
    """A stage of two rank groups that runs each stream once."""
    with pidcomm.allocate(pes=PES) as pes:
        shape = (PES // RANKS, RANKS)
        options: Any = {"technique": "tile"}
        own = StreamedStage(pes, shape, Sums().place(shape), options, rank_groups=RANKS)
        with own:
            yield own


def test_variables_of_pes_end_a_stream_that_has_launches(stage: StreamedStage) -> None:
    streams = []
    for own in (np.arange(PES), np.arange(PES), np.arange(PES) + 1, 5):
        stage.launch(factor=1, own=own)
        streams.append(STREAM in stage.costs)
    assert streams == [False, False, True, True]
    for _ in range(2):  # the second wait has nothing to run
        stage.wait()
        assert stage.costs[STREAM].calls == 2


@pytest.mark.parametrize(("slices", "parts"), [(1, 1), (8, 8), (12, 6), (11, 1), (64, 8)])
def test_a_layout_has_equal_parts(stage: StreamedStage, slices: int, parts: int) -> None:
    calls = []
    rows = stage.lay_out(np.ones((slices, 2)), lambda own, part: calls.append((own, len(part))))
    assert (rows == 0).all()
    assert not calls
    stage.wait()
    each = slices // parts
    assert parts <= LAYOUT_PARTS
    assert sorted((own.start, own.stop, length) for own, length in calls) == [
        (first, first + each, each) for first in range(0, slices, each)
    ]


def test_windows_that_do_not_fit_memory_twice_run_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(size: int, what: str) -> None:
        raise ArgumentError(f"{what} need {size} bytes")

    monkeypatch.setattr("pidcomm_studies.apps.streamed.require_bytes", refuse)
    run = streamed(Sums(waits=True))
    assert run.streamed is not None
    assert (run.streamed.wrong, run.streamed.cost.calls) == (0, 2)
    assert run.streamed.in_sequence is None


def test_the_command_prints_the_gain_of_streams() -> None:
    words = ["app", "ntt", "--quick", "--shape", "32x1x1x4", "--technique", "tile", "--iters", "1"]
    result = CliRunner().invoke(app, [*words, "--chunks", "1", "--stream", "2", "--json", "-"])
    assert result.exit_code == 0, result.output
    (row,) = map(json.loads, result.stdout.splitlines())
    assert row["stream_groups"] == 2
    assert row["stream_speed_up"] == pytest.approx(row["steps_us"] / row["stream_us"])
    table = CliRunner().invoke(app, [*words, "--stream", "0", "--wide"]).stdout
    (numbers,) = re.findall(
        r"steps_us +stream_us +stream wrong .*\n.* (\d+) +(\d+) +(\S+)x +0 ", table
    )
    assert float(numbers[2]) == pytest.approx(int(numbers[0]) / int(numbers[1]), abs=0.02)
    wrong = CliRunner().invoke(app, [*words, "--stream", "3"])
    assert wrong.exit_code != 0
    assert "rank_groups (3) must divide the 2 ranks" in wrong.stderr
