"""The commands for programs of the UPMEM SDK: upmem-env, run."""

from __future__ import annotations

import os
import shlex
from typing import Annotated

import typer

from pidcomm import _core, sdk
from pidcomm import run as running
from pidcomm.cli.app import app, console

WIDE = 300  # more than a table of launches needs

ArtifactOption = Annotated[
    bool, typer.Option("--artifact", help="Programs of the published artifact find <pidcomm.h>.")
]


@app.command("upmem-env")
def upmem_env(
    strict: Annotated[bool, typer.Option("--strict", help="What a PE's hardware masks silently is a fault.")] = False,
    artifact: ArtifactOption = False,
) -> None:
    """Print shell commands after which builds find the stand-in UPMEM tools, and programs the emulator.

    With --artifact, dpu-pkg-config also tells where <pidcomm.h> of the published PID-Comm artifact and this library
    are: its programs build and run unmodified.

    Examples:  eval "$(pidcomm upmem-env)" && make   |   eval "$(pidcomm upmem-env --artifact)" && make
    """
    for name, value in sdk.environment(strict=strict, artifact=artifact).items():
        rest = '"${PATH:+:$PATH}"' if name == "PATH" else ""
        typer.echo(f"export {name}={shlex.quote(value)}{rest}")


@app.command(context_settings={"allow_interspersed_args": False, "ignore_unknown_options": False})
def run(
    command: Annotated[list[str], typer.Argument(metavar="PROGRAM [ARGS]...", help="What to run, with its arguments.")],
    ranks: Annotated[
        int | None, typer.Option("--ranks", min=1, max=_core.MAX_RANKS, help="Ranks of the emulated machine.")
    ] = None,
    threads: Annotated[int | None, typer.Option("--threads", min=1, help="Host threads that run PEs.")] = None,
    strict: Annotated[bool, typer.Option("--strict", help="What a PE's hardware masks silently is a fault.")] = False,
    has_report: Annotated[bool, typer.Option("--report", help="End with a table of the launches of PEs.")] = False,
    is_json: Annotated[
        bool, typer.Option("--json", help="End with the launches as JSON lines instead of the table.")
    ] = False,
    artifact: ArtifactOption = False,
) -> None:
    """Run a program that uses the UPMEM SDK, or a build or test of it, on the emulated machine.

    It finds the stand-in tools in PATH and the emulator's library. What no option sets is left to the environment. The
    exit code is the program's, 128 + n if signal n ended it, 127 if there is no such program.

    The report has a line per launch, and for asynchronous launches one per rank. exact: counted; odd DMA is what the
    hardware masks or wraps. modelled: of the DPU, PE us for the slowest PE. measured: on this machine.

    Examples:  pidcomm run -- ./host -n 64   |   pidcomm run --ranks 2 --report -- make test
    """
    try:
        code, launches = running.run_program(
            command,
            ranks=ranks,
            threads=threads,
            strict=strict,
            artifact=artifact,
            wants_report=has_report or is_json,
        )
    except OSError as error:
        typer.echo(f"pidcomm: cannot run {command[0]}: {os.strerror(error.errno or 0)}", err=True)
        is_missing = isinstance(error, FileNotFoundError)
        raise typer.Exit(running.NOT_FOUND if is_missing else running.NOT_EXECUTABLE) from None
    if is_json:
        for launch in launches:
            typer.echo(running.launch_line(launch))
    elif has_report and not launches:
        typer.echo("no PE program was launched")
    elif has_report:
        wide = console()
        if not wide.is_terminal:
            wide.width = WIDE
        wide.print(running.launch_table(launches))
    raise typer.Exit(code)
