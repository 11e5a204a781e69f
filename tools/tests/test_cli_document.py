"""The documents of the command line list all exit codes, and the JSON fields that their own
commands write.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
from command_line import commands, install, objects

from pidcomm.cli.app import ExitCode

ROOT = Path(__file__).parents[2]
TEXT = "".join(
    (ROOT / name / "docs" / "command-line.md").read_text() for name in ("pidcomm", "studies")
)
SECTIONS = dict(re.findall(r"^## ([a-z -]+)\n(.*?)(?=^## |\Z)", TEXT, re.MULTILINE | re.DOTALL))
# Their sections have no list of fields, or the command needs valgrind and a compiler for MPI, or
# rows that are not in this repository.
NO_FIELDS = ("draw", "plot", "report", "hosts run", "parcels bench", "model fit-dimms")
# Plans of other shapes, techniques and collectives, which have fields that the document's plan
# lacks.
MORE_PLANS = [
    "alltoall --technique pr",
    "allreduce --shape 6x4",
    "reduce_scatter --technique pr",
    "allreduce --technique tree",
    "allreduce --technique conventional",
]


def items(text: str) -> list[str]:
    """Return the items of the lists of a text, each on one line."""
    return re.findall(r"^\* (.*)$", re.sub(r"\n  +", " ", text), re.MULTILINE)


def names(text: str) -> set[str]:
    """Return the names in a text that are written as code."""
    return set(re.findall(r"`([^`]+)`", text))


def shared_fields() -> dict[str, set[str]]:
    """Return the groups of fields that several commands write, by name."""
    section = re.findall(r"^## Shared fields\n(.*?)^## ", TEXT, re.MULTILINE | re.DOTALL)[0]
    return {
        name.strip("*"): names(fields)
        for name, _, fields in (item.partition(": ") for item in items(section))
    }


def fields_of(section: str) -> set[str]:
    """Return the names before the colons in the lists of a section, and the names of the groups
    in italics.
    """
    heads = [item.partition(": ")[0] for item in items(SECTIONS[section])]
    groups = [shared_fields()[name] for head in heads for name in re.findall(r"\*(\w+)\*", head)]
    return names(" ".join(heads)).union(*groups)


def written(section: str, folder: Path) -> set[str]:
    """Run the commands of a section; return the fields that they wrote."""
    script = "\n".join(re.findall(r"```sh\n(.*?)```", SECTIONS[section], re.DOTALL))
    if section == "plan":
        script += "".join(
            f"pidcomm plan {words} --bytes 12KiB --json {i}.json\n"
            for i, words in enumerate(MORE_PLANS)
        )
    path = os.pathsep.join((str(install(folder / "bin")), os.environ["PATH"]))
    variables = {**os.environ, "PATH": path}
    (folder / "examples").symlink_to(ROOT / "dpuemu" / "examples")
    subprocess.run(
        ["sh", "-ec", script],
        cwd=folder,
        env=variables,
        check=True,
        capture_output=True,
        timeout=600,
    )
    return {
        name
        for file in folder.glob("*.json*")
        for record in objects(file.read_text())
        for name in record
    }


def test_every_command_has_its_section() -> None:
    every = [
        name
        for name in commands()
        if name not in ("", "model", "hosts", "parcels") and not name.startswith("app ")
    ]
    assert list(SECTIONS) == every


def test_the_exit_codes_match_the_document() -> None:
    rows = re.findall(r"^\| (\d+) \| (.*) \|$", TEXT, re.MULTILINE)
    assert rows == [(str(code.value), code.meaning) for code in ExitCode]


@pytest.mark.parametrize("section", [name for name in SECTIONS if name not in NO_FIELDS])
def test_the_fields_match_the_output_of_the_commands(section: str, tmp_path: Path) -> None:
    assert written(section, tmp_path) == fields_of(section)
