"""The command draw."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import pidcomm
from pidcomm.arguments import options_of, with_scratch
from pidcomm.cli.app import command, working
from pidcomm.cli.options import (
    BytesOption,
    CollectiveArgument,
    MaskOption,
    ShapeOption,
    TechniqueOption,
)
from pidcomm.explain import places
from pidcomm.sizes import parse_shape, parse_size


@command("pidcomm draw allreduce --technique pr+im --out allreduce.svg")
def draw(
    collective: CollectiveArgument,
    out: Annotated[
        Path, typer.Option("--out", help="File of the picture, with a name in .svg or .png.")
    ],
    shape: ShapeOption = "32x32",
    mask: MaskOption = "10",
    size: BytesOption = "1MiB",
    technique: TechniqueOption = "tile",
) -> None:
    """Draw the PEs, their groups, and the steps of a collective."""
    size_bytes = parse_size(size)
    options = with_scratch(options_of(technique=technique), 2 * size_bytes)
    plan = pidcomm.plan(
        collective,
        parse_shape(shape),
        mask,
        bytes=size_bytes,
        dst=size_bytes,
        dtype="int32",
        op="sum",
        **options,
    )
    where = places.locate(parse_shape(shape), mask)
    with working("drawing"):
        from pidcomm_studies.pictures import drawing, style

        style.check_format(out)
        style.save(drawing.draw(where, plan), out)
    typer.echo(f"wrote {out}")
