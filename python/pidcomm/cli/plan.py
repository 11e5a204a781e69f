"""The command plan."""

from __future__ import annotations

import json
from typing import Annotated

import typer

import pidcomm
from pidcomm.cli.app import BytesOption, DtypeOption, MaskOption, OpOption, ShapeOption, app
from pidcomm.explain import explain
from pidcomm.sizes import parse_shape, parse_size
from pidcomm.tables import COLLECTIVES, TECHNIQUES


@app.command()
def plan(
    collective: Annotated[str, typer.Argument(help="Collective: " + ", ".join(COLLECTIVES) + ".")],
    shape: ShapeOption = "32x32",
    mask: MaskOption = "10",
    size: BytesOption = "1MiB",
    dtype: DtypeOption = "int32",
    op: OpOption = "sum",
    technique: Annotated[str, typer.Option("--technique", help="Technique: " + ", ".join(TECHNIQUES) + ".")] = "tile",
    src: Annotated[str, typer.Option("--src", help="MRAM offset of the source.")] = "0",
    dst: Annotated[
        str | None, typer.Option("--dst", help="MRAM offset of the destination (default: behind the source).")
    ] = None,
    scratch: Annotated[
        str | None,
        typer.Option("--scratch", help="MRAM offset of scratch of pr techniques (default: behind the windows)."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    expand: Annotated[bool, typer.Option("--expand", help="List every step.")] = False,
) -> None:
    """Explain what a collective would do; moves nothing.

    Examples:  pidcomm plan alltoall --shape 32x32 --mask 10 --bytes 1MiB   |   pidcomm plan reduce --json
    """
    size_bytes, src_offset = parse_size(size), parse_size(src)
    dst_offset = src_offset + size_bytes if dst is None else parse_size(dst)
    it = pidcomm.plan(
        collective,
        parse_shape(shape),
        mask,
        bytes=size_bytes,
        src=src_offset,
        dst=dst_offset,
        dtype=dtype,
        op=op,
        expand=expand,
        technique=technique,
        scratch=max(src_offset, dst_offset) + size_bytes if scratch is None else parse_size(scratch),
    )
    for line in [json.dumps(it, indent=2)] if as_json else explain(it):
        typer.echo(line)
