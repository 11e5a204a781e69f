"""The stand-in compiler, run as a process: its sentences about refused files."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from dpuemu import tools

DPU_ASSEMBLY = ".text\n.global f\nf:\n  add r0, r0, r1\n  jump r23\n"
ASM_BLOCK = 'int main(void) { int x; __asm__ volatile("move %0, 7" : "=r"(x)); return x; }\n'
ASM_REGISTER = 'int main(void) { int x = 0; __asm__ volatile("" : : "r"(x) : "r7"); return x; }\n'


def compile_files(folder: Path, *names: str) -> Any:
    """Run the compiler in a folder."""
    command = [sys.executable, str(tools.sdk_root() / "bin" / tools.COMPILER), "-O2", "-o", "program", *names]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(("name", "text"), [("f.S", DPU_ASSEMBLY), ("f.c", ASM_BLOCK), ("f.c", ASM_REGISTER)])
def test_dpu_assembly_is_refused_with_advice(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    result = compile_files(tmp_path, name)
    assert result.returncode != 0
    assert "DPU assembly (.S files and asm blocks) cannot be compiled; write these functions in C" in result.stderr


def test_errors_in_c_are_refused_without_advice_about_assembly(tmp_path: Path) -> None:
    (tmp_path / "f.c").write_text("int main(void) { return undeclared; }\n")
    result = compile_files(tmp_path, "f.c")
    assert result.returncode != 0
    assert "undeclared" in result.stderr
    assert "assembly" not in result.stderr


def test_an_object_for_real_dpus_is_refused_with_advice(tmp_path: Path) -> None:
    header = b"\x7fELF\x01\x01\x01" + bytes(9) + (1).to_bytes(2, "little") + (0xF5).to_bytes(2, "little")
    (tmp_path / "real.o").write_bytes(header + bytes(32))
    result = compile_files(tmp_path, "real.o")
    assert result.returncode == 1
    assert "real.o is for real DPUs; compile its source with this compiler" in result.stderr


@pytest.mark.parametrize("optimisation", ["-O0", "-O1", "-O2", "-O3", "-Os"])
def test_divisors_may_be_anywhere(tmp_path: Path, optimisation: str) -> None:
    functions = ["int main(void) { return 0; }"]
    for count in range(1, 7):
        arguments = ", ".join(f"{kind} a{n}" for n, kind in enumerate(["unsigned *", "int", "unsigned", "int *"] * 2))
        body = " + ".join(f"a2 / a0[a1 * {n}] + a5 / (a7[a2] + {n}) + (unsigned)a3[n] / a0[a2]" for n in range(count))
        functions.append(f"unsigned f{count}({arguments}, int n) {{ return {body}; }}")
    functions.append("unsigned g(unsigned x, unsigned *a, int y, unsigned i) { return x / a[i]; }")
    (tmp_path / "f.c").write_text("\n".join(functions))
    result = compile_files(tmp_path, optimisation, "-Wl,--no-gc-sections", "f.c")
    assert (result.returncode, result.stderr) == (0, "")
