"""The command info."""

from __future__ import annotations

import typer

from pidcomm import info as information
from pidcomm.cli.app import app


@app.command()
def info() -> None:
    """Tell version, instruction sets, threads, the emulated machine, and all names.

    Example:  pidcomm info
    """
    for name, value in information.report():
        typer.echo(f"{name + ':':18} {value}")
