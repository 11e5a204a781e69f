"""Kill a program at a random moment: the next run must work, and nothing may be left after it."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

from attack import Attack, Scene

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
CHILD_SECONDS = 20  # children of a killed process end within this time


def kill_at(command: list[str], moment: float, folder: Path) -> bool:
    """Kill a command after `moment` seconds; return whether its children end."""
    process = subprocess.Popen(
        command,
        env={**os.environ, "TMPDIR": str(folder)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    time.sleep(moment)
    process.kill()
    process.wait()
    end = time.monotonic() + CHILD_SECONDS
    while time.monotonic() < end:
        try:
            os.killpg(process.pid, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGKILL)
    return False


def main() -> None:
    """Kill each program in turn, then run it to its end."""
    attack = Attack()
    scene = Scene(attack)
    tools = Path(sys.executable).parent
    small = ["--shape", "8x8", "--bytes", "64KiB"]
    output = scene.folder.parent / "kills.json"
    programs = [
        [str(attack.build / "tests" / "campaign" / "campaign_host"), "30"],
        [str(tools / "pidcomm"), "bench", "--quick", *small, "--json", str(output)],
        [str(tools / "pidcomm"), "check", "--cases", "20"],
        [sys.executable, str(EXAMPLES / "matrix_vector.py")],  # compiles a PE program
    ]
    lasting: dict[int, float] = {}  # seconds of a run that nothing kills
    for number in attack.numbers():
        which = number % len(programs)
        command = programs[which]
        if which not in lasting:
            begin = time.monotonic()
            status, text = scene.run(command, {})
            lasting[which] = time.monotonic() - begin
            if status != 0:
                attack.find(f"{shlex.join(command)} has status {status}: {text[-300:]}", command)
        moment = attack.random(number).uniform(0, lasting[which])
        problem = (
            ""
            if kill_at(command, moment, scene.folder)
            else f"leaves processes for {CHILD_SECONDS} s"
        )
        status, text = scene.run(command, {})
        left = scene.leftovers()
        if status != 0:
            problem = f"has status {status} in the next run: {text[-300:]}"
        elif left:
            problem = f"leaves {', '.join(left)} after the next run"
        if problem:
            command = ["timeout", "-s", "KILL", f"{moment:.3f}", *command]
            attack.find(f"{shlex.join(command)}: {problem}", command)
    output.unlink(missing_ok=True)
    scene.close()
    attack.finish()


if __name__ == "__main__":
    main()
