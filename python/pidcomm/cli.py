"""The command line. Exit codes: 0 all right, 1 a wrong result, 2 a usage error or one that the library reports."""

from __future__ import annotations

import json
import os
import shlex
from enum import Enum
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from typer.core import TyperGroup

import pidcomm
from pidcomm import _core, sdk
from pidcomm import info as information
from pidcomm import run as running
from pidcomm.ablation import COLLECTIVES as ABLATED
from pidcomm.ablation import STEPS, Assumed, Step, ablate, techniques_for
from pidcomm.arguments import Options
from pidcomm.bench import COMPARED, Row, Schedule, measure_rows
from pidcomm.check import Checker, make_case
from pidcomm.demo import Demo
from pidcomm.errors import Error
from pidcomm.explain import explain
from pidcomm.measure import Scratch, creation_us, make_transfers_alike, measure_sdk, require_memory
from pidcomm.report import Report, ablation_header, header, section_header, summary
from pidcomm.sizes import format_shape, format_size, parse_names, parse_positive_size, parse_shape, parse_size
from pidcomm.sweep import Wanted, affordable, parse_shapes, parse_sweeps
from pidcomm.tables import COLLECTIVES, ISAS, TECHNIQUES, TYPES

WRONG_RESULT, USAGE_ERROR = 1, 2
MIN_WIDTH = 110
WIDE = 300  # more than a table of launches needs


