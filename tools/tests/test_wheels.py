"""The wheels in new environments: alone, together, and after another wheel is removed."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest
from documents import ROOT

WHEELS = ROOT / "build" / "wheel"
PRODUCTS = ("dpuemu", "pidcomm", "pidcomm_studies")
EXAMPLES = ROOT / "dpuemu" / "examples"
COMPILERS = ("cc", "gcc", "c++", "g++", "clang", "clang++", "cmake", "make", "ninja", "ld", "as")


class Environment:
    """A new environment with wheels of products, and with the other packages of this
    environment.
    """

    def __init__(self, folder: Path, *products: str) -> None:
        self.folder = folder
        self.programs = folder / "bin"
        venv.create(folder, symlinks=True)
        others = folder / "others"
        others.mkdir()
        for path in Path(sys.prefix).glob("lib/python*/site-packages/*"):
            if not path.name.startswith(PRODUCTS):
                (others / path.name).symlink_to(path)
        packages = next(folder.glob("lib/python*/site-packages"))
        (packages / "others.pth").write_text(f"{others}\n")
        if products:
            self.pip("install", "--no-index", "--no-deps", *map(str, map(wheel_of, products)))

    def pip(self, *words: str) -> None:
        """Run pip for this environment."""
        python = str(self.programs / "python")
        command = [sys.executable, "-m", "pip", "--quiet", "--python", python, *words]
        subprocess.run(command, check=True)

    def run(self, *words: str, path: str | None = None, folder: Path | None = None) -> str:
        """Run a program of the environment, by default with nothing else in PATH; return its
        output.
        """
        variables = {"PATH": path or str(self.programs), "HOME": str(self.folder)}
        command = [str(self.programs / words[0]), *words[1:]]
        result = subprocess.run(
            command,
            cwd=folder or self.folder,
            env=variables,
            capture_output=True,
            text=True,
            check=False,
        )
        assert result.returncode == 0, result.stdout + result.stderr
        return result.stdout

    def run_example(self, folder: Path) -> None:
        """Build and run an UPMEM program with dpuemu and the compilers of this machine."""
        shutil.copytree(EXAMPLES / "vector_add", folder)
        path = os.pathsep.join([str(self.programs), "/usr/local/bin", "/usr/bin", "/bin"])
        assert ", 0 wrong" in self.run(
            "dpuemu", "run", "--", "make", "-s", path=path, folder=folder
        )


def wheel_of(product: str) -> Path:
    """Return the wheel of a product that `make install` kept."""
    wheels = sorted(WHEELS.glob(f"{product}-*.whl"))
    if not wheels:
        pytest.skip(f"there is no wheel of {product} in {WHEELS}: `make install` puts it there")
    return wheels[-1]


@pytest.fixture(scope="module")
def all_products(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """An environment with all products."""
    return Environment(tmp_path_factory.mktemp("all") / "venv", *PRODUCTS)


def test_wheels_need_no_compiler(all_products: Environment) -> None:
    assert not [tool for tool in COMPILERS if shutil.which(tool, path=str(all_products.programs))]
    where = all_products.run("python", "-c", "import pidcomm; print(pidcomm.__file__)")
    assert where.startswith(str(all_products.folder))
    assert ": 0 of " in all_products.run("python", str(ROOT / "pidcomm/examples/allreduce.py"))
    all_products.run("pidcomm", "check", "--cases", "30")


def test_pe_programs_from_source_need_a_compiler(all_products: Environment) -> None:
    script = """
import pidcomm
with pidcomm.allocate(pes=8) as pes:
    try:
        pes.load("int main(void) { return 0; }")
    except pidcomm.Error as error:
        print(type(error).__name__, error)
"""
    said = all_products.run("python", "-c", script)
    assert said.startswith("Error ")
    assert "PATH has no gcc or cc; DPU programs need a GCC for x86-64" in said


def test_removing_a_wheel_leaves_the_others_working(tmp_path: Path) -> None:
    environment = Environment(tmp_path / "venv", *PRODUCTS)
    assert "reproduce" in environment.run("pidcomm", "--help")
    environment.pip("uninstall", "--yes", "pidcomm-studies")
    assert "reproduce" not in environment.run("pidcomm", "--help")
    assert ": 0 of " in environment.run("python", str(ROOT / "pidcomm/examples/allreduce.py"))
    environment.pip("uninstall", "--yes", "pidcomm")
    environment.run_example(tmp_path / "first")
    environment.pip("install", "--no-index", "--no-deps", *map(str, map(wheel_of, PRODUCTS[1:])))
    environment.pip("uninstall", "--yes", "pidcomm")
    environment.run_example(tmp_path / "second")
    packages = next(environment.folder.glob("lib/python*/site-packages"))
    assert not (packages / "pidcomm").exists()


def test_wheels_share_no_file() -> None:
    files = [set(zip_names(wheel_of(product))) for product in PRODUCTS]
    assert all(files)
    assert not files[0] & files[1]
    assert not (files[0] | files[1]) & files[2]


def zip_names(path: Path) -> list[str]:
    """Return the names of the files in a wheel."""
    with zipfile.ZipFile(path) as archive:
        return archive.namelist()


def test_the_ci_job_runs_the_tests_of_a_pe_program(tmp_path: Path) -> None:
    environment = Environment(tmp_path / "venv")
    install, test = re.findall(r"- run: (.*)", (EXAMPLES / "ci" / "dpu-tests.yml").read_text())
    # pip reads PIP_PYTHON: the environment into which it installs.
    variables = {
        **os.environ,
        "DPUEMU": str(wheel_of("dpuemu")),
        "PATH": os.pathsep.join([str(environment.programs), os.environ["PATH"]]),
        **{"PIP_PYTHON": str(environment.programs / "python"), "PIP_NO_INDEX": "1"},
    }
    program = shutil.copytree(EXAMPLES / "vector_add", tmp_path / "program")

    def run(command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", "-c", command],
            cwd=program,
            env=variables,
            capture_output=True,
            text=True,
            check=False,
        )

    assert run(install).returncode == 0
    assert (environment.programs / "dpuemu").is_file()
    assert ", 0 wrong" in run(test).stdout
    host = program / "host.c"
    host.write_text(host.read_text().replace("!= in[0]", "!= 1 + in[0]"))
    assert run(test).returncode != 0
