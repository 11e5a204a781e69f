"""`dpuemu check` finds nothing in the kernels of the applications."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pidcomm_studies import apps

KERNELS = sorted(path.parent.name for path in Path(apps.__file__).parent.glob("*/kernel.c"))
SUPPRESSIONS = Path(__file__).with_name("check_suppressions.txt")


@pytest.mark.parametrize("name", KERNELS)
def test_a_kernel_has_no_findings(name: str, tmp_path: Path) -> None:
    result = subprocess.run(
        [
            *(sys.executable, "-m", "dpuemu", "check", "--suppressions", str(SUPPRESSIONS), "--"),
            *(str(Path(sys.executable).with_name("pidcomm")), "app", name, "--quick"),
            *("--pes", "16", "--technique", "tile", "--iters", "1"),
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (result.returncode, result.stderr) == (0, "dpuemu check: 0 findings\n")
