"""The command reproduce."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer
from pidcomm.arguments import options_of
from pidcomm.bench.columns import table
from pidcomm.bench.measure import Scratch, make_transfers_alike
from pidcomm.bench.oracle import Problem
from pidcomm.bench.report import Report, run_facts
from pidcomm.bench.results import Results
from pidcomm.bench.sweep import affordable, even_shape
from pidcomm.bench.timing import Schedule
from pidcomm.cli.app import Work, command, exit_if_wrong, fail, json_option, refuse, working
from pidcomm.cli.completion import complete_name
from pidcomm.errors import ArgumentError
from pidcomm.model import PHASES
from pidcomm.sizes import format_about, format_shape, format_size, parse_names, parse_positive_size
from pidcomm_studies.cli import figures as shown_figures
from pidcomm_studies.papers import figures as figures_of_apps
from pidcomm_studies.papers.imex import figures as figure_imex
from pidcomm_studies.papers.pidcomm import hosts as figure_hosts
from pidcomm_studies.papers.pidcomm.experiments import (
    EXPERIMENTS,
    PAPER_BYTES,
    PAPER_MACHINE,
    PAPER_PES,
    Costs,
    Experiment,
    modelled_costs,
    throughput_gb_s,
)
from pidcomm_studies.papers.pidcomm.published import PAPER
from pidcomm_studies.papers.pidcomm.reproduce import (
    HERE,
    Line,
    Measurements,
    Value,
    case_rows,
    format_value,
    lines_of,
    pairs_of,
    require_valid,
    sections_of,
    statistic_rows,
)
from rich.table import Table

import pidcomm
from pidcomm.bench import info, platform

WARMUP = 1
PAPER_FIGURES = (*EXPERIMENTS, figure_hosts.NAME)
OTHER_FIGURES = (figure_imex.NAME, *figures_of_apps.FIGURES)
FIGURES = (*PAPER_FIGURES, *OTHER_FIGURES)
LEFT_OUT = "launches and loads of PE programs left out"


@command(
    "pidcomm reproduce fig14",
    "pidcomm reproduce fig16 --no-measure",
    "pidcomm reproduce fig18,fig19 --bytes 256KiB --json figures.jsonl --plot figures.svg",
    "pidcomm reproduce all --no-measure --json -",
)
def reproduce(
    figures: Annotated[
        str,
        typer.Argument(
            metavar="FIGURES",
            help="Figures of the paper, separated by commas, or all: " + ", ".join(FIGURES) + ".",
            autocompletion=complete_name(["all", *FIGURES]),
        ),
    ],
    size: Annotated[
        str,
        typer.Option("--bytes", help="Bytes per PE in measured calls (fig18: the largest size)."),
    ] = "1MiB",
    pes: Annotated[
        int,
        typer.Option(
            "--pes",
            help="Number of PEs in measured calls, a power of two (fig19: the largest number).",
        ),
    ] = (PAPER_PES),
    iters: Annotated[int, typer.Option("--iters", min=1, help="Number of timed rounds.")] = 3,
    measure: Annotated[
        bool,
        typer.Option(
            "--measure/--no-measure",
            help="Measure times on this host, or show only modelled times.",
        ),
    ] = True,
    plot: Annotated[
        Path | None,
        typer.Option("--plot", help="Also draw each figure of the paper: a .svg or .png file."),
    ] = None,
    is_wide: Annotated[
        bool, typer.Option("--wide", help="Also show the times of the host and of the PEs.")
    ] = False,
    json_target: Annotated[
        str | None, json_option("JSON lines (one per call, one per value of a statistic)")
    ] = None,
) -> None:
    """Repeat figures of papers, by measurements here and by the model.

    Measured calls run on the emulated DIMMs of this host, and every element is compared with the
    oracle. In a measured call, the time of the host is measured, and the time in which PEs reorder
    blocks is modelled. Modelled calls are for the paper's machine with 1024 PEs and the paper's
    sizes.
    """
    if not measure:
        refuse(["--bytes", "--pes", "--iters"], "with --no-measure, the command measures nothing")
    names = parse_names(figures, FIGURES, "figure", PAPER_FIGURES)
    if others := [name for name in names if name in OTHER_FIGURES]:
        exit_if_wrong(_others(others, names, json_target, iters if measure else 0, plot))
        return
    has_hosts = figure_hosts.NAME in names
    names = [name for name in names if name != figure_hosts.NAME]
    if has_hosts and not names:
        refuse(
            ["--bytes", "--pes", "--plot", "--wide"],
            f"{figure_hosts.NAME} has fixed sizes and no picture",
        )
        with Results(json_target) as results, working("planning") as work:
            exit_if_wrong(_show_hosts(results, work, iters if measure else 0))
        return
    experiments = [
        EXPERIMENTS[name] for name in dict.fromkeys(names) if not EXPERIMENTS[name].missing
    ]
    size_bytes = parse_positive_size(size)
    even_shape(pes, 1)  # raises ArgumentError unless pes is a power of two
    if plot is not None:
        from pidcomm_studies.pictures import style

        style.check_format(plot)
    if not experiments:
        raise ArgumentError(_missing(EXPERIMENTS[names[0]]))
    with Results(json_target) as results, working("planning") as work:
        report = Report(results)
        report.comment(_missing(EXPERIMENTS[name]) for name in names if EXPERIMENTS[name].missing)
        measurements = Measurements()
        drawn: list[tuple[Experiment, list[Line]]] = []
        study = (
            _Study(experiments, pes, size_bytes, iters, measurements, report) if measure else None
        )
        for experiment in experiments:
            here: Costs = {}
            if study is not None:
                study.measure(experiment, work)
                here = measurements.costs(experiment.pairs(pes, size_bytes))
                results.json_lines(
                    case_rows(
                        experiment, here, HERE, {"version": pidcomm.__version__, **run_facts()}
                    )
                )
            modelled = modelled_costs(experiment)
            results.json_lines(case_rows(experiment, modelled, PAPER_MACHINE, _model_facts()))
            wanted = study.problems(experiment) if study else None
            lines = lines_of(experiment, measurements.fair(here), modelled, wanted)
            results.json_lines(
                statistic_rows(
                    experiment, lines, PAPER_MACHINE, (pes, size_bytes), (PAPER_PES, PAPER_BYTES)
                )
            )
            results.text(
                f"{experiment.name}: {experiment.title}. The paper varies: {experiment.varies}",
                style="bold",
            )
            if study is not None:
                where = f"on {HERE}, {info.cpus()} CPUs; {LEFT_OUT}"
                results.text(_case_table(experiment, here, where, is_wide=is_wide))
            results.text(
                _case_table(
                    experiment, modelled, f"on {PAPER_MACHINE}, whole calls", is_wide=is_wide
                )
            )
            if experiment.has_phases:
                results.text(_phase_table(modelled))
            shown = f"up to {pes} PEs, {_sizes(here)}" if study else None
            results.text(_statistic_table(lines, shown, is_comparable=pes == PAPER_PES), "")
            drawn.append((experiment, lines))
        if plot is not None:
            from pidcomm_studies.pictures import reproduction, style

            work.phase("drawing")
            conditions = [] if study is None else [study.words()]
            for experiment, lines in drawn:
                path = plot if len(drawn) == 1 else plot.with_stem(f"{plot.stem}-{experiment.name}")
                style.save(reproduction.draw(experiment, lines, conditions), path)
                typer.echo(f"wrote {path}", err=not results.has_text)
        of_hosts = _show_hosts(results, work, iters if measure else 0) if has_hosts else 0
        wrong = measurements.wrong()
        for problem, row in wrong:
            fail(
                f"{row.collective} with {row.technique} on {format_shape(problem.shape)}:"
                f" {row.wrong} wrong elements"
            )
    exit_if_wrong(len(wrong) + of_hosts)


def _others(
    names: Sequence[str],
    given: Sequence[str],
    json_target: str | None,
    iters: int,
    plot: Path | None,
) -> int:
    """Show figures of other papers. given: all figures that the user named.

    Return the number of wrong elements.
    """
    refuse(["--bytes", "--pes", "--wide"], f"{names[0]} has fixed sizes")
    if figure_imex.NAME in names:
        refuse(["--plot"], f"{figure_imex.NAME} has no picture")
    if rest := [name for name in given if name not in names]:
        raise ArgumentError(
            f"{names[0]} is of another paper; reproduce it without {', '.join(rest)}"
        )
    if plot is not None:
        from pidcomm_studies.pictures import style

        style.check_format(plot)
    wrong = 0
    with Results(json_target) as results, working("planning") as work:
        for name in names:
            if name == figure_imex.NAME:
                wrong += _show_imex(results, work, iters)
                continue
            path = plot and (
                plot if len(names) == 1 else plot.with_stem(f"{plot.stem}-{name.replace('/', '-')}")
            )
            wrong += shown_figures.show(figures_of_apps.get(name), results, work, iters, path)
    return wrong


def _show_hosts(results: Results, work: Work, iters: int) -> int:
    """Show figure 23b, measured unless iters is 0. Return the number of wrong elements."""
    results.text(f"{figure_hosts.NAME}: {figure_hosts.TITLE}", style="bold")
    cells: list[figure_hosts.Cell] = []
    if iters:
        try:
            cells += figure_hosts.measured(iters, step=work.phase)
        except ArgumentError as error:  # there is no MPI
            results.note(f"# skipped: measurements of {figure_hosts.NAME}: {error}")
    cells += figure_hosts.modelled()
    results.json_lines(figure_hosts.json_rows(cells))
    for source in dict.fromkeys(cell.source for cell in cells):
        of_source = [cell for cell in cells if cell.source == source]
        techniques = list(dict.fromkeys(cell.technique for cell in of_source))
        size = format_size(of_source[0].bytes_per_pe)
        where = (
            f"{source} on {of_source[0].on}: {figure_hosts.PES} PEs per host, {size} per PE, ms"
            " (GB/s)"
        )
        made = table(
            where, ["collective", ">hosts", ">sent per host", *(f">{name}" for name in techniques)]
        )
        by = {(cell.collective, cell.hosts, cell.technique): cell for cell in of_source}
        for collective, hosts in dict.fromkeys((cell.collective, cell.hosts) for cell in of_source):
            row = [by[collective, hosts, name] for name in techniques]
            times = [f"{1e3 * cell.seconds:.1f} ({cell.throughput_gb_s:.2f})" for cell in row]
            made.add_row(collective, str(hosts), format_about(row[0].bytes_sent), *times)
        results.text(made, "")
        for it in figure_hosts.statements(of_source):
            results.text(f"the paper: {it.paper}", f"{source}: {it.here}")
        results.text("")
    return sum(cell.wrong or 0 for cell in cells)


def _show_imex(results: Results, work: Work, iters: int) -> int:
    """Show the experiment of iMEX, measured unless iters is 0.

    Return the number of wrong elements.
    """
    results.text(f"{figure_imex.NAME}: {figure_imex.TITLE}", style="bold")
    gains = list(figure_imex.measured(iters, work.describe)) if iters else []
    gains += figure_imex.modelled()
    results.json_lines(figure_imex.json_rows(gains))
    for source in dict.fromkeys(gain.source for gain in gains):
        made = table(
            f"{source}: latency of messages over latency of the pool", ["axis, links", "~gains"]
        )
        for line in figure_imex.statements([gain for gain in gains if gain.source == source]):
            axis, links, values = line.split(": ")
            made.add_row(f"{axis}: {links}", values)
        results.text(made, "")
    results.text(
        *(f"published: {it.axis}: {it.what}: {it.gain}x" for it in figure_imex.PUBLISHED), ""
    )
    results.text(figure_imex.EXPLANATION)
    return sum(gain.wrong or 0 for gain in gains)


def _missing(experiment: Experiment) -> str:
    return (
        f"{experiment.name} is left out: this library has no technique"
        f" {', '.join(experiment.missing)}"
    )


def _model_facts() -> dict[str, object]:
    return {"version": pidcomm.__version__, "commit": info.commit()}


def _sizes(costs: Costs) -> str:
    """Return the bytes per PE of calls in words.

    If the calls have several sizes, return the largest size.
    """
    sizes = sorted({problem.bytes for problem, _ in costs})
    return (
        f"{'up to ' if len(sizes) > 1 else ''}{format_size(sizes[-1])} per PE"
        if sizes
        else "not measured"
    )


class _Study:
    """The measured calls of all figures. Each call is measured once."""

    def __init__(
        self,
        experiments: Sequence[Experiment],
        pes: int,
        size_bytes: int,
        iters: int,
        measurements: Measurements,
        report: Report,
    ) -> None:
        """Check all calls before the first call runs, and report the calls that need too much
        memory.
        """
        self._pes, self._size_bytes = pes, size_bytes
        self._options = options_of(
            coherence=platform.COHERENCE, threads=platform.threads(), isa=pidcomm.DEFAULT_ISA
        )
        self._schedule = Schedule(iters, WARMUP, with_limit=False)
        self._measurements, self._report = measurements, report
        self._techniques = pairs_of(experiments, pes, size_bytes)
        require_valid(self._techniques, self._options)
        pidcomm.allocate(pes=pes).free()  # raises Error if the machine has fewer PEs
        every = list(dict.fromkeys(name for names in self._techniques.values() for name in names))
        sections, refusals = affordable(sections_of(self._techniques, pidcomm.DEFAULT_ISA), every)
        if not sections:
            raise refusals[0]
        report.skipped(refusals)
        if any(experiment.has_sizes for experiment in experiments) and size_bytes < PAPER_BYTES:
            report.comment(
                [
                    f"sizes above {format_size(size_bytes)} are not measured; --bytes"
                    f" {PAPER_BYTES >> 20}MiB measures all sizes that fit in memory"
                ]
            )
        make_transfers_alike(self._options)
        self._affordable = {problem for section in sections for problem in section.problems}
        self._scratch = Scratch(list(self._affordable))

    def words(self) -> str:
        """Return the conditions of the measurements."""
        return (
            f"measured: {HERE}, {info.cpu_name()}, {info.cpus()} CPUs, at most {self._pes} PEs, "
            f"{_sizes(self._measurements.costs(self._measurements.rows))}, {LEFT_OUT}"
        )

    def problems(self, experiment: Experiment) -> list[Problem]:
        """Return the cases of an experiment that fit in memory."""
        return [
            it for it in experiment.problems(self._pes, self._size_bytes) if it in self._affordable
        ]

    def measure(self, experiment: Experiment, work: Work) -> None:
        """Measure the cases of an experiment that are not measured yet."""
        wanted = [
            problem
            for problem in self.problems(experiment)
            if (problem, experiment.techniques[0]) not in self._measurements.rows
        ]
        rounds = self._schedule.iters + self._schedule.warmup
        work.phase(
            experiment.name, sum(rounds + len(self._techniques[problem]) for problem in wanted)
        )
        for section in sections_of(wanted, pidcomm.DEFAULT_ISA):
            work.describe(f"{experiment.name}: {section}")
            condition = self._measurements.add(
                section, self._techniques, self._options, self._schedule, self._scratch, work.step
            )
            if not condition.holds:
                self._report.comment(
                    [f"{section}: no speed-up over conventional is claimed", *condition.lines()]
                )


def _case_table(experiment: Experiment, costs: Costs, where: str, *, is_wide: bool) -> Table:
    """Return a table of throughputs. is_wide: whether the table also has the times of the host
    and of the PEs.
    """
    techniques_of: dict[str, list[str]] = {}
    for name, source in dict.fromkeys(
        (technique, cost.source) for (_, technique), cost in costs.items()
    ):
        techniques_of.setdefault(source, []).append(name)
    first, *others = techniques_of or {"": []}
    sources = first + "".join(
        f" ({', '.join(techniques_of[source])}: {source})" for source in others
    )
    what = "GB/s (ms: host + PEs)" if is_wide else "GB/s"
    techniques = [f">{name}" for name in experiment.techniques]
    made = table(
        f"{sources} {where}: throughput in {what}", ["collective", "shape", "bytes/PE", *techniques]
    )
    for problem in dict.fromkeys(problem for problem, _ in costs):
        cells = []
        for name in experiment.techniques:
            cost = costs.get((problem, name))
            if cost is None:
                cells.append("-")
                continue
            pes = f" + {cost.reorder_us / 1e3:.4g}" if cost.reorder_us else ""
            times = f" ({cost.host_us / 1e3:.4g}{pes})" if is_wide else ""
            cells.append(f"{throughput_gb_s(problem, cost):.2f}{times}")
        made.add_row(
            problem.collective, format_shape(problem.shape), format_size(problem.bytes), *cells
        )
    return made


def _phase_table(costs: Costs) -> Table:
    """Return a table of the phases of modelled calls. Phases that take no time are omitted."""
    made = table(
        f"modelled on {PAPER_MACHINE}: ms of a call by phase",
        ["collective", "technique", "~phases"],
    )
    for (problem, technique), cost in costs.items():
        spent = {
            name: cost.phases_us[name] / 1e3
            for name in PHASES
            if cost.phases_us and cost.phases_us[name]
        }
        if spent:
            phases = ", ".join(f"{name} {ms:.3f}" for name, ms in spent.items())
            made.add_row(problem.collective, technique, phases)
    return made


def _statistic_table(lines: Sequence[Line], size: str | None, *, is_comparable: bool) -> Table:
    """Return a table of published, measured and modelled values. If size is None, the table omits
    the measured values.

    is_comparable: whether the number of PEs equals the paper's number of PEs. If not, the table
    omits the ratios.
    """
    title = (
        f"statistics (several calls: geometric mean); published: {PAPER}; modelled: {PAPER_MACHINE}"
    )
    here = [">here", "source", ">here/publ."]
    if size is not None:
        title += f"; here: {size}"
    columns = [
        "~statistic",
        ">published",
        *(here if size is not None else []),
        ">modelled",
        ">error",
    ]
    made = table(title, columns)
    for line in lines:
        made.add_row(line.statistic.what, *_statistic_cells(line, size is not None, is_comparable))
    return made


def _statistic_cells(line: Line, has_here: bool, is_comparable: bool) -> Iterator[str]:
    def shown(value: Value | None) -> str:
        if value is None:
            return "-"
        text = format_value(value.value, line.statistic.unit)
        return (
            text
            if value.host_alone is None
            else f"{text}\nhost {format_value(value.host_alone, line.statistic.unit)}"
        )

    yield shown(line.published)
    if has_here:
        yield shown(line.here)
        yield line.here.source if line.here else "-"
        yield f"{line.ratio:.2f}" if line.ratio is not None and is_comparable else "-"
    yield shown(line.modelled)
    yield "-" if line.error_pct is None else f"{line.error_pct:+.0f}%"
