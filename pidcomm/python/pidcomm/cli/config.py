"""The command config."""

from __future__ import annotations

import shlex
from dataclasses import asdict
from typing import Annotated

import typer

from pidcomm import installation
from pidcomm.bench.results import Results
from pidcomm.cli.app import command
from pidcomm.cli.options import json_option
from pidcomm.errors import ArgumentError


@command(
    "cc host.c $(pidcomm config --cflags --libs)",
    "pidcomm config --cmake-dir",
    'eval "$(dpuemu env)" && eval "$(pidcomm config --artifact-env)" && make',
    "pidcomm config --json -",
)
def config(
    cflags: Annotated[
        bool, typer.Option("--cflags", help="Print the compiler options that find the headers.")
    ] = False,
    libs: Annotated[
        bool,
        typer.Option(
            "--libs", help="Print the linker options with which programs find the library."
        ),
    ] = False,
    cmake_dir: Annotated[
        bool,
        typer.Option("--cmake-dir", help="Print the folder of the CMake package, for pidcomm_DIR."),
    ] = False,
    pkgconfig_dir: Annotated[
        bool,
        typer.Option(
            "--pkgconfig-dir", help="Print the folder of pidcomm.pc, for PKG_CONFIG_PATH."
        ),
    ] = False,
    pe_compiler: Annotated[
        bool, typer.Option("--pe-compiler", help="Print the command that compiles C for PEs.")
    ] = False,
    artifact_env: Annotated[
        bool,
        typer.Option(
            "--artifact-env",
            help="Print shell commands that let builds find the published <pidcomm.h>.",
        ),
    ] = False,
    json_target: Annotated[str | None, json_option("all values as one JSON object")] = None,
) -> None:
    """Print how C and C++ programs find this installation.

    The output of --cflags and --libs shares one line. The output of each other option has a
    separate line.
    """
    with Results(json_target) as results:
        package = installation.package()
        flags = [
            text
            for is_wanted, text in ((cflags, package.cflags), (libs, package.libs))
            if is_wanted
        ]
        others = (
            (cmake_dir, package.cmake_dir),
            (pkgconfig_dir, package.pkgconfig_dir),
            (pe_compiler, package.pe_compiler),
        )
        lines = [" ".join(flags)] if flags else []
        lines += [str(answer) for is_wanted, answer in others if is_wanted]
        if artifact_env:
            for name, value in installation.artifact_environment().items():
                rest = '"${PATH:+:$PATH}"' if name == "PATH" else ""
                lines.append(f"export {name}={shlex.quote(value)}{rest}")
        if not lines and not results.has_json:
            raise ArgumentError("choose what to print: pidcomm config --help lists the options")
        results.text(*lines)
        results.json({name: str(value) for name, value in asdict(package).items()})
