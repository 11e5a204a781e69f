"""`dpuemu check` finds nothing in the PE programs of the library and of its examples."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
# Blocks of all sizes that pe/reorder.c treats differently, in place and not.
REORDER = """
import numpy as np, pidcomm
for block in (8, 64, 4096):
    size = 8 * block
    with pidcomm.allocate(pes=64) as pes:
        cube = pes.hypercube(8, 8)
        cube.write(np.arange(64 * size // 8).reshape(64, -1))
        for technique in ("pr", "pr+im", "pr+im+cm", "conventional"):
            for dst in (0, size):
                options = {"technique": technique, "scratch": 2 * size}
                trace = cube.alltoall("10", bytes=size, src=0, dst=dst, **options)
                assert (trace.pe_launches > 0) == (technique != "conventional")
"""
PROGRAMS = {
    "reorder": ("-c", REORDER),
    **{path.stem: (str(EXAMPLES / f"{path.stem}.py"),) for path in EXAMPLES.glob("pe/*.c")},
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_pe_program_has_no_findings(name: str, tmp_path: Path) -> None:
    check = (sys.executable, "-m", "dpuemu", "check", "--", sys.executable)
    result = subprocess.run(
        (*check, *PROGRAMS[name]), cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (result.returncode, result.stderr) == (0, "dpuemu check: 0 findings\n")
