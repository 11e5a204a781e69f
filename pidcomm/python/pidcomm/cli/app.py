"""The list of commands, and the common parts of commands: examples, exit codes, progress and
errors.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from enum import IntEnum
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points, metadata
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer
from typer.core import TyperCommand, TyperGroup

import pidcomm
from pidcomm.bench.results import STDOUT, console, live_console
from pidcomm.cli.usage import sentence
from pidcomm.errors import ArgumentError, Error, FileContentError, unknown
from pidcomm.tables import COLLECTIVES, ROWS

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

__all__ = [
    "Command",
    "ExitCode",
    "add_group",
    "check_op",
    "command",
    "exit_if_wrong",
    "fail",
    "refuse",
    "working",
]

# For each title in --help, the commands under the title and the modules of these commands.
_OWN_COMMANDS = {
    "Start": {name: f"pidcomm.cli.{name}" for name in ("info", "doctor", "config")},
    "Collectives": {
        name: f"pidcomm.cli.{name}" for name in ("plan", "check", "bench", "tune", "hosts")
    },
}
ENTRY_POINTS = "pidcomm.commands"
"""The group of entry points by which other packages add commands: each names a table like
_OWN_COMMANDS.
"""
DEBUG_VARIABLE = "PIDCOMM_DEBUG"


@cache
def command_modules() -> dict[str, dict[str, str]]:
    """Return, for each title in --help, the commands under the title and their modules."""
    modules = {title: {**commands} for title, commands in _OWN_COMMANDS.items()}
    for entry_point in entry_points(group=ENTRY_POINTS):
        for title, commands in entry_point.load().items():
            known = {name for names in modules.values() for name in names}
            if repeated := sorted(known & commands.keys()):
                raise Error(f"{entry_point.value} adds commands that exist: {', '.join(repeated)}")
            modules.setdefault(title, {}).update(commands)
    return modules


_Function = TypeVar("_Function", bound=Callable[..., Any])


class ExitCode(IntEnum):
    """The exit codes of commands and their meanings. `doctor` ends with the exit code of the
    program pidcomm-doctor.
    """

    meaning: str

    def __new__(cls, code: int, meaning: str) -> ExitCode:
        """Make an integer with a meaning."""
        exit_code = int.__new__(cls, code)
        exit_code._value_ = code
        exit_code.meaning = meaning
        return exit_code

    RIGHT = 0, "everything right"
    WRONG_RESULT = 1, "a wrong result, a failed check, or an invalid input file"
    USAGE = 2, "wrong usage, or an error that the library or the system reports"
    INTERNAL = 70, "an error of pidcomm itself: please report it"
    INTERRUPTED = 130, "interrupted by Ctrl-C"
    BROKEN_PIPE = 141, "the output pipe is closed"


class _HasExamples:
    """Show the epilog of a command as examples of the command, without wrapping lines, and name the
    command in usage errors.
    """

    epilog: str | None

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the command line. A usage error names the command and the wrong word."""
        words = list(args)
        try:
            rest: list[str] = super().parse_args(ctx, args)  # type: ignore[misc]
        except _click("exceptions").UsageError as error:
            error.ctx = error.ctx or ctx
            if not _asks_for_help(error):
                error.message = sentence(error, self, words)
            raise
        return rest

    @property
    def examples(self) -> list[str]:
        """Return the examples, which are lines for a shell."""
        return (self.epilog or "").splitlines()

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write the examples without wrapping lines."""
        with formatter.section("Examples"):
            for example in self.examples:
                formatter.write(f"{'':{formatter.current_indent}}{example}\n")


class Command(_HasExamples, TyperCommand):
    """A command with examples."""

    def invoke(self, ctx: Any) -> Any:
        """Invoke the command.

        Raises ArgumentError if two options name one file, and one of them writes the file.
        """
        values = {
            _word(parameter, ctx.params[parameter.name]): ctx.params[parameter.name]
            for parameter in self.params
            if ctx.get_parameter_source(parameter.name).name == "COMMANDLINE"
        }
        ctx.meta[_GIVEN] = values
        files: dict[object, str] = {}
        for option in sorted(values, key=_OUTPUTS.__contains__):
            for path in _files(option, values[option]):
                if option in _OUTPUTS and path in files:
                    raise ArgumentError(
                        f"{files[path]} and {option} name the same file: {values[option]}"
                    )
                files[path] = option
        return super().invoke(ctx)


# The key of the options and arguments on the command line in the context of the running command.
_GIVEN = "pidcomm.given"
_OUTPUTS = ("--json", "--out", "--plot", "OUT.html", "FILE")


def _word(parameter: Any, value: object) -> str:
    """Return the name of an option as on the command line, or the name of an argument as in
    --help.
    """
    names = (
        parameter.secondary_opts if value is False and parameter.secondary_opts else parameter.opts
    )
    return str(names[0] if names[0].startswith("-") else parameter.metavar or names[0].upper())


def _files(option: str, value: object) -> Iterator[object]:
    """Yield a key for each file that the value of an option names; equal keys mean one file. Pipes
    have no key.

    A text without a dot and a slash is a name (of a machine, a collective), unless the option
    writes a file.
    """
    for item in value if isinstance(value, (list, tuple)) else [value]:
        is_name = isinstance(item, str) and option not in _OUTPUTS and not {".", "/"} & set(item)
        if not isinstance(item, (str, Path)) or is_name or str(item) == STDOUT:
            continue
        path = Path(item)
        if path.is_file():
            yield path.stat().st_dev, path.stat().st_ino
        elif not path.exists():
            yield os.path.realpath(path)


def _click(module: str) -> Any:
    """Return a module of click. New versions of Typer contain their own copy of click."""
    return import_module(f"{typer.Context.__mro__[1].__module__.rpartition('.')[0]}.{module}")


def _asks_for_help(error: Any) -> bool:
    """Whether a command without arguments shows its help. Old versions of click have no such
    exception.
    """
    return isinstance(error, getattr(_click("exceptions"), "NoArgsIsHelpError", ()))


def _given() -> dict[str, Any]:
    """Return the options and arguments on the command line of the running command, with their
    values. Empty if a program calls the function of a command.
    """
    context = _click("globals").get_current_context(silent=True)
    values: dict[str, Any] = {} if context is None else context.meta.get(_GIVEN, {})
    return values


def refuse(options: Iterable[str], why: str) -> None:
    """Raise ArgumentError if the command line gives one of the options, which the command would
    ignore.
    """
    values = _given()
    for option in options:
        if option in values:
            value = values[option]
            words = (
                option if isinstance(value, bool) else f"{option} {getattr(value, 'value', value)}"
            )
            raise ArgumentError(f"{words} does not apply: {why}")


def check_op(collectives: Iterable[str]) -> None:
    """Raise ArgumentError if --op is given, and none of the collectives has an operator."""
    names = [name for name in collectives if name in ROWS]
    if names and not any(ROWS[name].takes_op for name in names):
        refuse(["--op"], f"{', '.join(names)} has no operator; --op is for {', '.join(_WITH_OP)}")


_WITH_OP = [name for name, row in COLLECTIVES.items() if row.takes_op]


class Group(_HasExamples, TyperGroup):
    """A group of commands with examples. The group turns errors into one line and an exit code."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command that args[0] names.

        Raises ArgumentError for an unknown command, and suggests a name.
        """
        names = self.list_commands(ctx)
        if args and not args[0].startswith("-") and args[0] not in names:
            raise ArgumentError(unknown("command", args[0], names))
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Invoke the command."""
        with _exit_codes(), _interrupt_first():
            return super().invoke(ctx)


