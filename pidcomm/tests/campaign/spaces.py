"""Run commands with spaces in the paths of their inputs, outputs, temporary files, cache and SDK:
they must work.
"""

from __future__ import annotations

import random
import shutil
import sys
from pathlib import Path

from attack import Attack, Scene

from dpuemu import tools

ROOT = Path(__file__).resolve().parents[3]
TOOLS = Path(sys.executable).parent
WORDS = ("a", "My", "programs", "2", "(new)", "of", "UPMEM", "x-y", "ä")
SMALL = ["--shape", "8x8", "--bytes", "8KiB", "--iters", "1"]


def draw_name(choices: random.Random) -> str:
    """Return a name with spaces."""
    return (" " * choices.randint(1, 2)).join(choices.sample(WORDS, choices.randint(2, 4)))


def commands(sdk: Path) -> list[list[str]]:
    """Return the commands, for a folder with the sources. sdk: the folder of the SDK."""
    pidcomm, dpuemu = str(TOOLS / "pidcomm"), str(TOOLS / "dpuemu")
    path = f'PATH="{sdk}/bin:{TOOLS}:$PATH"; export PATH; '
    flags, ours = "$(dpu-pkg-config --cflags --libs dpu)", "$(pidcomm config --cflags --libs)"
    return [
        ["sh", "-c", f"{path}make -C vector_add run"],
        ["sh", "-c", f'{path}cd vector_add && eval "cc -o host host.c {flags}" && make run'],
        [dpuemu, "run", "--json", "a report.jsonl", "--", "make", "-C", "vector_add", "run"],
        ["sh", "-c", f'{path}eval "cc examples/predict.c {ours}" && ./a.out'],
        [sys.executable, "examples/matrix_vector.py"],
        [pidcomm, "bench", "allreduce", *SMALL, "--json", "some rows.jsonl"],
        [pidcomm, "doctor", "--quick", "--json", "doctor rows.jsonl"],
    ]


def main() -> None:
    """Run each command in turn in a new folder."""
    attack = Attack()
    scene = Scene(attack)
    for number in attack.numbers():
        choices = attack.random(number)
        folder = scene.folder / draw_name(choices)
        work, sdk, temporary = (folder / draw_name(choices) / name for name in ("w", "s", "t"))
        for each in (work, temporary):
            each.mkdir(parents=True)
        shutil.copytree(tools.sdk_root().parent, sdk / "dpuemu")
        shutil.copytree(ROOT / "dpuemu" / "examples" / "vector_add", work / "vector_add")
        shutil.copytree(ROOT / "pidcomm" / "examples", work / "examples")
        choice = commands(sdk / "dpuemu" / "sdk")
        command = choice[number % len(choice)]
        variables = {"TMPDIR": str(temporary), "DPUEMU_RANKS": "4"}
        if choices.random() < 0.3:
            variables["DPUEMU_CACHE"] = str(folder / "a cache")
        status, text = scene.run(["env", "-C", str(work), *command], variables)
        if status != 0:
            attack.find(f"{command} in {work} has status {status}: {text[-300:]}", number=number)
        scene.leftovers()
    scene.close()
    attack.finish()


if __name__ == "__main__":
    main()
