"""The command bench."""

from __future__ import annotations

from enum import Enum
from math import prod
from typing import Annotated, cast

import typer

import pidcomm
from pidcomm._rows import OverlapName
from pidcomm.arguments import AUTO, Options, options_of
from pidcomm.bench import platform
from pidcomm.bench.ablation import COLLECTIVES as ABLATED
from pidcomm.bench.ablation import STEPS, Assumed, Step, ablate, steps_for
from pidcomm.bench.measure import Scratch, creation_us, make_transfers_alike, measure_sdk
from pidcomm.bench.over_hosts import HostsCase
from pidcomm.bench.report import (
    Report,
    ablation_header,
    header,
    section_header,
    show_over_hosts,
    summary,
)
from pidcomm.bench.results import Results
from pidcomm.bench.sweep import Wanted, affordable, halved_to_fit, parse_shapes, parse_sweeps
from pidcomm.bench.timing import COMPARED, Row, Schedule, measure_rows
from pidcomm.cli.app import (
    BytesOption,
    OpOption,
    ThreadsOption,
    WideOption,
    check_op,
    command,
    exit_if_wrong,
    json_option,
    refuse,
    working,
)
from pidcomm.cli.completion import complete_list, complete_masks
from pidcomm.sizes import parse_names, parse_positive_size
from pidcomm.tables import COLLECTIVES, ISAS, TECHNIQUES, TYPES, techniques_for

ONLY_ONE_HOST = (
    *(
        "--dtype",
        "--op",
        "--threads",
        "--isa",
        "--coherence",
        "--sdk-flush",
        "--sweep",
        "--quick",
        "--limit",
    ),
    *(
        "--no-limit",
        "--summary",
        "--no-summary",
        "--ablation",
        "--launch-us",
        "--load-us",
        "--hugepages",
    ),
)
QUICK = Schedule(iters=3, warmup=1, with_limit=False)


class Coherence(str, Enum):
    """The coherence policies."""

    none = "none"
    hardware = "hardware"


class SdkFlush(str, Enum):
    """How often the emulated SDK flushes under policy `hardware`."""

    once = "once"
    stock = "stock"


class Switch(str, Enum):
    """On or off."""

    on = "on"
    off = "off"