class TopGroup(Group):
    """The group of all commands. The group imports only the module of the command that runs."""

    def make_context(self, *words: Any, **how: Any) -> Any:
        """Parse the options before the command, which may print: --help and --version."""
        with _exit_codes():
            return super().make_context(*words, **how)

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names in the order of --help."""
        return [name for modules in command_modules().values() for name in modules]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command, or None for an unknown name."""
        if cmd_name not in self.commands:
            modules = {
                name: module
                for names in command_modules().values()
                for name, module in names.items()
            }
            self._load([modules[cmd_name]] if cmd_name in modules else [])
        return super().get_command(ctx, cmd_name)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands under their titles."""
        self._load(module for modules in command_modules().values() for module in modules.values())
        for title, names in command_modules().items():
            with formatter.section(title):
                formatter.write_dl(
                    [(f"{name:9}", self.commands[name].get_short_help_str(200)) for name in names]
                )

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write the examples and the exit codes."""
        super().format_epilog(ctx, formatter)
        with formatter.section("Exit codes (doctor has the exit codes of its program)"):
            formatter.write_dl([(str(code.value), code.meaning) for code in ExitCode])

    def _load(self, modules: Iterable[str]) -> None:
        for module in modules:
            import_module(module)
        group: Any = typer.main.get_group(app)
        self.commands = group.commands


@contextmanager
def _exit_codes() -> Iterator[None]:
    """Turn the exceptions of a block into one line on stderr and typer.Exit."""
    try:
        yield
    except FileContentError as error:
        fail(str(error))
        raise typer.Exit(ExitCode.WRONG_RESULT) from None
    except (Error, MemoryError) as error:
        fail(str(error) or "out of memory")
        raise typer.Exit(ExitCode.USAGE) from None
    except _click("exceptions").UsageError as error:
        if _asks_for_help(error):
            raise
        fail(f"{error.message} (see {error.ctx.command_path} --help)")
        raise typer.Exit(ExitCode.USAGE) from None
    except KeyboardInterrupt:
        fail("interrupted")
        raise typer.Exit(ExitCode.INTERRUPTED) from None
    except BrokenPipeError:
        _give_up_stdout()
        raise typer.Exit(ExitCode.BROKEN_PIPE) from None
    except OSError as error:
        _give_up_stdout()
        fail(str(error))
        raise typer.Exit(ExitCode.USAGE) from None


