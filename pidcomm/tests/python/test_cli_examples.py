"""Every example of every --help runs, and the JSON it writes is JSON."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from command_line import commands, install, objects

PROJECT = Path(__file__).parent / "project"
REFERENCE = Path(__file__).parents[2] / "bench" / "reference"
MACHINES = Path(__file__).parents[2] / "machines"
# Files that examples take.
FILES = {
    "rows.jsonl": REFERENCE / "collectives.jsonl",
    "ablation.jsonl": REFERENCE / "ablation.jsonl",
    "mine.toml": MACHINES / "emulated-host.toml",
}
EXAMPLES = [(name, example) for name, command in commands().items() for example in command.examples]
# Options that are appended to the examples of a command for less work: the last of equal options
# counts.
CUTS = {
    "check": "--cases 20",
    "bench": "--shape 8x8 --bytes 8KiB --iters 1 --warmup 0",
    "model calibrate": "--samples 50 --max-total 256KiB",
    "model validate": "--samples 5 --max-total 256KiB",
    "model scale": "--iters 1 --warmup 0",
    "reproduce": "--pes 64 --bytes 8KiB --iters 1",
    "doctor": "--quick --ranks 1",
    "report": "--shape 8x8 --bytes 8KiB",
    "app": "--quick --pes 8 --iters 1",
}
# Options of CUTS that an example does not take, by a pattern of the example.
EXCLUDED = {
    "bench.* --quick": ("--iters", "--warmup"),
    "--case ": ("--cases",),
    "--from": ("--shape", "--bytes"),
    "scale(?!.*--measure)": ("--iters", "--warmup"),
    "--published": ("--samples", "--max-total"),
    "--no-measure": ("--pes", "--bytes", "--iters"),
}


def cuts(command: str, example: str) -> str:
    """Return the options of CUTS for an example."""
    found = CUTS.get(command, "")
    for pattern, options in EXCLUDED.items():
        if re.search(pattern, example):
            found = re.sub(rf"({'|'.join(options)}) \S+ ?", "", found)
    return found


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Variables with which a shell finds `pidcomm`."""
    return {
        **os.environ,
        "PATH": os.pathsep.join((str(install(tmp_path_factory.mktemp("bin"))), os.environ["PATH"])),
    }


@pytest.mark.parametrize(
    ("name", "example"), EXAMPLES, ids=[f"{name}: {example}" for name, example in EXAMPLES]
)
def test_examples_run(name: str, example: str, environment: dict[str, str], tmp_path: Path) -> None:
    project = shutil.copytree(PROJECT, tmp_path / "project")
    for name_of_file, file in FILES.items():
        shutil.copy(file, project / name_of_file)
    called = re.search(r"pidcomm (model [\w-]+|[\w-]+)", example)
    assert called is not None
    assert called[1].startswith(name.split(" ")[0])
    command = f"{example} {cuts(called[1], example)}"
    result = subprocess.run(
        ["sh", "-c", command],
        cwd=project,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert (result.returncode, "Traceback" in result.stderr) == (0, False), result
    if target := re.search(r"--json (\S+)", example):
        text = result.stdout if target[1] == "-" else (project / target[1]).read_text()
        assert len(objects(text)) > 0
