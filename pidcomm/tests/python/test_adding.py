"""The steps of docs/design.md add a collective and an operator to a copy of the project, whose
grids then test them.

The copy also has one more field at the end of pidcomm_options and of pidcomm_trace: programs
compiled for one version must run with the library of the other.
"""

from __future__ import annotations

import inspect
import os
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from documents import ROOT, Document

from pidcomm.installation import package

PROGRAM = Path(__file__).parent / "versions.c"
PIDCOMM = ROOT / "pidcomm"
# Words of the tests of test_collectives whose cases follow from the tables of collectives and
# operators.
GRIDS = [
    "_IsRight",
    "_AreRight",
    "Tile_Loads",
    "Tile_On",
    "Tile_Without",
    "Grids",
    "Name",
    "PlanJson",
]


def run(command: list[str | Path], folder: Path, **variables: str) -> str:
    """Run a command; return its output."""
    result = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )
    assert result.returncode == 0, f"{result.stdout[-4000:]}\n{result.stderr[-4000:]}"
    return result.stdout


def add(project: Path, about: str, text: str) -> None:
    """Add the text of a block to a file: as a new file, as the last row of a table, or at the
    end of a region.
    """
    name, _, place = about.partition("#")
    path = project / name
    if not place:
        path.write_text(text)
        return
    before = path.read_text()
    if place.startswith("PIDCOMM_"):
        table = re.search(rf"#define {place}\(X\).*\n(?:.*\\\n)*.*\n", before)
        assert table, about
        rows = table[0].rstrip("\n")
        after = before.replace(rows, f"{rows} \\\n  {text.strip()}")
    else:
        region = re.search(
            rf"^ *(?:/\*|#) \[{place}\](?:.*\n)*?( *(?:/\*|#) \[end\])", before, re.MULTILINE
        )
        assert region, about
        start = region.start(1)
        after = before[:start] + text + before[start:]
    assert after != before
    path.write_text(after)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project with the additions of the document, and one more field in two
    structs.
    """
    root = tmp_path_factory.mktemp("adding")
    unwanted = shutil.ignore_patterns("__pycache__", "reference")
    for name in ("pidcomm", "tools"):
        shutil.copytree(ROOT / name, root / name, ignore=unwanted)
    copy = root / "pidcomm"
    steps = [
        block for block in Document(PIDCOMM / "docs/design.md").blocks if block.marker == "add to"
    ]
    assert len(steps) == 8
    for block in steps:
        add(root, block.about, block.text)
    add(
        copy,
        "include/pidcomm/tables.h#PIDCOMM_TRACE_FIELDS",
        'X(uint64_t, added, NUMBER, "a field of a later version")',
    )
    header = copy / "include/pidcomm/pidcomm.h"
    header.write_text(
        header.read_text().replace("} pidcomm_options;", "  uint64_t added;\n} pidcomm_options;")
    )
    return copy


@pytest.fixture(scope="module")
def build(project: Path) -> Path:
    """The folder with its library and its grids."""
    folder = project / "build"
    cmake = Path(sys.executable).parent / "cmake"
    ninja = Path(sys.executable).parent / "ninja"
    options = [
        "-DPIDCOMM_BUILD_TESTS=ON",
        # These compile fastest; test_the_additions_compile_for_vectors compiles all instances.
        "-DPIDCOMM_ISAS=audit;avx2",
        "-DPIDCOMM_PASS_INSTANCES=OFF",
        "-DPIDCOMM_LINE_KERNEL_OPTIONS=-O0",
        "-DCMAKE_BUILD_TYPE=None",
        "-DPIDCOMM_INSTALL=OFF",
        f"-Ddpuemu_DIR={package().cmake_dir.parents[1] / 'dpuemu' / 'cmake'}",
    ]
    flags = [f"-DCMAKE_{language}_FLAGS=-O1" for language in ("C", "CXX")]
    run(
        [
            cmake,
            "-G",
            "Ninja",
            f"-DCMAKE_MAKE_PROGRAM={ninja}",
            "-S",
            project,
            "-B",
            folder,
            *options,
            *flags,
        ],
        project,
    )
    # The folder of the copy has a new name in each run; with paths relative to it, ccache finds the
    # objects of earlier runs.
    run(
        [cmake, "--build", folder, "--target", "test_collectives", "test_hosts"],
        project,
        CCACHE_BASEDIR=str(project.parent),
    )
    return folder


def test_the_steps_of_the_document_are_enough_for_the_grids(build: Path) -> None:
    program = build / "tests/native/test_collectives"
    printed = run([program, *GRIDS], build, PIDCOMM_TEST_EFFORT="small")
    assert re.search(r"\d+ passed, 0 failed", printed), printed


@pytest.mark.parametrize("tests", ["CallsOverHosts_EqualTheOracle", "CallsThroughAPool"])
def test_they_are_enough_over_hosts_and_through_a_pool(build: Path, tests: str) -> None:
    printed = run([build / "tests/native/test_hosts", tests], build, PIDCOMM_TEST_EFFORT="small")
    assert re.search(r"\d+ passed, 0 failed", printed), printed


def test_the_additions_compile_for_vectors(project: Path) -> None:
    folders = [f"-I{project / name}" for name in ("include", "src")]
    flags = ["-std=c++20", "-fsyntax-only", "-mavx2", "-mf16c", "-mclflushopt"]
    flags += ["-DPIDCOMM_PASS_INSTANCES=1", "-Wno-psabi"]
    source = project / "src/line_kernels/isa/avx2.cpp"
    run(["c++", *flags, *folders, *flags_of_the_package("--cflags"), source], project)


def test_python_has_the_method_and_the_names(project: Path, tmp_path: Path) -> None:
    run(
        [
            sys.executable,
            project / "python/rows.py",
            project / "include/pidcomm/tables.h",
            tmp_path / "rows.py",
        ],
        project,
    )
    text = (tmp_path / "rows.py").read_text()
    rows = runpy.run_path(str(tmp_path / "rows.py"))
    for name in ("HypercubeCollectives", "ArrayCollectivesBase"):
        methods = rows[name]
        assert inspect.signature(methods.concat) == inspect.signature(methods.allgather)
    assert '"xnor"' in text
    assert "added: int" in text


def test_the_definitions_in_numpy_are_complete(project: Path) -> None:
    added = runpy.run_path(str(project / "tests/python/definitions.py"))
    x = np.arange(24 * 6).reshape(24, 6)
    like = added["result_of"]("allgather", x, (4, 6), "01")
    np.testing.assert_array_equal(added["result_of"]("concat", x, (4, 6), "01"), like)
    assert added["OPERATORS"]["xnor"](np.uint8(5), np.uint8(3)) == 0xF9


def compiled(folder: Path, headers: list[str], libraries: list[str], *more: str) -> Path:
    """Compile the program about versions."""
    program = folder / "versions"
    run(["cc", "-std=c11", *more, "-o", program, PROGRAM, *headers, *libraries], folder)
    return program


def flags_of_the_package(kind: str) -> list[str]:
    """Return the flags that `pidcomm config` prints for the installed library."""
    code = (
        f"import sys; sys.argv = ['pidcomm', 'config', '{kind}']; from pidcomm.cli import main;"
        " main()"
    )
    return run([sys.executable, "-c", code], ROOT).split()


def test_a_program_of_this_version_runs_with_a_later_library(build: Path, tmp_path: Path) -> None:
    # The first -L and -rpath name the later library.
    libraries = [f"-L{build}", f"-Wl,-rpath,{build}", "-lpidcomm", *flags_of_the_package("--libs")]
    program = compiled(tmp_path, flags_of_the_package("--cflags"), libraries)
    assert run([program], tmp_path) == "0 wrong\n"


def test_a_program_of_a_later_version_runs_with_this_library(
    build: Path, project: Path, tmp_path: Path
) -> None:
    headers = [f"-I{project}/include", *flags_of_the_package("--cflags")]
    program = compiled(tmp_path, headers, flags_of_the_package("--libs"), "-DHAS_ADDED_FIELD")
    assert run([program], tmp_path) == "0 wrong\n"
