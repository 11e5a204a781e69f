"""Every example of every --help runs, and the JSON it writes is JSON.

An example is only parsed if a document or test_app_rows.py runs the same command with the same
arguments and at least its options, or if another example does, with more options that replace no
output of the example.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest
from command_line import commands, install, objects
from documents import documents

PROJECT = Path(__file__).parent / "project"
REFERENCE = Path(__file__).parents[2] / "pidcomm" / "bench" / "reference"
MACHINES = Path(__file__).parents[2] / "pidcomm" / "machines"
# Files that examples take.
FILES = {
    "rows.jsonl": REFERENCE / "collectives.jsonl",
    "ablation.jsonl": REFERENCE / "ablation.jsonl",
    "mine.toml": MACHINES / "emulated-host.toml",
}
COMMANDS = commands()
# `parcels bench` needs valgrind and a compiler for MPI, `model fit-dimms` times of DIMMs; tests of
# the studies run it on times that they write.
NAMES_BY_EXAMPLE = {
    example: name
    for name, command in COMMANDS.items()
    for example in command.examples
    if name not in ("parcels bench", "model fit-dimms")
}
EXAMPLES = [(name, example) for example, name in NAMES_BY_EXAMPLE.items()]
# Options that are appended to the examples of a command for less work: the last of equal options
# counts.
CUTS = {
    "check": "--cases 20",
    "hosts": "--collective allgather --sizes 64KiB --iters 2",
    "bench": "--shape 8x8 --bytes 8KiB --iters 1 --warmup 0",
    "model calibrate": "--samples 50 --max-total 256KiB --force",
    "model validate": "--samples 5 --max-total 256KiB",
    "model scale": "--iters 1 --warmup 0",
    "reproduce": "--pes 64 --bytes 8KiB --iters 1",
    "tune": "--bytes 16KiB",
    "doctor": "--quick --ranks 1",
    "report": "--shape 8x8 --bytes 8KiB",
    "app": "--quick --pes 8 --iters 1",
}
# Options of CUTS that an example does not take, by a pattern of the example.
EXCLUDED = {
    "bench.* --quick": ("--iters", "--warmup"),
    "--sweep bytes": ("--bytes",),
    "--case ": ("--cases",),
    "--collective ": ("--collective",),
    "hosts (run|plan)": ("--collective", "--sizes", "--iters"),
    "--from": ("--shape", "--bytes"),
    "scale(?!.*--measure)": ("--iters", "--warmup"),
    "--published": ("--samples", "--max-total"),
    "--no-measure|reproduce$|reproduce parcels": ("--pes", "--bytes", "--iters"),
}


def cuts(command: str, example: str) -> str:
    """Return the options of CUTS for an example."""
    cut_options = CUTS.get(command, "")
    for pattern, options in EXCLUDED.items():
        if re.search(pattern, example):
            cut_options = re.sub(rf"({'|'.join(options)}) \S+ ?", "", cut_options)
    return cut_options


class Parsed(NamedTuple):
    """A command with its arguments, and the names of its options."""

    command: str
    arguments: tuple[object, ...]
    options: frozenset[str]


def parsed(line: str) -> Parsed | None:
    """Parse a line that runs one command of pidcomm; return None for other lines.

    Raises click.UsageError for wrong options.
    """
    if re.match(r"pidcomm .*[|&;$<>]|(?!pidcomm )", line):
        return None
    words = shlex.split(line)[1:]
    name = max((name for name in COMMANDS if words[: len(name.split())] == name.split()), key=len)
    command = COMMANDS[name]
    with command.make_context(name, words[len(name.split()) :]) as context:
        parameters = [
            parameter
            for parameter in command.params
            if (source := context.get_parameter_source(parameter.name))
            and source.name == "COMMANDLINE"
        ]
        arguments = [
            context.params[parameter.name]
            for parameter in parameters
            if parameter.param_type_name == "argument"
        ]
        options = {
            parameter.name for parameter in parameters if parameter.param_type_name == "option"
        }
    return Parsed(name, tuple(map(str, arguments)), frozenset(options))


@cache
def of_documents() -> list[Parsed]:
    """Return the commands that documents run.

    Of the documents command-line.md, only the commands that write JSON certainly run.
    """
    lines = [
        line.partition("  #")[0]
        for document in documents()
        for line in document.script("sh").splitlines()
        if document.path.name != "command-line.md" or "--json" in line
    ]
    return [parsed_line for line in lines if (parsed_line := parsed(line)) is not None]


@cache
def of_applications() -> list[Parsed]:
    """Return the commands that test_app_rows.py runs: one of each application."""
    options = "--quick --pes 8 --iters 1 --cpu --json rows.jsonl --plot plot.svg"
    lines = [f"pidcomm {name} {options}" for name in COMMANDS if name.startswith("app ")]
    return [parsed_line for line in lines if (parsed_line := parsed(line)) is not None]


@cache
def of_examples() -> list[Parsed]:
    """Return the commands of all examples."""
    lines = [f"{example} {cuts(called(example), example)}" for _, example in EXAMPLES]
    return [parsed_line for line in lines if (parsed_line := parsed(line)) is not None]


def called(example: str) -> str:
    """Return the name of the command that an example calls."""
    match = re.search(r"pidcomm (model [\w-]+|[\w-]+)", example)
    assert match is not None
    return match[1]


# Options that replace a part of the output.
REPLACING = {"--json", "--metric", "--plot"}


def has_another_run(line: str) -> bool:
    """Whether a document, another test or an example with more options runs the command."""
    example = parsed(line)
    if example is None:
        return False
    elsewhere = [*of_documents(), *of_applications()]
    options = [other.options for other in elsewhere if example[:2] == other[:2]]
    more = [other.options for other in of_examples() if example[:2] == other[:2]]
    return any(example.options <= other for other in options) or any(
        example.options < other and not REPLACING & (other - example.options) for other in more
    )


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Variables with which a shell finds `pidcomm`. Its settings are in a temporary folder."""
    return {
        **os.environ,
        "XDG_CONFIG_HOME": str(tmp_path_factory.mktemp("config")),
        "PATH": os.pathsep.join((str(install(tmp_path_factory.mktemp("bin"))), os.environ["PATH"])),
    }


@pytest.mark.parametrize(
    ("name", "example"), EXAMPLES, ids=[f"{name}: {example}" for name, example in EXAMPLES]
)
def test_examples_run(name: str, example: str, environment: dict[str, str], tmp_path: Path) -> None:
    assert called(example).startswith(name.split(" ")[0])
    command = f"{example} {cuts(called(example), example)}"
    if has_another_run(command):
        pytest.skip("a document, another test or another example runs this command")
    project = shutil.copytree(PROJECT, tmp_path / "project")
    for name_of_file, file in FILES.items():
        shutil.copy(file, project / name_of_file)
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
