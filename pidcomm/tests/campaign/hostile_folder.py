"""Run commands in a folder whose modules and programs have the names of those that the commands
use: no command may run them.
"""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path

from attack import Attack, Scene

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
TOOLS = Path(sys.executable).parent
PACKAGES = (
    "compiler dpuemu linking mpi4py numpy package pidcomm pidcomm_studies rich temporary typer"
)
PROGRAMS = "ar as c++ cc clang cpp dpu-upmem-dpurte-clang gcc ld mpiexec pidcomm python python3 sh"
HOSTS = [str(TOOLS / "pidcomm"), "hosts"]
OSU = [*HOSTS, "osu", "--collective", "allreduce", "--sizes", "64", "--iters", "1", "--hosts", "2"]


def commands(folder: Path) -> list[list[str]]:
    """Return the commands. folder: for the files that they write."""
    pidcomm, run = str(TOOLS / "pidcomm"), [str(TOOLS / "dpuemu"), "run", "--"]
    small = ["--shape", "8x8", "--bytes", "8KiB", "--iters", "1"]
    pe, program = str(EXAMPLES / "pe" / "matrix_vector.c"), str(folder / "program")
    files = f"{shlex.quote(program)} {shlex.quote(str(EXAMPLES / 'predict.c'))}"
    build = f'eval "cc -o {files} $(pidcomm config --cflags --libs)"'
    return [
        [str(TOOLS / "dpuemu"), "env"],
        [*run, "dpu-upmem-dpurte-clang", "-O2", "-DNR_TASKLETS=16", "-o", program, pe],
        [*run, "dpu-pkg-config", "--cflags", "--libs", "dpu"],
        ["sh", "-c", f"{build} && {shlex.quote(program)}"],
        [pidcomm, "info"],
        [pidcomm, "doctor", "--quick"],
        [pidcomm, "check", "--cases", "5"],
        [pidcomm, "bench", "allreduce", *small],
        [pidcomm, "bench", "allreduce", "--mask", "10", "--hosts", "2", *small],
        [*OSU, "--transport", "mpi,pool,switch"],
        [*OSU, "--pes", "8", "--transport", "switch"],
        [*HOSTS, "run", "-n", "2", "--pes", "64", "--", sys.executable, str(EXAMPLES / "hosts.py")],
        [sys.executable, str(EXAMPLES / "matrix_vector.py")],
        [pidcomm, "app", "mlp", "--pes", "64", "--features", "256"],
        [pidcomm, "parcels", "run", "halo", "-n", "4"],
    ]


def fill(folder: Path, markers: Path) -> None:
    """Write the modules and programs; each leaves a file in `markers`."""
    for name in [*sys.stdlib_module_names, *PACKAGES.split()]:
        marker = str(markers / f"{name}.py")
        (folder / f"{name}.py").write_text(f"open({marker!r}, 'w').close()\nraise ImportError\n")
    for name in PROGRAMS.split():
        program = folder / name
        program.write_text(f"#!/bin/sh\n: > {shlex.quote(str(markers / name))}\nexit 1\n")
        program.chmod(0o755)


def main() -> None:
    """Run each command in turn, also without PATH."""
    attack = Attack()
    scene = Scene(attack)
    hostile, markers, output = (scene.folder / name for name in ("hostile", "markers", "output"))
    path = os.pathsep.join([str(TOOLS), os.environ.get("PATH", os.defpath)])
    for number in attack.numbers():
        for folder in (hostile, markers, output):
            folder.mkdir()
        fill(hostile, markers)
        choices = commands(output)
        command = choices[number % len(choices)]
        has_path = attack.random(number).random() < 0.7
        words = ["env", "-C", str(hostile), *([f"PATH={path}"] if has_path else ["-u", "PATH"])]
        status, text = scene.run([*words, *command], {"OMP_NUM_THREADS": "1"})
        used = sorted(marker.name for marker in markers.iterdir())
        if used:
            attack.find(f"{shlex.join(command)} runs {', '.join(used)}", number=number)
        elif has_path and status != 0:
            attack.find(f"{shlex.join(command)} has status {status}: {text[-300:]}", number=number)
        scene.leftovers()
    scene.close()
    attack.finish()


if __name__ == "__main__":
    main()
