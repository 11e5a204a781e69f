"""Type checkers find wrong names in programs, and no errors in the package."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

PROGRAM = """\
import numpy as np
import pidcomm

with pidcomm.allocate(pes=64) as pes:
    cube = pes.hypercube(8, 8)
    cube.allreduce("10", bytes=64, dtype=np.int32, op="sum", technique="auto", isa="avx2")
    cube.allreduce("10", bytes=64, dtype=np.int32, op="summ")  # wrong
    cube.alltoall("10", bytes=64, technique="tiles")  # wrong
    cube.alltoall("10", bytes=64, isa="avx")  # wrong
    cube.alltoall("10", bytes=64, coherence="hard")  # wrong
    cube.alltoall("10", bytes=64, op="sum")  # wrong
    cube.alltoal("10", bytes=64)  # wrong
    cube.arrays.allreduce(np.zeros((64, 8)), "10", op="summ")  # wrong
    pidcomm.plan("alltoal", (8, 8), "10", bytes=64)  # wrong
    pidcomm.plan("allreduce", (8, 8), "10", bytes=64, op="summ")  # wrong
    cube.plan("allreduce", "10", bytes=64, op="summ")  # wrong
    cube.validate("allreduce", "10", bytes=64, technique="tiles")  # wrong
    trace = cube.alltoall("10", bytes=64)
    assert trace.technique == "tile" and trace.seconds_total > 0
    trace.seconds_totall  # wrong
    grad = pes.buffer("grad", (8, 4), "float32")
    total = cube.allreduce(grad, "10", op="sum")
    cube.alltoall(total, axis=("x", "y"), out=grad, wait=False).wait().shape
    rows = cube.gather(grad[0], "10").mean()
    cube.scatter(np.zeros((8, 64)), "10").at(3).dtype
    cube.allreduce(grad, "10", bytes=64)  # wrong
    cube.alltoall(grad, "10", op="sum")  # wrong
    cube.gather(grad, "10").at(3)  # wrong
"""


def test_mypy_finds_wrong_names_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--ignore-missing-imports",
        "-p",
        "pidcomm",
        "-m",
        "program",
        "--cache-dir",
        "cache",
    ]
    result = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=300
    )
    wrong = {n for n, line in enumerate(PROGRAM.splitlines(), 1) if line.endswith("# wrong")}
    error_lines = re.findall(r"^(?:program\.py:(\d+)|.*): error: ", result.stdout, re.MULTILINE)
    assert {int(line or 0) for line in error_lines} == wrong, result.stdout + result.stderr
