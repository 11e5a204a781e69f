"""Print machine code, the environment of the stand-in tools, and facts about the machine."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from typing import Any, BinaryIO

import dpuemu
from dpuemu import _dpuemu, tools

STDOUT = "-"


def print_disassembly(options: argparse.Namespace) -> int:
    """Print the machine code of a program."""
    file, symbol = os.fsencode(options.file), os.fsencode(options.symbol)
    print(_dpuemu.disassemble(file, symbol), end="")
    return 0


def print_environment(options: argparse.Namespace) -> int:
    """Print the variables that let builds and programs find the emulator."""
    variables = tools.environment(strict=options.strict)
    print_json(options.json, variables)
    if options.json != STDOUT:
        for name, value in variables.items():
            earlier = f'"${{{name}:+:${name}}}"' if name in tools.SEARCH_PATHS else ""
            print(f"export {name}={shlex.quote(value)}{earlier}")
    return 0


def print_information(options: argparse.Namespace) -> int:
    """Print the version, the machine and the tools."""
    machine = dpuemu.machine()
    pes = machine.ranks * _dpuemu.PES_PER_RANK
    facts: dict[str, Any] = {
        "version": dpuemu.__version__,
        "machine": {**asdict(machine), "pes": pes, "mram_bytes": _dpuemu.MRAM_BYTES},
        "sdk": str(tools.sdk_root()),
        "library": str(tools.library_folder()),
        "cmake": str(tools.library_folder() / "cmake"),
        "gcc": os.environ.get("DPUEMU_CC") or shutil.which("gcc") or shutil.which("cc"),
    }
    print_json(options.json, facts)
    if options.json != STDOUT:
        flush = (
            machine.flush if isinstance(machine.flush, str) else "on" if machine.flush else "off"
        )
        rows = {
            "version": facts["version"],
            "machine": (
                f"{machine.ranks} ranks in {machine.channels} channels, {pes} PEs of"
                f" {_dpuemu.MRAM_BYTES >> 20} MiB"
            ),
            "chip": machine.chip,
            "transfers": f"{machine.threads} threads, flush {flush}",
            "strict": "on" if machine.strict else "off",
            "huge pages": "on" if machine.hugepages else "off",
            "tools": f"{facts['sdk']}/bin",
            "library": facts["library"],
            "CMake": f"-Ddpuemu_DIR={facts['cmake']}",
            "C compiler": facts["gcc"] or "none in PATH; PE programs cannot be compiled",
        }
        for name, value in rows.items():
            print(f"{name:<12}{value}")
    return 0


@contextmanager
def target(name: str | None) -> Iterator[Callable[[str], None]]:
    """Yield a function that writes a text and a line feed: to a file (opened now), to stdout, or
    nowhere.
    """
    if name is None:
        yield lambda text: None
    elif name == STDOUT:
        yield lambda text: print(text, flush=True)
    else:
        with open(name, "w", encoding="utf-8") as file:
            yield lambda text: print(text, file=file, flush=True)


@contextmanager
def replacement(name: str) -> Iterator[BinaryIO]:
    """Yield a new file, which replaces the file `name` at the end. If nothing was written to it, or
    after an exception, the earlier file stays. Devices and pipes are opened in place.
    """
    if os.path.exists(name) and not os.path.isfile(name):
        with open(name, "wb") as file:
            yield file
        return
    place = os.path.realpath(name)
    draft = f"{place}.{os.getpid()}.draft"
    try:
        with open(draft, "xb") as file:
            yield file
            is_written = file.tell() > 0
        if is_written:
            os.replace(draft, place)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(draft)


def print_json(name: str | None, value: object) -> None:
    """Write a value as JSON to a target."""
    with target(name) as write_json:
        write_json(json.dumps(value, indent=2))