@contextmanager
def _interrupt_first() -> Iterator[None]:
    """Raise KeyboardInterrupt for Ctrl-C in a block, even if the end of an inner block raised
    another exception.
    """
    try:
        yield
    except typer.Exit:  # an inner group has decided the exit code
        raise
    except Exception as error:
        context: BaseException | None = error
        while context is not None and not isinstance(context, KeyboardInterrupt):
            context = context.__context__
        if context is None:
            raise
        raise context from None


def _give_up_stdout() -> None:
    """Discard buffered output of stdout, so that a flush at exit cannot fail again."""
    with suppress(OSError):  # stdout may not be a file
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


app = typer.Typer(
    name="pidcomm",
    cls=TopGroup,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    epilog=(
        "pidcomm bench --quick\n"
        "pidcomm plan alltoall --shape 32x32 --mask 10 --bytes 1MiB\n"
        "pidcomm bench all --json rows.jsonl"
    ),
)


def add_group(name: str, about: str, *examples: str) -> typer.Typer:
    """Add a group of commands. about: the text of its --help, which ends with the examples
    (shell lines).
    """
    new_group = typer.Typer(
        name=name,
        cls=Group,
        no_args_is_help=True,
        rich_markup_mode=None,
        help=about,
        epilog="\n".join(examples),
    )
    app.add_typer(new_group)
    return new_group


def command(
    *examples: str, name: str | None = None, group: typer.Typer = app
) -> Callable[[_Function], _Function]:
    """Add a function as a command of a group.

    The --help of the command ends with the examples (shell lines).
    """
    return group.command(name, cls=Command, epilog="\n".join(examples))


def _show_version(is_wanted: bool) -> None:
    if is_wanted:
        typer.echo(f"pidcomm {pidcomm.__version__}")
        raise typer.Exit(ExitCode.RIGHT)


@app.callback()
def pidcomm_options(
    _: Annotated[
        bool,
        typer.Option(
            "--version", help="Show the version and exit.", is_eager=True, callback=_show_version
        ),
    ] = False,
) -> None:
    """Collective communication between the PEs of processing-in-DIMM machines.

    Results go to standard output, progress and errors to standard error.
    """


class Work:
    """A progress line on stderr.

    The line shows a phase of the command, or the number of finished steps.
    """

    def __init__(self, progress: Progress, task: TaskID) -> None:
        self._progress = progress
        self._task = task

    def phase(self, text: str, steps: int | None = None) -> None:
        """Begin a phase of the command. steps: the number of steps in the phase, if known."""
        self._progress.reset(self._task, total=steps, description=text)

    def step(self) -> None:
        """Add 1 to the number of finished steps."""
        self._progress.advance(self._task)

    def describe(self, text: str) -> None:
        """Change the text beside the number of finished steps."""
        self._progress.update(self._task, description=text, refresh=True)


@contextmanager
def working(text: str, steps: int | None = None) -> Iterator[Work]:
    """If stderr is a terminal, show a progress line until the end of the `with` block."""
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        SpinnerColumn,
        TextColumn,
        TimeElapsedColumn,
    )

    description = TextColumn("{task.description}")
    columns = SpinnerColumn(), description, BarColumn(20), MofNCompleteColumn(), TimeElapsedColumn()
    with (
        live_console() as shown,
        Progress(*columns, console=shown, transient=True, disable=shown.quiet) as progress,
    ):
        yield Work(progress, progress.add_task(text, total=steps))


def fail(sentence: str) -> None:
    """Write an error to stderr."""
    stderr = console(stderr=True)
    stderr.print("pidcomm: ", style="bold red", end="")
    stderr.print(sentence, markup=False, soft_wrap=True)


def exit_if_wrong(wrong: int) -> None:
    """Exit with the code of a wrong result if any element is wrong. wrong: the number of wrong
    elements.
    """
    if wrong:
        raise typer.Exit(ExitCode.WRONG_RESULT)


def _issues_address() -> str:
    """Return the address for reports, as the metadata of the package state it."""
    addresses = metadata("pidcomm").get_all("Project-URL") or []
    named: dict[str, str] = dict(address.split(", ", 1) for address in addresses)
    return named.get("Issues", "the address of the project")


def main() -> None:
    """Run the command line.

    After an unexpected exception, write two lines and exit with ExitCode.INTERNAL.
    """
    if sys.stdout is None:  # closed, as by >&-
        sys.exit(ExitCode.BROKEN_PIPE)
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # for names of files that are not text
    try:
        app(prog_name="pidcomm")
    except KeyboardInterrupt:
        sys.exit(ExitCode.INTERRUPTED)
    except Exception as error:
        if os.environ.get(DEBUG_VARIABLE):
            console(stderr=True).print_exception()
        fail(f"internal error: {type(error).__name__}: {error}")
        fail(
            f"please report this at {_issues_address()}, with the command, the output of"
            f" `pidcomm info`, and the output of the command with {DEBUG_VARIABLE}=1"
        )
        sys.exit(ExitCode.INTERNAL)
