"""Completion in shells."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from command_line import PIDCOMM, install
from typer.testing import CliRunner

import pidcomm
from pidcomm.cli import app


def offered(shell: str, line: str, **variables: str) -> list[str]:
    """Return the completions of the last word of a line: values in bash, the shell's own format
    in other shells.
    """
    words = line.split(" ")
    completion = {
        "bash": {"COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)},
        "zsh": {"_TYPER_COMPLETE_ARGS": line},
        "fish": {"_TYPER_COMPLETE_ARGS": line, "_TYPER_COMPLETE_FISH_ACTION": "get-args"},
    }[shell]
    environment = {
        **os.environ,
        **completion,
        **variables,
        "_PIDCOMM_COMPLETE": f"complete_{shell}",
    }
    result = subprocess.run(
        PIDCOMM, env=environment, capture_output=True, text=True, check=False, timeout=600
    )
    assert result.stderr == ""
    return [value for value in result.stdout.splitlines() if value]


TYPES, TECHNIQUES, COLLECTIVES = (
    [*table] for table in (pidcomm.TYPES, pidcomm.TECHNIQUES, pidcomm.COLLECTIVES)
)
ISAS = [name for name, isa in pidcomm.ISAS.items() if isa.is_available]


@pytest.mark.parametrize(
    ("line", "values"),
    [
        ("pidcomm pl", ["plan", "plot"]),
        ("pidcomm plan ", [*COLLECTIVES, "scan", "exscan", "shift"]),
        ("pidcomm plan all", ["alltoall", "allreduce", "allgather"]),
        ("pidcomm plan alltoall --technique pr", ["pr", "pr+im", "pr+im+cm"]),
        ("pidcomm plan --draw alltoall --technique a", ["auto"]),
        ("pidcomm plan alltoall --dtype uint", ["uint8", "uint16", "uint32", "uint64"]),
        ("pidcomm plan reduce --op ", [*pidcomm.OPS]),
        ("pidcomm plan reduce --mask ", ["10", "01", "11"]),
        ("pidcomm plan reduce --shape 8x8x4 --mask 1", ["100", "110", "101", "111"]),
        ("pidcomm plan reduce --shape 8 --mask ", ["1"]),
        ("pidcomm plan reduce --shape 8y --mask ", []),
        ("pidcomm bench reduce", ["reduce_scatter", "reduce"]),
        ("pidcomm bench alltoall redu", ["reduce_scatter", "reduce"]),
        ("pidcomm bench --technique ", ["all", *TECHNIQUES, "auto"]),
        (
            "pidcomm bench --technique tile,",
            [f"tile,{name}" for name in [*TECHNIQUES, "auto"] if name != "tile"],
        ),
        ("pidcomm bench --dtype int8,fl", ["int8,float32", "int8,float64", "int8,float16"]),
        ("pidcomm bench --isa ", ["all", *ISAS]),
        ("pidcomm bench --coherence ", [*pidcomm.COHERENCES]),
        ("pidcomm bench --shape 8x8,64 --mask ", ["all", "10", "01", "11", "1"]),
        ("pidcomm bench --shape 8x8,64 --mask 10,", ["10,01", "10,11", "10,1"]),
        ("pidcomm bench --hugepages o", ["on", "off"]),
        ("pidcomm bench --json ", []),
        ("pidcomm model predict --technique tile,a", ["tile,auto"]),
        ("pidcomm model predict --machine isca", ["isca24"]),
        ("pidcomm model machines hbm", ["hbm-pim", "hbm-pim+dsa"]),
    ],
)
def test_values_are_offered(line: str, values: list[str]) -> None:
    words = {"COMP_WORDS": line, "COMP_CWORD": str(line.count(" "))}
    variables = {**words, "_PIDCOMM_COMPLETE": "complete_bash"}
    result = CliRunner().invoke(app, [], env=variables, prog_name="pidcomm")
    assert [value for value in result.stdout.splitlines() if value] == values
    assert result.stderr == ""


def test_every_shell_is_offered_the_same() -> None:
    line, values = "pidcomm plan alltoall --technique pr", ["pr", "pr+im", "pr+im+cm"]
    assert offered("bash", line) == values
    assert [text.split("\t")[0] for text in offered("fish", line)] == values
    zsh = "\n".join(offered("zsh", line))
    assert all(f'"{value}"' in zsh for value in values)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_completion_is_installed_for_a_shell(shell: str, tmp_path: Path) -> None:
    """The script that is shown is the script that is installed, and the shell's own file loads
    it.
    """
    environment = {
        **os.environ,
        "HOME": str(tmp_path),
        "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1",
    }

    def run(option: str) -> str:
        command = ["pidcomm", option, shell]
        path = os.pathsep.join((str(install(tmp_path / "bin")), os.environ["PATH"]))
        variables = {**environment, "PATH": path}
        return subprocess.run(
            command, env=variables, capture_output=True, text=True, check=True, timeout=600
        ).stdout

    shown = run("--show-completion").strip()
    assert f"_PIDCOMM_COMPLETE=complete_{shell}" in shown
    run("--install-completion")
    scripts = [
        file.read_text()
        for file in tmp_path.rglob("*")
        if file.is_file() and file.parent.name != "bin"
    ]
    assert any(shown in script for script in scripts)


def test_bash_completes_with_the_script(tmp_path: Path) -> None:
    path = os.pathsep.join((str(install(tmp_path)), os.environ["PATH"]))
    script = """
    eval "$(_PIDCOMM_COMPLETE=source_bash pidcomm)"
    COMP_WORDS=(pidcomm bench --technique tile,con) COMP_CWORD=3
    _pidcomm_completion pidcomm
    echo "${COMPREPLY[@]}"
    """
    command = ["bash", "--norc", "-c", script]
    result = subprocess.run(
        command,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=True,
        timeout=600,
    )
    assert result.stdout == "tile,conventional\n"
