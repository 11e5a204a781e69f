"""A compiler for real DPUs that the user names in DPUEMU_CC."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

TARGET = "dpu-upmem-dpurte"


def real_compiler(words: list[str]) -> list[str] | None:
    """Return the command with these options, if DPUEMU_CC names a compiler that makes machine code
    for DPUs: a program whose name begins with `dpu-`, or a Clang with this target.
    """
    compiler = shlex.split(os.environ.get("DPUEMU_CC", ""))
    if not compiler:
        return None
    if Path(compiler[0]).name.startswith("dpu-"):
        return [*compiler, *words]
    if "clang" not in Path(compiler[0]).name:
        return None
    targets = subprocess.run(
        [*compiler, "-print-targets"], capture_output=True, text=True, check=False
    )
    if "dpu" not in targets.stdout.split():
        return None
    has_target = any(word.lstrip("-").startswith("target") for word in [*compiler, *words])
    return [*compiler, *([] if has_target else [f"--target={TARGET}"]), *words]
