"""The commands model predict, model machines and model advise. All times are modelled."""

from __future__ import annotations

from contextlib import nullcontext, suppress
from dataclasses import replace
from typing import Annotated, Any

import typer

import pidcomm
from pidcomm import COHERENCES, ISAS, TECHNIQUES, ArgumentError
from pidcomm.arguments import AUTO, options_of
from pidcomm.bench.columns import table
from pidcomm.bench.oracle import Problem
from pidcomm.bench.report import technique_label
from pidcomm.bench.results import Results
from pidcomm.cli.app import check_op, command, refuse, working
from pidcomm.cli.completion import complete_list, complete_name
from pidcomm.cli.options import (
    BytesOption,
    CollectiveArgument,
    DtypeOption,
    MaskOption,
    OpOption,
    ShapeOption,
    WideOption,
    json_option,
)
from pidcomm.model import (
    CONSTANTS,
    KINDS,
    LINE_COSTS,
    LINK_CONSTANTS,
    PHASES,
    Machine,
    Prediction,
    load_machine,
    machine_names,
)
from pidcomm.model.prediction import DEFAULT_MACHINE, SOURCE
from pidcomm.sizes import (
    format_about,
    format_duration,
    format_interval,
    format_shape,
    format_size,
    parse_names,
    parse_shape,
    parse_size,
)
from pidcomm.tables import CollectiveName, OpName
from pidcomm_studies.cli import planner
from pidcomm_studies.cli.model.group import group
from pidcomm_studies.machines import (
    ROWS,
    PimMachine,
    is_pim_machine,
    load_pim_machine,
    pim_machines,
    price,
    ways,
)
from pidcomm_studies.models import LINKS, Estimate, advise, compare, influences, predict_links

NOTED = 4  # number of constants in a note under the table
MATTERS = 0.05  # assumed constants with at least this influence are listed
MORE_PCT = 10  # percent by which a constant grows in the notes under the table

MachineOption = Annotated[
    str,
    typer.Option(
        "--machine",
        metavar="NAME|FILE",
        help="Machine: " + ", ".join(machine_names()) + ", or a .toml file.",
        autocompletion=complete_name(machine_names()),
    ),
]
ALL_MACHINES = sorted([*machine_names(), *pim_machines()])
AnyMachineOption = Annotated[
    str,
    typer.Option(
        "--machine",
        metavar="NAME|FILE",
        help="Machine: " + ", ".join(ALL_MACHINES) + ", or a .toml file.",
        autocompletion=complete_name(ALL_MACHINES),
    ),
]
ModelTechniques = Annotated[
    str,
    typer.Option(
        "--technique",
        help=(
            f"Techniques, separated by commas, or all: {', '.join(TECHNIQUES)}, {AUTO} (the fastest"
            f" technique that does not need scratch), {LINKS} (between PEs)."
        ),
        autocompletion=complete_list([*TECHNIQUES, AUTO, LINKS]),
    ),
]


