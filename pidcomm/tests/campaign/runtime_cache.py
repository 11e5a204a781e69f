"""Damage the cache of the PE runtime, or kill a compiler: the next compiler must write the right
program and repair the cache.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import sys
from pathlib import Path

from attack import Attack, Scene
from kills import kill_at

from dpuemu import tools

SOURCE = Path(__file__).resolve().parents[2] / "examples" / "pe" / "matrix_vector.c"
COMPILE_SECONDS = 3  # about the time of a compiler that compiles the runtime


def damage(entry: Path, choices: random.Random) -> str:
    """Damage an entry of the cache; return the kind."""
    content = entry.read_bytes()
    place = choices.randrange(len(content))
    kind = choices.choice(["cut", "byte", "longer", "removed", "folder", "link", "pipe", "rights"])
    if kind == "cut":
        entry.write_bytes(content[:place])
    elif kind == "byte":
        flipped = content[place] ^ choices.randint(1, 255)
        entry.write_bytes(content[:place] + bytes([flipped]) + content[place + 1 :])
    elif kind == "longer":
        entry.write_bytes(content + choices.randbytes(choices.randint(1, 100)))
    elif kind == "rights":
        entry.chmod(choices.choice([0, 0o666, 0o222]))
    else:
        entry.unlink()
    if kind == "folder":
        entry.mkdir()
    elif kind == "link":
        entry.symlink_to(choices.choice([entry.name, "/dev/zero", str(SOURCE)]))
    elif kind == "pipe":
        os.mkfifo(entry)
    return kind


def main() -> None:
    """Damage the cache in turn, and compile after each damage."""
    attack = Attack()
    scene = Scene(attack)
    cache, program = attack.folder / "runtime_cache", attack.folder / "runtime_cache.program"
    compiler = [sys.executable, str(tools.sdk_root() / "bin" / tools.COMPILER)]
    command = [*compiler, "-O2", "-DNR_TASKLETS=16", "-o", str(program), str(SOURCE)]
    os.environ["DPUEMU_CACHE"] = str(cache)
    shutil.rmtree(cache, ignore_errors=True)

    def problem_of(kind: str) -> str:
        program.unlink(missing_ok=True)
        status, text = scene.run(command, {})
        if status != 0:
            return f"status {status} after {kind}: {text[-300:]}"
        if program.read_bytes() != right[0]:
            return f"another program after {kind}"
        if kind != "folder" and entry.read_bytes() != right[1]:
            return f"{entry.name} is not repaired after {kind}"
        return ""

    status, text = scene.run(command, {})
    if status != 0:
        attack.find(f"status {status} with an empty cache: {text[-300:]}", command)
        attack.finish()
    (entry,) = cache.iterdir()
    right = program.read_bytes(), entry.read_bytes()
    for number in attack.numbers():
        choices = attack.random(number)
        if choices.random() < 0.2:
            kind = "a kill"
            entry.unlink()
            kill_at(command, choices.uniform(0, COMPILE_SECONDS), signal.SIGKILL, scene.folder)
        else:
            kind = damage(entry, choices)
        if problem := problem_of(kind):
            attack.find(problem, number=number)
        shutil.rmtree(cache)
        cache.mkdir()
        entry.write_bytes(right[1])
        entry.chmod(0o600)
        scene.leftovers()
    shutil.rmtree(cache)
    program.unlink(missing_ok=True)
    scene.close()
    attack.finish()


if __name__ == "__main__":
    main()
