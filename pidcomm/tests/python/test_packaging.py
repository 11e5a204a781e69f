"""C and C++ programs built with an installed wheel."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from typer.testing import CliRunner

import pidcomm
from pidcomm import installation
from pidcomm.cli import app

ROOT = Path(__file__).resolve().parents[2]
TOOLS = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])

needs_pkg_config = pytest.mark.skipif(
    not shutil.which("pkg-config"), reason="pkg-config is missing"
)
needs_cmake = pytest.mark.skipif(not shutil.which("cmake", path=TOOLS), reason="cmake is missing")


def run(*command: str, cwd: Path, **variables: str) -> str:
    """Run a command that must succeed, without an LD_LIBRARY_PATH; return its stdout."""
    environment = {**os.environ, "PATH": TOOLS, **variables}
    environment.pop("LD_LIBRARY_PATH", None)
    return checked(command, cwd, environment)


def checked(command: tuple[str, ...], cwd: Path, environment: Mapping[str, str]) -> str:
    """Run a command that must succeed; return its stdout."""
    result = subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def config(*options: str) -> str:
    """Return what `pidcomm config` prints."""
    result = CliRunner().invoke(app, ["config", *options])
    assert result.exit_code == 0
    return result.output.strip()


@pytest.fixture
def examples(tmp_path: Path) -> Path:
    """A copy of the examples, to build in."""
    copy = tmp_path / "examples"
    shutil.copytree(ROOT / "examples", copy)
    return copy


def test_config_prints_the_options_of_a_compiler(examples: Path) -> None:
    flags = config("--cflags", "--libs")
    run("sh", "-c", f"cc -std=c11 reduce_scatter.c {flags} -o reduce_scatter", cwd=examples)
    assert ": 0 of " in run("./reduce_scatter", cwd=examples)
    compiler = shlex.quote(config("--pe-compiler"))
    run(
        "sh",
        "-c",
        f"{compiler} -O2 -DNR_TASKLETS=16 pe/matrix_vector.c -o matrix_vector_pe",
        cwd=examples,
    )
    run("sh", "-c", f"cc -std=c11 matrix_vector.c {flags} -o matrix_vector", cwd=examples)
    assert ": 0 of " in run("./matrix_vector", cwd=examples)


@needs_pkg_config
def test_pkg_config_builds_the_examples(examples: Path) -> None:
    build = 'PKG_CONFIG_PATH="$(pidcomm config --pkgconfig-dir)" make -C examples check'
    output = run("sh", "-c", build, cwd=examples.parent)
    assert output.count(": 0 of ") >= 3


@needs_pkg_config
def test_config_prints_the_output_of_pkg_config(tmp_path: Path) -> None:
    variables = {"PKG_CONFIG_PATH": config("--pkgconfig-dir")}
    for option in ("--cflags", "--libs"):
        theirs = run("pkg-config", option, "pidcomm", cwd=tmp_path, **variables)
        folder = config("--pkgconfig-dir")
        theirs = theirs.replace(f"{folder}/../..", str(Path(folder).parents[1]))
        assert shlex.split(theirs) == shlex.split(config(option))
    version = run("pkg-config", "--modversion", "pidcomm", cwd=tmp_path, **variables)
    assert version.strip() == pidcomm.__version__


@needs_cmake
def test_find_package_builds_the_examples(examples: Path) -> None:
    run("cmake", "-S", ".", "-B", "build", f"-Dpidcomm_DIR={config('--cmake-dir')}", cwd=examples)
    run("cmake", "--build", "build", cwd=examples)
    assert "100% tests passed" in run("ctest", "--test-dir", "build", cwd=examples)


@needs_cmake
def test_find_package_refuses_another_version(examples: Path) -> None:
    lists = examples / "CMakeLists.txt"
    lists.write_text(
        lists.read_text().replace("find_package(pidcomm 0.1", "find_package(pidcomm 99.0")
    )
    with pytest.raises(AssertionError, match="compatible with requested version"):
        run(
            "cmake",
            "-S",
            ".",
            "-B",
            "build",
            f"-Dpidcomm_DIR={config('--cmake-dir')}",
            cwd=examples,
        )


def test_config_without_an_option_is_a_usage_error() -> None:
    result = CliRunner().invoke(app, ["config"])
    assert result.exit_code == 2
    assert "choose what to print" in result.output


def test_an_installation_without_headers_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(installation, "library_folder", lambda: tmp_path)
    with pytest.raises(pidcomm.Error, match=r"pidcomm\.pc is missing"):
        installation.package()


def test_importing_the_package_loads_only_numpy_and_the_api() -> None:
    """Commands load the modules that draw, print tables or parse arguments, and programs import
    the model if they use it: the import is fast.
    """
    heavy = "('matplotlib', 'typer', 'click', 'rich', 'pidcomm.model')"
    code = f"import sys, pidcomm; print([name for name in {heavy} if name in sys.modules])"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout == "[]\n"
