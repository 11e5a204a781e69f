"""The commands plot and report."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path
from typing import Annotated

import typer

from dpuemu.tools import temporary_folder
from pidcomm.cli.app import command, refuse, working
from pidcomm.cli.bench import bench
from pidcomm.cli.options import BytesOption, MaskOption, ShapeOption
from pidcomm_studies.pictures.rows import read_rows

KINDS = "bars, sweep or ablation"
QUICK_ITERS = 5


@command(
    "pidcomm plot rows.jsonl --out bars.svg",
    "pidcomm plot rows.jsonl --metric algbw --out bars.png",
    "pidcomm plot ablation.jsonl --out ablation.svg",
)
def plot(
    rows: Annotated[
        list[Path],
        typer.Argument(metavar="ROWS.jsonl...", help="Files written by pidcomm bench --json."),
    ],
    out: Annotated[
        Path, typer.Option("--out", help="File of the picture, with a name in .svg or .png.")
    ],
    kind: Annotated[
        str | None,
        typer.Option(
            "--kind", help=f"Kind of picture: {KINDS} (default: the kind that fits the rows)."
        ),
    ] = None,
    metric: Annotated[
        str | None,
        typer.Option(
            "--metric",
            help="Metric to draw: speed-up, time, bus or algbw (default: set by --kind).",
        ),
    ] = None,
) -> None:
    """Draw the rows of a benchmark and their streaming limits.

    Kind bars shows the speed-up over conventional of every collective and technique, or the time if
    the rows have no speed-up. Kind sweep is a line chart of bus bandwidth against bytes per PE or
    number of PEs. Kind ablation shows the phases of each technique; hatched parts of a bar are
    modelled or assumed. Each combination of shape, mask, type and other parameters has a separate
    panel or line.
    """
    with working("drawing"):
        from pidcomm_studies.pictures import figures, style

        style.check_format(out)
        style.save(figures.draw(read_rows(rows), kind, metric), out)
    typer.echo(f"wrote {out}")


@command(
    "pidcomm report report.html",
    "pidcomm report report.html --from rows.jsonl --from ablation.jsonl",
)
def report(
    out: Annotated[
        Path, typer.Argument(metavar="OUT.html", help="Name of the HTML file to write.")
    ],
    rows: Annotated[
        list[Path] | None,
        typer.Option(
            "--from", help="A file written by pidcomm bench --json; the option may be repeated."
        ),
    ] = None,
    shape: ShapeOption = "16x16",
    mask: MaskOption = "10",
    size: BytesOption = "256KiB",
) -> None:
    """Write one HTML page with facts, figures and sortable tables.

    The page is self-contained and explains every column. Without --from, the command first runs a
    quick `pidcomm bench all` with the given shape, mask and size. For reliable figures, run
    `pidcomm bench --json FILE`, and then this command with --from FILE.
    """
    from pidcomm_studies.pictures import page

    page.check_name(out)
    if rows:
        refuse(["--shape", "--mask", "--bytes"], "with --from, the command measures nothing")
    sources = [page.Source(path.name, read_rows([path])) for path in rows or ()]
    if not sources:
        with (
            temporary_folder("pidcomm") as folder,
            contextlib.redirect_stdout(io.StringIO()) as printed,
        ):
            path = folder / "rows.jsonl"
            bench(
                ["all"],
                shapes=shape,
                masks=mask,
                sizes=size,
                iters=QUICK_ITERS,
                json_target=str(path),
            )
            comments = [line for line in printed.getvalue().splitlines() if line.startswith("#")]
            sources = [page.Source("A quick benchmark", read_rows([path]), comments)]
    with working("drawing"):
        page.write(page.build(sources), out)
    typer.echo(f"wrote {out}")
