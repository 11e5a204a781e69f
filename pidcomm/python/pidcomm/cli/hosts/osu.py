"""The command hosts osu."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Annotated

import typer

from pidcomm.bench import launcher
from pidcomm.bench.columns import Column, Lines
from pidcomm.bench.osu import OsuRow, measure
from pidcomm.bench.osu_cases import COLLECTIVES, SMALL, OsuCase
from pidcomm.bench.report import run_facts
from pidcomm.bench.results import Results
from pidcomm.cli.app import command, exit_if_wrong, working
from pidcomm.cli.hosts.group import hosts
from pidcomm.cli.options import json_option
from pidcomm.errors import ArgumentError
from pidcomm.sizes import parse_count, parse_names, parse_positive_size
from pidcomm.tables import TRANSPORTS

COLUMNS = (
    Column("size", "{0.size_bytes:>9}"),
    Column("avg_us", "{0.avg_us:>11.2f}"),
    Column("min_us", "{0.min_us:>11.2f}"),
    Column("max_us", "{0.max_us:>11.2f}"),
    Column("iterations", "{0.iterations:>10}"),
    Column("over_mpi", "{1:>8}"),
    Column("copied", "{2:>7}"),
    Column("wrong", "{0.wrong:>6}"),
)


def show(results: Results, rows: list[OsuRow], messages: list[OsuRow] | None) -> None:
    """Write the rows of one case, and their average latencies over those of messages."""
    over_mpi: list[float | None] = [None] * len(rows)
    if messages is not None:
        over_mpi = [
            row.avg_us / message_row.avg_us for row, message_row in zip(rows, messages, strict=True)
        ]
    lines = Lines(COLUMNS, is_wide=False)
    first = rows[0]
    results.text(
        f"# {first.collective}, {first.buffers} buffers, transport {first.transport},"
        f" {first.hosts} hosts x {first.ppn} processes, link {first.link}; {first.source}",
        lines.titles(),
        *(
            lines.line(row, *map(shown, (ratio, row.copied)))
            for row, ratio in zip(rows, over_mpi, strict=True)
        ),
    )
    facts = run_facts()
    results.json_lines(
        {**asdict(row), "over_mpi": ratio, **facts}
        for row, ratio in zip(rows, over_mpi, strict=True)
    )


def shown(value: float | None) -> str:
    """Return a value of a column."""
    return "-" if value is None else f"{value:.2f}"


def parse_range(text: str) -> tuple[int, ...]:
    """Return sizes: "8:32MiB" means 8, 16, ... up to 32 MiB; commas separate single sizes."""
    if ":" not in text:
        return tuple(parse_positive_size(part) for part in text.split(","))
    first, last = (parse_positive_size(part) for part in text.split(":", 1))
    if first > last:
        raise ArgumentError(f"the sizes {text} end below their start")
    sizes = [first]
    while sizes[-1] * 2 <= last:
        sizes.append(sizes[-1] * 2)
    return tuple(sizes)


def parse_counts(text: str) -> list[int]:
    """Return numbers that commas separate."""
    return [parse_count(part) for part in text.split(",")]


@command(
    "pidcomm hosts osu --hosts 2,4 --sizes 64KiB:32MiB",
    "pidcomm hosts osu --collective reduce_scatter --transport switch --link 32,0.5",
    "pidcomm hosts osu --hosts 2 --pes 64 --json rows.jsonl",
    group=hosts,
)
def osu(
    collective: Annotated[
        str, typer.Option("--collective", help=f"Of {', '.join(COLLECTIVES)}, or all.")
    ] = "all",
    hosts: Annotated[str, typer.Option("--hosts", help="Numbers of hosts.")] = "2",
    ppn: Annotated[str, typer.Option("--ppn", help="Numbers of processes per host.")] = "1",
    sizes: Annotated[
        str, typer.Option("--sizes", help="Bytes: first:last, doubling; or a list.")
    ] = "8:1MiB",
    transport: Annotated[
        str, typer.Option("--transport", help="mpi, pool, switch, or all.")
    ] = "all",
    link: Annotated[
        str | None,
        typer.Option(
            "--link", metavar="GB_S,US", help="Rate and latency of the emulated link of a host."
        ),
    ] = None,
    pes: Annotated[int, typer.Option("--pes", min=0, help="PEs per process; 0: host buffers.")] = 0,
    iters: Annotated[
        int, typer.Option("--iters", min=1, help="At most this number of iterations.")
    ] = SMALL[0],
    json_target: Annotated[str | None, json_option("a JSON line per row")] = None,
) -> None:
    """Measure latencies between processes of this machine by the rules of the OSU micro-benchmarks.

    A size is rounded down to whole blocks, and is at least one. Each size has 1000 iterations,
    above 8 KiB 100; a tenth of them more precede to warm up. The columns have the average,
    minimum and maximum over the processes. Every element is checked. over_mpi is the average
    latency divided by the average latency with mpi in this run. copied is the number of bytes
    that a process copies to and from the pool, divided by the size; copies of MPI are not
    counted. The processes of a host share its emulated link. With a switch, its time on host
    buffers is modelled. Each CPU has at most 16 processes, unless PIDCOMM_MPIEXEC is set.
    """
    try:
        rate = [float(part) for part in (link or "0,0").split(",")]
        gb_s, latency_us = rate if len(rate) == 2 else (rate[0], 0.0)
    except ValueError:
        raise ArgumentError(
            f"--link {link} must be GB/s, or GB/s and microseconds with a comma"
        ) from None
    if gb_s < 0 or latency_us < 0:
        raise ArgumentError(f"--link {link} must not be negative")
    cases = [
        OsuCase(name, way, count, per_host, parse_range(sizes), pes, gb_s, latency_us, iters)
        for name in parse_names(collective, COLLECTIVES, "collective")
        for count in parse_counts(hosts)
        for per_host in parse_counts(ppn)
        for way in parse_names(transport, TRANSPORTS, "transport")
    ]
    for case in cases:
        launcher.require_room(case.processes, case.data_bytes)
    wrong = 0
    messages: dict[OsuCase, list[OsuRow]] = {}
    with Results(json_target) as results, working("starting processes") as work:
        for case in cases:
            work.describe(f"{case.collective}, {case.transport}, {case.processes} processes")
            rows = measure([case])
            if case.transport == "mpi":
                messages[case] = rows
            show(results, rows, messages.get(replace(case, transport="mpi")))
            wrong += sum(row.wrong for row in rows)
        results.text(f"every element checked: {wrong} wrong", style="red" if wrong else "green")
    exit_if_wrong(wrong)
