"""Kill several processes of a pool at once: the others must end with an error of pidcomm, the next
pool of the name must work, and nothing may be left.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from attack import Attack, Scene

PROGRAM = """
import sys
import numpy as np
import pidcomm

name, host, hosts, switch, rounds, timeout = sys.argv[1], *map(int, sys.argv[2:])
with pidcomm.pool.Pool(
    name, host=host, hosts=hosts, bytes=1 << 20, switch=bool(switch), timeout=timeout
) as pool:
    x = np.arange(512, dtype=np.int32) + 1000 * host
    offset = pool.allocate(2 * hosts * x.nbytes)
    everything = np.arange(512) + 1000 * np.arange(hosts)[:, None]
    for n in range(rounds):
        slot = offset + n % 2 * hosts * x.nbytes
        pool.write(slot + host * x.nbytes, x)
        pool.sync()
        if not (pool.read(slot, hosts * 512, np.int32).reshape(hosts, -1) == everything).all():
            raise SystemExit("wrong bytes")
"""
ENDLESS, FEW = 10**9, 20  # rounds
SECONDS = 100
# Seconds that hosts wait for each other: for a host that is killed before it opens the pool, and
# for one that a busy machine starts late.
SHORT, LONG = 10, 100


def start(
    name: str, hosts: int, switch: int, rounds: int, timeout: int
) -> list[subprocess.Popen[str]]:
    """Start a process for each host."""
    return [
        subprocess.Popen(
            [
                *(sys.executable, "-c", PROGRAM, name),
                *map(str, (host, hosts, switch, rounds, timeout)),
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        for host in range(hosts)
    ]


def end_of(process: subprocess.Popen[str]) -> tuple[int | None, str]:
    """Return the status of a process, or None if it did not end, and its last line."""
    try:
        text = process.communicate(timeout=SECONDS)[1]
    except subprocess.TimeoutExpired:
        process.kill()
        return None, process.communicate()[1]
    return process.returncode, (text.strip().splitlines() or [""])[-1]


def switches(name: str) -> list[int]:
    """Return the processes of the switch of a pool."""
    processes = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes()
        except OSError:
            continue
        if b"pidcomm.pool\0" in words and name.encode() in words:
            processes.append(int(folder.name))
    return processes


def main() -> None:
    """Kill processes at random moments until the time is over."""
    attack = Attack()
    scene = Scene(attack)
    begin = time.monotonic()
    for process in start(f"alone{os.getpid()}", 2, 1, FEW, LONG):
        end_of(process)
    lasting = time.monotonic() - begin  # seconds of a run that nothing kills
    for number in attack.numbers():
        choices = attack.random(number)
        name, hosts, switch = f"together{os.getpid()}", choices.randint(2, 4), choices.randint(0, 1)
        processes = start(name, hosts, switch, ENDLESS, SHORT)
        time.sleep(choices.uniform(0, 3 * lasting))
        victims = choices.sample(range(hosts), choices.randint(1, hosts))
        numbers = [processes[host].pid for host in victims]
        numbers += switches(name) if choices.random() < 0.5 else []
        for process in numbers:
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:  # a switch ends with host 0
                continue
        what = f"{hosts} hosts, switch {switch}, host {', '.join(map(str, victims))} killed"
        for host, process in enumerate(processes):
            status, line = end_of(process)
            if host not in victims and (status != 1 or not line.startswith("pidcomm.")):
                attack.find(f"{what}: host {host} has status {status}: {line}", number=number)
        for host, process in enumerate(start(name, 2, switch, FEW, LONG)):
            status, line = end_of(process)
            if status != 0:
                attack.find(f"{what}: then host {host} has status {status}: {line}", number=number)
        end = time.monotonic() + SECONDS
        while switches(name) and time.monotonic() < end:
            time.sleep(0.05)
        if left := [
            *map(str, switches(name)),
            *(each for each in scene.leftovers() if name in each),
        ]:
            attack.find(f"{what}: {', '.join(left)} is left", number=number)
    scene.close()
    attack.finish()


if __name__ == "__main__":
    main()
