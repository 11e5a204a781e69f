"""Commands without the modules that draw and fit."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

import pidcomm
from pidcomm.cli import app


@pytest.mark.parametrize(
    ("arguments", "module"),
    [
        (["draw", "alltoall", "--shape", "8x8", "--bytes", "8KiB", "--out", "x.svg"], "matplotlib"),
        (["report", "x.html"], "matplotlib"),
        (["model", "calibrate", "mine.toml"], "scipy"),
    ],
)
def test_commands_name_the_missing_module(
    arguments: list[str], module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(pidcomm.errors, "find_spec", lambda name: None)
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 2
    assert f"needs {module}, which is not installed: pip install {module}" in result.output
    assert not list(tmp_path.iterdir())
