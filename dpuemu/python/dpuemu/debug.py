"""Run host programs in GDB, with commands for PEs and tasklets (`in_gdb`)."""

from __future__ import annotations

import argparse
import os
import shutil
import signal
from collections.abc import Sequence

from dpuemu import run
from dpuemu.arguments import PE, PE_HELP, file_name, number, one_pe, pe_name
from dpuemu.errors import Error
from dpuemu.in_gdb.layout import TASKLETS

MOST_PATIENCE = 1000000  # the largest value of DPUEMU_PATIENCE
ELF, ET_CORE, TYPE_OFFSET = b"\x7fELF", 4, 16


def add_options(command: argparse.ArgumentParser) -> None:
    """Add the options of `dpuemu debug`."""
    command.add_argument(
        "--break",
        dest="places",
        action="append",
        default=[],
        metavar="PLACE",
        help="stop at FILE:LINE or at a function; repeatable",
    )
    command.add_argument(
        "--pe",
        type=one_pe,
        metavar=PE,
        help=f"break only in this PE; {PE_HELP}",
    )
    command.add_argument(
        "--tasklet",
        type=number(0, TASKLETS - 1),
        metavar="N",
        help="break only in this tasklet",
    )
    command.add_argument(
        "--command",
        dest="commands",
        action="append",
        default=[],
        metavar="TEXT",
        help="run this command of GDB at the first stop, and end after the last one; repeatable",
    )
    command.add_argument(
        "--core",
        type=file_name,
        metavar="FILE",
        help="write a core file at the first fault or break",
    )
    command.add_argument(
        "--open",
        dest="core_to_open",
        type=file_name,
        metavar="FILE",
        help="open this core file in place of a program",
    )


def check_options(options: argparse.Namespace) -> None:
    """Refuse options that exclude each other."""
    if options.core_to_open and (options.words or options.places or options.core):
        options.usage_error("--open takes no PROGRAM, --break or --core")
    if options.tasklet is not None and not options.places:
        options.usage_error("--tasklet needs --break")


def run_gdb(options: argparse.Namespace, words: Sequence[str]) -> int:
    """Run GDB on a program and its arguments, or on a core file; return the code of GDB."""
    code, _, _ = run.run_program(
        gdb_command(options, words),
        threads=None if os.environ.get("DPUEMU_THREADS") else 1,  # so that stops are repeatable
        strict=options.strict,
        patience=options.patience or MOST_PATIENCE,
        variables=variables(options),
    )
    return run.exit_code(code)


def gdb_command(options: argparse.Namespace, words: Sequence[str]) -> list[str]:
    """Return the command that runs GDB: on a program and its arguments, or on a core file.

    Raises Error if the machine has no GDB, or if a file cannot be used; OSError if it cannot be
    read.
    """
    if shutil.which("gdb") is None:
        raise Error("`dpuemu debug` needs the program gdb; install it (on Debian: gdb)")
    check_files(options, words)
    limits = {"pe": options.pe, "tasklet": options.tasklet}
    terms = [f"$_{name}() == {value}" for name, value in limits.items() if value is not None]
    condition = f" if {' && '.join(terms)}" if terms else ""
    commands = [
        "set debuginfod enabled off",
        "set breakpoint pending on",
        # The signals of direct accesses to MRAM, and of tasklets that compute for long.
        f"handle SIGSEGV SIG{signal.SIGRTMAX - 1} nostop noprint pass",
        f"python import sys; sys.path.append({os.path.dirname(__file__)!r})",
        "python import in_gdb.commands",
        *(f"break {place}{condition}" for place in options.places),
        "run"
        if words
        else f"python in_gdb.commands.open_core({os.path.abspath(options.core_to_open)!r})",
        *options.commands,
    ]
    result = ["gdb", "-q", *(["-batch"] if options.commands else [])]
    for command in commands:
        result += ["-ex", command]
    return [*result, "--args", *words] if words else result


def check_files(options: argparse.Namespace, words: Sequence[str]) -> None:
    """Refuse files that GDB cannot use."""
    if options.core_to_open:
        with open(options.core_to_open, "rb") as file:
            head = file.read(TYPE_OFFSET + 2)
        if head[:4] != ELF or int.from_bytes(head[TYPE_OFFSET:], "little") != ET_CORE:
            raise Error(f"{options.core_to_open} is not a core file")
    if options.core:
        folder = os.path.dirname(os.path.abspath(options.core))
        if not os.access(folder, os.W_OK | os.X_OK) or os.path.isdir(options.core):
            raise Error(f"cannot write {options.core}: it must be a file in a writable folder")
    if words:
        program = words[0] if os.path.isfile(words[0]) else shutil.which(words[0]) or words[0]
        with open(program, "rb") as file:
            head = file.read(len(ELF))
        if head != ELF:
            raise Error(
                f"{words[0]} is not an ELF program, which gdb needs; for a script, begin with its"
                " interpreter, as in `python3 script.py`"
            )


def variables(options: argparse.Namespace) -> dict[str, str]:
    """Return the environment variables for the emulator and for `in_gdb`."""
    wanted = {
        "DPUEMU_DEBUG_PE": None if options.pe is None else pe_name(options.pe),
        "DPUEMU_DEBUG_CORE": options.core and os.path.abspath(options.core),
    }
    return {name: value for name, value in wanted.items() if value is not None}