@command(
    "pidcomm model predict allreduce --shape 32x32 --mask 10 --bytes 1MiB",
    "pidcomm model predict alltoall --machine isca24 --technique tile --json -",
    "pidcomm model predict allgather --shape 64x40 --mask 01 --bytes 640KiB",
    group=group,
)
def predict(
    collective: CollectiveArgument,
    shape: ShapeOption = "32x32",
    mask: MaskOption = "10",
    size: BytesOption = "1MiB",
    dtype: DtypeOption = "int32",
    op: OpOption = "sum",
    machine: AnyMachineOption = DEFAULT_MACHINE,
    technique: ModelTechniques = "all",
    threads: Annotated[
        int,
        typer.Option(
            "--threads", min=0, help="Number of host threads, 0 for all CPUs of the machine."
        ),
    ] = 0,
    isa: Annotated[
        str | None,
        typer.Option(
            "--isa",
            help="Instruction set, even one that this CPU lacks (default: the machine's best).",
            autocompletion=complete_name(ISAS),
        ),
    ] = None,
    coherence: Annotated[
        str | None,
        typer.Option(
            "--coherence",
            help="Coherence policy (default: hardware; for machines with emulated DIMMs: none).",
            autocompletion=complete_name(COHERENCES),
        ),
    ] = None,
    scratch: Annotated[
        str,
        typer.Option(
            "--scratch",
            help="MRAM offset of scratch; 0 means the end of the windows (auto has no scratch).",
        ),
    ] = "0",
    is_wide: Annotated[bool, typer.Option("--wide", help="Show the time of each phase.")] = False,
    json_target: Annotated[str | None, json_option("a JSON line per technique")] = None,
) -> None:
    """Predict the time of a collective on a machine, for each technique.

    The times are modelled from the plan and the constants of the machine (`pidcomm model
    machines`); the collective does not run. Column 95%: 95% of the calls on a real machine take a
    time in this interval, by the errors that the machine's description states. GB/s is the larger
    side summed over PEs, divided by the total time. The lines under the table list the constants
    with the largest effect: how much the total time changes if a constant grows by 10%. If the
    machine has links between PEs, row links is the time over links.
    """
    check_op([collective])
    if is_pim_machine(machine):
        refuse(
            ["--technique", "--threads", "--isa", "--coherence", "--scratch", "--wide"],
            f"{machine} is another PIM machine",
        )
        _predict_other(collective, shape, mask, size, dtype, op, machine, json_target)
        return
    on, lengths, size_bytes = load_machine(machine), parse_shape(shape), parse_size(size)
    arguments: dict[str, Any] = {"bytes": size_bytes, "dtype": dtype, "op": op, "machine": on}
    options = options_of(threads=threads, isa=isa, coherence=coherence)
    if offset := parse_size(scratch):
        options["scratch"] = offset
    # None: every possible technique. Impossible techniques are omitted without an error.
    wanted = (
        [None]
        if technique == "all"
        else parse_names(technique, [*TECHNIQUES, AUTO, LINKS], "technique")
    )
    with Results(json_target) as results:
        estimates = []
        for name in wanted:
            if name == LINKS:
                continue
            variant = options_of(**{**options, "technique": name})
            for estimate in compare(collective, lengths, mask, **arguments, **variant):
                estimates.append((name or estimate.prediction.technique, estimate))
        if LINKS in wanted or (on.links and technique == "all"):
            with nullcontext() if LINKS in wanted else suppress(ArgumentError):
                estimates.append((LINKS, _over_links(collective, lengths, mask, arguments)))
        estimates.sort(key=lambda pair: pair[1].prediction.seconds)
        problem = Problem(collective, lengths, mask, size_bytes, dtype, op)
        names = dict.fromkeys(name for _, priced in estimates for name in priced.prediction.phases)
        phases = [
            name
            for name in names
            if any(priced.prediction.phases.get(name) for _, priced in estimates)
        ]
        shown = [">" + name for name in phases] if is_wide else ["most in", ">of it"]
        columns = ["technique", ">total", "95%", *shown, ">GB/s", "~needs"]
        price_table = table(f"{title(problem, on)}, {format_shape(lengths)} mask {mask}", columns)
        notes = {}  # by the technique that runs, because auto repeats a technique of the table
        assumed: dict[str, None] = {}
        for asked, priced in estimates:
            prediction = priced.prediction
            influence: dict[str, float] = {}
            if asked != LINKS:
                changed = options_of(**{**options, "technique": prediction.technique})
                changed.setdefault("scratch", 2 * size_bytes)
                influence = influences(collective, lengths, mask, **arguments, **changed)
                notes[prediction.technique] = _note(prediction, influence, on)
            largest, percent = _largest_phase(prediction)
            spent = [format_duration(prediction.phases.get(name, 0.0)) for name in phases]
            price_table.add_row(
                technique_label(asked, prediction.technique),
                format_duration(prediction.seconds),
                format_interval(prediction.interval) if prediction.interval else "",
                *(spent if is_wide else [largest, f"{percent:.0f}%"]),
                _rate(_algbw(problem, priced)),
                _needs(priced),
            )
            assumed |= {
                name: None
                for name, percent in influence.items()
                if abs(percent) >= MATTERS and on.constants[name].kind == "assumed"
            }
            results.json_lines([{**json_row(problem, priced, asked), "influences": influence}])
        results.text(price_table, *capacity(problem, on))
        results.text(f"change of the total if a constant grows by {MORE_PCT}%:")
        results.text(*(f"  {note}" for note in notes.values()))
        if assumed:
            results.text(f"assumed, of the constants that matter: {', '.join(assumed)}")


