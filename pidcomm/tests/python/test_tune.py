"""The command tune and the tuning file."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import run

from pidcomm import _core
from pidcomm.bench.tune import CASES, gain, others_of, write_file

MERGE = "merge step_words=8 ahead=64 ahead_level=1 members=1 items=8 prefetches=1"


def _source(path: Path | str) -> str:
    """Return where a new process with a tuning file gets its values from."""
    return subprocess.run(
        [sys.executable, "-c", "from pidcomm import _core; print(_core.tuning_source(), end='')"],
        env={**os.environ, "PIDCOMM_TUNING": str(path)},
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip


def test_each_tuned_pass_has_a_case() -> None:
    assert list(CASES) == list(_core.tuning())


def test_a_value_that_slows_one_case_down_has_no_gain() -> None:
    assert gain([8.0, 2.0], [4.0, 4.0]) == 0
    assert gain([8.0, 2.0], [4.0, 2.0]) == pytest.approx(2**0.5)


def test_tune_tries_reductions_without_prefetches_also_in_the_longest_steps() -> None:
    best = {"step_words": 8, "ahead": 128, "prefetches": 1}
    assert others_of("reduce_blocks", "prefetches", best) == [
        {**best, "prefetches": 0},
        {**best, "prefetches": 0, "step_words": 32},
    ]
    assert others_of("reduce_lanes", "prefetches", best) == []
    assert others_of("reduce_lanes_over_ranks", "prefetches", best) == []
    assert others_of("to_host", "prefetches", best) == [{**best, "prefetches": 0}]
    assert others_of("to_host", "step_words", best) == [{**best, "step_words": 16}]


def test_tune_tries_a_distance_between_powers_of_two() -> None:
    best = {"ahead": 256}
    assert [other["ahead"] for other in others_of("merge", "ahead", best)] == [128, 224, 512]
    assert others_of("merge", "ahead", {"ahead": 1}) == []


def test_library_reads_the_file_that_tune_writes(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "tuning"
    write_file(path, ["merge", "to_host"])
    assert [line.split()[0] for line in path.read_text().splitlines()] == [
        "cpu",
        "merge",
        "to_host",
    ]
    assert _source(path) == str(path)


def test_an_empty_variable_means_no_file() -> None:
    assert _source("").startswith("built-in values for ")
    assert "not" not in _source("")


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("merge step_words=8", "pass merge has no value for ahead"),
        (MERGE.removesuffix(" prefetches=1"), "pass merge has no value for prefetches"),
        (f"{MERGE} items=4", "pass merge has two values for items"),
        (MERGE.replace("ahead=64", "ahead=0"), "ahead of pass merge is 0; it must be 1 to 1024"),
        ("merge step_words=eight", "'step_words=eight' is not KEY=NUMBER"),
        ("merge pace=8", "'pace=8' is not KEY=NUMBER"),
        (2 * f"{MERGE}\n", "pass merge has two lines"),
        ("gather step_words=8", "no tuned pass has the name gather"),
    ],
)
def test_a_file_with_a_wrong_line_is_not_used(tmp_path: Path, line: str, reason: str) -> None:
    path = tmp_path / "tuning"
    path.write_text(f"{_core.tuning_cpu()}\n{line}\n")
    source = _source(path)
    assert source.startswith("built-in values for ")
    assert source.endswith(f"not {path}: {reason}")


def test_a_file_that_is_missing_is_reported_if_the_variable_names_it(tmp_path: Path) -> None:
    path = tmp_path / "missing"
    assert _source(path).endswith(f"not {path}: cannot be opened")


def test_a_file_of_another_cpu_is_not_used(tmp_path: Path) -> None:
    path = tmp_path / "tuning"
    path.write_text("cpu Other 1 2\n")
    assert _source(path).endswith(f"its first line is 'cpu Other 1 2', not '{_core.tuning_cpu()}'")


def test_command_writes_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, rows = tmp_path / "tuning", tmp_path / "rows.jsonl"
    monkeypatch.setenv("PIDCOMM_TUNING", str(path))
    result = run("tune", "to_host", "--bytes", "16KiB", "--seconds", "1", "--json", str(rows))
    assert result.returncode == 0, result
    assert f"written: {path}" in result.stdout
    names = [line.split()[0] for line in path.read_text().splitlines()]
    assert names == ["cpu", "to_host"]
    values = [json.loads(line) for line in rows.read_text().splitlines()]
    assert (values[0]["pass_"], values[0]["key"]) == ("to_host", "step_words")


def test_command_refuses_an_unknown_pass_and_a_missing_file(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PIDCOMM_TUNING", "")
    assert "pass 'gather' is unknown" in run("tune", "gather").stderr
    assert "--bytes is 24KiB" in run("tune", "--dry-run", "--bytes", "24KiB").stderr
    assert "there is no tuning file" in run("tune", "merge").stderr
