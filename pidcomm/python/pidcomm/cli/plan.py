"""The command plan."""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import Annotated, Any

import typer

import pidcomm
from pidcomm import ArgumentError
from pidcomm.arguments import options_of, with_scratch
from pidcomm.bench.results import Results
from pidcomm.cli.app import check_op, command, refuse
from pidcomm.cli.options import (
    BytesOption,
    DtypeOption,
    MaskOption,
    OpOption,
    PlannedArgument,
    ShapeOption,
    TechniqueOption,
    json_option,
)
from pidcomm.explain import places, words
from pidcomm.explain.plan import explain
from pidcomm.plans import SHIFT
from pidcomm.sizes import parse_shape, parse_size

PLANNERS = "pidcomm.planners"
"""The group of entry points by which other packages plan for other PIM machines: each
names a function like `pidcomm_studies.cli.planner.explain_plan`.
"""


@command(
    "pidcomm plan alltoall --shape 32x32 --mask 10 --bytes 1MiB",
    "pidcomm plan reduce --dtype float32 --op max --json -",
    "pidcomm plan allreduce --shape 8x128 --mask 01 --technique auto",
    "pidcomm plan allgather --shape 8x8 --bytes 4KiB --technique pr+im --expand",
    "pidcomm plan alltoall --shape 4x8x2 --mask 010 --bytes 8KiB --draw",
    "pidcomm plan allreduce --shape 8x8 --mask 11 --machine cxl-nmp",
)
def plan(
    collective: PlannedArgument,
    shape: ShapeOption = "32x32",
    mask: MaskOption = "10",
    size: BytesOption = "1MiB",
    dtype: DtypeOption = "int32",
    op: OpOption = "sum",
    technique: TechniqueOption = "tile",
    src: Annotated[str, typer.Option("--src", help="MRAM offset of the source window.")] = "0",
    dst: Annotated[
        str | None,
        typer.Option(
            "--dst",
            help="MRAM offset of the destination window (default: the end of the source window).",
        ),
    ] = None,
    scratch: Annotated[
        str | None,
        typer.Option(
            "--scratch",
            help=(
                "MRAM offset of scratch for ring and pr techniques (default: the end of the"
                " windows; none for auto)."
            ),
        ),
    ] = None,
    expand: Annotated[bool, typer.Option("--expand", help="List every step of the plan.")] = False,
    draw: Annotated[
        bool,
        typer.Option(
            "--draw", help="Show the place (channel, rank, bank, chip) and the group of each PE."
        ),
    ] = False,
    machine: Annotated[
        str | None,
        typer.Option(
            "--machine",
            metavar="NAME|FILE",
            help="Plan for another PIM machine, such as hbm-pim.",
        ),
    ] = None,
    json_target: Annotated[str | None, json_option("the plan as one JSON object")] = None,
) -> None:
    """Show the steps of a collective, scan or shift without running it."""
    check_op([collective])
    if machine is not None:
        refuse(
            ["--technique", "--src", "--dst", "--scratch", "--expand", "--draw"],
            f"{machine} is another PIM machine",
        )
        text, record = _planner()(
            machine,
            collective,
            parse_shape(shape),
            mask,
            bytes=parse_size(size),
            dtype=dtype,
            op=op,
        )
        with Results(json_target) as results:
            results.text(*text)
            results.json(record)
        return
    if collective == SHIFT:
        refuse(["--op", "--dtype"], f"{SHIFT} moves bytes, and has no operator")
    size_bytes, src_offset = parse_size(size), parse_size(src)
    dst_offset = src_offset + size_bytes if dst is None else parse_size(dst)
    options = options_of(technique=technique)
    if scratch is None:
        options = with_scratch(options, max(src_offset, dst_offset) + size_bytes)
    else:
        options["scratch"] = parse_size(scratch)
    collective_plan = pidcomm.plan(
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
    with Results(json_target) as results:
        if draw:
            where = places.locate(parse_shape(shape), mask)
            results.text(*words.explain_places(where, collective_plan))
            results.json({"places": where.rows(), "plan": collective_plan})
        else:
            results.text(*explain(collective_plan))
            results.json(collective_plan)


def _planner() -> Any:
    """Return the function that plans for other machines.

    Raises ArgumentError if no installed package has one.
    """
    for entry_point in entry_points(group=PLANNERS):
        return entry_point.load()
    raise ArgumentError("--machine needs the package pidcomm-studies: pip install pidcomm-studies")
