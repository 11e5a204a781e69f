"""The list of public programs, and the command that builds and runs them."""

from __future__ import annotations

import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

TESTS = Path(__file__).resolve().parents[1]
SCRIPT = TESTS / "run_programs.py"
EXAMPLE = TESTS.parent / "examples" / "vector_add"
ROW = """
[[program]]
repository = "owner/vectors"
commit = "0000000"
build = ["make host kernel"]
run = ["./host"]
judge = "own check"
"""


@pytest.fixture
def script() -> dict[str, Any]:
    """The names of run_programs.py."""
    return runpy.run_path(str(SCRIPT))


def test_each_row_has_a_commit_and_commands_that_need_no_shell(script: dict[str, Any]) -> None:
    programs = script["programs"](script["LIST"].read_text())
    assert len({program.repository for program in programs}) >= 70
    assert len({program.name for program in programs}) == len(programs)
    for program in programs:
        assert re.fullmatch(r"[\w.-]+/[\w.-]+", program.repository)
        assert re.fullmatch(r"[0-9a-f]{7,40}", program.commit)
        for command in (*program.build, *program.run, *program.check):
            assert not re.search(r"[;|<>&`$*]", command), command
            assert shlex.split(command)
        for pattern in (program.prints, program.refuted_by):
            re.compile(pattern)
        # A row without a judge can not become right, and a row that becomes right runs.
        assert program.reaches != "right" or (program.judge and program.build and program.run)


def test_a_row_with_an_unknown_key_or_without_a_reason_is_an_error(script: dict[str, Any]) -> None:
    for row, words in (
        (ROW + 'speed = "fast"', "speed"),
        (ROW + 'reaches = "runs"', "why"),
        (ROW + 'reaches = "far"', "far"),
    ):
        with pytest.raises(ValueError, match=words):
            script["programs"](row)


@pytest.mark.parametrize(
    ("row", "line", "code"),
    [
        (ROW + 'prints = "128 PEs"\nreaches = "right"', "right (own check)", 0),
        (ROW + 'prints = "129 PEs"\nreaches = "right"', "runs (the output lacks '129 PEs')", 1),
        (
            ROW + 'refuted_by = "[0-9]+ PEs"\nreaches = "right"',
            "runs (the output has '128 PEs')",
            1,
        ),
        (
            ROW.replace("./host", "false && true") + 'reaches = "builds"\nwhy = "no shell"',
            "builds (`false && true`: exit code 1",
            0,
        ),
        (
            ROW.replace('["make host kernel"]', '["make absent"]') + 'reaches = "right"',
            "nothing (`make absent`: exit code 2: make: *** No rule",
            1,
        ),
        (
            ROW.replace("make host kernel", "true").replace("./host", "sleep 100")
            + 'reaches = "builds"\nwhy = "sleeps"',
            "builds (`sleep 100`: no end after",
            0,
        ),
        (ROW.replace("vectors", "absent") + 'reaches = "right"', "skipped: ", 0),
    ],
)
def test_the_command_reports_how_far_a_program_comes(
    row: str, line: str, code: int, tmp_path: Path
) -> None:
    shutil.copytree(EXAMPLE, tmp_path / "owner" / "vectors")
    rows = tmp_path / "rows.toml"
    rows.write_text(row)
    before = sorted(tmp_path.rglob("*"))
    seconds = "5" if "sleep" in row else "60"
    # If a make runs this test, its variables change the output of other makes.
    variables = {name: value for name, value in os.environ.items() if "MAKE" not in name}
    result = subprocess.run(
        [sys.executable, SCRIPT, tmp_path, "owner", "--list", rows, "--seconds", seconds],
        env=variables | {"LC_ALL": "C"},
        capture_output=True,
        text=True,
        check=False,
    )
    name = "owner/absent" if "absent" in row.splitlines()[2] else "owner/vectors"
    assert result.stdout.startswith(f"{name}: {line}"), result.stdout + result.stderr
    assert result.returncode == code
    assert sorted(tmp_path.rglob("*")) == before
