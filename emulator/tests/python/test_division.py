"""The stand-in compiler counts products with which gcc divides by a constant as divisions, and no other products."""

from __future__ import annotations

import random
import re
import subprocess
import sys
from pathlib import Path

import pytest
from dpuemu import tools

INCLUDES = "#include <stdint.h>\ntypedef uint32_t u; typedef uint64_t w; typedef int64_t i;\n"
VARIABLE = """
u f0(u a, u b) { return (w)a * b >> 32; }
int f1(int a, int b) { return (i)a * b >> 33; }
u f2(u a, u m, u reciprocal) { u t = (w)a * reciprocal >> 32; return a - t * m; }
u f3(u *a, u *b, int n) { u s = 0; for (int j = 0; j < n; j++) s += (w)a[j] * b[j] >> 32; return s; }
u f4(u a, u b, int c) { u d = c ? 2863311531u : b; return (w)a * d >> 33; }
"""


def routines(folder: Path, source: str, optimisation: str) -> dict[str, set[str]]:
    """Compile functions with names f and a number; return the software routines that each calls."""
    (folder / "f.c").write_text(INCLUDES + source)
    command = [sys.executable, str(tools.sdk_root() / "bin" / tools.COMPILER), optimisation, "-S", "-o", "-", "f.c"]
    text = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout
    names = {number: set[str]() for number in re.findall(r"^f(\d+):", text, re.MULTILINE)}
    sections = dict(re.findall(r"section\s+\.text\.f(\d+).*\n__pe_size_\d+_(\d+):", text))
    for function, section in sections.items():
        names[function] = set(re.findall(rf"^__pe_uses_{section}_(\w+):", text, re.MULTILINE))
    assert len(sections) == len(names) > 0
    return names


@pytest.mark.parametrize("optimisation", ["-O1", "-O2", "-O3"])
def test_divisions_by_constants_are_divisions(tmp_path: Path, optimisation: str) -> None:
    rng = random.Random(7)
    divisors = [*range(3, 60), 641, 1000, 10**9 + 7, *(rng.randrange(3, 2 ** rng.randrange(3, 32)) for _ in range(60))]
    source, count = "", 0
    for divisor in divisors:
        if divisor & (divisor - 1) == 0:
            continue
        for body in ("(u a) { return a / Du; }", "(int a) { return a / D; }", "(int a) { return a % D; }"):
            source += f"int f{count}{body.replace('D', str(divisor))}\n"
            count += 1
    used = routines(tmp_path, source, optimisation)
    assert [name for name, names in used.items() if "int32_div" not in names or "int64_mul" in names] == []


@pytest.mark.parametrize("optimisation", ["-O1", "-O2", "-O3"])
def test_other_products_are_multiplications(tmp_path: Path, optimisation: str) -> None:
    rng = random.Random(8)
    source = VARIABLE
    for number in range(5, 150):
        factor, shift = rng.randrange(2 ** rng.choice((12, 31)), 2**32), rng.randrange(32, 36)
        source += f"u f{number}(u a) {{ return (w)a * {factor}u >> {shift}; }}\n"
    used = routines(tmp_path, source, optimisation)
    assert [name for name, names in used.items() if "int32_div" in names or "int64_mul" not in names] == []
