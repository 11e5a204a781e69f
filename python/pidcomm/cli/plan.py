"""The command plan."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import pidcomm
from pidcomm.arguments import options_of, with_scratch
from pidcomm.cli.app import (
    BytesOption,
    CollectiveArgument,
    DtypeOption,
    MaskOption,
    OpOption,
    ShapeOption,
    TechniqueOption,
    check_op,
    command,
    json_option,
    working,
)
from pidcomm.errors import ArgumentError
from pidcomm.evaluation.explain import explain
from pidcomm.evaluation.results import Results
from pidcomm.sizes import parse_shape, parse_size


@command(
    "pidcomm plan alltoall --shape 32x32 --mask 10 --bytes 1MiB",
    "pidcomm plan reduce --dtype float32 --op max --json -",
    "pidcomm plan allreduce --shape 8x128 --mask 01 --technique auto",
    "pidcomm plan allgather --shape 8x8 --bytes 4KiB --technique pr+im --expand",
    "pidcomm plan alltoall --shape 4x8x2 --mask 010 --bytes 8KiB --draw",
    "pidcomm plan allreduce --technique pr+im --draw --out allreduce.svg",
)
def plan(
    collective: CollectiveArgument,
    shape: ShapeOption = "32x32",
    mask: MaskOption = "10",
    size: BytesOption = "1MiB",
    dtype: DtypeOption = "int32",
    op: OpOption = "sum",
    technique: TechniqueOption = "tile",
    src: Annotated[str, typer.Option("--src", help="MRAM offset of the source window.")] = "0",
    dst: Annotated[
        str | None,
        typer.Option("--dst", help="MRAM offset of the destination window (default: the end of the source window)."),
    ] = None,
    scratch: Annotated[
        str | None,
        typer.Option(
            "--scratch",
            help="MRAM offset of scratch for ring and pr techniques (default: the end of the windows; none for auto).",
        ),
    ] = None,
    expand: Annotated[bool, typer.Option("--expand", help="List every step of the plan.")] = False,
    draw: Annotated[
        bool, typer.Option("--draw", help="Show the place (channel, rank, bank, chip) and the group of each PE.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option("--out", help="With --draw: file of the picture, with a name in .svg or .png.")
    ] = None,
    json_target: Annotated[str | None, json_option("the plan as one JSON object")] = None,
) -> None:
    """Show the steps of a collective without running it."""
    check_op([collective])
    if out is not None and not draw:
        raise ArgumentError(f"--out {out} names a picture; give --draw, too")
    size_bytes, src_offset = parse_size(size), parse_size(src)
    dst_offset = src_offset + size_bytes if dst is None else parse_size(dst)
    options = options_of(technique=technique)
    if scratch is None:
        options = with_scratch(options, max(src_offset, dst_offset) + size_bytes)
    else:
        options["scratch"] = parse_size(scratch)
    with Results(json_target) as results:
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
            **options,
        )
        if not draw:
            results.text(*explain(it))
            results.json(it)
            return
        from pidcomm.evaluation.pictures import places, words

        where = places.locate(parse_shape(shape), mask)
        results.json({"places": where.rows(), "plan": it})
        if out is None:
            results.text(*words.explain_places(where, it))
            return
        with working("drawing"):
            from pidcomm.evaluation.pictures import drawing, style

            style.check_format(out)
            style.save(drawing.draw(where, it), out)
        results.text(f"wrote {out}")