@command(
    "pidcomm bench --quick",
    "pidcomm bench all --mask all --sweep pes=64..1024",
    "pidcomm bench alltoall --sweep bytes=8KiB..1MiB --dtype int8,int64 --json rows.jsonl",
    "pidcomm bench reduce --coherence hardware --technique all --json -",
    "pidcomm bench --ablation",
)
def bench(
    collectives: Annotated[
        list[str] | None,
        typer.Argument(
            help="Collectives, or all (default).",
            metavar="[COLLECTIVE]...",
            autocompletion=complete_list(COLLECTIVES),
        ),
    ] = None,
    shapes: Annotated[
        str, typer.Option("--shape", help="Shapes: axis lengths, x first.")
    ] = "32x32",
    masks: Annotated[
        str,
        typer.Option(
            "--mask",
            help="Axis masks, or all.",
            autocompletion=complete_masks,
        ),
    ] = "10",
    size: BytesOption = "1MiB",
    dtypes: Annotated[
        str,
        typer.Option("--dtype", help="Element types, or all.", autocompletion=complete_list(TYPES)),
    ] = "int32",
    op: OpOption = "sum",
    technique: Annotated[
        str,
        typer.Option(
            "--technique",
            help=f"Techniques, or all: {', '.join(TECHNIQUES)}, {AUTO}.",
            autocompletion=complete_list([*TECHNIQUES, AUTO]),
        ),
    ] = ",".join(COMPARED),
    threads: ThreadsOption = 0,
    isas: Annotated[
        str,
        typer.Option(
            "--isa",
            help="Instruction sets, or all.",
            autocompletion=complete_list(name for name, isa in ISAS.items() if isa.is_available),
        ),
    ] = pidcomm.DEFAULT_ISA,
    coherence: Annotated[
        Coherence,
        typer.Option(
            "--coherence", metavar="none|hardware", help="hardware flushes the CPU caches."
        ),
    ] = Coherence.none,
    sdk_flush: Annotated[
        SdkFlush,
        typer.Option(
            "--sdk-flush",
            metavar="once|stock",
            help="Flushes per SDK transfer.",
        ),
    ] = SdkFlush.once,
    sweep: Annotated[
        list[str] | None,
        typer.Option(
            "--sweep",
            metavar="NAME=VALUES",
            help="Such as bytes=8KiB..8MiB or pes=64,128.",
        ),
    ] = None,
    quick: Annotated[
        bool,
        typer.Option("--quick", help="Few rounds, no limit, sizes that fit in memory."),
    ] = False,
    iters: Annotated[int, typer.Option("--iters", min=1, help="Number of timed rounds.")] = 10,
    warmup: Annotated[int, typer.Option("--warmup", min=0, help="Rounds before timing.")] = 2,
    limit: Annotated[
        bool,
        typer.Option("--limit/--no-limit", help="Measure the streaming limit."),
    ] = True,
    has_summary: Annotated[
        bool | None,
        typer.Option(
            "--summary/--no-summary",
            help="Print the range of limit% and speed-up.",
        ),
    ] = None,
    ablation: Annotated[
        bool,
        typer.Option(
            "--ablation",
            help="Compare the paper's steps pr, im, cm with tile.",
        ),
    ] = False,
    launch_us: Annotated[
        float, typer.Option("--launch-us", min=0, help="Assumed us per PE launch.")
    ] = Assumed.launch_us,
    load_us: Annotated[
        float, typer.Option("--load-us", min=0, help="Assumed us per load.")
    ] = Assumed.load_us,
    hugepages: Annotated[
        Switch,
        typer.Option("--hugepages", metavar="on|off", help="Use huge pages for emulated MRAM."),
    ] = Switch.on,
    is_wide: WideOption = False,
    hosts: Annotated[
        int | None, typer.Option("--hosts", min=1, help="MPI processes, a host of --shape each.")
    ] = None,
    overlap: Annotated[
        str, typer.Option("--overlap", help="With --hosts: auto, on, off.")
    ] = "auto",
    link: Annotated[
        float | None, typer.Option("--link", help="With --hosts: GB/s of a link.")
    ] = None,
    json_target: Annotated[str | None, json_option("a JSON line per row")] = None,
) -> None:
    """Time collectives and the streaming limit; check every element.

    Separate values by commas; every combination runs. Cases too large for memory are skipped. algbw
    is the larger side summed over PEs, divided by t_p50 + pe_us, in GB/s. bus is the bytes read and
    written, divided by t_p50. limit% is bus in percent of the rate of the fastest copy of as many
    bytes. speed-up is over conventional. pe_us is the modelled time of PE reordering.
    """
    sweeps = parse_sweeps(sweep or ())
    names = ",".join(collectives or (ABLATED if ablation else ["all"]))
    chosen = parse_names(names, COLLECTIVES, "collective")
    check_op(chosen)
    if hosts is not None:
        refuse(ONLY_ONE_HOST, "--hosts measures int32 sums with default options")
        known = parse_names(technique, TECHNIQUES, "technique")
        cases = [
            HostsCase(
                name,
                (*shape, hosts),
                mask + "1",
                size_bytes,
                used,
                cast("OverlapName", overlap),
                link,
            )
            for shape in parse_shapes(shapes, None)
            for mask in masks.split(",")
            for size_bytes in [parse_positive_size(size)]
            for name in chosen
            for used in known
            if TECHNIQUES[used].is_for(COLLECTIVES[name])
        ]
        with Results(json_target) as results, working(f"{hosts} processes"):
            wrong_here = show_over_hosts(results, cases, iters, warmup, is_wide=is_wide)
        exit_if_wrong(wrong_here)
        return
    refuse(["--overlap", "--link"], "it is for --hosts")
    if coherence is Coherence.none:
        refuse(["--sdk-flush"], "coherence none flushes nothing; use --coherence hardware")
    if not platform.IS_EMULATED:
        refuse(["--sdk-flush", "--hugepages"], "it is for emulated DIMMs")
    if quick:
        refuse(["--iters", "--warmup", "--limit", "--no-limit"], "--quick sets it")
    if ablation:
        refuse(["--technique", "--no-limit", "--summary"], "--ablation sets it")
    else:
        refuse(["--launch-us", "--load-us"], "it is for --ablation")
    known = [*TECHNIQUES, AUTO]
    techniques = {
        name: list(STEPS)
        if ablation
        else parse_names(technique, known, "technique", techniques_for(name))
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
        parse_names(
            isas,
            ISAS,
            "ISA",
            [name for name, isa in ISAS.items() if isa.is_available and isa.level > 0],
        ),
        techniques,
    )
    if quick:
        iters, warmup, limit = QUICK.iters, QUICK.warmup, QUICK.with_limit
    schedule = Schedule(iters, warmup, limit or ablation)
    if platform.IS_EMULATED:
        platform.configure(hugepages=hugepages is Switch.on)
    options: Options = {"coherence": coherence.value, "threads": threads or platform.threads()}
    sections, refusals = wanted.sections(options)
    pidcomm.allocate(pes=max((section.pes for section in sections), default=1)).free()
    sections, unaffordable = affordable(sections, every)
    refusals += unaffordable
    if not sections:
        raise refusals[0]
    make_transfers_alike(options, sdk_flush.value)
    problems = [problem for section in sections for problem in section.problems]
    rounds = len(problems) * (iters + warmup)
    checks = sum(
        len(steps_for(it, options) if ablation else techniques[it.collective]) for it in problems
    )
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
                        of_problem = measure_rows(
                            pes, problem, techniques[problem.collective], *common
                        ).rows
                        rows += of_problem
                    wrong += sum(row.wrong for row in of_problem)
                    report.rows(of_problem)
        if ablation:
            has_summary = False
        if has_summary or (has_summary is None and len(problems) > len(wanted.collectives)):
            report.comment(summary(rows))
        results.text(
            f"every element compared with the oracle: {wrong} wrong",
            style="red" if wrong else "green",
        )
    exit_if_wrong(wrong)
