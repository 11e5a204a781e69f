"""Define the command dpuemu, which runs programs for the UPMEM SDK without DIMMs."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import textwrap
from collections.abc import Callable, Sequence
from contextlib import nullcontext

import dpuemu
from dpuemu import _dpuemu, check, debug, profile, run, tools, trace
from dpuemu.arguments import (
    PE,
    PE_HELP,
    USAGE,
    Parser,
    fail,
    file_name,
    number,
    one_pe_or_all,
    schedules,
    some_pes,
)
from dpuemu.facts import (
    STDOUT,
    print_disassembly,
    print_environment,
    print_information,
    replacement,
    target,
)

INTERRUPTED, BROKEN_PIPE = 130, 141  # exit codes


def main() -> None:
    """Run the command line."""
    if sys.stdout is None:  # closed, as by >&-
        sys.exit(BROKEN_PIPE)
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115
    try:
        try:
            code = run_command(sys.argv[1:])
        finally:
            sys.stdout.flush()
        sys.exit(code)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except BrokenPipeError:
        # Now the last flush succeeds.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(BROKEN_PIPE)


def run_command(words: Sequence[str]) -> int:
    """Run one command line; return its exit code. Raises SystemExit if the arguments are wrong."""
    if not words:
        parser().print_help(sys.stderr)
        return USAGE
    options = parser().parse_args(words)
    try:
        return int(options.act(options))
    except BrokenPipeError:
        raise
    except (dpuemu.Error, OSError) as error:
        return fail(str(error))


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    top = Parser(
        "dpuemu",
        description="Build and run programs for the UPMEM SDK on machines without DIMMs.",
        epilog=(
            "Exit codes: 0 for success, 2 for wrong usage or an error. `run`, `check`, `profile`"
            " and `trace` return the code of the program; if it is 0 and there are findings,"
            " `check` returns 1."
        ),
    )
    top.add_argument("--version", action="version", version=f"dpuemu {dpuemu.__version__}")
    top.set_defaults(act=lambda _: top.error("argument COMMAND is missing"))
    commands = top.add_subparsers(metavar="COMMAND")
    columns = shutil.get_terminal_size().columns

    def command(
        name: str, act: Callable[[argparse.Namespace], int], text: str, example: str
    ) -> argparse.ArgumentParser:
        subparser = commands.add_parser(
            name,
            help=text.partition("\n")[0],
            description="\n\n".join(
                textwrap.fill(part, min(100, columns - 2)) for part in text.split("\n\n")
            ),
            epilog=f"example:\n  {example}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        subparser.set_defaults(act=act, usage_error=subparser.error)
        return subparser

    subparser = command(
        "run",
        run_host_program,
        "Run a host program, or its build, on the emulated machine.\n\nRun only programs that you"
        " trust: PE programs run as code of the host process, with all its rights.\n\nThe program"
        " finds the stand-in tools in PATH, and finds the library of the emulator. If an option is"
        " missing, its DPUEMU_* environment variable applies. The exit code is the exit code of the"
        " program, 128 + n if signal n ended it (then a message names the signal), 127 if it does"
        " not exist, 126 if it cannot run.\n\nThe report has a line per launch; for an asynchronous"
        " launch, a line per rank. Columns are exact (counted), modelled (time on a DPU; `PE us` is"
        " the time of the slowest PE, and `on DIMMs` the interval that held 96% of the compared"
        " kernels of DIMMs) or measured (time on this machine). `odd DMA` counts"
        " transfers whose address or size the hardware masks.",
        "dpuemu run --ranks 2 --report -- ./host -n 64",
    )
    subparser.usage = "dpuemu run [OPTIONS] [--] PROGRAM [ARGS]"
    most = _dpuemu.MAX_RANKS
    subparser.add_argument(
        "--ranks",
        type=number(1, most),
        metavar="N",
        help=f"number of ranks of the machine, 1 to {most}",
    )
    subparser.add_argument(
        "--threads", type=number(1), metavar="N", help="number of host threads that run PEs"
    )
    _add_strict(subparser)
    _add_patience(subparser)
    subparser.add_argument(
        "--chip",
        choices=_dpuemu.chips(),
        help="chip whose limits and clock PE programs have (default: generic)",
    )
    subparser.add_argument(
        "--report", action="store_true", help="print a table of the launches at the end"
    )
    _add_json(subparser, "one line of JSON per launch")
    _add_program(subparser)

    subparser = command(
        "check",
        check_host_program,
        "Run a host program, and find errors of its PE programs.\n\nPE programs that were compiled"
        " without checks are compiled again if their sources exist; otherwise compile them in"
        " `dpuemu check` too: `dpuemu check -- make -B`. Each finding has both places, the object,"
        " and how to mend it. The exit code is the one of the program; if it is 0 and there are"
        " findings, 1.\n\nIt finds: data races in WRAM and MRAM, overlapping DMA, reads of memory"
        " that nothing has written, that an earlier owner has left or that was written before a"
        " load that moved the heap, DMA outside objects,"
        " rounded DMA, stacks that are too small, mutexes held at the end, barriers with a wrong"
        " count, host transfers to WRAM in use, freed memory, and addresses that are no mutexes.",
        "dpuemu check --json findings.jsonl -- make test",
    )
    subparser.usage = "dpuemu check [OPTIONS] [--] PROGRAM [ARGS]"
    subparser.add_argument(
        "--schedules",
        type=schedules,
        metavar="N|all",
        help="try N other orders of the tasklets of a PE in each launch, or all orders",
    )
    subparser.add_argument(
        "--seed", type=number(0), metavar="S", help="choose the orders by this number (default: 1)"
    )
    subparser.add_argument(
        "--pe",
        type=one_pe_or_all,
        metavar=f"{PE}|all",
        help=f"try them on this PE, or on all PEs (default: on the first PE); {PE_HELP}",
    )
    subparser.add_argument(
        "--suppressions",
        metavar="FILE",
        help="hide findings: a line `KIND:PATTERN` or `PATTERN` each; * matches any text",
    )
    _add_json(subparser, "one line of JSON per finding")
    _add_program(subparser)

    subparser = command(
        "profile",
        profile_host_program,
        "Run a host program, and show where its PE programs spend their time.\n\nA table has the"
        " instructions, the DMA and the waiting of all PEs by source line, and a sentence says what"
        " bounds each program: the pipeline, DMA, a mutex, imbalance, or too few tasklets. Times"
        " are modelled: shares of the time of all tasklets. Returns the program's exit"
        " code.\n\nThe emulator compiles PE programs again, with counters, if one command"
        " compiled them from sources that still exist; otherwise compile them in `dpuemu profile`"
        " too: `dpuemu profile -- make -B`.",
        "dpuemu profile --svg flames.svg -- ./host -n 64",
    )
    subparser.usage = "dpuemu profile [OPTIONS] [--] PROGRAM [ARGS]"
    subparser.add_argument(
        "--lines",
        type=number(1),
        metavar="N",
        default=20,
        help="rows of the table (default: 20)",
    )
    subparser.add_argument(
        "--functions", action="store_true", help="one row per function, not per source line"
    )
    subparser.add_argument("--svg", type=file_name, metavar="FILE", help="write a flame graph")
    subparser.add_argument(
        "--speedscope",
        type=file_name,
        metavar="FILE",
        help="write a file for https://www.speedscope.app",
    )
    _add_patience(subparser)
    _add_json(subparser, "one line of JSON per PE program")
    _add_program(subparser)

    subparser = command(
        "debug",
        debug_host_program,
        "Run a host program in GDB, which stops in PE programs.\n\nThe program stops at each"
        " --break and at each fault of a PE. At a stop, GDB has these commands: `info tasklets`,"
        " `tasklet N`, `pe N`, `wram X`, `mram X` and `dpuemu-core FILE`; `help` explains them."
        " Compile PE programs with -O0 -g. The exit code is the one of GDB.",
        "dpuemu debug --pe 17 --tasklet 3 --break kernel.c:42 -- ./host -n 64",
    )
    subparser.usage = "dpuemu debug [OPTIONS] [--] PROGRAM [ARGS]\n       dpuemu debug --open FILE"
    debug.add_options(subparser)
    _add_strict(subparser)
    _add_patience(subparser, "none")
    _add_program(subparser)

    subparser = command(
        "trace",
        trace_host_program,
        "Run a host program, and write its events over time to a file for"
        " https://ui.perfetto.dev.\n\nTransfers and launches of the host have measured times."
        " Launches on ranks, waits of tasklets, DMA and marked regions of PEs have modelled times."
        " Returns the program's exit code.",
        "dpuemu trace --out trace.json -- ./host -n 64",
    )
    subparser.usage = "dpuemu trace [OPTIONS] [--] PROGRAM [ARGS]"
    subparser.add_argument(
        "--out",
        type=file_name,
        metavar="FILE",
        default="trace.json",
        help="file to write (default: trace.json)",
    )
    most_pes = most * _dpuemu.PES_PER_RANK
    subparser.add_argument(
        "--sample",
        type=number(0, most_pes),
        metavar="N",
        help="show N PEs in detail, evenly spread over the first loaded sets (default:"
        f" {trace.DEFAULT_SAMPLE}; with --pes: 0)",
    )
    subparser.add_argument(
        "--pes",
        type=some_pes,
        metavar=f"{PE},...",
        default=(),
        help=f"show these PEs in detail; {PE_HELP}",
    )
    subparser.add_argument(
        "--limit",
        type=number(1),
        metavar="MB",
        default=trace.DEFAULT_LIMIT_MB,
        help=f"drop events that exceed this size of the file (default: {trace.DEFAULT_LIMIT_MB})",
    )
    subparser.add_argument(
        "--plot",
        type=file_name,
        metavar="FILE",
        help="write a picture (SVG): load over PEs, use of pipeline and DMA over time",
    )
    _add_patience(subparser)
    _add_program(subparser)

    subparser = command(
        "objdump",
        print_disassembly,
        "Print the instructions of a program for real DPUs.\n\nThe UPMEM SDK's compiler makes such"
        " programs. Each line has the address and the word of an instruction. If the program has"
        " debug information, lines that begin with `;` name source lines. `main+3` is the third"
        " instruction after `main`.",
        "dpuemu objdump --symbol main kernel",
    )
    subparser.add_argument(
        "--symbol", metavar="NAME", default="", help="print only this function or label"
    )
    subparser.add_argument("file", metavar="FILE", help="program file")

    subparser = command(
        "env",
        print_environment,
        "Print shell commands that put the stand-in UPMEM tools in PATH.\n\nBuilds then find"
        " dpu-upmem-dpurte-clang and dpu-pkg-config, and programs find the emulator.",
        'eval "$(dpuemu env)" && make',
    )
    _add_strict(subparser)
    _add_json(subparser, "the variables as one JSON object")

    subparser = command(
        "info",
        print_information,
        "Print the version, the emulated machine and the paths of the stand-in tools.",
        "dpuemu info",
    )
    _add_json(subparser, "this information as one JSON object")
    return top


def _add_program(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "words", metavar="PROGRAM [ARGS]", nargs=argparse.REMAINDER, help="program and arguments"
    )


def _add_strict(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--strict", action="store_true", help="turn silent errors into faults (strict mode)"
    )


def _add_patience(command: argparse.ArgumentParser, default: str = "60") -> None:
    command.add_argument(
        "--patience",
        type=number(1),
        metavar="SECONDS",
        help=f"end a launch if one of its PEs takes longer on this computer (default: {default})",
    )


def _add_json(command: argparse.ArgumentParser, what: str) -> None:
    command.add_argument(
        "--json",
        metavar="FILE|-",
        help=f"write {what} to a file; - writes only the JSON, to standard output",
    )


def _words(options: argparse.Namespace) -> list[str]:
    """Return the program and its arguments."""
    words: list[str] = options.words[1:] if options.words[:1] == ["--"] else options.words
    if not words:
        options.usage_error("argument PROGRAM is missing")
    return words


def check_host_program(options: argparse.Namespace) -> int:
    """Run a host program with checks; return its code, or FINDINGS."""
    words = _words(options)
    if options.suppressions is not None:
        with open(options.suppressions):
            pass
    with target(options.json) as write_json, tools.temporary_folder() as folder:
        file = folder / "findings.jsonl"
        variables = check.variables(
            file,
            suppressions=options.suppressions,
            schedules=options.schedules,
            seed=options.seed,
            pe=options.pe,
        )
        try:
            code, launches, _ = run.run_program(
                words,
                patience=None if os.environ.get("DPUEMU_PATIENCE") else check.PATIENCE,
                variables=variables,
                stdout=sys.stderr if options.json == STDOUT else None,
            )
        except OSError as error:
            return _fail_to_run(words[0], error)
        findings = check.read(file.read_text().splitlines()) if file.exists() else []
        for finding in findings:
            write_json(json.dumps(finding))
    faults = list(run.faults(launches))
    for problem in faults:
        fail(problem)
    for line in check.summary(findings):
        print(f"dpuemu check: {line}", file=sys.stderr)
    return run.exit_code(code) or (check.FINDINGS if findings or faults else 0)


def profile_host_program(options: argparse.Namespace) -> int:
    """Run a host program with profiles; return its code."""
    words = _words(options)
    with (
        target(options.json) as write_json,
        target(options.svg) as write_svg,
        target(options.speedscope) as write_speedscope,
        tools.temporary_folder() as folder,
    ):
        try:
            code, launches, _ = run.run_program(
                words,
                patience=options.patience,
                variables=profile.variables(folder),
                stdout=sys.stderr if options.json == STDOUT else None,
            )
        except OSError as error:
            return _fail_to_run(words[0], error)
        profiles = profile.read(folder)
        for one in profiles:
            write_json(json.dumps(one.as_json()))
        write_svg(profile.flame_graph(profiles))
        write_speedscope(json.dumps(profile.speedscope(profiles)))
        problems = [*run.faults(launches), *profile.problems(folder)]
    for problem in problems:
        fail(problem)
    if options.json != STDOUT:
        for one in profiles:
            print(*profile.table(one, options.lines, options.functions), sep="\n")
        if not profiles:
            print("no PE program has a profile")
    return run.exit_code(code)


def trace_host_program(options: argparse.Namespace) -> int:
    """Run a host program with a trace; return its code."""
    words = _words(options)
    limit_bytes = options.limit * 1_000_000
    sample = options.sample
    if sample is None:
        sample = 0 if options.pes else trace.DEFAULT_SAMPLE
    if options.plot is not None and os.path.realpath(options.out) == os.path.realpath(options.plot):
        options.usage_error(f"--out {options.out} and --plot {options.plot} are the same file")
    with (
        replacement(options.out) as file,
        replacement(options.plot) if options.plot else nullcontext() as plot_file,
        tools.temporary_folder() as folder,
    ):
        try:
            code, launches, _ = run.run_program(
                words,
                patience=options.patience,
                variables=trace.variables(folder, limit_bytes, sample, options.pes),
            )
        except OSError as error:
            return _fail_to_run(words[0], error)
        summary, plot = trace.write(folder, file, limit_bytes)
        if plot_file is not None:
            plot_file.write(f"{plot}\n".encode())
    for problem in [*run.faults(launches), *summary.problems(limit_bytes)]:
        fail(problem)
    print(*summary.lines(options.out), sep="\n")
    return run.exit_code(code)


def _fail_to_run(program: str, error: OSError) -> int:
    fail(f"cannot run {program}: {os.strerror(error.errno or 0)}")
    return run.NOT_FOUND if isinstance(error, FileNotFoundError) else run.NOT_EXECUTABLE


def debug_host_program(options: argparse.Namespace) -> int:
    """Run a host program in GDB, or open a core file; return the code of GDB."""
    debug.check_options(options)
    return debug.run_gdb(options, [] if options.core_to_open else _words(options))


def run_host_program(options: argparse.Namespace) -> int:
    """Run a host program; return its code."""
    words = _words(options)
    with target(options.json) as write_json:
        try:
            code, launches, running = run.run_program(
                words,
                ranks=options.ranks,
                threads=options.threads,
                strict=options.strict,
                patience=options.patience,
                chip=options.chip,
                stdout=sys.stderr if options.json == STDOUT else None,
                on_long_launch=print_long_launch if sys.stderr.isatty() else None,
            )
        except OSError as error:
            return _fail_to_run(words[0], error)
        for launch in launches:
            write_json(json.dumps(run.launch_fields(launch)))
    for problem in run.problems(launches):
        fail(problem)
    if code < 0:
        during = f" during {running}" if running else ""
        fail(
            f"{run.signal_name(-code)} ended {words[0]}{during}; the exit code is"
            f" {run.exit_code(code)}"
        )
    if options.report and options.json != STDOUT:
        lines = run.launch_table(launches) if launches else ["no PE program was launched"]
        print(*lines, sep="\n")
    return run.exit_code(code)


def print_long_launch(launch: str) -> None:
    """Tell the user of a launch that takes long."""
    print(f"dpuemu: still running: {launch}", file=sys.stderr)
