"""The commands hosts run and hosts plan."""

from __future__ import annotations

from typing import Annotated

import typer

from pidcomm.arguments import MAX_COUNT, as_integer, options_of
from pidcomm.bench import launcher
from pidcomm.bench.results import Results
from pidcomm.cli.app import command
from pidcomm.cli.hosts.group import hosts
from pidcomm.cli.options import (
    BytesOption,
    CollectiveArgument,
    DtypeOption,
    OpOption,
    TechniqueOption,
    json_option,
)
from pidcomm.hosts import plan as plan_of_host
from pidcomm.sizes import format_about, format_duration, parse_shape, parse_size


@command("pidcomm hosts run -n 2 --pes 64 -- pidcomm info", group=hosts)
def run(
    program: Annotated[
        list[str], typer.Argument(metavar="-- PROGRAM", help="Command of one process.")
    ],
    count: Annotated[
        int, typer.Option("-n", "--hosts", min=1, help="Number of processes; each is a host.")
    ] = 2,
    pes: Annotated[
        int | None, typer.Option("--pes", min=1, help="PEs of the emulated machine of each host.")
    ] = None,
) -> None:
    """Start a program in MPI processes, each of which is a host.

    The launcher is the command in PIDCOMM_MPIEXEC, or mpiexec. If a process fails, MPI ends
    all processes. The processes share the CPUs, unless OMP_NUM_THREADS is set. The
    command returns the exit code of the launcher.
    """
    raise typer.Exit(launcher.run(count, program, pes))


@command(
    "pidcomm hosts plan allreduce --shape 256x4 --mask 11 --bytes 2MiB",
    "pidcomm hosts plan alltoall --shape 256x4 --mask 11 --bytes 2MiB --link 1.25",
    group=hosts,
)
def plan(
    collective: CollectiveArgument,
    shape: Annotated[
        str,
        typer.Option("--shape", help="Axis lengths, x first; the last one is the number of hosts."),
    ],
    mask: Annotated[
        str, typer.Option("--mask", help="Axis mask; the last character selects the hosts.")
    ],
    size: BytesOption = "1MiB",
    dtype: DtypeOption = "int32",
    op: OpOption = "sum",
    technique: TechniqueOption = "tile",
    host: Annotated[int, typer.Option("--host", min=0, help="Host whose plan is shown.")] = 0,
    root: Annotated[int, typer.Option("--root", min=0, help="Host with the rows.")] = 0,
    overlap: Annotated[
        str, typer.Option("--overlap", help="Overlap of messages and local passes: auto, on, off.")
    ] = "auto",
    link: Annotated[
        float | None, typer.Option("--link", help="GB/s of the link (default: of the machine).")
    ] = None,
    transport: Annotated[
        str, typer.Option("--transport", help="Between hosts: mpi, pool, switch.")
    ] = "mpi",
    json_target: Annotated[str | None, json_option("the plan")] = None,
) -> None:
    """Show the plan of one host: local passes, messages, bytes per link and per memory bus.

    Times are modelled.
    """
    size_bytes = parse_size(size)
    host_plan = plan_of_host(
        collective,
        parse_shape(shape),
        mask,
        bytes=size_bytes,
        dst=as_integer("bytes", size_bytes, high=MAX_COUNT),
        dtype=dtype,
        op=op,
        host=host,
        root=root,
        overlap=overlap,  # type: ignore[arg-type]
        link=link,
        transport=transport,  # type: ignore[arg-type]
        **options_of(technique=technique),
    )
    with Results(json_target) as results:
        results.json(host_plan)
        pieces = host_plan["pieces"]
        how = "overlapping" if host_plan["overlaps"] else "one after another"
        results.text(
            f"{collective} over {host_plan['hosts']} hosts, host {host}: {len(pieces)} pieces,"
            f" {how}",
            style="bold",
        )
        for piece in pieces[:1]:
            if len(pieces) > 1:
                results.text("the first piece:")
            results.text(*(f"  {_local(step)}" for step in piece["before"]))
            for round in piece["rounds"]:
                if round.get("syncs"):
                    where = "the switch" if round.get("on_switch") else "this host"
                    results.text(
                        f"  sync of all hosts, then {round['reductions']} reductions and copies by"
                        f" {where}; {format_duration(round['seconds'])}"
                    )
                    continue
                results.text(
                    f"  exchange: sends {round['messages_sent']} messages,"
                    f" {format_about(round['bytes_sent'])}; receives {round['messages_received']},"
                    f" {format_about(round['bytes_received'])}; {round['reductions']} reductions;"
                    f" {format_duration(round['seconds'])}"
                )
            results.text(*(f"  {_local(step)}" for step in piece["after"]))
        for name in ("meanwhile", "last"):
            results.text(*(f"{name}: {_local(step)}" for step in host_plan[name]))
        sent, received = (
            format_about(host_plan["link"][f"bytes_{way}"]) for way in ("sent", "received")
        )
        results.text(f"link: {sent} sent, {received} received")
        results.text(
            f"memory bus: {format_about(host_plan['mram_bytes'])} of MRAM,"
            f" {format_about(host_plan['row_bytes'])} of host rows"
        )
        seconds = {name: format_duration(value) for name, value in host_plan["seconds"].items()}
        results.text(
            f"modelled: {seconds['total']} (local passes {seconds['local']}, exchanges"
            f" {seconds['exchange']})"
        )


def _local(step: dict[str, object]) -> str:
    return (
        f"{step['calls']} x {step['collective']} of"
        f" {format_about(float(str(step['bytes_per_pe'])))} per PE ({step['technique']}):"
        f" {format_duration(float(str(step['seconds'])))}"
    )
