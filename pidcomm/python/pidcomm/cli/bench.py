"""The command bench."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from math import prod
from typing import Annotated, cast

import typer

import pidcomm
from pidcomm._rows import CollectiveName, OverlapName
from pidcomm.arguments import AUTO, Options, options_of
from pidcomm.bench import platform
from pidcomm.bench.ablation import COLLECTIVES as ABLATED
from pidcomm.bench.ablation import STEPS, Assumed, Step, ablate, steps_for
from pidcomm.bench.measure import Scratch, creation_us, make_transfers_alike, measure_sdk
from pidcomm.bench.oracle import Problem
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
from pidcomm.bench.sweep import (
    Section,
    Wanted,
    affordable,
    halved_to_fit,
    parse_shapes,
    parse_sweeps,
)
from pidcomm.bench.timing import COMPARED, Row, Schedule, measure_rows
from pidcomm.cli.app import Work, check_op, command, exit_if_wrong, refuse, working
from pidcomm.cli.completion import complete_list, complete_masks
from pidcomm.cli.options import OpOption, ThreadsOption, WideOption, json_option
from pidcomm.errors import Error
from pidcomm.sizes import parse_names, parse_positive_size
from pidcomm.tables import COLLECTIVES, ISAS, TECHNIQUES, TYPES, techniques_for

__all__ = ["Coherence", "bench"]

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
TECHNIQUES_COMPARED = ",".join(COMPARED)
QUICK = Schedule(iters=3, warmup=1, with_limit=False)
SIZE, QUICK_SIZE = "1MiB", "64KiB"


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


CollectivesArgument = Annotated[
    list[str] | None,
    typer.Argument(
        help="Collectives, or all (default).",
        metavar="[COLLECTIVE]...",
        autocompletion=complete_list(COLLECTIVES),
    ),
]
ShapesOption = Annotated[str, typer.Option("--shape", help="Shapes: axis lengths, x first.")]
MasksOption = Annotated[
    str,
    typer.Option(
        "--mask",
        help="Axis masks, or all.",
        autocompletion=complete_masks,
    ),
]
DtypesOption = Annotated[
    str,
    typer.Option("--dtype", help="Element types, or all.", autocompletion=complete_list(TYPES)),
]
TechniquesOption = Annotated[
    str,
    typer.Option(
        "--technique",
        help=f"Techniques, or all: {', '.join(TECHNIQUES)}, {AUTO}.",
        autocompletion=complete_list([*TECHNIQUES, AUTO]),
    ),
]
IsasOption = Annotated[
    str,
    typer.Option(
        "--isa",
        help="Instruction sets, or all.",
        autocompletion=complete_list(name for name, isa in ISAS.items() if isa.is_available),
    ),
]
CoherenceOption = Annotated[
    Coherence,
    typer.Option("--coherence", metavar="none|hardware", help="hardware flushes the CPU caches."),
]
SdkFlushOption = Annotated[
    SdkFlush,
    typer.Option(
        "--sdk-flush",
        metavar="once|stock",
        help="Flushes per SDK transfer.",
    ),
]
SweepOption = Annotated[
    list[str] | None,
    typer.Option(
        "--sweep",
        metavar="NAME=VALUES",
        help="Such as bytes=8KiB..8MiB, pes=64,128 or axes=8x8.",
    ),
]
QuickOption = Annotated[
    bool,
    typer.Option("--quick", help="Few rounds, no limit, sizes that fit in memory."),
]
ItersOption = Annotated[int, typer.Option("--iters", min=1, help="Number of timed rounds.")]
WarmupOption = Annotated[int, typer.Option("--warmup", min=0, help="Rounds before timing.")]
LimitOption = Annotated[
    bool,
    typer.Option("--limit/--no-limit", help="Measure the streaming limit."),
]
SummaryOption = Annotated[
    bool | None,
    typer.Option(
        "--summary/--no-summary",
        help="Print the range of limit% and speed-up.",
    ),
]
AblationOption = Annotated[
    bool,
    typer.Option(
        "--ablation",
        help="Compare the paper's steps pr, im, cm with tile.",
    ),
]
LaunchOption = Annotated[
    float, typer.Option("--launch-us", min=0, help="Assumed us per PE launch.")
]
LoadOption = Annotated[float, typer.Option("--load-us", min=0, help="Assumed us per load.")]
HugepagesOption = Annotated[
    Switch,
    typer.Option("--hugepages", metavar="on|off", help="Use huge pages for emulated MRAM."),
]
SizesOption = Annotated[
    str | None,
    typer.Option("--bytes", help=f"Sizes per PE (default: {SIZE}; --quick: {QUICK_SIZE})."),
]
HostsOption = Annotated[
    int | None, typer.Option("--hosts", min=1, help="MPI processes, a host of --shape each.")
]
OverlapOption = Annotated[str, typer.Option("--overlap", help="With --hosts: auto, on, off.")]
LinkOption = Annotated[float | None, typer.Option("--link", help="With --hosts: GB/s of a link.")]
JsonOption = Annotated[str | None, json_option("a JSON line per row")]


@command(
    "pidcomm bench --quick",
    "pidcomm bench all --mask all --sweep pes=64..1024",
    "pidcomm bench alltoall --sweep bytes=8KiB..1MiB --dtype int8 --json rows.jsonl",
    "pidcomm bench reduce --coherence hardware --technique all --json -",
    "pidcomm bench --ablation",
)
def bench(
    collectives: CollectivesArgument = None,
    shapes: ShapesOption = "32x32",
    masks: MasksOption = "10",
    sizes: SizesOption = None,
    dtypes: DtypesOption = "int32",
    op: OpOption = "sum",
    technique: TechniquesOption = TECHNIQUES_COMPARED,
    threads: ThreadsOption = 0,
    isas: IsasOption = pidcomm.DEFAULT_ISA,
    coherence: CoherenceOption = Coherence.none,
    sdk_flush: SdkFlushOption = SdkFlush.once,
    sweep: SweepOption = None,
    quick: QuickOption = False,
    iters: ItersOption = 10,
    warmup: WarmupOption = 2,
    limit: LimitOption = True,
    has_summary: SummaryOption = None,
    ablation: AblationOption = False,
    launch_us: LaunchOption = Assumed.launch_us,
    load_us: LoadOption = Assumed.load_us,
    hugepages: HugepagesOption = Switch.on,
    is_wide: WideOption = False,
    hosts: HostsOption = None,
    overlap: OverlapOption = "auto",
    link: LinkOption = None,
    json_target: JsonOption = None,
) -> None:
    """Time collectives and the streaming limit; check every element.

    Separate values by commas; every combination runs. Cases too large for memory are skipped. algbw
    is the larger side summed over PEs, divided by t_p50 + pe_us, in GB/s. bus is the bytes read and
    written, divided by t_p50. limit% is the median of bus in percent of the fastest copy in the
    same round. speed-up is over conventional. pe_us is the modelled time of PE reordering.
    """
    sweeps = parse_sweeps(sweep or ())
    if "bytes" in sweeps:
        refuse(["--bytes"], "--sweep gives the bytes per PE")
    if sizes is None:
        sizes = QUICK_SIZE if quick else SIZE
    sizes_bytes = sweeps.get("bytes") or [parse_positive_size(size) for size in sizes.split(",")]
    names = ",".join(collectives or (ABLATED if ablation else ["all"]))
    chosen = parse_names(names, COLLECTIVES, "collective")
    check_op(chosen)
    if hosts is not None:
        refuse(ONLY_ONE_HOST, "--hosts measures int32 sums with default options")
        of_hosts = (hosts, cast("OverlapName", overlap), link)
        cases = _cases_over_hosts(chosen, shapes, masks, sizes_bytes, technique, *of_hosts)
        with Results(json_target) as results, working(f"{hosts} processes"):
            wrong = show_over_hosts(results, cases, iters, warmup, is_wide=is_wide)
        exit_if_wrong(wrong)
        return
    _refuse_unused(coherence, is_quick=quick, is_ablation=ablation)
    techniques = {
        name: list(STEPS)
        if ablation
        else parse_names(technique, [*TECHNIQUES, AUTO], "technique", techniques_for(name))
        for name in chosen
    }
    shapes_of_run = parse_shapes(shapes, sweeps.get("pes"))
    every = {name for names in techniques.values() for name in names}
    if quick:
        most = max(map(prod, shapes_of_run))
        sizes_bytes = [halved_to_fit(most, size_bytes, every) for size_bytes in sizes_bytes]
        iters, warmup, limit = QUICK.iters, QUICK.warmup, QUICK.with_limit
    wanted = Wanted(
        chosen,
        shapes_of_run,
        sizes_bytes,
        masks,
        parse_names(dtypes, TYPES, "dtype"),
        op,
        _parse_isas(isas),
        techniques,
    )
    if platform.IS_EMULATED:
        platform.configure(hugepages=hugepages is Switch.on)
    options: Options = {"coherence": coherence.value, "threads": threads or platform.threads()}
    sections, refusals = _sections_that_fit(wanted, options, every)
    make_transfers_alike(options, sdk_flush.value)
    benchmark = _Benchmark(
        sections,
        techniques,
        Schedule(iters, warmup, limit or ablation),
        options,
        Assumed(launch_us, load_us) if ablation else None,
    )
    with Results(json_target) as results, working("filling memory", benchmark.steps()) as work:
        report = Report(results, is_wide=is_wide)
        rows, wrong = benchmark.run(report, refusals, work)
        has_several = len(benchmark.problems) > len(chosen)
        if not ablation and (has_several if has_summary is None else has_summary):
            report.comment(summary(rows))
        results.text(
            f"every element compared with the oracle: {wrong} wrong",
            style="red" if wrong else "green",
        )
    exit_if_wrong(wrong)


def _cases_over_hosts(
    collectives: Iterable[CollectiveName],
    shapes: str,
    masks: str,
    sizes_bytes: Sequence[int],
    technique: str,
    hosts: int,
    overlap: OverlapName,
    link: float | None,
) -> list[HostsCase]:
    """Return the cases over several hosts; the hosts are the last axis, which is selected."""
    known = parse_names(technique, TECHNIQUES, "technique")
    return [
        HostsCase(name, (*shape, hosts), mask + "1", size_bytes, used, overlap, link)
        for shape in parse_shapes(shapes, None)
        for mask in masks.split(",")
        for size_bytes in sizes_bytes
        for name in collectives
        for used in known
        if TECHNIQUES[used].is_for(COLLECTIVES[name])
    ]


def _refuse_unused(coherence: Coherence, *, is_quick: bool, is_ablation: bool) -> None:
    """Raise ArgumentError if the command line gives an option that has no effect on one host."""
    refuse(["--overlap", "--link"], "it is for --hosts")
    if coherence is Coherence.none:
        refuse(["--sdk-flush"], "coherence none flushes nothing; use --coherence hardware")
    if not platform.IS_EMULATED:
        refuse(["--sdk-flush", "--hugepages"], "it is for emulated DIMMs")
    if is_quick:
        refuse(["--iters", "--warmup", "--limit", "--no-limit"], "--quick sets it")
    if is_ablation:
        refuse(["--technique", "--no-limit", "--summary"], "--ablation sets it")
    else:
        refuse(["--launch-us", "--load-us"], "it is for --ablation")


def _parse_isas(text: str) -> list[str]:
    every = [name for name, isa in ISAS.items() if isa.is_available and isa.level > 0]
    return parse_names(text, ISAS, "ISA", every)


def _sections_that_fit(
    wanted: Wanted, options: Options, techniques: Collection[str]
) -> tuple[list[Section], list[Error]]:
    """Return the sections that the machine can run, and the errors of the other ones.

    Raises the first error if no section can run, and Error if the machine has fewer PEs.
    """
    sections, refusals = wanted.sections(options)
    pidcomm.allocate(pes=max((section.pes for section in sections), default=1)).free()
    sections, unaffordable = affordable(sections, techniques)
    refusals += unaffordable
    if not sections:
        raise refusals[0]
    return sections, refusals


@dataclass
class _Benchmark:
    """The calls of a benchmark on one host. assumed: the costs that an ablation assumes; None
    measures techniques.
    """

    sections: list[Section]
    techniques: Mapping[str, Sequence[str]]
    schedule: Schedule
    options: Options
    assumed: Assumed | None

    @property
    def problems(self) -> list[Problem]:
        """Return the cases of all sections."""
        return [problem for section in self.sections for problem in section.problems]

    def steps(self) -> int:
        """Return the number of timed rounds and of checks."""
        rounds = len(self.problems) * (self.schedule.iters + self.schedule.warmup)
        return rounds + sum(
            len(
                self.techniques[problem.collective]
                if self.assumed is None
                else steps_for(problem, self.options)
            )
            for problem in self.problems
        )

    def run(self, report: Report, refusals: Iterable[Error], work: Work) -> tuple[list[Row], int]:
        """Run and report all calls. Return the rows of techniques and the number of wrong
        elements.
        """
        rows: list[Row] = []
        wrong = 0
        scratch = Scratch(self.problems)
        report.comment(header(self.options, report.facts))
        report.comment(() if self.assumed is None else ablation_header(self.assumed))
        report.skipped(refusals)
        for section in self.sections:
            options = self.options | options_of(isa=section.isa)
            work.describe(f"allocating {section.pes} PEs")
            with pidcomm.allocate(pes=section.pes) as pes:
                cube = pes.hypercube(*section.shape)
                work.describe("timing the transfers of the emulated SDK")
                condition = measure_sdk(cube, section.size_bytes, options, scratch)
                report.comment(section_header(section, condition, creation_us(pes, section.shape)))
                for problem in section.problems:
                    work.describe(problem.collective)
                    common = (options, self.schedule, scratch, condition, work.step)
                    of_problem: list[Row] | list[Step]
                    if self.assumed is not None:
                        of_problem = ablate(pes, problem, self.assumed, *common)
                    else:
                        names = self.techniques[problem.collective]
                        of_problem = measure_rows(pes, problem, names, *common).rows
                        rows += of_problem
                    wrong += sum(row.wrong for row in of_problem)
                    report.rows(of_problem)
        return rows, wrong
