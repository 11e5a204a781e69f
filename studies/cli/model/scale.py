"""The command model scale."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

import pidcomm
from pidcomm import COLLECTIVES, ArgumentError, Error, Options
from pidcomm.arguments import options_of
from pidcomm.bench import platform, report
from pidcomm.bench.ablation import COLLECTIVES as BETWEEN_PES
from pidcomm.bench.columns import Column, Lines
from pidcomm.bench.measure import Scratch, make_transfers_alike
from pidcomm.bench.results import Results
from pidcomm.bench.sweep import Section
from pidcomm.bench.timing import COMPARED, Schedule
from pidcomm.cli.app import command, exit_if_wrong, refuse, working
from pidcomm.cli.completion import complete_list, complete_name
from pidcomm.cli.options import WideOption, json_option
from pidcomm.model import Machine
from pidcomm.model.prediction import SOURCE as MODELLED
from pidcomm.sizes import parse_names, parse_positive_size, parse_size
from pidcomm_studies.cli.model.group import group
from pidcomm_studies.cli.model.predict import MachineOption, load_upmem
from pidcomm_studies.models.scaling import (
    STUDIES,
    Point,
    Study,
    available_pes,
    measure_points,
    measured_sections,
    model_points,
)
from pidcomm_studies.models.stops import GAIN, Stop, stops_of

ALL = "all"
COMMON_FACTS = ("version", "commit")
COLUMNS = (
    Column("study", "{0.study:<8}", is_wide=True),
    Column("collective", "{0.collective:<14}"),
    Column("technique", "{0.technique:<12}"),
    Column("value", "{value:>8}"),
    Column("hosts", "{0.hosts:>5}", is_wide=True),
    Column("channels", "{channels:>8}", is_wide=True),
    Column("PEs", "{0.pes:>6}", is_wide=True),
    Column("group", "{0.group_pes:>6}", is_wide=True),
    Column("shape", "{0.shape:<9}", is_wide=True),
    Column("mask", "{0.mask:<4}", is_wide=True),
    Column("bytes/PE", "{0.bytes_per_pe:>9}", is_wide=True),
    Column("time_us", "{time_us:>10.0f}"),
    Column("algbw", "{0.algbw_gb_s:>7.2f}"),
    Column("limit%", "{limit:>6}", is_wide=True),
    Column("speed-up", "{speed_up:>8}"),
    Column("most in", "{0.longest:<9}", is_wide=True),
    Column("of it%", "{share:>6.0f}", is_wide=True),
    Column("wrong", "{wrong:>5}", is_wide=True),
    Column("source", "{0.source:<8}"),
)


@command(
    "pidcomm model scale hosts",
    "pidcomm model scale pes alltoall allreduce --measure --up-to 256",
    "pidcomm model scale channels --machine isca24 --json rows.jsonl --plot a.svg",
    group=group,
)
def scale(
    study: Annotated[
        str,
        typer.Argument(
            help="Name of the study: " + ", ".join(STUDIES) + ", or all.",
            autocompletion=complete_name([*STUDIES, ALL]),
        ),
    ] = ALL,
    collectives: Annotated[
        list[str] | None,
        typer.Argument(
            help="Collectives, or all (default: " + ", ".join(BETWEEN_PES) + ").",
            autocompletion=complete_list(COLLECTIVES),
        ),
    ] = None,
    machine: MachineOption = "upmem-2560",
    is_measured: Annotated[
        bool,
        typer.Option(
            "--measure/--no-measure",
            help="Also measure on the emulated DIMMs of this machine (studies "
            + ", ".join(one_study.name for one_study in STUDIES.values() if one_study.is_measured)
            + ").",
        ),
    ] = False,
    size: Annotated[
        str | None,
        typer.Option(
            "--bytes",
            help="Bytes per PE in studies that keep them constant (default: set by the study).",
        ),
    ] = None,
    up_to: Annotated[
        str | None,
        typer.Option(
            "--up-to",
            help=(
                "Largest value of the parameter that varies, such as 512 or 64KiB (default: no"
                " limit)."
            ),
        ),
    ] = None,
    iters: Annotated[
        int, typer.Option("--iters", min=1, help="Number of timed rounds of measured rows.")
    ] = 5,
    warmup: Annotated[
        int,
        typer.Option("--warmup", min=0, help="Number of untimed rounds before the timed rounds."),
    ] = 1,
    is_wide: WideOption = False,
    json_target: Annotated[
        str | None, json_option("a JSON line per table row and per stop")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option("--plot", help="Also draw a picture: a .svg or .png file.")
    ] = None,
) -> None:
    """Study how the cost of collectives grows with PEs, channels, bytes, group size and hosts.

    Column source shows whether a row is modelled for a machine or measured on this machine. algbw
    is the larger side summed over PEs, divided by the time. limit% is the percentage of the
    streaming limit. Compare measured rows by limit%, because emulated DIMMs share the memory of one
    machine; modelled rows have no limit%. most in is the longest phase. A stop is the value from
    which doubling the parameter gains little. docs/evaluation.md explains studies and stops.
    """
    studies = [STUDIES[name] for name in parse_names(study, STUDIES, "study")]
    names = parse_names(",".join(collectives or BETWEEN_PES), COLLECTIVES, "collective")
    if not is_measured:
        refuse(["--iters", "--warmup"], "it is for --measure")
    on = load_upmem(machine)
    if plot is not None:
        from pidcomm_studies.pictures import scaling, style

        style.check_format(plot)
        scaling.check_room(names)
    size_bytes = None if size is None else parse_positive_size(size)
    most = None if up_to is None else parse_size(up_to)
    left_out = [candidate for candidate in studies if study == ALL and not candidate.can_be_on(on)]
    studies = [candidate for candidate in studies if candidate not in left_out]
    whole = [
        candidate
        for candidate in studies
        if len(studies) > 1 and most is not None and min(candidate.values(on.pes), default=0) > most
    ]
    if len(whole) == len(studies):
        whole = []  # _values raises an error: every study starts above the limit
    options = options_of(coherence=platform.COHERENCE, threads=platform.threads())
    modelled: dict[str, list[Point]] = {}
    sections: dict[str, list[Section]] = {}
    refusals: list[Error] = []
    for one_study in studies:
        largest = None if one_study in whole else most
        modelled[one_study.name], refused = model_points(
            one_study, names, on, _values(one_study, on.pes, largest), size_bytes
        )
        refusals += refused
        if is_measured and (one_study.is_measured or study != ALL):
            values = _values(one_study, available_pes(), largest)
            sections[one_study.name], refused = measured_sections(
                one_study, names, values, size_bytes
            )
            refusals += refused
    if not any(modelled.values()) and not any(sections.values()):
        raise refusals[0]
    problems = [
        problem
        for sections_of_study in sections.values()
        for section in sections_of_study
        for problem in section.problems
    ]
    schedule = Schedule(iters, warmup)
    rounds = len(problems) * (iters + warmup + len(COMPARED))
    rows: list[Point] = []
    with Results(json_target) as results, working("measuring", rounds) as work:
        if problems:
            make_transfers_alike(options)
        facts = report.run_facts()
        comment = report.Report(results)
        comment.comment(_header(on, options, facts if problems else None))
        comment.comment(
            f"study {skipped.name} is left out: {on.name} has no separate {skipped.name}"
            for skipped in left_out
        )
        comment.comment(
            f"study {whole_study.name} shows all values: it starts above {most}"
            for whole_study in whole
        )
        comment.skipped({str(error): error for error in refusals}.values())
        scratch = Scratch(problems) if problems else None
        for one_study in studies:
            comment.comment([f"study {one_study.name}: {one_study.about}"])
            table = Lines(COLUMNS, is_wide=is_wide)
            results.text(table.titles())
            points = modelled[one_study.name]
            _write(results, one_study, points, facts, table)
            for section in sections.get(one_study.name, ()):
                assert scratch is not None
                work.describe(f"{one_study.name}: {section}")
                measured = list(
                    measure_points(one_study, section, options, schedule, scratch, work.step)
                )
                _write(results, one_study, measured, facts, table)
                points = points + measured
            stops = stops_of(points)
            results.json_lines(_json(stop, facts) for stop in stops)
            comment.comment(map(str, stops))
            rows += points
        if plot is not None:
            work.describe("drawing")
            style.save(scaling.draw(rows), plot)
            results.text(f"wrote {plot}")
    exit_if_wrong(sum(row.wrong or 0 for row in rows))


def _values(study: Study, pes: int, most: int | None) -> Sequence[int]:
    """Return the values of a study up to `most`.

    Raises ArgumentError if all values are larger than `most`.
    """
    values = study.values(pes)
    kept = [value for value in values if most is None or value <= most]
    if not kept:
        raise ArgumentError(
            f"study {study.name} starts at {min(values, default=0)}; no value is at most {most}"
        )
    return kept


def _header(machine: Machine, options: Options, facts: Mapping[str, Any] | None) -> Iterator[str]:
    """Yield the lines above the rows. facts: those of a run that measures."""
    yield from report.header(options, facts) if facts else [f"pidcomm {pidcomm.__version__}"]
    yield (
        f"modelled rows: for {machine.name} ({machine.title}), by constants of the kinds"
        f" {_kinds(machine)}"
    )
    if facts:
        yield "measured rows: emulated DIMMs share the memory of this machine: compare limit%"
    percent = f"{100 * GAIN:.0f}%"
    yield (
        f"a stop is the first value from which doubling gains less than {percent} (groups: costs"
        " more)"
    )


def _kinds(machine: Machine) -> str:
    kinds = [constant.kind for constant in machine.constants.values()]
    return ", ".join(f"{kind} ({kinds.count(kind)})" for kind in dict.fromkeys(kinds))


def _write(
    results: Results, study: Study, points: Iterable[Point], facts: dict[str, Any], table: Lines
) -> None:
    for point in points:
        # Before the text, so that every shown row is in the file.
        results.json_lines([_json(point, facts)])
        fields = {
            "value": getattr(point, study.varies),
            "channels": _text(point.channels, "d"),
            "time_us": 1e6 * point.seconds,
            "limit": _text(point.limit_pct, ".0f"),
            "speed_up": "-" if point.speed_up is None else f"{point.speed_up:.2f}x",
            "share": point.share_pct(point.longest),
            "wrong": _text(point.wrong, "d"),
        }
        results.text(table.line(point, **fields), style="red" if point.wrong else None)


def _json(entry: Point | Stop, facts: dict[str, Any]) -> dict[str, Any]:
    """Return the JSON of a point or stop, with facts of the run.

    Only measured points have facts of this machine.
    """
    return {
        **asdict(entry),
        **{key: facts[key] for key in (COMMON_FACTS if entry.source == MODELLED else facts)},
    }


def _text(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)
