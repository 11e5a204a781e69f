"""What the commands share: the application, its errors and exit codes, options, the console."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from typer.core import TyperGroup

from pidcomm.errors import Error

WRONG_RESULT, USAGE_ERROR = 1, 2
MIN_WIDTH = 110


class ErrorGroup(TyperGroup):
    """Turn the library's errors into one line and an exit code."""

    def invoke(self, ctx: Any) -> Any:
        """Invoke the command."""
        try:
            return super().invoke(ctx)
        except Error as error:
            typer.echo(f"pidcomm: {error}", err=True)
            raise typer.Exit(USAGE_ERROR) from None


app = typer.Typer(
    cls=ErrorGroup,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Collective communication between the PEs of processing-in-DIMM machines.\n\n"
    "Exit codes: 0 everything right, 1 a wrong result, 2 a usage error or an error of the library.",
)


ShapeOption = Annotated[str, typer.Option("--shape", help="Axis lengths, x first.")]
MaskOption = Annotated[str, typer.Option("--mask", help="Axis mask: one 0 or 1 per axis.")]
BytesOption = Annotated[str, typer.Option("--bytes", help="Bytes per PE: 4096, 64KiB, 1MiB, 1e6.")]
DtypeOption = Annotated[str, typer.Option("--dtype", help="Element type.")]
OpOption = Annotated[str, typer.Option("--op", help="Operator of reductions.")]
ThreadsOption = Annotated[int, typer.Option("--threads", help="Host threads, 0 for all CPUs.")]


def console(*, stderr: bool = False) -> Console:
    """Return a console; where it is no terminal, wide enough for tables."""
    made = Console(stderr=stderr, highlight=False)
    if not made.is_terminal:
        made.width = max(made.width, MIN_WIDTH)
    return made


def progress_bar() -> Progress:
    """Return a progress bar on stderr, shown on terminals only."""
    bar_console = console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, console=bar_console, transient=True, disable=not bar_console.is_terminal)


def exit_if_wrong(wrong: int) -> None:
    """End with the exit code of a wrong result, if there is one."""
    if wrong:
        raise typer.Exit(WRONG_RESULT)
