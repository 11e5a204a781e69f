"""The stand-in compiler, run as a process: its sentences about refused files."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dpuemu import tools

DPU_ASSEMBLY = ".text\n.global f\nf:\n  add r0, r8, r1\n  jump r23\n"
# The asm block starts in line 2.
ASM_UNKNOWN = (
    'int main(void) { int x;\n  __asm__ volatile("mul_step %0, 7" : "=r"(x)); return x; }\n'
)
ASM_LABEL = 'int main(void) { int x;\n  __asm__("move %0, 1; jump g" : "=r"(x)); return x; }\n'
ASM_REGISTER = 'int main(void) { int x = 0;\n  asm("nop; sub %0, r22, 4" : "=r"(x)); return x; }\n'
ASM_INPUT = 'int main(void) { int x = 0;\n  asm volatile("add %0, %0, 1" : : "r"(x)); return x; }\n'
ASM_IRAM = (
    'int main(void) { int x = 0;\n  asm volatile("ldmai %0, %0, 0" : : "r"(x)); return x; }\n'
)
ASM_MEMORY = 'int main(void) { int x = 0;\n  asm("lw %0, %1, 0" : "=r"(x) : "m"(x)); return x; }\n'
ASM_AFTER_FOR = "int main(void) { int i;\n  for (i = ')'; i; i--) __asm__(\"ret\"); return i; }\n"
ASM_AFTER_ELSE = 'int x; int main(void) { if (x) x = 1; else\n  __asm__("ret"); return 0; }\n'
ASM_AFTER_CASE = 'int x; int main(void) { switch (x) { case 0:\n  __asm__("ret"); } return 0; }\n'
ASM_VARIABLE = 'int main(void) {\n  register int x __asm__("r15") = 1; return x; }\n'
ASM_FILE = '\nasm(".incbin");\nint main(void) { return 0; }\n'
ASM_MACRO = (
    '#define F __asm__("boot %0, 0" : : "r"(x))\nint main(void) { int x = 0; F; return x; }\n'
)


def compile_files(folder: Path, *names: str) -> Any:
    """Run the compiler in a folder."""
    command = [
        sys.executable,
        str(tools.sdk_root() / "bin" / tools.COMPILER),
        "-O2",
        "-o",
        "program",
        *names,
    ]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("name", "line", "text", "rule"),
    [
        ("f.S", 4, DPU_ASSEMBLY, "r8 has no value"),
        ("f.c", 2, ASM_FILE, "the directive is not supported"),
        ("f.c", 2, ASM_VARIABLE, "write this function in C"),
    ],
)
def test_dpu_assembly_is_refused_with_its_line(
    tmp_path: Path, name: str, line: int, text: str, rule: str
) -> None:
    (tmp_path / name).write_text(text)
    result = compile_files(tmp_path, name)
    assert result.returncode != 0
    assert f"error: DPU assembly at {name}:{line}" in result.stderr
    assert rule in result.stderr


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (ASM_UNKNOWN, "mul_step %0, 7"),
        (ASM_LABEL, "move %0, 1; jump g"),
        (ASM_REGISTER, "nop; sub %0, r22, 4"),
        (ASM_INPUT, "add %0, %0, 1"),
        (ASM_IRAM, "ldmai %0, %0, 0"),
        (ASM_MEMORY, "lw %0, %1, 0"),
        (ASM_MACRO, "boot %0, 0"),
        *((text, "ret") for text in (ASM_AFTER_FOR, ASM_AFTER_ELSE, ASM_AFTER_CASE)),
    ],
)
def test_dpu_assembly_in_functions_gives_a_warning(tmp_path: Path, text: str, shown: str) -> None:
    (tmp_path / "f.c").write_text(text)
    result = compile_files(tmp_path, "f.c")
    assert (result.returncode, result.stderr) == (
        0,
        f"dpu-upmem-dpurte-clang: warning: DPU assembly at f.c:2 ({shown}) is not supported; a PE"
        " that reaches it is in fault\n",
    )


def test_asm_that_is_no_instruction_stays(tmp_path: Path) -> None:
    text = 'int f(void) __asm__("g");\nextern int v __asm__("w"); int v = 0;\n'
    text += 'int f(void) { asm volatile("" ::: "memory"); return 0; }\n'
    (tmp_path / "f.c").write_text(
        text + 'const char *s = "asm(";\nint main(void) { return f() + s[0]; }\n'
    )
    result = compile_files(tmp_path, "f.c")
    assert (result.returncode, result.stderr) == (0, "")


@pytest.mark.parametrize(
    ("chip", "tasklets", "wram_bytes", "mutexes"),
    [(None, 24, 65536, 256), ("v1A", 24, 65536, 56), ("v1B", 16, 63488, 64)],
)
def test_the_chip_limits_programs(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    chip: str | None,
    tasklets: int,
    wram_bytes: int,
    mutexes: int,
) -> None:
    if chip:
        monkeypatch.setenv("DPUEMU_CHIP", chip)
    text = "#include <atomic_bit.h>\n#include <attributes.h>\n"
    text += (
        "uint8_t __atomic_bit mutexes[N];\n__host char data[W];\nint main(void) { return mutexes[0]"
        " + data[0]; }\n"
    )
    (tmp_path / "f.c").write_text("#include <stdint.h>\n" + text)

    def compiled(most_tasklets: int, bytes_: int, locks: int) -> Any:
        flags = (
            f"-DNR_TASKLETS={most_tasklets}",
            "-DSTACK_SIZE_DEFAULT=1024",
            f"-DW={bytes_}",
            f"-DN={locks}",
        )
        return compile_files(tmp_path, *flags, "f.c").stderr

    free = wram_bytes - tasklets * 1024 - 1024  # without the runtime's variables
    assert compiled(tasklets, free, mutexes) == ""
    assert f"runs 1 to {tasklets} tasklets" in compiled(tasklets + 1, 8, 1)
    assert f"but a DPU has {wram_bytes}" in compiled(tasklets, free + 1024, 1)
    assert f"bytes of mutexes but a DPU has {mutexes}" in compiled(tasklets, 8, mutexes + 1)


def test_an_option_chooses_v1b_unless_the_machine_names_a_chip(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "f.c").write_text(
        "#ifndef __dpu_v1B__\n#error other chip\n#endif\nint main(void) { return 0; }\n"
    )
    assert compile_files(tmp_path, "-mcpu=v1B", "f.c").stderr == ""
    assert "other chip" in compile_files(tmp_path, "-mcpu=v1A", "f.c").stderr
    monkeypatch.setenv("DPUEMU_CHIP", "v1A")
    assert "other chip" in compile_files(tmp_path, "-mcpu=v1B", "f.c").stderr
    monkeypatch.setenv("DPUEMU_CHIP", "v2")
    assert (
        "DPUEMU_CHIP is v2; the chips are generic, v1A, v1B"
        in compile_files(tmp_path, "f.c").stderr
    )


def test_v1a_counts_either_cycles_or_instructions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (
        "#include <perfcounter.h>\nint main(void) { return"
        " (int)perfcounter_get_both(false).cycles; }\n"
    )
    (tmp_path / "f.c").write_text(text)
    assert compile_files(tmp_path, "f.c").stderr == ""
    monkeypatch.setenv("DPUEMU_CHIP", "v1A")
    assert "chip v1A does not have perfcounter_get_both" in compile_files(tmp_path, "f.c").stderr


def test_errors_in_c_are_refused_without_advice_about_assembly(tmp_path: Path) -> None:
    (tmp_path / "f.c").write_text("int main(void) { return undeclared; }\n")
    result = compile_files(tmp_path, "f.c")
    assert result.returncode != 0
    assert "undeclared" in result.stderr
    assert "assembly" not in result.stderr


@pytest.mark.parametrize(
    "text",
    [
        "extern __host int x; __host int x; int main(void) { return x; }",
        "extern __mram int x; __mram int x = 1; int main(void) { return x; }",
        "int main(void) { __used int x = 0; return x; }",
    ],
)
def test_attributes_without_effect_give_no_warning(tmp_path: Path, text: str) -> None:
    (tmp_path / "f.c").write_text(f"#include <attributes.h>\n{text}\n")
    assert compile_files(tmp_path, "-Wall", "f.c").stderr == ""


def test_a_section_of_an_automatic_variable_is_refused(tmp_path: Path) -> None:
    (tmp_path / "f.c").write_text(
        "#include <attributes.h>\nint main(void) { __host int x = 0; return x; }\n"
    )
    assert "section attribute cannot be" in compile_files(tmp_path, "f.c").stderr


def test_stdint_h_has_the_names_of_limits_h(tmp_path: Path) -> None:
    (tmp_path / "f.c").write_text(
        "#include <mram.h>\nint main(void) { return UINT_MAX == 0 || LONG_BIT != 64; }\n"
    )
    assert compile_files(tmp_path, "-Wall", "-Wextra", "-pedantic", "f.c").returncode == 0


def test_vectors_of_clang_are_refused(tmp_path: Path) -> None:
    (tmp_path / "f.c").write_text(
        "typedef int four __attribute__((ext_vector_type(4)));\nint main(void) { return 0; }\n"
    )
    assert "f.c has vectors (ext_vector_type); use arrays" in compile_files(tmp_path, "f.c").stderr


@pytest.mark.parametrize("name", ["dpu-upmem-dpurte-clang", "clang-12"])
def test_a_compiler_for_real_dpus_gets_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    compiler = tmp_path / name
    compiler.write_text(
        '#!/bin/sh\nif [ "$1" = -print-targets ]; then echo "  dpu  - DPU"; exit; fi\n'
        'for word in "$@"; do echo "$word"; done > words\n'
    )
    compiler.chmod(0o755)
    monkeypatch.setenv("DPUEMU_CC", str(compiler))
    assert compile_files(tmp_path, "-DA=a b", "f.c").returncode == 0
    target = [] if name.startswith("dpu-") else ["--target=dpu-upmem-dpurte"]
    words = (tmp_path / "words").read_text().splitlines()
    assert words == [*target, "-O2", "-o", "program", "-DA=a b", "f.c"]
    assert compile_files(tmp_path, "--target=dpu-other", "target.c").returncode == 0
    words = (tmp_path / "words").read_text().splitlines()
    assert words == ["-O2", "-o", "program", "--target=dpu-other", "target.c"]


def test_the_compiler_of_dpuemu_is_not_a_compiler_for_real_dpus(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DPUEMU_CC", str(tools.sdk_root() / "bin" / tools.COMPILER))
    assert "is dpuemu's compiler; name the vendor's one" in compile_files(tmp_path, "f.c").stderr


def test_an_object_for_real_dpus_is_refused_with_advice(tmp_path: Path) -> None:
    header = (
        b"\x7fELF\x01\x01\x01" + bytes(9) + (1).to_bytes(2, "little") + (0xF5).to_bytes(2, "little")
    )
    (tmp_path / "real.o").write_bytes(header + bytes(32))
    result = compile_files(tmp_path, "real.o")
    assert result.returncode == 1
    assert "real.o is for real DPUs; compile its source with this compiler" in result.stderr


ORDER = """
#include <mram.h>
struct pair { int c, d; };
__mram_noinit int c[2], k[2];
extern __mram_noinit int b[2];
static __mram_noinit int i; __mram_noinit struct pair j;
__mram_noinit int d, e, a[3];
__mram int n = 3, m[2] = {1};
static int late(void) { return k[0] + i; }
__mram_ptr int *table[] = {a};
void f(int x) { c[x] = b[x]; n = sizeof j; }
int main(void) {
  struct pair p = {.d = 1};
  if (p.d) e = late();
  static __mram_noinit int g, h;
  f(1);
  return d + h + g;
}
__mram_noinit int b[2];
"""


@pytest.mark.parametrize("optimisation", ["-O0", "-O2"])
def test_mram_variables_have_the_order_of_the_sdks_compiler(
    tmp_path: Path, optimisation: str
) -> None:
    (tmp_path / "f.c").write_text(ORDER)
    result = compile_files(tmp_path, optimisation, "-w", "f.c")
    assert (result.returncode, result.stderr) == (0, "")
    lines = subprocess.run(
        ["nm", "-n", tmp_path / "program"], capture_output=True, text=True, check=True
    ).stdout
    names = [
        line.split()[2].partition(".")[0] for line in lines.splitlines() if line.startswith("08")
    ]
    assert [name for name in names if len(name) == 1] == list("abceghdkijnm")  # as with Clang 14


@pytest.mark.parametrize("optimisation", ["-O0", "-O1", "-O2", "-O3", "-Os"])
def test_divisors_may_be_anywhere(tmp_path: Path, optimisation: str) -> None:
    functions = ["int main(void) { return 0; }"]
    for count in range(1, 7):
        arguments = ", ".join(
            f"{kind} a{n}" for n, kind in enumerate(["unsigned *", "int", "unsigned", "int *"] * 2)
        )
        body = " + ".join(
            f"a2 / a0[a1 * {n}] + a5 / (a7[a2] + {n}) + (unsigned)a3[n] / a0[a2]"
            for n in range(count)
        )
        functions.append(f"unsigned f{count}({arguments}, int n) {{ return {body}; }}")
    functions.append("unsigned g(unsigned x, unsigned *a, int y, unsigned i) { return x / a[i]; }")
    (tmp_path / "f.c").write_text("\n".join(functions))
    result = compile_files(tmp_path, optimisation, "-Wl,--no-gc-sections", "f.c")
    assert (result.returncode, result.stderr) == (0, "")


def test_the_cache_of_the_runtime_accepts_only_whole_archives_of_this_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "f.c").write_text("int main(void) { return 0; }\n")
    folder = tmp_path / "cache"
    monkeypatch.setenv("DPUEMU_CACHE", str(folder))

    def compile_and_read() -> bytes:
        result = compile_files(tmp_path, "f.c")
        assert result.returncode == 0, result.stderr
        (entry,) = folder.iterdir()
        assert (entry.stat().st_uid, entry.stat().st_mode & 0o777) == (os.geteuid(), 0o600)
        return entry.read_bytes()

    before = os.umask(0)
    try:
        content = compile_and_read()
    finally:
        os.umask(before)
    assert folder.stat().st_mode & 0o777 == 0o700
    (entry,) = folder.iterdir()
    damages = [
        lambda: entry.write_bytes(content[: len(content) // 2]),
        lambda: entry.write_bytes(content[:100] + b"?" + content[101:]),
        lambda: entry.chmod(0o666),
    ]
    if os.geteuid() == 0:
        damages.append(lambda: os.chown(entry, 65534, 65534))
    cache = runpy.run_path(str(tools.sdk_root() / "compiler" / "cache.py"))
    key = entry.name.rpartition("-")[2]
    archive = cache["cached"](key)
    assert content.endswith(archive)
    for damage in damages:
        damage()
        assert cache["cached"](key) is None
        cache["keep"](key, archive)
        assert entry.read_bytes() == content
    damages[0]()
    assert compile_and_read() == content


def test_the_suffix_or_the_name_of_the_compiler_selects_cxx(tmp_path: Path) -> None:
    (tmp_path / "f.cpp").write_text("template <class T> T f(T x) { return x; }\nint main() {}\n")
    result = compile_files(tmp_path, "-std=c++20", "f.cpp")
    assert (result.returncode, result.stderr) == (0, "")
    (tmp_path / "f.c").write_text((tmp_path / "f.cpp").read_text())
    assert compile_files(tmp_path, "f.c").returncode != 0
    for options in (["-x", "c++"], ["-xc++"]):
        result = compile_files(tmp_path, *options, "f.c")
        assert (result.returncode, result.stderr) == (0, "")
    command = [sys.executable, f"{tools.sdk_root() / 'bin' / tools.COMPILER}++", "f.c"]
    assert subprocess.run(command, cwd=tmp_path, check=False).returncode == 0


def test_constructors_before_main_are_refused(tmp_path: Path) -> None:
    (tmp_path / "f.cpp").write_text(
        "struct S { S(); int x; };\nS::S() : x(1) {}\nS s;\nint main() { return s.x; }\n"
    )
    result = compile_files(tmp_path, "-O0", "f.cpp")
    assert result.returncode == 1
    assert "f.cpp has a global object whose constructor would run before main" in result.stderr