@command(
    "pidcomm model machines",
    "pidcomm model machines isca24",
    "pidcomm model machines emulated-host --json -",
    group=group,
)
def machines(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME|FILE]",
            help="Machine whose constants to show: "
            + ", ".join(ALL_MACHINES)
            + ", or a .toml file.",
            autocompletion=complete_name(ALL_MACHINES),
        ),
    ] = None,
    is_wide: WideOption = False,
    json_target: Annotated[
        str | None, json_option("a JSON line per machine (or per constant of the given machine)")
    ] = None,
) -> None:
    """List the machines, or the constants of one machine with the source of each constant.

    A constant is published (the source is a publication), measured by us, fitted to measurements,
    or assumed.
    """
    with Results(json_target) as results:
        if name is not None:
            _show_constants(_load_any(name), results, is_wide=is_wide)
            return
        rows = [_facts(_load_any(machine_name)) for machine_name in ALL_MACHINES]
        columns = [
            "machine",
            ">pes",
            "constants",
            "~title",
            *["~isas"] * is_wide,
        ]
        machine_table = table(
            "machines, and how many of their constants are " + ", ".join(KINDS), columns
        )
        for row in rows:
            counts = ", ".join(str(row[kind]) for kind in KINDS)
            cells = ({**row, "constants": counts}[name.lstrip(">~")] for name in columns)
            machine_table.add_row(
                *(", ".join(cell) if isinstance(cell, list) else str(cell) for cell in cells)
            )
        results.json_lines(rows)
        results.text(machine_table)


@command(
    "pidcomm model advise allreduce --pes 1024 --bytes 4MiB",
    "pidcomm model advise alltoall --pes 1024 --group 32 --machine isca24",
    "pidcomm model advise reduce --pes 2560 --machine upmem-2560 --top 3 --json -",
    name="advise",
    group=group,
)
def advise_shapes(
    collective: CollectiveArgument,
    pes: Annotated[int, typer.Option("--pes", min=1, help="Number of PEs.")] = 1024,
    group_pes: Annotated[
        int | None, typer.Option("--group", min=1, help="Number of PEs per group (default: all).")
    ] = None,
    size: BytesOption = "1MiB",
    dtype: DtypeOption = "int32",
    op: OpOption = "sum",
    machine: MachineOption = DEFAULT_MACHINE,
    top: Annotated[int, typer.Option("--top", min=1, help="Number of variants to print.")] = 10,
    is_wide: WideOption = False,
    json_target: Annotated[str | None, json_option("a JSON line per printed variant")] = None,
) -> None:
    """List variants of a collective (shape, mask and technique), the shortest predicted time first.

    All times are modelled. Shapes have one to three axes. If several variants have equal plans and
    times, only the variant with the fewest axes is printed; column alike counts the hidden
    variants. For large numbers of PEs, the command skips shapes in which two neighbouring axes have
    equal mask bits.
    """
    check_op([collective])
    on, size_bytes = load_upmem(machine), parse_size(size)
    with Results(json_target) as results:
        with working("pricing shapes"):
            arrangements = advise(
                collective,
                pes=pes,
                bytes=size_bytes,
                group=group_pes,
                dtype=dtype,
                op=op,
                machine=on,
                top=top,
            )
        problem = Problem(collective, (pes,), "1", size_bytes, dtype, op)
        needs = ["~needs"] if is_wide else []
        columns = ["shape", "mask", "technique", ">total", ">GB/s", ">alike", *needs, "~reason"]
        shape_table = table(
            f"{title(problem, on)}, {pes} PEs in groups of {group_pes or pes}", columns
        )
        for arrangement in arrangements:
            problem = replace(problem, shape=arrangement.shape, mask=arrangement.mask)
            prediction = arrangement.prediction
            shape_table.add_row(
                format_shape(arrangement.shape),
                arrangement.mask,
                prediction.technique,
                format_duration(prediction.seconds),
                _rate(_algbw(problem, arrangement)),
                f"+{len(arrangement.alike)}" if arrangement.alike else "-",
                *([_needs(arrangement)] if is_wide else []),
                arrangement.reason,
            )
            alike = [
                {**way._asdict(), "shape": format_shape(way.shape)} for way in arrangement.alike
            ]
            results.json_lines(
                [{**json_row(problem, arrangement), "reason": arrangement.reason, "alike": alike}]
            )
        results.text(shape_table, *capacity(problem, on))


