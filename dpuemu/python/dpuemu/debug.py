"""Run host programs in GDB, with commands for PEs and tasklets (`in_gdb`)."""

from __future__ import annotations

import argparse
import os
import shutil
import signal
from collections.abc import Sequence

from dpuemu.arguments import file_name, number, one_pe
from dpuemu.errors import Error

MOST_PATIENCE = 1000000  # the largest value of DPUEMU_PATIENCE
TASKLETS = 24


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
        metavar="N|R.C.B",
        help="break only in this PE: its number (64 R + 8 C + B), or rank, chip and bank",
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


def gdb_command(options: argparse.Namespace, words: Sequence[str]) -> list[str]:
    """Return the command that runs GDB: on a program and its arguments, or on a core file.

    Raises Error if the machine has no GDB.
    """
    if shutil.which("gdb") is None:
        raise Error("`dpuemu debug` needs the program gdb; install it (on Debian: gdb)")
    condition = "" if options.tasklet is None else f" if $_tasklet() == {options.tasklet}"
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


def variables(options: argparse.Namespace) -> dict[str, str]:
    """Return the environment variables for the emulator and for `in_gdb`."""
    wanted = {
        "DPUEMU_DEBUG_PE": options.pe,
        "DPUEMU_DEBUG_CORE": options.core and os.path.abspath(options.core),
    }
    return {name: value for name, value in wanted.items() if value is not None}
