"""The command bench."""

from __future__ import annotations

from enum import Enum
from math import prod
from typing import Annotated

import typer

import pidcomm
from pidcomm.arguments import AUTO, Options, options_of
from pidcomm.cli.app import (
    BytesOption,
    OpOption,
    ThreadsOption,
    WideOption,
    command,
    exit_if_wrong,
    json_option,
    working,
)
from pidcomm.cli.completion import complete_list, complete_masks
from pidcomm.evaluation import platform
from pidcomm.evaluation.ablation import COLLECTIVES as ABLATED
from pidcomm.evaluation.ablation import STEPS, Assumed, Step, ablate, steps_for
from pidcomm.evaluation.bench import COMPARED, Row, Schedule, measure_rows
from pidcomm.evaluation.measure import Scratch, creation_us, make_transfers_alike, measure_sdk
from pidcomm.evaluation.report import Report, ablation_header, header, section_header, summary
from pidcomm.evaluation.results import Results
from pidcomm.evaluation.sweep import Wanted, affordable, halved_to_fit, parse_shapes, parse_sweeps
from pidcomm.sizes import parse_names, parse_positive_size
from pidcomm.tables import COLLECTIVES, ISAS, TECHNIQUES, TYPES, techniques_for


QUICK = Schedule(iters=3, warmup=1, with_limit=False)


class Coherence(str, Enum):
    """The coherence policies."""

    none = "none"
    hardware = "hardware"


class SdkFlush(str, Enum):
    """Flushes of the emulated SDK, the opponent, under policy `hardware`."""

    once = "once"
    stock = "stock"


class Switch(str, Enum):
    """On or off."""

    on = "on"
    off = "off"