class _Group(TyperGroup):
    """Turn the library's errors into one line and an exit code."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except Error as error:
            typer.echo(f"pidcomm: {error}", err=True)
            raise typer.Exit(USAGE_ERROR) from None


app = typer.Typer(
    cls=_Group,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Collective communication between the PEs of processing-in-DIMM machines.\n\n"
    "Exit codes: 0 everything right, 1 a wrong result, 2 a usage error or an error of the library.",
)


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


ShapeOption = Annotated[str, typer.Option("--shape", help="Axis lengths, x first.")]
MaskOption = Annotated[str, typer.Option("--mask", help="Axis mask: one 0 or 1 per axis.")]
BytesOption = Annotated[str, typer.Option("--bytes", help="Bytes per PE: 4096, 64KiB, 1MiB, 1e6.")]
DtypeOption = Annotated[str, typer.Option("--dtype", help="Element type.")]
OpOption = Annotated[str, typer.Option("--op", help="Operator of reductions.")]
ArtifactOption = Annotated[
    bool, typer.Option("--artifact", help="Programs of the published artifact find <pidcomm.h>.")
]
ThreadsOption = Annotated[int, typer.Option("--threads", help="Host threads, 0 for all CPUs.")]


def _console(*, stderr: bool = False) -> Console:
    console = Console(stderr=stderr, highlight=False)
    if not console.is_terminal:
        console.width = max(console.width, MIN_WIDTH)
    return console


def _progress() -> Progress:
    """Return a progress bar on stderr, shown on terminals only."""
    console = _console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)


def _exit_if_wrong(wrong: int) -> None:
    if wrong:
        raise typer.Exit(WRONG_RESULT)


@app.command()
def info() -> None:
    """Tell version, instruction sets, threads, the emulated machine, and all names.

    Example:  pidcomm info
    """
    for name, value in information.report():
        typer.echo(f"{name + ':':18} {value}")


@app.command()
def demo(
    shape: ShapeOption = "32x32",
    mask: MaskOption = "10",
    size: BytesOption = "1MiB",
) -> None:
    """Run the eight collectives beside the conventional way and check every element.

    Halves the size until the memory of this machine suffices.

    Examples:  pidcomm demo   |   pidcomm demo --shape 8x8x4 --mask 110 --bytes 64KiB
    """
    lengths, size_bytes = parse_shape(shape), parse_positive_size(size)
    with pidcomm.allocate(pes=_pes(lengths)) as pes:
        size_bytes = _affordable(pes.pes, size_bytes)
        it = Demo(pes, lengths, mask, size_bytes)
        condition = it.condition()
        table = Table(
            title=f"{pes.pes} PEs as {format_shape(lengths)}, mask {mask}, int32, {format_size(size_bytes)} per PE"
        )
        table.add_column("collective")
        for technique in COMPARED:
            table.add_column(f"{technique} ms", justify="right")
            table.add_column("GB/s", justify="right")
        table.add_column("speed-up", justify="right")
        table.add_column("wrong", justify="right")
        wrong = 0
        with _progress() as progress:
            task = progress.add_task("collectives", total=len(it.problems))
            for problem, rows in it.rows(condition):
                progress.update(task, advance=1, description=problem.collective)
                cells = [f"{value:.2f}" for row in rows for value in (row.t_p50_us / 1e3, row.algbw_gb_s)]
                gain = next((row.speed_up for row in rows if row.technique == "tile"), None)
                row_wrong = sum(row.wrong for row in rows)
                wrong += row_wrong
                table.add_row(problem.collective, *cells, "-" if gain is None else f"{gain:.2f}x", str(row_wrong))
    _console().print(table)
    for line in condition.lines():
        typer.echo(line)
    typer.echo(f"every element compared with the oracle: {wrong} wrong")
    _exit_if_wrong(wrong)


def _affordable(pes: int, size_bytes: int) -> int:
    """Return the size, halved until there is memory for it."""
    while size_bytes > 1 << 13:
        try:
            require_memory(pes, size_bytes, COMPARED)
        except Error:
            size_bytes //= 2
        else:
            break
    return size_bytes


def _pes(shape: tuple[int, ...]) -> int:
    pes = 1
    for length in shape:
        pes *= length
    return max(pes, 1)


@app.command()
def plan(
    collective: Annotated[str, typer.Argument(help="Collective: " + ", ".join(COLLECTIVES) + ".")],
    shape: ShapeOption = "32x32",
    mask: MaskOption = "10",
    size: BytesOption = "1MiB",
    dtype: DtypeOption = "int32",
    op: OpOption = "sum",
    technique: Annotated[str, typer.Option("--technique", help="Technique: " + ", ".join(TECHNIQUES) + ".")] = "tile",
    src: Annotated[str, typer.Option("--src", help="MRAM offset of the source.")] = "0",
    dst: Annotated[
        str | None, typer.Option("--dst", help="MRAM offset of the destination (default: behind the source).")
    ] = None,
    scratch: Annotated[
        str | None,
        typer.Option("--scratch", help="MRAM offset of scratch of pr techniques (default: behind the windows)."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    expand: Annotated[bool, typer.Option("--expand", help="List every step.")] = False,
) -> None:
    """Explain what a collective would do; moves nothing.

    Examples:  pidcomm plan alltoall --shape 32x32 --mask 10 --bytes 1MiB   |   pidcomm plan reduce --json
    """
    size_bytes, src_offset = parse_size(size), parse_size(src)
    dst_offset = src_offset + size_bytes if dst is None else parse_size(dst)
    it = pidcomm.plan(
        collective,
        parse_shape(shape),
        mask,
        bytes=size_bytes,
        src=src_offset,
        dst=dst_offset,
        dtype=dtype,
        op=op,
        expand=expand,
        technique=technique,
        scratch=max(src_offset, dst_offset) + size_bytes if scratch is None else parse_size(scratch),
    )
    for line in [json.dumps(it, indent=2)] if as_json else explain(it):
        typer.echo(line)


@app.command()
def check(
    cases: Annotated[int, typer.Option("--cases", min=0, help="Number of random cases.")] = 500,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed; equal seeds give equal cases.")] = 1,
    case: Annotated[int | None, typer.Option("--case", min=0, help="Run this case of the seed only.")] = None,
) -> None:
    """Compare random collectives with the oracle: every element, and every byte around them.

    Covers shapes (also general ones and partial entangled groups, on a machine with disabled PEs), masks, types,
    operators, sizes, offsets, in place, techniques, instruction sets (with the line counts of audit), threads and
    coherence policies.

    Examples:  pidcomm check --cases 2000   |   pidcomm check --seed 7 --case 123
    """
    numbers = range(cases) if case is None else range(case, case + 1)
    failed = 0
    with Checker() as checker, _progress() as progress:
        for number in progress.track(numbers, description="cases"):
            it = make_case(seed, number)
            if case is not None:
                typer.echo(str(it))
            if (failure := checker.failure(it)) is not None:
                failed += 1
                typer.echo(f"FAILED {it}: {failure}")
    typer.echo(f"{len(numbers) - failed} passed, {failed} failed")
    _exit_if_wrong(failed)


@app.command()
def bench(
    collectives: Annotated[list[str] | None, typer.Argument(help="Collectives, or all (default).")] = None,
    shapes: Annotated[
        str, typer.Option("--shape", help="Axis lengths, x first; several separated by commas.")
    ] = "32x32",
    masks: Annotated[
        str,
        typer.Option("--mask", help="Axis masks, separated by commas, or all: every mask that selects an axis."),
    ] = "10",
    size: BytesOption = "1MiB",
    dtypes: Annotated[str, typer.Option("--dtype", help="Element types, separated by commas, or all.")] = "int32",
    op: OpOption = "sum",
    technique: Annotated[
        str, typer.Option("--technique", help="Techniques, separated by commas, or all: " + ", ".join(TECHNIQUES) + ".")
    ] = ",".join(COMPARED),
    threads: ThreadsOption = 0,
    isas: Annotated[
        str,
        typer.Option("--isa", help="Instruction sets, separated by commas, or all that run here (but for audit)."),
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
    json_target: Annotated[
        str | None,
        typer.Option(
            "--json", help="Write the rows to this file, too, as JSON lines; -: write them to stdout, and nothing else."
        ),
    ] = None,
) -> None:
    """Time collectives beside the streaming limit, and check every row; a wrong one fails.

    Covers every combination of what is given; a mask goes with the shapes that have as many axes. Sizes that the memory
    of this machine or a rule of the collective forbids are left out, and named; if nothing is left that is an error.

    Columns: times in us: whole calls; calls but for the pass over memory (outside); planning in the first call; PEs, if
    they reorder blocks (pe_us, modelled, and not in the other times; source is mixed then). algbw: larger side summed
    over PEs / (t_p50 + pe_us). bus: bytes read and written / t_p50. limit%: bus in percent of a streaming
    pass over the same bytes, in the order that is quickest here (limit by). wrong: elements. 1 GB = 1e9 bytes.

    Examples:  pidcomm bench all --coherence hardware   |   pidcomm bench alltoall allreduce --bytes 512KiB --json
    rows.jsonl   |   pidcomm bench all --shape 32x32,16x8x8 --mask all   |   pidcomm bench reduce --dtype all --isa all
    |   pidcomm bench all --sweep pes=64..1024   |   pidcomm bench alltoall --sweep bytes=8KiB..8MiB   |   pidcomm bench
    --ablation
    """
    sweeps = parse_sweeps(sweep or ())
    names = ",".join(collectives or (ABLATED if ablation else ["all"]))
    techniques = list(STEPS) if ablation else parse_names(technique, TECHNIQUES, "technique")
    assumed = Assumed(launch_us, load_us)
    wanted = Wanted(
        parse_names(names, COLLECTIVES, "collective"),
        parse_shapes(shapes, sweeps.get("pes")),
        sweeps.get("bytes") or [parse_positive_size(size)],
        masks,
        parse_names(dtypes, TYPES, "dtype"),
        op,
        parse_names(isas, ISAS, "ISA", [name for name, isa in ISAS.items() if isa.is_available and isa.rank > 0]),
        techniques,
    )
    schedule = Schedule(iters, warmup, limit or ablation)
    _use_hugepages(hugepages is Switch.on)
    options: Options = {"coherence": coherence.value, "threads": threads or pidcomm.machine().threads}
    sections, refusals = wanted.sections(options)
    pidcomm.allocate(pes=max((section.pes for section in sections), default=1)).free()  # are there so many?
    sections, unaffordable = affordable(sections, techniques)
    refusals += unaffordable
    if not sections:
        raise refusals[0]
    make_transfers_alike(options, sdk_flush.value)
    problems = [problem for section in sections for problem in section.problems]
    scratch = Scratch(problems)
    rows: list[Row] = []
    wrong = 0
    report = Report(json_target)
    with _progress() as progress:
        counts = [len(techniques_for(it, options) if ablation else techniques) for it in problems]
        task = progress.add_task("rounds", total=len(problems) * (iters + warmup) + sum(counts))
        report.comment(header(options))
        report.comment(ablation_header(assumed) if ablation else ())
        report.skipped(refusals)
        for section in sections:
            options["isa"] = section.isa
            with pidcomm.allocate(pes=section.pes) as pes:
                cube = pes.hypercube(*section.shape)
                condition = measure_sdk(cube, section.size_bytes, options, scratch)
                report.comment(section_header(section, condition, creation_us(pes, section.shape)))
                for problem in section.problems:
                    progress.update(task, description=problem.collective)
                    common = (options, schedule, scratch, condition, lambda: progress.advance(task))
                    of_problem: list[Row] | list[Step]
                    if ablation:
                        of_problem = ablate(pes, problem, assumed, *common)
                    else:
                        of_problem = measure_rows(pes, problem, techniques, *common)
                        rows += of_problem
                    wrong += sum(row.wrong for row in of_problem)
                    report.rows(of_problem)
        if ablation:
            has_summary = False
        if has_summary or (has_summary is None and len(problems) > len(wanted.collectives)):
            report.comment(summary(rows))
    _exit_if_wrong(wrong)


def _use_hugepages(are_wanted: bool) -> None:
    pidcomm.machine(hugepages=are_wanted)


@app.command("upmem-env")
def upmem_env(
    strict: Annotated[bool, typer.Option("--strict", help="What a PE's hardware masks silently is a fault.")] = False,
    artifact: ArtifactOption = False,
) -> None:
    """Print shell commands after which builds find the stand-in UPMEM tools, and programs the emulator.

    With --artifact, dpu-pkg-config also tells where <pidcomm.h> of the published PID-Comm artifact and this library
    are: its programs build and run unmodified.

    Examples:  eval "$(pidcomm upmem-env)" && make   |   eval "$(pidcomm upmem-env --artifact)" && make
    """
    for name, value in sdk.environment(strict=strict, artifact=artifact).items():
        rest = '"${PATH:+:$PATH}"' if name == "PATH" else ""
        typer.echo(f"export {name}={shlex.quote(value)}{rest}")


@app.command(context_settings={"allow_interspersed_args": False, "ignore_unknown_options": False})
def run(
    command: Annotated[list[str], typer.Argument(metavar="PROGRAM [ARGS]...", help="What to run, with its arguments.")],
    ranks: Annotated[
        int | None, typer.Option("--ranks", min=1, max=_core.MAX_RANKS, help="Ranks of the emulated machine.")
    ] = None,
    threads: Annotated[int | None, typer.Option("--threads", min=1, help="Host threads that run PEs.")] = None,
    strict: Annotated[bool, typer.Option("--strict", help="What a PE's hardware masks silently is a fault.")] = False,
    has_report: Annotated[bool, typer.Option("--report", help="End with a table of the launches of PEs.")] = False,
    is_json: Annotated[
        bool, typer.Option("--json", help="End with the launches as JSON lines instead of the table.")
    ] = False,
    artifact: ArtifactOption = False,
) -> None:
    """Run a program that uses the UPMEM SDK, or a build or test of it, on the emulated machine.

    It finds the stand-in tools in PATH and the emulator's library. What no option sets is left to the environment. The
    exit code is the program's, 128 + n if signal n ended it, 127 if there is no such program.

    The report has a line per launch, and for asynchronous launches one per rank. exact: counted; odd DMA is what the
    hardware masks or wraps. modelled: of the DPU, PE us for the slowest PE. measured: on this machine.

    Examples:  pidcomm run -- ./host -n 64   |   pidcomm run --ranks 2 --report -- make test
    """
    try:
        code, launches = running.run_program(
            command,
            ranks=ranks,
            threads=threads,
            strict=strict,
            artifact=artifact,
            wants_report=has_report or is_json,
        )
    except OSError as error:
        typer.echo(f"pidcomm: cannot run {command[0]}: {os.strerror(error.errno or 0)}", err=True)
        is_missing = isinstance(error, FileNotFoundError)
        raise typer.Exit(running.NOT_FOUND if is_missing else running.NOT_EXECUTABLE) from None
    if is_json:
        for launch in launches:
            typer.echo(running.launch_line(launch))
    elif has_report and not launches:
        typer.echo("no PE program was launched")
    elif has_report:
        console = _console()
        if not console.is_terminal:
            console.width = WIDE
        console.print(running.launch_table(launches))
    raise typer.Exit(code)


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def doctor(arguments: typer.Context) -> None:
    """Check the library on this machine, item by item, in about ten minutes (--quick: ten seconds).

    This is pidcomm-doctor built for the emulated machine; docs/hardware.md says how to build it for DIMMs. It takes
    --quick, --minutes M, --ranks N, --seed N and --json. The exit code is 0 if nothing failed.

    Examples:  pidcomm doctor --quick   |   pidcomm doctor --ranks 8 --minutes 3 --json
    """
    command = [str(sdk.library_folder() / "pidcomm-doctor"), *arguments.args]
    code, _ = running.run_program(command)
    raise typer.Exit(code)


def main() -> None:
    """Run the command line."""
    app()
