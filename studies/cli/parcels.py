"""The commands parcels."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from pidcomm import ArgumentError
from pidcomm.bench.columns import table
from pidcomm.bench.results import Results
from pidcomm.cli.app import ExitCode, add_group, command, working
from pidcomm.cli.options import json_option
from pidcomm.sizes import format_duration, parse_names, parse_size
from pidcomm_studies.parcels import host, run, scaling
from pidcomm_studies.parcels.build import ENGINES, HERE, build_folder, compile_program

OWN = sorted(path.stem for path in (HERE / "programs").glob("*.c") if path.stem != "pattern")
ENGINE_HELP = "; ".join(f"{engine.name}: {engine.about}" for engine in ENGINES.values())
EngineOption = Annotated[str, typer.Option("--engine", help=f"MPI: {ENGINE_HELP}.")]
LatencyOption = Annotated[
    int, typer.Option("--latency", min=0, help="Cycles of the network's latency.")
]
PlotOption = Annotated[
    Path | None, typer.Option("--plot", help="Draw the results: a .svg or .png file.")
]

parcels = add_group(
    "parcels",
    "Run MPI on simulated processors in memory.",
    "pidcomm parcels run exchange",
)


def _check_picture(plot: Path | None) -> None:
    if plot is not None:
        from pidcomm_studies.pictures import style

        style.check_format(plot)


@command(
    "pidcomm parcels run halo -n 16 -- 4096",
    "pidcomm parcels run exchange --plot exchange.svg",
    name="run",
    group=parcels,
)
def run_program(
    program: Annotated[
        Path, typer.Argument(metavar="PROGRAM", help=f"MPI program in C, or {', '.join(OWN)}.")
    ],
    arguments: Annotated[
        list[str] | None, typer.Argument(metavar="-- ARGS", help="Arguments of the program.")
    ] = None,
    nodes: Annotated[
        int, typer.Option("-n", "--nodes", help="Number of nodes; each runs a process.")
    ] = 2,
    engine: EngineOption = "pim",
    latency: LatencyOption = run.TABLE_1[run.PIM]["latency"],
    seconds: Annotated[
        float, typer.Option("--seconds", min=0.1, help="The longest time on this computer.")
    ] = 600,
    check: Annotated[
        bool, typer.Option("--check", help="Check the queues after each step.")
    ] = False,
    json_target: Annotated[str | None, json_option("the counts")] = None,
    plot: PlotOption = None,
) -> None:
    """Compile an MPI program and run it on the simulated machine. Show what its calls of MPI
    executed.

    Run only programs that you trust. Instructions and memory references are counted as they run;
    cycles are modelled.
    If processes wait for each other for ever, the command names their calls and exits with 1.
    """
    _check_picture(plot)
    run.engine_of(engine)
    run.check_nodes(nodes)
    with Results(json_target) as results, working("compiling") as work, build_folder() as folder:
        own = HERE / "programs" / f"{program}.c"
        compiled = compile_program(own if str(program) in OWN else program, folder)
        machine = run.Machine(engine, folder, latency=latency)
        work.phase("running")
        outcome = machine.run(
            compiled, nodes, arguments or (), checks=check, trace=plot is not None, seconds=seconds
        )
        results.json({**asdict(outcome), "events": len(outcome.events), "source": "modelled"})
        results.text(outcome.output.rstrip("\n"))
        shown = table(
            "counts over all nodes", ["call", "category", ">instructions", ">references", ">cycles"]
        )
        for call_counts in outcome.counts:
            shown.add_row(
                call_counts.call,
                call_counts.category,
                f"{call_counts.instructions:,}",
                f"{call_counts.references:,}",
                f"{call_counts.cycles:,.0f}",
            )
        results.text(shown)
        results.text(f"{nodes} nodes, {engine}: {outcome.cycles:,} cycles (modelled)")
        results.text(
            *(f"process {rank} waits for ever in {call}" for rank, call in outcome.blocked)
        )
        if plot is not None:
            from pidcomm_studies.pictures import style, timeline

            work.phase("drawing")
            style.save(
                timeline.draw(outcome.events, f"{program.name} on {nodes} nodes, {engine}"), plot
            )
            results.text(f"wrote {plot}")
    if outcome.blocked:
        raise typer.Exit(ExitCode.WRONG_RESULT)
    raise typer.Exit(outcome.code & 255 or int(outcome.code != 0))


@command("pidcomm parcels bench --json rows.jsonl", group=parcels)
def bench(
    json_target: Annotated[str | None, json_option("a JSON line per row")] = None,
) -> None:
    """Count the instructions of this host's MPI for the benchmark of the paper, with valgrind.

    Two processes send 10 messages of 256 bytes (eager) or 80 KiB (rendezvous) in each direction,
    with 0 to 100% posted receives. The overhead is known for MPICH 1.2; set PIDCOMM_MPICC and
    PIDCOMM_MPIEXEC to its mpicc and mpirun. `pidcomm reproduce parcels` runs the benchmark on the
    simulated machines.
    """
    with Results(json_target) as results, working("counting this host's MPI"):
        rows = host.measure()
        results.json_lines({**asdict(row), "source": "measured"} for row in rows)
        shown = table("this host's MPI: measured on another machine", host.COLUMNS)
        for line in host.totals(rows):
            shown.add_row(*line)
        results.text(shown, host.NOTE)


@command("pidcomm parcels scale --nodes 2,64", group=parcels)
def scale(
    nodes: Annotated[
        str, typer.Option("--nodes", help="Numbers of nodes, separated by commas.")
    ] = "2,16,64,256,1024",
    engines: Annotated[
        str, typer.Option("--engines", help="Engines, separated by commas, or all.")
    ] = "all",
    size: Annotated[str, typer.Option("--bytes", help="Bytes of each of the four sides.")] = "1KiB",
    latency: LatencyOption = run.TABLE_1[run.PIM]["latency"],
    json_target: Annotated[str | None, json_option("a JSON line per row")] = None,
) -> None:
    """Show the time of a barrier and of a halo exchange on a torus by number of nodes.

    The times are modelled.
    """
    numbers = []
    for word in nodes.split(","):
        if not word.strip().isdecimal():
            raise ArgumentError(f"--nodes {nodes}: {word!r} is not a number of nodes")
        numbers.append(int(word))
        run.check_nodes(numbers[-1])
    wanted = list(ENGINES) if engines == "all" else parse_names(engines, list(ENGINES), "engine")
    with Results(json_target) as results, working("compiling") as work:
        rows = list(scaling.measure(wanted, numbers, parse_size(size), work.phase, latency=latency))
        results.json_lines(asdict(row) for row in rows)
        shown = table("modelled", ["program", ">nodes", *(f">{name}" for name in wanted)])
        for program in scaling.PROGRAMS:
            for number in numbers:
                of_row = [row for row in rows if (row.program, row.nodes) == (program, number)]
                shown.add_row(
                    program, str(number), *(format_duration(row.seconds) for row in of_row)
                )
        results.text(shown, "seconds at 1 GHz on every machine")
