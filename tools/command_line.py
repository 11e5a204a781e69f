"""The command line as a user runs it: `pidcomm` in PATH, in a new process."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

from documents import ROOT
from typer.main import get_command

from pidcomm.cli import app
from pidcomm.installation import module_command

# The default handling of SIGINT, even if the tests run in the background of a shell that ignores
# it. As the installed command, it imports nothing from the current folder.
PROGRAM = (
    "import sys; sys.path = [folder for folder in sys.path if folder]; import signal;"
    " signal.signal(signal.SIGINT, signal.default_int_handler); from pidcomm.cli import main;"
    " main()"
)
PIDCOMM = [sys.executable, "-c", PROGRAM]

# The keys of a row of `pidcomm bench`, and of the run that made it.
KEYS = [
    *("collective", "technique", "dtype", "op", "shape", "mask", "bytes_per_pe"),
    *(
        "t_min_us",
        "t_p25_us",
        "t_p50_us",
        "t_p75_us",
        "t_p99_us",
        "outside_us",
        "from_us",
        "work_us",
        "to_us",
        "plan_us",
        "pe_us",
    ),
    *("launches", "mram_bytes", "host_bytes", "pe_bytes"),
    *("algbw_gb_s", "bus_gb_s", "limit_gb_s", "limit_pct", "limit_copy_order", "speed_up"),
    *("wrong", "source", "coherence", "threads", "isa", "carried_out"),
]
RUN_KEYS = ["version", "commit", "machine", "tuning", "hugepages", "sdk_flush"]

# The documents of the command line, and their sections by command.
TEXT = "".join(
    (ROOT / name / "docs" / "command-line.md").read_text() for name in ("pidcomm", "studies")
)
SECTIONS = dict(re.findall(r"^## ([a-z -]+)\n(.*?)(?=^## |\Z)", TEXT, re.MULTILINE | re.DOTALL))

# Options of a small problem.
SMALL_SHAPE = ["--shape", "8x8"]
QUICK = [*SMALL_SHAPE, "--bytes", "8KiB"]


def variables(**wanted: str) -> dict[str, str]:
    """Return the environment without variables about colour, and with `wanted`."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if name not in ("NO_COLOR", "FORCE_COLOR", "TERM")
    }
    return {**kept, "TERM": "xterm-256color", "COLUMNS": "160", **wanted}


def run(*arguments: str) -> Any:
    """Run the command line in a new process."""
    return subprocess.run([*PIDCOMM, *arguments], capture_output=True, text=True, check=False)


def commands() -> dict[str, Any]:
    """Return every command and group by name: the whole command line as "", a command of a group
    as ``app bfs``.
    """
    group: Any = get_command(app)
    by_name = {"": group}
    for name in group.list_commands(None):
        by_name[name] = group.get_command(None, name)
        by_name |= {
            f"{name} {words}": command
            for words, command in getattr(by_name[name], "commands", {}).items()
        }
    return by_name


def install(folder: Path) -> Path:
    """Write `pidcomm`, `dpuemu` and `python` of this Python into a folder, and return the
    folder.
    """
    folder.mkdir(parents=True, exist_ok=True)
    dpuemu = module_command("dpuemu")
    for name, words in {"pidcomm": PIDCOMM, "dpuemu": dpuemu, "python": [sys.executable]}.items():
        script = folder / name
        script.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n')
        script.chmod(0o755)
    return folder


def objects(text: str) -> list[dict[str, Any]]:
    """Return the JSON objects of a text: one, or one per line."""
    parsed = (
        [json.loads(text)]
        if text.startswith("{\n")
        else [json.loads(line) for line in text.splitlines()]
    )
    assert all(isinstance(value, dict) for value in parsed)
    return parsed


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
