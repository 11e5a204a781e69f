"""The command config."""

from __future__ import annotations

from typing import Annotated

import typer

from pidcomm import building
from pidcomm.cli.app import app
from pidcomm.errors import ArgumentError


@app.command()
def config(
    cflags: Annotated[bool, typer.Option("--cflags", help="Options with which C and C++ find the headers.")] = False,
    libs: Annotated[
        bool, typer.Option("--libs", help="Options with which programs link, and find the library.")
    ] = False,
    cmake_dir: Annotated[
        bool, typer.Option("--cmake-dir", help="Folder of the CMake package, for pidcomm_DIR.")
    ] = False,
    pkgconfig_dir: Annotated[
        bool, typer.Option("--pkgconfig-dir", help="Folder of pidcomm.pc, for PKG_CONFIG_PATH.")
    ] = False,
    pe_compiler: Annotated[bool, typer.Option("--pe-compiler", help="The command that compiles C for PEs.")] = False,
) -> None:
    """Tell how C and C++ programs find the library of this installation. One line for flags, one for each other answer.

    Examples:  cc main.c $(pidcomm config --cflags --libs)   |   cmake -B build -Dpidcomm_DIR="$(pidcomm config
    --cmake-dir)"   |   PKG_CONFIG_PATH="$(pidcomm config --pkgconfig-dir)" make
    """
    package = building.package()
    flags = " ".join([package.cflags] * cflags + [package.libs] * libs)
    folders = [str(package.cmake_dir)] * cmake_dir + [str(package.pkgconfig_dir)] * pkgconfig_dir
    lines = [flags] * bool(flags) + folders + [package.pe_compiler] * pe_compiler
    if not lines:
        raise ArgumentError("nothing was asked for: pidcomm config --help lists the options")
    for line in lines:
        typer.echo(line)
