"""The commands `app NAME`, one for each application."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, get_args, get_type_hints

import typer

from pidcomm import ArgumentError, Error, Options
from pidcomm.bench import report
from pidcomm.bench.columns import Column, Lines
from pidcomm.bench.results import Results
from pidcomm.cli.app import Command, add_group, exit_if_wrong, working
from pidcomm.cli.bench import Coherence
from pidcomm.cli.completion import complete_list
from pidcomm.cli.options import ThreadsOption, WideOption, json_option
from pidcomm.sizes import (
    format_duration,
    format_shape,
    format_size,
    parse_count,
    parse_names,
    parse_shape,
)
from pidcomm_studies import apps
from pidcomm_studies.apps import Application
from pidcomm_studies.apps.application import (
    BASE,
    TECHNIQUES_OF_APPLICATIONS,
    heaviest_bytes,
    require_technique,
    shape_for,
    transfer_condition,
    with_defaults,
)
from pidcomm_studies.apps.report import FAIR_ITERS, Conditions, Row, rows_of
from pidcomm_studies.apps.stage import ASSUMED

DEFAULT_PES = "256"
DEFAULT_TECHNIQUES = "conventional,pr+im+cm,tile"
COLUMNS = (
    Column("PEs", "{0.pes:>4}"),
    Column("technique", "{0.technique:<12}"),
    Column("kernel_us", "{0.kernel_us:>9.0f}"),
    Column("host_us", "{0.host_us:>9.0f}", is_wide=True),
    Column("collectives_us", "{0.collectives_us:>14.0f}"),
    Column("reorder_us", "{0.reorder_us:>10.0f}", is_wide=True),
    Column("total_us", "{0.total_us:>8.0f}"),
    Column("spread", "{0.spread_pct:>5.1f}%", is_wide=True),
    Column("assumed_us", "{0.assumed_us:>10.0f}", is_wide=True),
    Column("comm. gain", "{communication:>10}", is_wide=True),
    Column("gain", "{gain:>6}"),
    Column("over CPU", "{over_cpu:>8}"),
    Column("steps_us", "{steps:>10}", is_wide=True),
    Column("stream_us", "{streams:>10}", is_wide=True),
    Column("stream", "{stream:>6}"),
    Column("wrong", "{0.wrong:>5}"),
    Column("source", "{0.source:<6}", is_wide=True),
)
PHASE_COLUMNS = (
    Column("PEs", "{0.pes:>5}"),
    Column("technique", "{0.technique:<12}"),
    Column("phase", "{1.name:<14}"),
    Column("calls", "{1.calls:>6}"),
    Column("measured_us", "{1.measured_us:>11.0f}"),
    Column("modelled_us", "{1.modelled_us:>11.0f}"),
    Column("assumed_us", "{1.assumed_us:>10.0f}", is_wide=True),
    Column("share", "{share:>5.1f}%"),
)


_NO_CLAIM = (
    f"no gain over {BASE} is claimed: a claim needs --iters {FAIR_ITERS} or more, "
    "and fast enough transfers of this size"
)

applications = add_group(
    "app",
    "Run an application on emulated DIMMs, check the result, and show the phase times.",
    "pidcomm app bfs --quick",
    "pidcomm app mlp --quick --technique conventional,tile --cpu",
)


def common_options(
    pes: Annotated[
        str | None,
        typer.Option(
            "--pes",
            help=f"Numbers of PEs, with commas (default: {DEFAULT_PES}).",
        ),
    ] = None,
    shape: Annotated[
        str | None,
        typer.Option("--shape", help="Axis lengths, x first, in place of --pes."),
    ] = None,
    technique: Annotated[
        str,
        typer.Option(
            "--technique",
            help="Techniques, separated by commas, or all: "
            + ", ".join(TECHNIQUES_OF_APPLICATIONS)
            + ".",
            autocompletion=complete_list(TECHNIQUES_OF_APPLICATIONS),
        ),
    ] = DEFAULT_TECHNIQUES,
    cpu: Annotated[
        bool, typer.Option("--cpu/--no-cpu", help="Also run on the CPUs alone.")
    ] = False,
    iters: Annotated[
        int,
        typer.Option(
            "--iters",
            min=1,
            help="Number of timed rounds of each collective; rows show the median time.",
        ),
    ] = 3,
    stream: Annotated[
        int | None,
        typer.Option(
            "--stream",
            min=0,
            help="Also run streams of N rank groups (0: any).",
        ),
    ] = None,
    threads: ThreadsOption = 0,
    coherence: Annotated[
        Coherence,
        typer.Option(
            "--coherence",
            metavar="none|hardware",
            help="Coherence policy; hardware flushes the CPU caches.",
        ),
    ] = Coherence.none,
    is_wide: WideOption = False,
    json_target: Annotated[str | None, json_option("a JSON line per row")] = None,
    plot: Annotated[
        Path | None,
        typer.Option("--plot", help="Draw the time of each phase: a .svg or .png file."),
    ] = None,
) -> None:
    """Declare the options that all applications share."""


def _run(application: type[Application], own: dict[str, Any], **common: Any) -> None:
    """Run an application.

    own: arguments of the application's `make`. common: arguments that all applications share.
    """
    techniques = parse_names(common["technique"], TECHNIQUES_OF_APPLICATIONS, "technique")
    if common["pes"] is not None and common["shape"] is not None:
        raise ArgumentError(
            f"give --pes ({common['pes']}) or --shape ({common['shape']}), not both"
        )
    lengths = None if common["shape"] is None else parse_shape(common["shape"])
    counts = dict.fromkeys(
        map(parse_count, (DEFAULT_PES if common["pes"] is None else common["pes"]).split(","))
    )
    options = with_defaults({"coherence": common["coherence"].value, "threads": common["threads"]})
    plot: Path | None = common["plot"]
    if plot is not None:
        from pidcomm_studies.pictures import style

        style.check_format(plot)
    rows: list[Row] = []
    with Results(common["json_target"]) as results, working("making the input") as work:
        problem = application.make(**own)
        shapes = (
            [shape_for(problem, pes, None) for pes in counts]
            if lengths is None
            else [shape_for(problem, None, lengths)]
        )
        facts = report.run_facts()
        comment = report.Report(results).comment
        comment(_header(problem, options, facts))
        for shape in shapes:
            possible, refusals = _possible(techniques, shape, options)
            report.Report(results).skipped(refusals)
            runs = apps.compare(
                problem,
                shape=shape,
                techniques=possible,
                options=options,
                iters=common["iters"],
                with_cpu=common["cpu"],
                stream=common["stream"],
                on_phase=lambda phase, shape=shape: work.phase(f"{format_shape(shape)}: {phase}"),  # type: ignore[misc]
            )
            all_runs = list(runs)
            conditions = Conditions(common["iters"], options)
            base = next((run for run in all_runs if run.technique == BASE), None)
            if base is not None and (size_bytes := heaviest_bytes(base)):
                work.phase("timing the transfers of the emulated SDK")
                transfers = transfer_condition(shape, size_bytes, options)
                conditions = Conditions(common["iters"], options, size_bytes, transfers)
                comment(
                    [f"shape {format_shape(shape)}; transfers of {format_size(size_bytes)} per PE:"]
                )
                comment(transfers.lines())
                if not conditions.are_fair:
                    comment([_NO_CLAIM])
            of_shape = rows_of(all_runs, conditions)
            results.json_lines({**asdict(row), **facts} for row in of_shape)
            _write(results, of_shape, is_wide=common["is_wide"])
            rows += of_shape
        if plot is not None:
            from pidcomm_studies.pictures import applications as picture

            work.phase("drawing")
            style.save(picture.draw(rows), plot)
            results.text(f"wrote {plot}")
    exit_if_wrong(sum(row.wrong for row in rows))


def _possible(
    techniques: Sequence[str], shape: Sequence[int], options: Options
) -> tuple[list[str], list[Error]]:
    """Return the techniques that a shape allows, and the errors of the techniques that it does not
    allow.

    Raises the first error if the shape allows no technique.
    """
    possible: list[str] = []
    refusals: list[Error] = []
    for name in techniques:
        try:
            require_technique(name, shape, options)
            possible.append(name)
        except Error as error:
            refusals.append(error)
    if not possible:
        raise refusals[0]
    return possible, refusals


def _header(problem: Application, options: Options, facts: Mapping[str, Any]) -> Iterator[str]:
    yield from report.header(options, facts)
    yield f"{problem.name}: " + ", ".join(
        f"{name} {value}" for name, value in problem.facts.items()
    )
    yield (
        "kernel_us and reorder_us are modelled from the cycles of the slowest PE; host_us (rows"
        " and variables) and collectives_us are measured on the host; total_us is the sum of these"
        " four (mixed), spread the distance of its quartiles; assumed_us is not in the totals:"
        f" launches take {format_duration(1e-6 * ASSUMED.launch_us)}, reloads of programs"
        f" {format_duration(1e-6 * ASSUMED.load_us)}"
    )
    yield (
        f"gain is the speed-up of the total over {BASE}, comm. gain the speed-up of the"
        " collectives; over CPU is the speed-up of total + assumed_us over the CPUs; stream is"
        " steps_us / stream_us, the speed-up of streams over the same steps one after another"
        " (mixed); wrong is the number of wrong elements in the result"
    )


def _write(results: Results, rows: Sequence[Row], *, is_wide: bool) -> None:
    for row in rows:
        if row.cpu_us is not None:
            results.text(f"# CPU only, measured, the median: {format_duration(1e-6 * row.cpu_us)}")
            break
    lines = Lines(COLUMNS, is_wide=is_wide)
    results.text(lines.titles())
    for row in rows:
        fields = {
            "communication": _gain(row.communication_speed_up),
            "gain": _gain(row.speed_up),
            "over_cpu": _gain(row.cpu_speed_up),
            "steps": _us(row.steps_us),
            "streams": _us(row.stream_us),
            "stream": _gain(row.stream_speed_up),
        }
        results.text(lines.line(row, **fields), style="red" if row.wrong else None)
    lines = Lines(PHASE_COLUMNS, is_wide=is_wide)
    results.text(lines.titles())
    for row in rows:
        for phase in row.phases:
            share = 100 * phase.total_us / row.total_us if row.total_us else 0.0
            results.text(lines.line(row, phase, share=share))
    setup = format_duration(1e-6 * min(row.setup_us for row in rows))
    results.text(f"# data placed before the run, not in the totals: {setup} measured")


def _us(value: float | None) -> str:
    return "-" if value is None else f"{value:.0f}"


def _gain(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}x"


def _hints(function: Any) -> dict[str, Any]:
    """Return the hints of a function's parameters. Python 3.10 wraps a hint in Optional if the
    default is None; the hint inside has the option.
    """
    return {
        name: next((part for part in get_args(hint) if hasattr(part, "__metadata__")), hint)
        for name, hint in get_type_hints(function, include_extras=True).items()
    }


def _command_of(application: type[Application]) -> Callable[..., None]:
    """Return the function of a command, with the options of `make` and the options that all
    applications share.
    """
    texts = {
        "data": f"Input: {application.data_help.rstrip('.')}.",
        "generate": f"Input: a generator and its parameters: {application.generate_help}.",
        "quick": (
            "Use a small input, unless --data or --generate selects another. Other options may set"
            " sizes."
        ),
    }
    hints = {
        **_hints(application.make),
        **get_type_hints(Application.make),
    }
    own: dict[str, Parameter] = {}
    for name, parameter in signature(application.make).parameters.items():
        kind, text = (hints[name], texts[name]) if name in texts else get_args(hints[name])
        own[name] = parameter.replace(
            annotation=Annotated[kind, typer.Option(f"--{name.replace('_', '-')}", help=text)]
        )
    hints = _hints(common_options)
    common = {
        name: parameter.replace(annotation=hints[name], kind=Parameter.KEYWORD_ONLY)
        for name, parameter in signature(common_options).parameters.items()
    }
    parameters = [*own.values(), *common.values()]

    def run(**values: Any) -> None:
        _run(application, {name: values.pop(name) for name in own}, **values)

    run.__doc__ = application.about
    run.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in parameters}
    return run


def _examples(name: str) -> list[str]:
    return [
        f"pidcomm app {name} --quick",
        f"pidcomm app {name} --pes 64,256 --cpu --json a.jsonl --plot a.svg",
    ]


def add(application: type[Application]) -> None:
    """Add the command of an application."""
    name = application.name
    applications.command(name, cls=Command, epilog="\n".join(_examples(name)))(
        _command_of(application)
    )


for _name in apps.NAMES:
    add(apps.get(_name))
