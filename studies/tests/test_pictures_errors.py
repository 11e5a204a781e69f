"""Invalid rows and wrong usage of the commands that draw."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

import pidcomm
from pidcomm.cli import app
from pidcomm.errors import FileContentError
from pidcomm_studies.pictures import figures
from pidcomm_studies.pictures.rows import read_rows

REFERENCE = Path(__file__).parents[2] / "pidcomm" / "bench" / "reference"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "cannot read"),
        ("", "rows.jsonl: no rows"),
        ("not json\n", "rows.jsonl:1: no JSON object"),
        ("[1, 2]\n", "rows.jsonl:1: no JSON object"),
        ('{"collective": "alltoall"}\n', "rows.jsonl:1: no 'algbw_gb_s'"),
        ("{good}\n{good}\n", "two rows of alltoall with tile"),
        ("{good}\n{step}\n", "mixed"),
        ('{good}\n{good, "bus_gb_s": "fast"}\n', "rows.jsonl:2: 'fast'"),
        ('{good, "bus_gb_s": NaN}\n', "nan for 'bus_gb_s'"),
        ('{good, "bus_gb_s": 0}\n', "0 for 'bus_gb_s'"),
        ('{good, "machine": "mine"}\n', "'mine' for 'machine'"),
        ('{good, "op": 1}\n', "1 for 'op'"),
        ('{good, "shape": "8y8"}\n', "shape '8y8'"),
        ('{good, "shape": "8x0"}\n', "shape 8x0 has 0 PEs"),
        ('{good, "wrong": 3}\n', "alltoall with tile has 3 wrong elements"),
    ],
)
def test_invalid_rows_are_errors(text: str | None, message: str, tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    good, step = (
        json.loads((REFERENCE / f"{name}.jsonl").read_text().splitlines()[0])
        for name in ("collectives", "ablation")
    )
    if text is not None:
        text = text.replace("{good}", json.dumps(good)).replace("{step}", json.dumps(step))
        text = re.sub(
            r"\{good, (.*)\}",
            lambda match: json.dumps({**good, **json.loads(f"{{{match[1]}}}")}),
            text,
        )
        path.write_text(text)
    out = tmp_path / "x.svg"
    result = CliRunner().invoke(app, ["plot", str(path), "--out", str(out)])
    assert message in result.output
    with pytest.raises(pidcomm.Error, match=re.escape(message)) as refusal:
        figures.draw(read_rows([path]))
    assert result.exit_code == (1 if isinstance(refusal.value, FileContentError) else 2)
    assert not out.exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["plot", "{rows}", "--out", "x.gif"], "must end in .svg or .png"),
        (["plot", "{rows}", "--out", "x"], "must end in .svg or .png"),
        (["plot", "{rows}", "--out", "nowhere/x.svg"], "cannot write nowhere/x.svg"),
        (["plot", "{rows}", "--out", "x.svg", "--kind", "pie"], "kind 'pie' is unknown"),
        (["plot", "{rows}", "--out", "x.svg", "--metric", "mood"], "metric 'mood' is unknown"),
        (["plot", "{rows}", "--out", "x.svg", "--kind", "sweep"], "are no sweep"),
        (["plot", "{rows}", "--out", "x.svg", "--kind", "ablation"], "cannot be drawn as ablation"),
        (["draw", "alltoall", "--out", "x.pdf"], "must end in .svg or .png"),
        (["plan", "alltoall", "--draw", "--bytes", "100"], "divisible by"),
        (["plan", "alltoall", "--draw", "--shape", "64x64"], "4096"),
        (["report", "x.txt"], "must end in .html"),
        (["report", "nowhere/x.html"], "no folder nowhere"),
        (["report", "x.html", "--from", "nothing.jsonl"], "cannot read nothing.jsonl"),
    ],
)
def test_usage_errors_are_one_sentence(
    arguments: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = str(REFERENCE / "collectives.jsonl")
    result = CliRunner().invoke(app, [argument.replace("{rows}", rows) for argument in arguments])
    assert result.exit_code == 2
    assert message in result.output
    assert len(result.output.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_help_has_examples() -> None:
    overview = CliRunner().invoke(app, ["--help"]).output
    for command in ("plot", "plan", "report"):
        assert command in overview
        assert f"pidcomm {command}" in CliRunner().invoke(app, [command, "--help"]).output
