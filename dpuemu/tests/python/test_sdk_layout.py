"""Builds that use the folders and tools of the UPMEM SDK's installation find them in the
stand-in SDK.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from dpuemu import tools

HOST = """
#include <dpu.h>
int main(int count, char **words) {
  struct dpu_set_t set;
  DPU_ASSERT(dpu_alloc(1, NULL, &set));
  DPU_ASSERT(dpu_load(set, words[count - 1], NULL));
  DPU_ASSERT(dpu_launch(set, DPU_SYNCHRONOUS));
  DPU_ASSERT(dpu_free(set));
  return 0;
}
"""
PE = "int main(void) { return 0; }\n"
HOST_PROJECT = """
cmake_minimum_required(VERSION 3.18)
project(host C)
include($ENV{UPMEM_HOME}/share/upmem/cmake/include/host/DpuHost.cmake)
add_executable(host host.c)
target_include_directories(host PRIVATE ${DPU_HOST_INCLUDE_DIRECTORIES})
target_link_directories(host PRIVATE ${DPU_HOST_LINK_DIRECTORIES})
target_link_libraries(host PRIVATE ${DPU_HOST_LIBRARIES})
"""
FLAGS_PROJECT = """
cmake_minimum_required(VERSION 3.18)
project(host C)
execute_process(COMMAND dpu-pkg-config --cflags --libs dpu OUTPUT_VARIABLE flags
                OUTPUT_STRIP_TRAILING_WHITESPACE)
separate_arguments(flags UNIX_COMMAND "${flags}")
add_executable(host host.c)
target_compile_options(host PRIVATE ${flags})
target_link_options(host PRIVATE ${flags})
"""
PE_PROJECT = """
cmake_minimum_required(VERSION 3.18)
project(pe C)
add_executable(pe pe.c)
target_compile_definitions(pe PRIVATE NR_TASKLETS=3)
target_link_options(pe PRIVATE -DNR_TASKLETS=3)
"""

# The ways in which CMake projects of host programs find the SDK.
USES = {
    "dpu-pkg-config": """
set(PKG_CONFIG_EXECUTABLE dpu-pkg-config)
find_package(PkgConfig REQUIRED)
pkg_check_modules(DPU REQUIRED IMPORTED_TARGET dpu)
target_link_libraries(host PRIVATE PkgConfig::DPU)
""",
    "variables of dpu-pkg-config": """
set(PKG_CONFIG_EXECUTABLE dpu-pkg-config)
find_package(PkgConfig REQUIRED)
pkg_check_modules(DPU REQUIRED dpu)
target_include_directories(host PRIVATE ${DPU_INCLUDE_DIRS})
target_link_directories(host PRIVATE ${DPU_LIBRARY_DIRS})
target_link_libraries(host PRIVATE ${DPU_LIBRARIES} ${DPU_LDFLAGS_OTHER})
""",
    "pkg-config": """
find_package(PkgConfig REQUIRED)
pkg_check_modules(DPU REQUIRED IMPORTED_TARGET dpuemu)
target_link_libraries(host PRIVATE PkgConfig::DPU)
""",
    "find_package": """
