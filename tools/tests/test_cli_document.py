"""The documents of the command line list all exit codes, and the JSON fields that their own
commands write.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
from command_line import SECTIONS, TEXT, commands, fields_of, install, objects
from documents import ROOT

from pidcomm.cli.app import ExitCode

# Their sections have no list of fields, or the command needs valgrind and a compiler for MPI, or
# rows that are not in this repository. test_accuracy.py checks the fields of `model calibrate`.
NO_FIELDS = (
    *("draw", "plot", "report", "hosts run", "parcels bench", "model fit-dimms"),
    "model calibrate",
)
# Plans of other shapes, techniques and collectives, which have fields that the document's plan
# lacks.
MORE_PLANS = [
    "alltoall --technique pr",
    "allreduce --shape 6x4",
    "reduce_scatter --technique pr",
    "allreduce --technique tree",
    "allreduce --technique conventional",
    "scan",
    "shift",
]


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
