"""The stand-in compiler counts products with which gcc divides by a constant as divisions, and
no other products.
"""

from __future__ import annotations

import importlib
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
u f3(u *a, u *b, int n) {
  u s = 0;
  for (int j = 0; j < n; j++) s += (w)a[j] * b[j] >> 32;
  return s;
}
u f4(u a, u b, int c) { u d = c ? 2863311531u : b; return (w)a * d >> 33; }
u f5(u a, u d, int c, u *p) { if (c) d = 2863311531u, p[0] = a; return (w)a * d >> 33; }
u f6(u a, u d, u *p) {
  u s = 0;
  do s += (w)a * d >> 33, d = 2863311531u, a = *p++; while (a);
  return s;
}
"""


def routines(folder: Path, source: str, optimisation: str) -> dict[str, set[str]]:
    """Compile functions with names f and a number; return the software routines that each calls."""
    (folder / "f.c").write_text(INCLUDES + source)
    command = [
        sys.executable,
        str(tools.sdk_root() / "bin" / tools.COMPILER),
        optimisation,
        "-S",
        "-o",
        "-",
        "f.c",
    ]
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
    divisors = [
        *range(3, 60),
        641,
        1000,
        10**9 + 7,
        *(rng.randrange(3, 2 ** rng.randrange(3, 32)) for _ in range(60)),
    ]
    source, count = "", 0
    for divisor in divisors:
        if divisor & (divisor - 1) == 0:
            continue
        for body in (
            "(u a) { return a / Du; }",
            "(int a) { return a / D; }",
            "(int a) { return a % D; }",
        ):
            source += f"int f{count}{body.replace('D', str(divisor))}\n"
            count += 1
    used = routines(tmp_path, source, optimisation)
    assert [
        name for name, names in used.items() if "int32_div" not in names or "int64_mul" in names
    ] == []


def test_divisions_in_loops_and_branches_are_divisions(tmp_path: Path) -> None:
    used = routines(
        tmp_path,
        "u f0(u *p, int n) { u s = 0; for (int j = 0; j < n; j++) s += p[j] / 3; return s; }\nu"
        " f1(u *p, int n) { u s = 0; for (int j = 0; j < n; j++) if (p[j] & 1) s += p[j] / 5;"
        " return s; }\n",
        "-O2",
    )
    assert used == {"0": {"int32_div"}, "1": {"int32_div"}}


def test_a_function_has_no_constants_of_its_tail_callers(tmp_path: Path) -> None:
    used = routines(
        tmp_path,
        "u __attribute__((noinline, noclone, noipa)) f0(u a, w m) { return (w)a * m >> 33; }\n"
        "u f1(u a) { return f0(a, 2863311531u); }\n"
        "u f2(u a, w m) { return f0(a, m) + 1; }\n",
        "-O2",
    )
    assert used["0"] == {"int64_mul"}


@pytest.mark.parametrize("instruction", ["xchgl", "xaddl", "cmpxchgl"])
def test_exchanges_write_both_operands(monkeypatch: pytest.MonkeyPatch, instruction: str) -> None:
    monkeypatch.syspath_prepend(str(tools.sdk_root() / "compiler"))
    instructions, division = (
        importlib.import_module(name) for name in ("instructions", "division")
    )
    constants = division.Constants()
    for text in ("movl\t$7, %eax", "movl\t$8, %ecx", "movl\t$9, %ebx"):
        constants.execute(instructions.instruction_cost(text))
    constants.execute(instructions.instruction_cost(f"{instruction}\t%ecx, (%rdi)"))
    assert constants.factor(instructions.instruction_cost("imulq\t%rcx, %rsi")) is None
    assert constants.factor(instructions.instruction_cost("imulq\t%rbx, %rsi")) == 9


@pytest.mark.parametrize("optimisation", ["-O1", "-O2", "-O3"])
def test_other_products_are_multiplications(tmp_path: Path, optimisation: str) -> None:
    rng = random.Random(8)
    source = VARIABLE
    for number in range(7, 150):
        factor, shift = rng.randrange(2 ** rng.choice((12, 31)), 2**32), rng.randrange(32, 36)
        source += f"u f{number}(u a) {{ return (w)a * {factor}u >> {shift}; }}\n"
    used = routines(tmp_path, source, optimisation)
    assert [
        name for name, names in used.items() if "int32_div" in names or "int64_mul" not in names
    ] == []
