"""The command doctor."""

from __future__ import annotations

import typer

from pidcomm import run as running
from pidcomm import sdk
from pidcomm.cli.app import app


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def doctor(arguments: typer.Context) -> None:
    """Check the library on this machine, item by item, in about ten minutes (--quick: ten seconds).

    This is pidcomm-doctor built for the emulated machine; docs/hardware.md says how to build it for DIMMs. It takes
    --quick, --minutes M, --ranks N, --seed N and --json. The exit code is 0 if nothing failed.

    Examples:  pidcomm doctor --quick   |   pidcomm doctor --ranks 8 --minutes 3 --json
    """
    command = [str(sdk.library_folder() / "pidcomm-doctor"), *arguments.args]
    code, _ = running.run_program(command)
    raise typer.Exit(code)
