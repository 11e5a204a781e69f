"""The examples, and the list of all examples."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from over_mpi import Mpi
from over_mpi import mpi as mpi

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


def test_the_study_reports_a_right_result_in_one_line(tmp_path: Path) -> None:
    words = [sys.executable, str(EXAMPLES / "graph_study.py")]
    strict = {**os.environ, "DPUEMU_STRICT": "1"}
    process = subprocess.run(
        words, cwd=tmp_path, env=strict, capture_output=True, text=True, check=False
    )
    assert (process.returncode, process.stderr) == (0, "")
    assert len(process.stdout.splitlines()) == 1


def test_a_search_over_hosts_has_no_wrong_element(mpi: Mpi) -> None:
    process = mpi.run(3, sys.executable, str(EXAMPLES / "bfs_over_hosts.py"))
    assert process.returncode == 0, process.stdout + process.stderr
    assert re.findall(r"\b(\d+) wrong elements", process.stdout) == ["0"]
