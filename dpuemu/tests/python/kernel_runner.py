"""The host program and the kernels of tests/profile, for tests of `dpuemu profile` and `dpuemu
trace`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from dpuemu import tools

SOURCES = Path(__file__).parents[1] / "profile"


class Runner:
    """The host program and the kernels, each compiled once."""

    def __init__(self, folder: Path) -> None:
        """Compile the host program."""
        self.folder = folder
        self.variables = {**os.environ, "DPUEMU_RANKS": "1"}
        self.run("gcc", "-std=gnu11", "-o", "host", str(SOURCES / "host.c"), *self.flags())

    def flags(self) -> list[str]:
        """Return the options of a host program."""
        text = self.run("dpu-pkg-config", "--cflags", "--libs", "dpu").stdout
        return [str(word) for word in text.split()]

    def ended(self, *words: str, tool: tuple[str, ...] = ("run",)) -> Any:
        """Return the process that ran a command in the folder by a command of dpuemu."""
        command = [sys.executable, "-m", "dpuemu", *tool, "--", *words]
        return subprocess.run(
            command,
            cwd=self.folder,
            env=self.variables,
            capture_output=True,
            text=True,
            check=False,
        )

    def run(self, *words: str, code: int = 0, tool: tuple[str, ...] = ("run",)) -> Any:
        """Do the same for a command that returns `code`."""
        process = self.ended(*words, tool=tool)
        assert process.returncode == code, process.stdout + process.stderr
        return process

    def kernel(self, name: str, tasklets: int = 16) -> str:
        """Compile a kernel; return its file."""
        file = f"{name}_{tasklets}"
        if not (self.folder / file).exists():
            self.run(
                tools.COMPILER, "-O2", f"-DNR_TASKLETS={tasklets}", f"-DKERNEL={name}", "-o", file,
                str(SOURCES / "kernels.c"),
            )  # fmt: skip
        return f"./{file}"

    def profile(
        self, name: str, tasklets: int = 16, launches: int = 1, code: int = 0
    ) -> dict[str, Any]:
        """Return the profile of a kernel."""
        words = ("./host", self.kernel(name, tasklets), str(launches))
        self.run(*words, code=code, tool=("profile", "--json", "profile.json"))
        (line,) = (self.folder / "profile.json").read_text().splitlines()
        return dict(json.loads(line))