@command(
    "pidcomm bench --quick",
    "pidcomm bench all --shape 32x32 --mask 10 --bytes 1MiB",
    "pidcomm bench all --mask all --sweep pes=64..1024",
    "pidcomm bench alltoall --sweep bytes=8KiB..1MiB --dtype int8,int64 --json rows.jsonl",
    "pidcomm bench reduce allreduce --coherence hardware --technique all --json -",
    "pidcomm bench --ablation",
)
def bench(
    collectives: Annotated[
        list[str] | None,
        typer.Argument(
            help="Collectives, or all (default): " + ", ".join(COLLECTIVES) + ".",
            autocompletion=complete_list(COLLECTIVES),
        ),
    ] = None,
    shapes: Annotated[
        str, typer.Option("--shape", help="Axis lengths, x first; several separated by commas.")
    ] = "32x32",
    masks: Annotated[
        str,
        typer.Option(
            "--mask",
            help="Axis masks, separated by commas, or all: every mask that selects an axis.",
            autocompletion=complete_masks,
        ),
    ] = "10",
    size: BytesOption = "1MiB",
    dtypes: Annotated[
        str,
        typer.Option(
            "--dtype", help="Element types, separated by commas, or all.", autocompletion=complete_list(TYPES)
        ),
    ] = "int32",
    op: OpOption = "sum",
    technique: Annotated[
        str,
        typer.Option(
            "--technique",
            help="Techniques, separated by commas, or all that the collective has: "
            + ", ".join(TECHNIQUES)
            + f"; or {AUTO}, the one that is predicted to be the fastest.",
            autocompletion=complete_list([*TECHNIQUES, AUTO]),
        ),
    ] = ",".join(COMPARED),
    threads: ThreadsOption = 0,
    isas: Annotated[
        str,
        typer.Option(
            "--isa",
            help="Instruction sets, separated by commas, or all that run here (except audit).",
            autocompletion=complete_list(name for name, isa in ISAS.items() if isa.is_available),
        ),
    ] = pidcomm.DEFAULT_ISA,
    coherence: Annotated[
        Coherence, typer.Option("--coherence", help="Policy: hardware flushes as on DIMMs.")
    ] = Coherence.none,
    sdk_flush: Annotated[
        SdkFlush,
        typer.Option(
            "--sdk-flush",
            help="Flushes of the emulated SDK under policy hardware: once, as the collectives, or as the stock SDK, "
            "before and after each transfer.",
        ),
    ] = SdkFlush.once,
    sweep: Annotated[
        list[str] | None,
        typer.Option(
            "--sweep",
            help="bytes=8KiB..8MiB or pes=64..1024 (powers of two from first to last), or a list as bytes=8KiB,96KiB; "
            "instead of --bytes, or of the lengths of --shape: each number of PEs gets as many axes, powers of two as "
            "even as possible, larger ones first (128 PEs: 16x8). May be given for both.",
        ),
    ] = None,
    quick: Annotated[
        bool,
        typer.Option(
            "--quick", help="3 rounds after 1, no limit; halves the size until the memory of this machine suffices."
        ),
    ] = False,
    iters: Annotated[int, typer.Option("--iters", min=1, help="Timed rounds.")] = 10,
    warmup: Annotated[int, typer.Option("--warmup", min=0, help="Untimed rounds before.")] = 2,
    limit: Annotated[
        bool,
        typer.Option("--limit/--no-limit", help="Measure the streaming limit, in every order, beside every row."),
    ] = True,
    has_summary: Annotated[
        bool | None,
        typer.Option(
            "--summary/--no-summary",
            help="End with the spread of limit% and speed-up of every collective (default: if it has several rows).",
        ),
    ] = None,
    ablation: Annotated[
        bool,
        typer.Option(
            "--ablation",
            help="Compare conventional, the steps of the PID-Comm paper and tile, and tell where each spends its time "
            "(instead of --technique; default collectives: " + ", ".join(ABLATED) + ").",
        ),
    ] = False,
    launch_us: Annotated[
        float, typer.Option("--launch-us", min=0, help="Ablation: what a launch is assumed to take on DIMMs.")
    ] = Assumed.launch_us,
    load_us: Annotated[
        float, typer.Option("--load-us", min=0, help="Ablation: what loading a program is assumed to take on DIMMs.")
    ] = Assumed.load_us,
    hugepages: Annotated[Switch, typer.Option("--hugepages", help="Huge pages under the emulated MRAM.")] = Switch.on,
    is_wide: WideOption = False,
    json_target: Annotated[str | None, json_option("a JSON line per row")] = None,
) -> None:
    """Time collectives beside the streaming limit, and check them.

    Covers every combination of what is given; a mask goes with the shapes that have as many axes. Sizes that the memory
    of this machine or a rule of the collective forbids are left out, and named; if nothing is left that is an error.

    Columns: times in us: whole calls; calls except the pass over memory (outside); planning in the first call; PEs, if
    they reorder blocks (pe_us, modelled, and not in the other times; source is mixed then). algbw: larger side summed
    over PEs / (t_p50 + pe_us). speed-up: over conventional, of t_p50 + pe_us. Neither has launches and loads of
    programs, which total_us of --ablation has. bus: bytes read and written / t_p50. limit%: bus in percent of a
    streaming pass over the same bytes, in the order that is quickest here (limit by). wrong: elements. 1 GB is 1e9
    bytes.
    """
    sweeps = parse_sweeps(sweep or ())
    names = ",".join(collectives or (ABLATED if ablation else ["all"]))
    chosen = parse_names(names, COLLECTIVES, "collective")
    known = [*TECHNIQUES, AUTO]
    techniques = {
        name: list(STEPS) if ablation else parse_names(technique, known, "technique", techniques_for(name))
        for name in chosen
    }
    assumed = Assumed(launch_us, load_us)
    of_shapes = parse_shapes(shapes, sweeps.get("pes"))
    sizes_bytes = sweeps.get("bytes") or [parse_positive_size(size)]
    every = {name for names in techniques.values() for name in names}
    if quick:
        most = max(map(prod, of_shapes))
        sizes_bytes = [halved_to_fit(most, size_bytes, every) for size_bytes in sizes_bytes]
    wanted = Wanted(
        chosen,
        of_shapes,
        sizes_bytes,
        masks,
        parse_names(dtypes, TYPES, "dtype"),
        op,
        parse_names(isas, ISAS, "ISA", [name for name, isa in ISAS.items() if isa.is_available and isa.level > 0]),
        techniques,
    )
    if quick:
        iters, warmup, limit = QUICK.iters, QUICK.warmup, QUICK.with_limit
    schedule = Schedule(iters, warmup, limit or ablation)
    if platform.IS_EMULATED:
        platform.configure(hugepages=hugepages is Switch.on)
    options: Options = {"coherence": coherence.value, "threads": threads or platform.threads()}
    sections, refusals = wanted.sections(options)
    pidcomm.allocate(pes=max((section.pes for section in sections), default=1)).free()  # are there so many?
    sections, unaffordable = affordable(sections, every)
    refusals += unaffordable
    if not sections:
        raise refusals[0]
    make_transfers_alike(options, sdk_flush.value)
    problems = [problem for section in sections for problem in section.problems]
    rounds = len(problems) * (iters + warmup)
    checks = sum(len(steps_for(it, options) if ablation else techniques[it.collective]) for it in problems)
    rows: list[Row] = []
    wrong = 0
    with Results(json_target) as results, working("filling memory", rounds + checks) as work:
        scratch = Scratch(problems)
        report = Report(results, is_wide=is_wide)
        report.comment(header(options))
        report.comment(ablation_header(assumed) if ablation else ())
        report.skipped(refusals)
        for section in sections:
            options |= options_of(isa=section.isa)
            work.describe(f"allocating {section.pes} PEs")
            with pidcomm.allocate(pes=section.pes) as pes:
                cube = pes.hypercube(*section.shape)
                work.describe("timing the transfers of the emulated SDK")
                condition = measure_sdk(cube, section.size_bytes, options, scratch)
                report.comment(section_header(section, condition, creation_us(pes, section.shape)))
                for problem in section.problems:
                    work.describe(problem.collective)
                    common = (options, schedule, scratch, condition, work.step)
                    of_problem: list[Row] | list[Step]
                    if ablation:
                        of_problem = ablate(pes, problem, assumed, *common)
                    else:
                        of_problem = measure_rows(pes, problem, techniques[problem.collective], *common).rows
                        rows += of_problem
                    wrong += sum(row.wrong for row in of_problem)
                    report.rows(of_problem)
        if ablation:
            has_summary = False
        if has_summary or (has_summary is None and len(problems) > len(wanted.collectives)):
            report.comment(summary(rows))
        results.text(f"every element compared with the oracle: {wrong} wrong", style="red" if wrong else "green")
    exit_if_wrong(wrong)
