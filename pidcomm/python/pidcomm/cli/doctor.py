"""The command doctor."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from dpuemu.tools import temporary_folder
from pidcomm.bench import platform
from pidcomm.cli.app import ExitCode, command, fail
from pidcomm.cli.options import json_option
from pidcomm.installation import library_folder


@command("pidcomm doctor --quick", "pidcomm doctor --ranks 8 --minutes 3 --json doctor.jsonl")
def doctor(
    quick: Annotated[bool, typer.Option("--quick", help="Run for about ten seconds only.")] = False,
    minutes: Annotated[
        float | None,
        typer.Option(
            "--minutes",
            min=0,
            help=(
                "Time limit in minutes (default: 10). Random calls fill the time that the checks"
                " leave."
            ),
        ),
    ] = None,
    ranks: Annotated[
        int | None,
        typer.Option(
            "--ranks",
            min=1,
            help="Number of ranks to allocate (default: 4; on DIMMs, all free ranks).",
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option("--seed", min=0, help="Seed of payloads and random calls (default: 1)."),
    ] = None,
    json_target: Annotated[
        str | None,
        json_option("JSON lines (one for the machine, one per check, one for the totals)"),
    ] = None,
) -> None:
    """Check the library on this machine, and report each check.

    The command takes about ten minutes, or ten seconds with --quick. The command runs the program
    pidcomm-doctor. docs/hardware.md lists the checks on DIMMs.
    """
    settings = {"--minutes": minutes, "--ranks": ranks, "--seed": seed, "--json": json_target}
    words = [str(library_folder() / "pidcomm-doctor"), *(["--quick"] if quick else [])]
    words += [
        word for name, value in settings.items() if value is not None for word in (name, str(value))
    ]
    with temporary_folder("pidcomm") as folder:
        # After Ctrl-C, pidcomm-doctor leaves files in this folder.
        os.environ["TMPDIR"] = str(folder)
        code = platform.run_program(words)
    if code == ExitCode.INTERRUPTED:
        fail("interrupted")
    raise typer.Exit(code)
