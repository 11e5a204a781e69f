"""C and C++ programs built with an installed wheel, and the wheel on a machine without a compiler."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import venv
from collections.abc import Mapping
from pathlib import Path

import pidcomm
import pytest
from pidcomm import installation
from pidcomm.cli import app
from typer.testing import CliRunner

ROOT = Path(__file__).resolve().parents[2]
TOOLS = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
COMPILERS = ["cc", "gcc", "c++", "g++", "clang", "clang++", "cmake", "make", "ninja", "ld", "as"]

needs_pkg_config = pytest.mark.skipif(not shutil.which("pkg-config"), reason="pkg-config is missing")
needs_cmake = pytest.mark.skipif(not shutil.which("cmake", path=TOOLS), reason="cmake is missing")


def run(*command: str, cwd: Path, **variables: str) -> str:
    """Run a command that must succeed, without an LD_LIBRARY_PATH; return its stdout."""
    environment = {**os.environ, "PATH": TOOLS, **variables}
    environment.pop("LD_LIBRARY_PATH", None)
    return checked(command, cwd, environment)


def checked(command: tuple[str, ...], cwd: Path, environment: Mapping[str, str]) -> str:
    """Run a command that must succeed; return its stdout."""
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


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
    run("sh", "-c", f"{compiler} -O2 -DNR_TASKLETS=16 pe/matrix_vector.c -o matrix_vector_pe", cwd=examples)
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
    lists.write_text(lists.read_text().replace("find_package(pidcomm 0.1", "find_package(pidcomm 99.0"))
    with pytest.raises(AssertionError, match="compatible with requested version"):
        run("cmake", "-S", ".", "-B", "build", f"-Dpidcomm_DIR={config('--cmake-dir')}", cwd=examples)


def test_config_without_an_option_is_a_usage_error() -> None:
    result = CliRunner().invoke(app, ["config"])
    assert result.exit_code == 2
    assert "choose what to print" in result.output


def test_an_installation_without_headers_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installation, "library_folder", lambda: tmp_path)
    with pytest.raises(pidcomm.Error, match=r"pidcomm\.pc is missing"):
        installation.package()


@pytest.fixture(scope="session")
def wheel() -> Path:
    """The wheel that `make install` kept."""
    chosen = os.environ.get("PIDCOMM_TEST_WHEEL")
    wheels = [Path(chosen)] if chosen else list((ROOT / "build" / "wheel").glob("pidcomm-*.whl"))
    if not wheels:
        pytest.skip("there is no wheel in build/wheel: `make install` puts it there")
    return wheels[0]


@pytest.fixture(scope="session")
def bare_machine(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new environment with the wheel, and this environment's other packages."""
    folder = tmp_path_factory.mktemp("bare") / "venv"
    venv.create(folder, symlinks=True)
    python = str(folder / "bin" / "python")
    arguments = ["install", "--quiet", "--no-index", "--no-deps", "--ignore-installed", str(wheel)]
    run(sys.executable, "-m", "pip", "--python", python, *arguments, cwd=folder)
    packages = next((folder / "lib").glob("python*/site-packages"))
    (packages / "others.pth").write_text("\n".join(path for path in sys.path if path.endswith("site-packages")) + "\n")
    return folder


def run_bare(machine: Path, *words: str) -> str:
    """Run a program of the environment with nothing else in PATH."""
    folder = machine / "bin"
    assert [tool for tool in COMPILERS if shutil.which(tool, path=str(folder))] == []
    environment = {"PATH": str(folder), "HOME": str(machine)}
    return checked((str(folder / words[0]), *words[1:]), machine, environment)


def test_a_wheel_needs_no_compiler(bare_machine: Path) -> None:
    assert run_bare(bare_machine, "python", "-c", "import pidcomm; print(pidcomm.__file__)").startswith(
        str(bare_machine)
    )
    assert ": 0 of " in run_bare(bare_machine, "python", str(ROOT / "examples" / "allreduce.py"))
    run_bare(bare_machine, "pidcomm", "check", "--cases", "30")


def test_pe_programs_from_source_need_a_compiler(bare_machine: Path) -> None:
    script = """
import pidcomm
with pidcomm.allocate(pes=8) as pes:
    try:
        pes.load("int main(void) { return 0; }")
    except pidcomm.Error as error:
        print(type(error).__name__, error)
"""
    said = run_bare(bare_machine, "python", "-c", script)
    assert said.startswith("Error ")
    assert "PATH has no gcc or cc; DPU programs need a GCC for x86-64" in said


@needs_cmake
def test_the_ci_job_installs_the_documented_wheel_and_runs_the_tests_of_a_pe_program(
    examples: Path, tmp_path: Path
) -> None:
    build = re.findall(r"`(pip\s+wheel\s[^`]*)`", (ROOT / "docs" / "emulator.md").read_text())
    assert len(build) == 1
    # A falsy value turns build isolation off: then pip uses the build tools of this environment.
    offline = {"PIP_NO_INDEX": "1", "PIP_NO_BUILD_ISOLATION": "0", "PIP_WHEEL_DIR": str(tmp_path / "wheels")}
    run("bash", "-c", build[0], cwd=ROOT, SKBUILD_CMAKE_BUILD_TYPE="Debug", **offline)  # compiles faster than Release
    (wheel,) = (tmp_path / "wheels").iterdir()
    assert wheel.name.startswith("dpuemu-")
    commands = re.findall(r"- run: (.*)", (examples / "ci" / "dpu-tests.yml").read_text())
    environment = tmp_path / "venv"
    venv.create(environment, symlinks=True)
    # pip reads PIP_PYTHON: the environment into which it installs.
    variables = {
        "DPUEMU": str(wheel),
        "PATH": os.pathsep.join([str(environment / "bin"), TOOLS]),
        **{"PIP_PYTHON": str(environment / "bin" / "python"), "PIP_NO_INDEX": "1"},
    }
    install, test = commands
    run("bash", "-c", install, cwd=examples, **variables)
    assert (environment / "bin" / "dpuemu").is_file()
    program = examples / "vector_add"
    assert ", 0 wrong" in run("bash", "-c", test, cwd=program, **variables)
    host = program / "host.c"
    host.write_text(host.read_text().replace("!= in[0]", "!= 1 + in[0]"))
    done = subprocess.run(["bash", "-c", test], cwd=program, env={**os.environ, **variables}, check=False)
    assert done.returncode != 0


def test_importing_the_package_loads_only_numpy_and_itself() -> None:
    """Commands load the modules that draw, print tables or parse arguments: the import is fast."""
    heavy = "('matplotlib', 'typer', 'click', 'rich')"
    code = f"import sys, pidcomm; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.parametrize(
    ("arguments", "module"),
    [
        (
            ["plan", "alltoall", "--draw", "--shape", "8x8", "--mask", "10", "--bytes", "8KiB", "--out", "x.svg"],
            "matplotlib",
        ),
        (["report", "x.html"], "matplotlib"),
        (["model", "calibrate", "mine.toml"], "scipy"),
    ],
)
def test_commands_of_the_studies_name_the_missing_module(
    arguments: list[str], module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(pidcomm.errors, "find_spec", lambda name: None)
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 2
    assert f"needs {module}, which is not installed: pip install {module}" in result.output
    assert not list(tmp_path.iterdir())
