"""The compiler that the user names in DPUEMU_CC: a gcc, or one that makes machine code for DPUs."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

TARGET = "dpu-upmem-dpurte"
# A word of a command that chooses a target; the target may be the next word.
_TARGET_OPTION = re.compile(r"--?target(=.*)?")


def _chosen() -> list[str]:
    return shlex.split(os.environ.get("DPUEMU_CC", ""))


def _makes_machine_code(command: list[str]) -> bool:
    """Return whether it is a program whose name begins with `dpu-`, or a Clang with this target."""
    name = Path(command[0]).name
    if name.startswith("dpu-"):
        return True
    if "clang" not in name or shutil.which(command[0]) is None:
        return False
    targets = subprocess.run(
        [*command, "-print-targets"], capture_output=True, text=True, check=False
    )
    return "dpu" in targets.stdout.split()


def gcc_command() -> list[str]:
    """Return the gcc in DPUEMU_CC, or [] if it names none."""
    command = _chosen()
    return [] if command and _makes_machine_code(command) else command


def real_compiler(words: list[str]) -> list[str] | None:
    """Return the command with these options, if DPUEMU_CC names a compiler for real DPUs.

    Raises OSError if the program does not exist, or is the compiler of dpuemu.
    """
    command = _chosen()
    if not command or not _makes_machine_code(command):
        return None
    program = shutil.which(command[0])
    if program is None:
        raise OSError(f"DPUEMU_CC ({command[0]}) is not a program")
    if Path(program).resolve().parent == (Path(__file__).resolve().parent.parent / "bin"):
        raise OSError(f"DPUEMU_CC ({program}) is dpuemu's compiler; name the vendor's one")
    named = Path(command[0]).name.startswith("dpu-")
    has_target = named or any(_TARGET_OPTION.fullmatch(word) for word in [*command[1:], *words])
    return [program, *command[1:], *([] if has_target else [f"--target={TARGET}"]), *words]