def load_upmem(name: str) -> Machine:
    """Return a machine of the model. Raises ArgumentError for other PIM machines."""
    if is_pim_machine(name):
        raise ArgumentError(
            f"{name} is another PIM machine; only plan, model predict and model machines know it"
        )
    return load_machine(name)


def _load_any(name: str) -> Machine | PimMachine:
    return load_pim_machine(name) if is_pim_machine(name) else load_machine(name)


def _predict_other(
    collective: CollectiveName,
    shape: str,
    mask: str,
    size: str,
    dtype: str,
    op: OpName,
    machine: str,
    json_target: str | None,
) -> None:
    """Print the times of the plans on another PIM machine."""
    plans = planner.plans_of(
        machine, collective, parse_shape(shape), mask, bytes=parse_size(size), dtype=dtype, op=op
    )
    on = plans[0].machine
    columns = ["technique", ">total", ">on the buses", ">host threads", "~passes"]
    times = table(f"{SOURCE}: {planner.title(plans[0].problem, on.name)}", columns)
    with Results(json_target) as results:
        for way, each in zip(ways(on), plans, strict=True):
            its_price = price(each)
            times.add_row(
                way,
                format_duration(its_price.seconds),
                format_about(its_price.bus_bytes),
                format_duration(its_price.host_core_seconds),
                ", ".join(f"{by} {format_duration(time)}" for by, time in its_price.passes) or "-",
            )
            results.json_lines([planner.json_row(each, its_price)])
        results.text(times)


def _over_links(
    collective: CollectiveName, shape: tuple[int, ...], mask: str, arguments: dict[str, Any]
) -> Estimate:
    """Return the estimate for bytes over links between PEs.

    Its phases are the host's part and the levels of links.
    """
    prediction = predict_links(collective, shape, mask, **arguments)
    phases = {
        **dict.fromkeys(PHASES, 0.0),
        "host": prediction.host_seconds,
        **prediction.link_seconds,
    }
    return Estimate(
        shape,
        mask,
        Prediction(prediction.machine, LINKS, "", 0, "", prediction.seconds, None, phases),
        0,
        False,
    )


def title(problem: Problem, machine: Machine) -> str:
    """Return the title of a prediction. The title contains the word "modelled"."""
    op = f" {problem.op}" if problem.row.takes_op else ""
    size = format_size(problem.bytes)
    return f"{SOURCE} on {machine.name}: {problem.collective}{op} of {problem.dtype}, {size} per PE"


def capacity(problem: Problem, machine: Machine) -> list[str]:
    """Return a line of explanation if the machine has fewer PEs than the case."""
    if problem.pes <= machine.pes:
        return []
    return [
        f"{machine.name} has {machine.pes} PEs; for {problem.pes} PEs the model puts more ranks on"
        " its channels"
    ]


def _needs(estimate: Estimate) -> str:
    scratch = f"{format_size(estimate.scratch_bytes)} of scratch" if estimate.scratch_bytes else ""
    return (
        ", ".join(filter(None, (scratch, "replaces the program" * estimate.replaces_program)))
        or "-"
    )


