"""The command reproduce."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pidcomm import ArgumentError
from pidcomm.bench.columns import table
from pidcomm.bench.report import Report
from pidcomm.bench.results import Results
from pidcomm.cli.app import command, exit_if_wrong, fail, refuse, working
from pidcomm.cli.completion import complete_name
from pidcomm.cli.options import json_option
from pidcomm.sizes import parse_positive_size
from pidcomm_studies.cli.figures import show
from pidcomm_studies.papers import figures as all_figures
from pidcomm_studies.papers.figure import Figure, Request
from pidcomm_studies.parcels import run

OPTIONS = ("--bytes", "--pes", "--quick", "--wide", "--latency", "--pim")
"""The options that only some figures take."""


@command(
    "pidcomm reproduce",
    "pidcomm reproduce pidcomm/fig14",
    "pidcomm reproduce pidcomm/fig16 --no-measure",
    "pidcomm reproduce parcels/fig5 --pim depth=1",
    "pidcomm reproduce pidcomm/fig18,pidcomm/fig19 --bytes 256KiB --plot a.svg",
    "pidcomm reproduce imex --no-measure --json -",
)
def reproduce(
    figures: Annotated[
        str | None,
        typer.Argument(
            metavar="[FIGURES]",
            help="Figures, separated by commas; a paper ("
            + ", ".join(all_figures.PAPERS)
            + ") for all its figures; or all. Without: list the figures.",
            autocompletion=complete_name(["all", *all_figures.PAPERS, *all_figures.NAMES]),
        ),
    ] = None,
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
    ] = Request.pes,
    is_quick: Annotated[
        bool, typer.Option("--quick", help="Small inputs of applications, on 64 PEs.")
    ] = False,
    iters: Annotated[int, typer.Option("--iters", min=1, help="Number of timed rounds.")] = 3,
    measure: Annotated[
        bool,
        typer.Option(
            "--measure/--no-measure",
            help="Measure times on this host, or show only modelled times.",
        ),
    ] = True,
    latency: Annotated[
        int | None,
        typer.Option("--latency", min=0, help="parcels: cycles of the network's latency."),
    ] = None,
    pim: Annotated[
        str,
        typer.Option(
            "--pim",
            help="parcels: other values of the machine of travelling threads: "
            + ", ".join(run.TABLE_1[run.PIM])
            + ".",
        ),
    ] = "",
    plot: Annotated[
        Path | None,
        typer.Option("--plot", help="Also draw each figure: a .svg or .png file."),
    ] = None,
    is_wide: Annotated[
        bool, typer.Option("--wide", help="Also show the times of the host and of the PEs.")
    ] = False,
    json_target: Annotated[
        str | None, json_option("a JSON line per value and per statement")
    ] = None,
) -> None:
    """Repeat figures of papers, by measurements here and by models.

    Measured calls run on the emulated DIMMs of this host, and every element is compared with the
    oracle. In a measured call, the time of the host is measured, and the time in which PEs reorder
    blocks is modelled. Modelled calls are for the machine and the sizes of the paper. With several
    figures, each has a separate picture.
    """
    if figures is None:
        refuse(
            [*OPTIONS, "--iters", "--measure", "--no-measure", "--plot", "--json"],
            "without a figure, the command lists all figures",
        )
        every = table("figures of papers", ["figure", "~title"])
        for name in all_figures.NAMES:
            every.add_row(name, all_figures.get(name).title)
        Results(None).text(every)
        return
    if not measure:
        refuse(["--bytes", "--pes", "--iters"], "with --no-measure, the command measures nothing")
    wanted = [all_figures.get(name) for name in all_figures.named(figures)]
    _refuse_unused(wanted)
    if plot is not None:
        from pidcomm_studies.pictures import style

        style.check_format(plot)
    with Results(json_target) as results, working("planning") as work:
        report = Report(results)
        request = Request(
            [figure.name for figure in wanted],
            iters if measure else 0,
            pes,
            parse_positive_size(size),
            is_quick,
            latency,
            _values(pim),
            work,
            report.comment,
            report.skipped,
        )
        for figure in wanted:
            figure.check(request)
        wrong = sum(
            show(figure, request, results, _path(plot, figure, wanted), is_wide=is_wide)
            for figure in wanted
        )
    for sentence in request.wrong:
        fail(sentence)
    exit_if_wrong(wrong + len(request.wrong))


def _refuse_unused(figures: list[Figure]) -> None:
    """Raise ArgumentError if the command line gives an option that no figure takes."""
    taken = {option for figure in figures for option in figure.options}
    names = ", ".join(figure.name for figure in figures)
    refuse(
        [option for option in OPTIONS if option not in taken],
        f"no figure of {names} has this option",
    )
    if all(figure.measure is None for figure in figures):
        refuse(["--iters"], f"nothing is measured for {names}")


def _path(plot: Path | None, figure: Figure, figures: list[Figure]) -> Path | None:
    """Return the file for the picture of a figure."""
    if plot is None or len(figures) == 1:
        return plot
    return plot.with_stem(f"{plot.stem}-{figure.name.replace('/', '-')}")


def _values(text: str) -> dict[str, int]:
    """Return the fields of a text such as depth=1,banks=4.

    Raises ArgumentError for text of another form.
    """
    values = {}
    for word in text.split(",") if text else []:
        name, _, value = word.partition("=")
        if not value.isdecimal():
            raise ArgumentError(f"--pim {text}: {word!r} is not NAME=NUMBER")
        values[name] = int(value)
    return values
