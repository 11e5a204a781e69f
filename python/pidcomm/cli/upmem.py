"""The commands for programs of the UPMEM SDK: upmem-env, run."""

from __future__ import annotations

import os
import shlex
import sys
from typing import Annotated

import typer

from pidcomm import _core, sdk
from pidcomm import run as running
from pidcomm.cli.app import command, fail, json_option
from pidcomm.results import Results

ArtifactOption = Annotated[
    bool, typer.Option("--artifact", help="Programs of the published artifact find <pidcomm.h>.")
]


@command(
    'eval "$(pidcomm upmem-env)" && make',
    'eval "$(pidcomm upmem-env --artifact)" && make',
    "pidcomm upmem-env --json -",
    name="upmem-env",
)
def upmem_env(
    strict: Annotated[bool, typer.Option("--strict", help="What a PE's hardware masks silently is a fault.")] = False,
    artifact: ArtifactOption = False,
    json_target: Annotated[str | None, json_option("the variables, as one JSON object,")] = None,
) -> None:
    """Print shell commands that put the stand-in UPMEM tools in PATH.

    Builds then find the tools, and programs the emulator.

    With --artifact, dpu-pkg-config also tells where <pidcomm.h> of the published PID-Comm artifact and this library
    are: its programs build and run unmodified.
    """
    with Results(json_target) as results:
        variables = sdk.environment(strict=strict, artifact=artifact)
        for name, value in variables.items():
            rest = '"${PATH:+:$PATH}"' if name == "PATH" else ""
            results.text(f"export {name}={shlex.quote(value)}{rest}")
        results.json(variables)


@command(
    "pidcomm run -- ./host -n 64",
    "pidcomm run --ranks 2 --report -- make test",
    "pidcomm run --json launches.jsonl -- ./host -n 64",
    context_settings={"allow_interspersed_args": False, "ignore_unknown_options": False},
)
def run(
    words: Annotated[list[str], typer.Argument(metavar="PROGRAM [ARGS]...", help="What to run, with its arguments.")],
    ranks: Annotated[
        int | None, typer.Option("--ranks", min=1, max=_core.MAX_RANKS, help="Ranks of the emulated machine.")
    ] = None,
    threads: Annotated[int | None, typer.Option("--threads", min=1, help="Host threads that run PEs.")] = None,
    strict: Annotated[bool, typer.Option("--strict", help="What a PE's hardware masks silently is a fault.")] = False,
    has_report: Annotated[bool, typer.Option("--report", help="End with a table of the launches of PEs.")] = False,
    artifact: ArtifactOption = False,
    json_target: Annotated[str | None, json_option("a JSON line per launch")] = None,
) -> None:
    """Run a program for the UPMEM SDK, or its build, without DIMMs.

    It runs on the emulated machine, finds the stand-in tools in PATH, and the emulator's library. What no option sets
    is left to the environment. The exit code is the program's, 128 + n if signal n ended it, 127 if there is no such
    program.

    The report has a line per launch, and for asynchronous launches one per rank. exact: counted; odd DMA is what the
    hardware masks or wraps. modelled: of the DPU, PE us for the slowest PE. measured: on this machine.

    With --json - the standard output of the program goes to standard error.
    """
    with Results(json_target) as results:
        try:
            code, launches = running.run_program(
                words,
                ranks=ranks,
                threads=threads,
                strict=strict,
                artifact=artifact,
                wants_report=has_report or results.has_json,
                stdout=None if results.has_text else sys.stderr,
            )
        except OSError as error:
            fail(f"cannot run {words[0]}: {os.strerror(error.errno or 0)}")
            is_missing = isinstance(error, FileNotFoundError)
            raise typer.Exit(running.NOT_FOUND if is_missing else running.NOT_EXECUTABLE) from None
        results.json_lines(running.launch_fields(launch) for launch in launches)
        if has_report:
            results.text(running.launch_table(launches) if launches else "no PE program was launched")
    raise typer.Exit(code)
