"""Build and run public programs for the UPMEM SDK on the emulator, and compare with programs.toml.

    python dpuemu/tests/run_programs.py SOURCES [NAME...]

SOURCES has a folder OWNER/REPOSITORY for each repository, checked out at the commit that the list
names. Repositories that SOURCES lacks are skipped: the command fetches nothing. NAME: a repository,
or a part of its name.

Each program is built and run in a temporary copy, without a shell and without changes. A line per
program says how far it came: `nothing` (a build failed), `builds`, `runs` or `right`. The exit code
is 1 if a program did not come as far as the list says. Run only programs that you trust.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpuemu import tools
from dpuemu.run import program_environment

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

LIST = Path(__file__).with_name("programs.toml")
REACHED = ("nothing", "builds", "runs", "right")


@dataclass(frozen=True)
class Program:
    """A program of a repository.

    folder: where its commands run. build, run, check: commands, split as a shell would split them.
    prints: a regular expression that the output of `run` and `check` must contain. refuted_by: one
    that it must not contain. judge: the check that decides whether results are right. reaches: how
    far the program comes, one of REACHED. why: the cause if it does not reach `right`, and whose
    error this is.
    """

    repository: str
    commit: str
    folder: str = "."
    build: tuple[str, ...] = ()
    run: tuple[str, ...] = ()
    check: tuple[str, ...] = ()
    prints: str = ""
    refuted_by: str = ""
    judge: str = ""
    reaches: str = "nothing"
    why: str = ""
    ranks: int | None = None

    @property
    def name(self) -> str:
        """Return the repository, and the folder if it is not the top."""
        return self.repository + (f"/{self.folder}" if self.folder != "." else "")


def programs(text: str) -> list[Program]:
    """Return the programs of a list in TOML; a row with `folders` is a program in each of them.

    Raises ValueError for a wrong row.
    """
    rows = tomllib.loads(text)["program"]
    return [
        _program({**row, "folder": folder}) for row in rows for folder in row.pop("folders", ["."])
    ]


def _program(row: dict[str, Any]) -> Program:
    lists = {key: tuple(value) for key, value in row.items() if isinstance(value, list)}
    try:
        program = Program(**{**row, **lists})
    except TypeError as error:
        raise ValueError(f"{row}: {error}") from None
    if program.reaches not in REACHED:
        raise ValueError(f"{program.name}: reaches ({program.reaches}) is not in {REACHED}")
    if program.reaches != "right" and not program.why:
        raise ValueError(f"{program.name}: a program that is not right needs a reason, `why`")
    return program


def carry_out(program: Program, sources: Path, seconds: int) -> tuple[str, str]:
    """Build and run a program in a temporary copy; return how far it came, and why it stopped."""
    with tools.temporary_folder() as folder:
        copy = folder / "program"
        shutil.copytree(sources / program.repository, copy, symlinks=True)
        work = copy / program.folder
        output = ""
        reached = "nothing"
        for following, commands in (
            ("builds", program.build),
            ("runs", program.run),
            ("right", program.check),
        ):
            if not commands and following == "runs":
                return reached, "no command runs it"
            for command in commands:
                failure, text = execute(shlex.split(command), work, seconds, program.ranks)
                output += text if following != "builds" else ""
                if failure:
                    return reached, f"`{command}`: {failure}: {cause(text)}"
            if following != "right":
                reached = following
        if not program.judge:
            return reached, "not judged"
        if program.prints and not re.search(program.prints, output):
            return reached, f"the output lacks {program.prints!r}"
        if program.refuted_by and (wrong := re.search(program.refuted_by, output)):
            return reached, f"the output has {wrong[0]!r}"
        return "right", program.judge


def cause(output: str) -> str:
    """Return the first line of an output that names an error, else the last line."""
    lines = [line.strip() for line in output.splitlines() if line.strip()] or [""]
    return next((line for line in lines if re.search(r"error:|fault|Error:", line)), lines[-1])[
        :200
    ]


def execute(
    command: Sequence[str], folder: Path, seconds: int, ranks: int | None
) -> tuple[str, str]:
    """Run a command on the emulator; return why it failed, or "", and its output."""
    variables = program_environment(os.environ, ranks=ranks)
    try:
        with subprocess.Popen(
            command,
            cwd=folder,
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        ) as process:
            try:
                output, failure = process.communicate(timeout=seconds)[0], ""
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                output, failure = process.communicate()[0], f"no end after {seconds} s"
    except OSError as error:
        return f"{error.strerror}", ""
    if process.returncode and not failure:
        failure = f"exit code {process.returncode}"
    return failure, output.decode(errors="replace")


def main(words: Sequence[str]) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("sources", type=Path, metavar="SOURCES")
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--list", type=Path, default=LIST, help="another list")
    parser.add_argument("--seconds", type=int, default=300, help="most seconds of a command")
    options = parser.parse_args(words)
    is_less = False
    for program in programs(options.list.read_text()):
        if options.names and not any(name in program.name for name in options.names):
            continue
        if not program.build:
            print(f"{program.name}: no commands: {program.why}")
            continue
        if not (options.sources / program.repository / program.folder).is_dir():
            print(f"{program.name}: skipped: {options.sources} lacks it", flush=True)
            continue
        reached, why = carry_out(program, options.sources, options.seconds)
        print(f"{program.name}: {reached}{f' ({why})' if why else ''}", flush=True)
        if reached != program.reaches:
            print(f"  the list says: {program.reaches}", flush=True)
            is_less |= REACHED.index(reached) < REACHED.index(program.reaches)
    return 1 if is_less else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
