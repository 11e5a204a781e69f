"""The Python examples, and the list of all examples. The native tests run the others."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
IN_PROCESSES = ("hosts", "pool")  # test_hosts_mpi.py runs these
ALONE = [path for path in sorted(EXAMPLES.glob("*.py")) if path.stem not in IN_PROCESSES]
STRICT = {**os.environ, "DPUEMU_STRICT": "1"}


@pytest.mark.parametrize("path", ALONE, ids=lambda path: path.stem)
def test_an_example_reports_a_right_result_in_one_line(path: Path, tmp_path: Path) -> None:
    words = [sys.executable, str(path)]
    result = subprocess.run(
        words, cwd=tmp_path, env=STRICT, capture_output=True, text=True, check=False
    )
    assert (result.returncode, result.stderr) == (0, "")
    assert len(result.stdout.splitlines()) == 1


def test_an_example_with_a_wrong_result_fails(tmp_path: Path) -> None:
    text = (EXAMPLES / "allreduce.py").read_text()
    assert 'op="sum"' in text
    (tmp_path / "wrong.py").write_text(text.replace('op="sum"', 'op="max"'))
    result = subprocess.run(
        [sys.executable, str(tmp_path / "wrong.py")], capture_output=True, text=True, check=False
    )
    assert result.returncode == 1
    assert " 0 of " not in result.stdout


def test_the_list_names_every_example() -> None:
    text = (EXAMPLES / "README.md").read_text()
    for file in EXAMPLES.rglob("*"):
        if file.suffix in (".c", ".cpp", ".py"):
            assert f"`{file.relative_to(EXAMPLES)}`" in text
