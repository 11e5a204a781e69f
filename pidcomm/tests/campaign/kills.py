"""End a program at a random moment by SIGTERM or SIGKILL: the next run must work, and nothing may
be left after it.
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

from attack import Attack, Scene

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
CHILD_SECONDS = 20  # children of a killed process end within this time


def processes_of(folder: Path) -> list[int]:
    """Return the processes whose temporary files are in the folder."""
    setting = f"TMPDIR={folder}".encode()
    found = []
    for name in filter(str.isdecimal, os.listdir("/proc")):
        with suppress(OSError):
            if setting in Path(f"/proc/{name}/environ").read_bytes().split(b"\0"):
                found.append(int(name))
    return found


def kill_at(command: list[str], moment: float, number: signal.Signals, folder: Path) -> bool:
    """Send a signal to a command after `moment` seconds; return whether all its processes end."""
    process = subprocess.Popen(
        command,
        env={**os.environ, "TMPDIR": str(folder)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    time.sleep(moment)
    process.send_signal(number)
    process.wait()
    end = time.monotonic() + CHILD_SECONDS
    while time.monotonic() < end:
        if not processes_of(folder):
            return True
        time.sleep(0.05)
    for pid in processes_of(folder):
        os.kill(pid, signal.SIGKILL)
    return False


def main() -> None:
    """End each program in turn, then run it to its end."""
    attack = Attack()
    scene = Scene(attack)
    tools = Path(sys.executable).parent
    small = ["--shape", "8x8", "--bytes", "64KiB"]
    output = scene.folder.parent / "kills.json"
    host = [str(attack.build / "tests" / "campaign" / "campaign_host"), "30"]
    programs = [
        host,
        [str(tools / "pidcomm"), "bench", "--quick", *small, "--json", str(output)],
        [str(tools / "pidcomm"), "check", "--cases", "20"],
        [sys.executable, str(EXAMPLES / "matrix_vector.py")],  # compiles a PE program
        [str(tools / "pidcomm"), "hosts", "osu", "--sizes", "8,64KiB", "--iters", "20"],
        [str(tools / "pidcomm"), "hosts", "run", "--", str(tools / "pidcomm"), "info"],
        [str(tools / "dpuemu"), "run", "--", *host],
        [str(tools / "pidcomm"), "parcels", "run", "halo", "-n", "64"],
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
        choice = attack.random(number)
        moment = choice.uniform(0, lasting[which])
        sent = choice.choice([signal.SIGTERM, signal.SIGKILL])
        problem = (
            ""
            if kill_at(command, moment, sent, scene.folder)
            else f"leaves processes for {CHILD_SECONDS} s"
        )
        status, text = scene.run(command, {})
        left = scene.leftovers()
        if status != 0:
            problem = f"has status {status} in the next run: {text[-300:]}"
        elif left:
            problem = f"leaves {', '.join(left)} after the next run"
        if problem:
            command = ["timeout", "--signal", sent.name, f"{moment:.3f}", *command]
            attack.find(f"{shlex.join(command)}: {problem}", command)
    output.unlink(missing_ok=True)
    scene.close()
    attack.finish()


if __name__ == "__main__":
    main()
