"""The commands plot and report."""

from __future__ import annotations

import contextlib
import io
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from pidcomm.cli.app import BytesOption, MaskOption, ShapeOption, command, working
from pidcomm.cli.bench import bench
from pidcomm.evaluation.pictures.rows import read_rows

KINDS = "bars, sweep or ablation"
QUICK_ITERS = 5


@command(
    "pidcomm plot rows.jsonl --out bars.svg",
    "pidcomm plot rows.jsonl --metric algbw --out bars.png",
    "pidcomm plot ablation.jsonl --out ablation.svg",
)
def plot(
    rows: Annotated[list[Path], typer.Argument(metavar="ROWS.jsonl...", help="Files that pidcomm bench --json wrote.")],
    out: Annotated[Path, typer.Option("--out", help="Picture: a .svg or .png file.")],
    kind: Annotated[str | None, typer.Option("--kind", help=f"{KINDS} (default: by the rows).")] = None,
    metric: Annotated[
        str | None,
        typer.Option("--metric", help="speed-up, time, bus or algbw (default: by kind)."),
    ] = None,
) -> None:
    """Draw the rows of a benchmark beside their limits.

    bars: speed-up over conventional of every collective and technique, or time if that is unknown. sweep: bus bandwidth
    over bytes per PE or over PEs. ablation: where each technique spends its time, with hatched parts that are modelled
    or assumed. Rows that differ in shape, mask, type and so on get a panel, or a line, each.
    """
    with working("drawing"):
        from pidcomm.evaluation.pictures import figures, style

        style.check_format(out)
        style.save(figures.draw(read_rows(rows), kind, metric), out)
    typer.echo(f"wrote {out}")


@command(
    "pidcomm report report.html",
    "pidcomm report report.html --from rows.jsonl --from ablation.jsonl",
)
def report(
    out: Annotated[Path, typer.Argument(metavar="OUT.html", help="The page to write.")],
    rows: Annotated[
        list[Path] | None, typer.Option("--from", help="A file of pidcomm bench --json; may be given again.")
    ] = None,
    shape: ShapeOption = "16x16",
    mask: MaskOption = "10",
    size: BytesOption = "256KiB",
) -> None:
    """Write one HTML file with the machine, figures, and sortable tables with explained columns.

    It refers to nothing outside of itself. Without --from it first runs `pidcomm bench all` with the shape, mask and
    size given, which are for a quick look; time with `pidcomm bench` for figures to keep.
    """
    from pidcomm.evaluation.pictures import page

    page.check_name(out)
    sources = [page.Source(path.name, read_rows([path])) for path in rows or ()]
    if not sources:
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()) as printed:
            path = Path(folder) / "rows.jsonl"
            bench(["all"], shapes=shape, masks=mask, size=size, iters=QUICK_ITERS, json_target=str(path))
            comments = [line for line in printed.getvalue().splitlines() if line.startswith("#")]
            sources = [page.Source("A quick benchmark", read_rows([path]), comments)]
    with working("drawing"):
        page.write(page.build(sources), out)
    typer.echo(f"wrote {out}")
