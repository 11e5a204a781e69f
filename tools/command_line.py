"""The command line as a user runs it: `pidcomm` in PATH, in a new process."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Any

from typer.main import get_command

from pidcomm.cli import app

# The default handling of SIGINT, even if the tests run in the background of a shell that ignores
# it.
PROGRAM = (
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); from pidcomm.cli"
    " import main; main()"
)
PIDCOMM = [sys.executable, "-c", PROGRAM]


def commands() -> dict[str, Any]:
    """Return every command and group by name: the whole command line as "", a command of a group
    as ``app bfs``.
    """
    group: Any = get_command(app)
    found = {"": group}
    for name in group.list_commands(None):
        found[name] = group.get_command(None, name)
        found |= {
            f"{name} {words}": it for words, it in getattr(found[name], "commands", {}).items()
        }
    return found


def install(folder: Path) -> Path:
    """Write `pidcomm`, `dpuemu` and `python` of this Python into a folder, and return the
    folder.
    """
    folder.mkdir(parents=True, exist_ok=True)
    dpuemu = [sys.executable, "-m", "dpuemu"]
    for name, words in {"pidcomm": PIDCOMM, "dpuemu": dpuemu, "python": [sys.executable]}.items():
        script = folder / name
        script.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n')
        script.chmod(0o755)
    return folder


def objects(text: str) -> list[dict[str, Any]]:
    """Return the JSON objects of a text: one, or one per line."""
    found = (
        [json.loads(text)]
        if text.startswith("{\n")
        else [json.loads(line) for line in text.splitlines()]
    )
    assert all(isinstance(it, dict) for it in found)
    return found
