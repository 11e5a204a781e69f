"""Temporary folders, and the folders that killed processes leave behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from dpuemu import tools

HOLD = """
import sys, time
sys.path.insert(0, sys.argv[1])
from temporary import temporary_folder
with temporary_folder("dpuemu") as folder:
    (folder / "file").touch()
    print(folder, flush=True)
    time.sleep(600)
"""


def make_old(folder: Path) -> None:
    """Set the folder's time to two minutes ago."""
    os.utime(folder, times=(time.time() - 120,) * 2, follow_symlinks=False)


@pytest.mark.parametrize("command", ["dpuemu run", "compiler"])
def test_the_next_process_removes_only_folders_of_dead_processes(
    tmp_path: Path, command: str
) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    hold = [sys.executable, "-c", HOLD, str(tools.sdk_root() / "compiler")]
    with (
        subprocess.Popen(hold, stdout=subprocess.PIPE, text=True, env=environment) as killed,
        subprocess.Popen(hold, stdout=subprocess.PIPE, text=True, env=environment) as alive,
    ):
        assert killed.stdout is not None
        assert alive.stdout is not None
        left, held = Path(killed.stdout.readline().strip()), Path(alive.stdout.readline().strip())
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        young, mine, target = (
            tmp_path / name for name in ("dpuemu-tmp-abcdefgh", "dpuemu-results", "target")
        )
        for folder in (young, mine, target):
            folder.mkdir()
        link = tmp_path / "dpuemu-tmp-ijklmnop"
        link.symlink_to(target)
        old = tmp_path / "dpuemu-tmp-qrstuvwx"
        old.mkdir()
        for folder in (old, held, mine, target, link):
            make_old(folder)
        compile_nothing = [
            sys.executable,
            str(tools.sdk_root() / "bin" / tools.COMPILER),
            "--version",
        ]
        words = (
            [sys.executable, "-m", "dpuemu", "run", "true"]
            if command == "dpuemu run"
            else compile_nothing
        )
        subprocess.run(words, check=True, env=environment, capture_output=True)
        alive.kill()
        assert sorted(tmp_path.iterdir()) == sorted([held, young, mine, target, link])
        assert not left.exists()
        assert (held / "file").exists()