def _algbw(problem: Problem, estimate: Estimate) -> float | None:
    """Return the GB/s of the larger of input and output, or None if the time is 0."""
    seconds = estimate.prediction.seconds
    return problem.larger_side_bytes / seconds / 1e9 if seconds else None


def _rate(gb_s: float | None) -> str:
    return "-" if gb_s is None else f"{gb_s:.2f}"


def json_row(problem: Problem, estimate: Estimate, asked: str | None = None) -> dict[str, Any]:
    prediction = estimate.prediction
    return {
        "collective": problem.collective,
        "technique": asked or prediction.technique,
        "carried_out": prediction.technique,
        "dtype": problem.dtype,
        "op": problem.op if problem.row.takes_op else None,
        "shape": format_shape(problem.shape),
        "mask": problem.mask,
        "bytes_per_pe": problem.bytes,
        "source": prediction.source,
        "machine": prediction.machine,
        "seconds": prediction.seconds,
        "interval": prediction.interval,
        "host_seconds": prediction.host_seconds,
        "pe_seconds": prediction.pe_seconds,
        "phases": prediction.phases,
        "algbw_gb_s": _algbw(problem, estimate),
        "scratch_bytes": estimate.scratch_bytes,
        "replaces_program": estimate.replaces_program,
        "coherence": prediction.coherence,
        "threads": prediction.threads,
        "isa": prediction.isa,
        "version": pidcomm.__version__,
    }


def _largest_phase(prediction: Prediction) -> tuple[str, float]:
    """Return the longest phase, and its percentage of the predicted time."""
    name = max(prediction.phases, key=lambda name: prediction.phases[name])
    return name, 100 * prediction.phases[name] / prediction.seconds if prediction.seconds else 0.0


def _note(prediction: Prediction, influence: dict[str, float], machine: Machine) -> str:
    """Return a sentence about the constants with the largest effect on a prediction."""
    changes = [
        f"{name} ({machine.constants[name].kind}) {MORE_PCT * percent:+.1f}%"
        for name, percent in influence.items()
    ]
    return f"{prediction.technique}: {', '.join(changes[:NOTED])}"


def _facts(machine: Machine | PimMachine) -> dict[str, Any]:
    """Return the facts about a machine for its row in the table."""
    kinds = [constant.kind for constant in machine.constants.values()]
    return {
        "machine": machine.name,
        "title": machine.title,
        "pes": machine.pes,
        "isas": machine.isas,
        **{kind: kinds.count(kind) for kind in KINDS},
    }


def _show_constants(machine: Machine | PimMachine, results: Results, *, is_wide: bool) -> None:
    meanings = {row.name: row.meaning for row in (*CONSTANTS, *LINE_COSTS, *ROWS)}
    columns = ["constant", ">value", *(["unit", "~source"] if is_wide else ["kind"]), "~meaning"]
    constant_table = table(f"{machine.name}: {machine.title}", columns)
    meanings |= {row.name: row.meaning for row in LINK_CONSTANTS}
    links = machine.links if isinstance(machine, Machine) else {}
    of_links = {
        f"links.{level}.{row.name}": getattr(link, row.name)
        for level, link in links.items()
        for row in LINK_CONSTANTS
        if row.name != "topology"
    }
    for name, constant in {**machine.constants, **of_links}.items():
        meaning = meanings.get(name) or meanings[name.rpartition(".")[2]]
        origin = [constant.unit, constant.source] if is_wide else [constant.kind]
        value = constant.value
        text = value if isinstance(value, str) else f"{value:g}"
        constant_table.add_row(name, text, *origin, meaning)
        results.json_lines(
            [
                {
                    "machine": machine.name,
                    "constant": name,
                    **constant._asdict(),
                    "kind": constant.kind,
                    "meaning": meaning,
                }
            ]
        )
    results.text(constant_table)
    results.text(
        *(f"links.{level}: {link.topology}, {link.gb_s:g} GB/s" for level, link in links.items())
    )
