"""What the Python attacks share: arguments, findings, and a process that must end in time."""

from __future__ import annotations

import os
import random
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NoReturn

MOST_FINDINGS = 10  # later findings mostly repeat the first
SHARED_MEMORY = Path("/dev/shm")
COMMAND_SECONDS = 100  # a command ends within this time, and before campaign.py ends the attack


class Attack:
    """The run of an attack; see campaign.py."""

    def __init__(self) -> None:
        """Read the arguments SECONDS SEED [CASE]."""
        if len(sys.argv) not in (3, 4):
            sys.exit(f"usage: {sys.argv[0]} SECONDS SEED [CASE]")
        self.end = time.monotonic() + float(sys.argv[1])
        self.seed = int(sys.argv[2])
        self.only = int(sys.argv[3]) if len(sys.argv) == 4 else None
        self.folder = Path(os.environ.get("CAMPAIGN_FOLDER", "build/campaign")).resolve()
        self.build = Path(os.environ.get("CAMPAIGN_BUILD", "build/pidcomm/release")).resolve()
        self.folder.mkdir(parents=True, exist_ok=True)
        self.cases = self.findings = 0

    def numbers(self, count: int | None = None) -> Iterator[int]:
        """Yield the numbers of cases until the time is over (at least one), or all `count` of
        them.
        """
        number = 0
        while self.only is None and (count is None or number < count):
            is_late = number > 0 and time.monotonic() >= self.end
            if is_late or self.findings >= MOST_FINDINGS:
                return
            yield number
            number += 1
        if self.only is not None:
            yield self.only

    def random(self, number: int) -> random.Random:
        """Return the random numbers of a case."""
        self.cases += 1
        return random.Random(f"{self.seed} {number}")

    def find(
        self, sentence: str, command: Sequence[str] | None = None, number: int | None = None
    ) -> None:
        """Report a finding; without a command, the case `number` alone repeats it."""
        self.findings += 1
        command = command or [
            "env",
            f"PYTHONPATH={os.path.relpath(Path(__file__).parent)}",
            f"CAMPAIGN_BUILD={os.path.relpath(self.build)}",
            sys.executable,
            os.path.relpath(sys.argv[0]),
            "0",
            str(self.seed),
            str(number),
        ]
        print(f"finding: {' '.join(sentence.split())}\trun: {shlex.join(command)}", flush=True)

    def finish(self) -> NoReturn:
        """Print the number of cases and exit."""
        print(f"cases: {self.cases}")
        sys.exit(self.findings != 0)


def skip(sentence: str) -> NoReturn:
    """End an attack that cannot run here."""
    print(f"skipped: {sentence}")
    sys.exit(0)


class Scene:
    """An empty folder for temporary files and a list of shared memory: what a process leaves
    behind.
    """

    def __init__(self, attack: Attack) -> None:
        """Make the folder."""
        self.folder = attack.folder / f"scene-{os.getpid()}"
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir()
        self.shared = self._shared()

    @staticmethod
    def _shared() -> set[str]:
        return set(os.listdir(SHARED_MEMORY)) if SHARED_MEMORY.is_dir() else set()

    def run(self, command: Sequence[str], variables: Mapping[str, str]) -> tuple[int | None, str]:
        """Run a command with TMPDIR here; return its status (None if it did not end within
        COMMAND_SECONDS) and its output.
        """
        try:
            process = subprocess.run(
                command,
                env={**os.environ, "TMPDIR": str(self.folder), **variables},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=COMMAND_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            return None, (error.stdout or b"").decode(errors="replace")
        return process.returncode, process.stdout.decode(errors="replace")

    def leftovers(self) -> list[str]:
        """Return what is left, without empty folders (temporary.py removes these after a
        minute), and remove all.
        """
        paths = [path for path in self.folder.iterdir() if not path.is_dir() or any(path.iterdir())]
        left = sorted(path.name for path in paths) + sorted(self._shared() - self.shared)
        for path in self.folder.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        return left

    def close(self) -> None:
        """Remove the folder."""
        shutil.rmtree(self.folder, ignore_errors=True)