find_package(dpuemu REQUIRED)
target_link_libraries(host PRIVATE dpuemu::dpuemu)
""",
}

pytestmark = pytest.mark.skipif(
    not (tools.sdk_root() / "lib" / "libdpu.so").exists(), reason="a source tree has no libdpu.so"
)


def shell(folder: Path, commands: str) -> str:
    """Run commands in a shell that has evaluated `dpuemu env`; return the output."""
    script = f'eval "$({sys.executable} -m dpuemu env)"; set -eu; {commands}'
    result = subprocess.run(
        ["bash", "-c", script], cwd=folder, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    """A folder with a host program and a PE program."""
    (tmp_path / "host.c").write_text(HOST)
    (tmp_path / "pe.c").write_text(PE)
    return tmp_path


@pytest.mark.parametrize(
    "flags",
    [
        '-I"$UPMEM_HOME/include/dpu" -L"$UPMEM_HOME/lib" -ldpu -ldpuverbose',  # the folders by hand
        "-ldpu",  # as if the SDK were in /usr
        "$(dpu-pkg-config --cflags --libs dpu)",
    ],
)
def test_a_host_program_links_as_with_the_sdk(sources: Path, flags: str) -> None:
    compile_pe = "dpu-upmem-dpurte-clang -o pe pe.c"
    shell(sources, f"cc -o after host.c {flags}; {compile_pe}; DPUEMU_RANKS=1 ./after ./pe")


def test_all_host_headers_compile_in_any_order_without_warnings(tmp_path: Path) -> None:
    folder = Path(tools.environment()["CPATH"])
    names = sorted(file.name for file in folder.glob("*.h"))
    assert "dpu_target_macros.h" in names
    for order in (names, names[::-1], *([name] for name in names)):
        lines = [f"#include <{name}>" for name in order]
        (tmp_path / "f.c").write_text("\n".join([*lines, "int main(void) { return 0; }"]))
        (tmp_path / "f.cpp").write_text((tmp_path / "f.c").read_text())
        flags = "-fsyntax-only -Werror -Wall -Wextra -I"
        subprocess.run(["gcc", "-std=c11", *flags.split(), folder, "f.c"], cwd=tmp_path, check=True)
        subprocess.run(
            ["g++", "-std=c++11", *flags.split(), folder, "f.cpp"], cwd=tmp_path, check=True
        )


def test_dpu_h_includes_string_h_and_transfer_matrices(tmp_path: Path) -> None:
    text = "char b[MAX_NR_DPUS_PER_RANK]; int main(void) { memset(b, 0, sizeof b); return b[0]; }"
    (tmp_path / "host.c").write_text(f"#include <dpu.h>\n{text}\n")
    shell(tmp_path, "gcc -std=c11 -Werror -Wall host.c -o host -ldpu")


def test_the_file_version_names_the_release_of_the_sdk(tmp_path: Path) -> None:
    names = "$UPMEM_HOME/share/upmem/version"
    expected = shell(tmp_path, "dpu-pkg-config --modversion dpu").strip()
    assert f"version {expected} " in shell(tmp_path, f"cat {names}")


@pytest.mark.parametrize(
    ("environment", "command"),
    [
        (
            'eval "$({python} -m dpuemu env)"',
            "cc -o host host.c $(dpu-pkg-config --cflags --libs dpu)",
        ),
        ("", 'eval "cc -o host host.c $(dpu-pkg-config --cflags --libs dpu)"'),
        ("", "make host"),
        ("", "cmake -S . -B build && cmake --build build && mv build/host host"),
    ],
)
def test_a_path_with_spaces(sources: Path, environment: str, command: str) -> None:
    package = sources / "a folder" / "dpuemu"
    shutil.copytree(tools.sdk_root().parent, package)
    (sources / "Makefile").write_text(
        "host: host.c\n\tcc -o $@ $< $(shell dpu-pkg-config --cflags --libs dpu)\n"
    )
    (sources / "CMakeLists.txt").write_text(FLAGS_PROJECT)
    script = f"""set -eu
      export PYTHONPATH="{package.parent}"
      PATH="{package}/sdk/bin:$PATH"
      {environment.format(python=sys.executable)}
      dpu-upmem-dpurte-clang -o pe pe.c
      {command}
      DPUEMU_RANKS=1 ./host ./pe"""
    result = subprocess.run(
        ["bash", "-c", script], cwd=sources, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout + result.stderr


def test_libraries_before_the_sources_are_kept(sources: Path) -> None:
    shell(sources, "cc -Wl,--as-needed $(dpu-pkg-config --cflags --libs dpu) -o before host.c")


def test_the_script_upmem_env_sets_the_same_shell(sources: Path) -> None:
    script = tools.sdk_root() / "upmem_env.sh"
    commands = (
        f'. "{script}"; dpu-upmem-dpurte-clang -o pe pe.c; cc -o host host.c'
        ' -I"$UPMEM_HOME/include/dpu" -ldpu'
    )
    shell(sources, f"{commands}; DPUEMU_RANKS=1 ./host ./pe")


def test_cmake_projects_build_with_the_toolchain_file(sources: Path) -> None:
    for name, project in (("host", HOST_PROJECT), ("pe", PE_PROJECT)):
        (sources / name).mkdir()
        (sources / name / "CMakeLists.txt").write_text(project)
        (sources / f"{name}.c").rename(sources / name / f"{name}.c")
    toolchain = '-DCMAKE_TOOLCHAIN_FILE="$UPMEM_HOME/share/upmem/cmake/dpu.cmake"'
    shell(
        sources,
        f"cmake -S pe -B b/pe {toolchain}; cmake --build b/pe; cmake -S host -B b/host; cmake"
        " --build b/host",
    )
    shell(sources, "DPUEMU_RANKS=1 b/host/host b/pe/pe")


@pytest.mark.parametrize("use", USES)
def test_cmake_projects_of_host_programs_link(sources: Path, use: str) -> None:
    if use == "pkg-config" and shutil.which(use) is None:
        pytest.skip("there is no pkg-config")
    start = "cmake_minimum_required(VERSION 3.18)\nproject(host C)\nadd_executable(host host.c)\n"
    (sources / "CMakeLists.txt").write_text(start + USES[use])
    package = tools.sdk_root().parent
    commands = (
        f"export PKG_CONFIG_PATH='{package}/pkgconfig';"
        f" cmake -S . -B b -Ddpuemu_DIR='{package}/cmake'; cmake --build b;"
        " dpu-upmem-dpurte-clang -o pe pe.c"
    )
    shell(sources, f"{commands}; DPUEMU_RANKS=1 env -u LD_LIBRARY_PATH b/host ./pe")


def test_clang_compiles_pe_programs_and_passes_other_calls_on(sources: Path) -> None:
    (sources / "other").mkdir()
    other = sources / "other" / "clang"
    other.write_text('#!/bin/sh\necho "host compiler: $*"\n')
    other.chmod(0o755)
    beside = 'PATH="$UPMEM_HOME/bin:$PWD/other:$PATH"'
    for option in ("--target=dpu-upmem-dpurte", "-target dpu-upmem-dpurte", "-mcpu=v1A"):
        assert (
            shell(
                sources,
                f'rm -f pe; {beside} "$UPMEM_HOME/bin/clang" {option} -o pe pe.c; head -c 4 pe',
            )
            == "\x7fELF"
        )
    assert (
        shell(sources, f"{beside} clang -DNR_TASKLETS=2 host.c")
        == "host compiler: -DNR_TASKLETS=2 host.c\n"
    )
    assert (
        shell(sources, f"{beside} clang --target=x86_64 host.c")
        == "host compiler: --target=x86_64 host.c\n"
    )


@pytest.mark.parametrize(("name", "system"), [("clang", "cc"), ("clang++", "c++")])
def test_without_another_clang_the_systems_compiler_builds_host_programs(
    tmp_path: Path, name: str, system: str
) -> None:
    (tmp_path / system).write_text(f'#!/bin/sh\necho "{system}: $*"\n')
    (tmp_path / system).chmod(0o755)
    commands = f'PATH="$UPMEM_HOME/bin:$PWD" {name} -O2 host.c -lm 2>&1'
    lines = shell(tmp_path, commands).splitlines()
    assert lines[0].startswith(f"{name}: PATH has no other {name} and no option names a DPU")
    assert lines[1:] == [f"{system}: -O2 host.c -lm"]
    (tmp_path / system).unlink()
    refused = shell(tmp_path, f"{commands} || true")
    assert "for a PE program use --target=dpu-upmem-dpurte" in refused


def test_the_tools_ignore_the_python_of_path(sources: Path) -> None:
    (sources / "python3").write_text("#!/bin/sh\necho old python >&2; exit 1\n")
    (sources / "python3").chmod(0o755)
    compilers = "dpu-upmem-dpurte-clang -o pe pe.c; dpu-upmem-dpurte-clang++ --version"
    shell(sources, f'PATH="$PWD:$PATH"; {compilers}; dpu-pkg-config --libs dpu')


@pytest.mark.parametrize("tool", sorted((tools.sdk_root() / "bin").iterdir()), ids=lambda p: p.name)
def test_a_python_that_is_too_old_gives_one_sentence(tool: Path) -> None:
    start = "import runpy, sys; sys.version_info = (3, 9); runpy.run_path(sys.argv[1])"
    process = subprocess.run(
        [sys.executable, "-c", start, tool], check=False, capture_output=True, text=True
    )
    assert (process.returncode, process.stderr.count("\n")) == (1, 1)
    assert "is older than Python 3.10; DPUEMU_PYTHON selects" in process.stderr


def test_flags_of_public_builds_are_accepted(sources: Path) -> None:
    flags = (
        "-gline-tables-only -flto=thin -mcpu=v1A -Wno-unknown-warning-option -Qunused-arguments -O2"
    )
    assert shell(sources, f"dpu-upmem-dpurte-clang {flags} -o pe pe.c 2>&1") == ""


def test_fno_builtin_calls_the_functions_of_the_program(tmp_path: Path) -> None:
    (tmp_path / "f.c").write_text("double fabs(double);\ndouble f(double x) { return fabs(x); }\n")
    compiler = "dpu-upmem-dpurte-clang -O2 -S -o - f.c"
    call = re.compile(r"\t(?:call|jmp)\tfabs\b")
    assert not call.search(shell(tmp_path, compiler))
    assert call.search(shell(tmp_path, f"{compiler} -fno-builtin"))
