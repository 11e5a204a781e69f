"""The installed C and C++ headers compile without warnings: alone, twice, and in two files of
one program.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from dpuemu import tools
from pidcomm import installation

WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]
C, CXX = "-std=c11", "-std=c++17"
COMPILERS = [  # command, standard
    pytest.param(
        command,
        standard,
        id=command,
        marks=pytest.mark.skipif(not shutil.which(command), reason="not here"),
    )
    for command, standard in [("gcc", C), ("clang", C), ("g++", CXX), ("clang++", CXX)]
]
CXX_SUFFIX = ".hpp"

PACKAGE = installation.package()
FOLDERS = [Path(word.removeprefix("-I")) for word in shlex.split(PACKAGE.cflags)]
ARTIFACT = installation.artifact_root() / "include"


def headers(folder: Path) -> list[str]:
    """Return the names that programs write between angle brackets; test_hosts_mpi.py compiles
    mpi.h.
    """
    return sorted(
        str(file.relative_to(folder)) for file in folder.rglob("*.h*") if file.name != "mpi.h"
    )


def artifact_libraries() -> list[str]:
    """Return the link options of dpu-pkg-config for programs of the published artifact."""
    variables = {**os.environ, **tools.environment(), **installation.artifact_environment()}
    folders = [
        installation.artifact_environment()["PATH"],
        tools.environment()["PATH"],
        os.environ["PATH"],
    ]
    variables["PATH"] = os.pathsep.join(folders)
    tool = str(installation.artifact_root() / "bin" / "dpu-pkg-config")
    result = subprocess.run(
        [tool, "--libs", "dpu"], capture_output=True, text=True, check=True, env=variables
    )
    return shlex.split(result.stdout)


def compile_headers(command: list[str], folder: Path, names: list[str], standard: str) -> None:
    """Compile a source per header, each of which includes it twice."""
    sources = []
    for name in names:
        if standard == CXX or not name.endswith(CXX_SUFFIX):
            source = folder / f"{name.replace('/', '_')}{'.cpp' if standard == CXX else '.c'}"
            source.write_text(f"#include <{name}>\n#include <{name}>\nextern int not_empty;\n")
            sources.append(str(source))
    assert sources
    result = subprocess.run(
        [*command, standard, *WARNINGS, "-fsyntax-only", *sources],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (result.returncode, result.stderr) == (0, "")


@pytest.mark.parametrize(("command", "standard"), COMPILERS)
def test_every_header_compiles_alone_and_twice(tmp_path: Path, command: str, standard: str) -> None:
    names = [name for folder in FOLDERS for name in headers(folder)]
    assert {"pidcomm/pidcomm.h", "pidcomm/pidcomm.hpp", "dpu.h", "dpuemu.h"} <= set(names)
    compile_headers([command, *shlex.split(PACKAGE.cflags)], tmp_path, names, standard)


@pytest.mark.parametrize(("command", "standard"), COMPILERS)
def test_every_header_of_the_artifact_compiles_alone_and_twice(
    tmp_path: Path, command: str, standard: str
) -> None:
    names = headers(ARTIFACT)
    assert "pidcomm.h" in names
    flags = [f"-I{ARTIFACT}", *shlex.split(PACKAGE.cflags)]
    compile_headers([command, "-DINT32", *flags], tmp_path, names, standard)


@pytest.mark.parametrize(("command", "standard"), COMPILERS)
@pytest.mark.parametrize("is_artifact", [False, True])
def test_two_files_of_one_program_may_include_them_all(
    tmp_path: Path, command: str, standard: str, is_artifact: bool
) -> None:
    folders = [ARTIFACT] if is_artifact else FOLDERS
    names = [name for folder in folders for name in headers(folder)]
    includes = "".join(
        f"#include <{name}>\n" for name in names if standard == CXX or not name.endswith(CXX_SUFFIX)
    )
    suffix = ".cpp" if standard == CXX else ".c"
    error = "pidcomm_artifact_last_error()" if is_artifact else "pidcomm_last_error()"
    (tmp_path / f"first{suffix}").write_text(
        f"{includes}int second(void);\nint main(void) {{ return {error}[0] + second(); }}\n"
    )
    (tmp_path / f"second{suffix}").write_text(
        f"{includes}int second(void);\nint second(void) {{ return {error}[0]; }}\n"
    )
    flags = [*([f"-I{ARTIFACT}", "-DINT32"] if is_artifact else []), *shlex.split(PACKAGE.cflags)]
    libraries = artifact_libraries() if is_artifact else shlex.split(PACKAGE.libs)
    sources = [str(tmp_path / f"{name}{suffix}") for name in ("first", "second")]
    program = str(tmp_path / "program")
    words = [command, standard, *WARNINGS, *flags, *sources, "-o", program, *libraries]
    result = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr) == (0, "")
    assert subprocess.run([program], check=False).returncode == 0
