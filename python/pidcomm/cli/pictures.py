"""The commands that draw: plot, explain, report."""

from __future__ import annotations

import contextlib
import io
import tempfile
from pathlib import Path
from typing import Annotated

import typer

import pidcomm
from pidcomm.arguments import options_of, with_scratch
from pidcomm.cli.app import (
    BytesOption,
    CollectiveArgument,
    DtypeOption,
    MaskOption,
    OpOption,
    ShapeOption,
    TechniqueOption,
    command,
    json_option,
    working,
)
from pidcomm.cli.bench import bench
from pidcomm.evaluation.pictures.rows import read_rows
from pidcomm.evaluation.results import Results
from pidcomm.sizes import parse_shape, parse_size

KINDS = "bars, sweep or ablation"
QUICK_ITERS = 5


@command(
    "pidcomm plot rows.jsonl --out bars.svg",
    "pidcomm plot rows.jsonl --metric algbw --out bars.png",
    "pidcomm plot ablation.jsonl --out ablation.svg",
)
def plot(
    rows: Annotated[list[Path], typer.Argument(metavar="ROWS.jsonl...", help="Files of pidcomm bench --json.")],
    out: Annotated[Path, typer.Option("--out", help="The picture: a name that ends in .svg or .png.")],
    kind: Annotated[str | None, typer.Option("--kind", help=f"{KINDS} (default: what the rows are for).")] = None,
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
    "pidcomm explain alltoall --shape 4x8x2 --mask 010 --bytes 8KiB",
    "pidcomm explain allreduce --technique pr+im --out allreduce.svg",
)
def explain(
    collective: CollectiveArgument,
    shape: ShapeOption = "32x32",
    mask: MaskOption = "10",
    size: BytesOption = "1MiB",
    dtype: DtypeOption = "int32",
    op: OpOption = "sum",
    technique: TechniqueOption = "tile",
    out: Annotated[
        Path | None, typer.Option("--out", help="Draw it: a name that ends in .svg or .png (default: words).")
    ] = None,
    json_target: Annotated[str | None, json_option("places and plan, as one JSON object,")] = None,
) -> None:
    """Show where a collective runs and how: its PEs on channels, ranks, banks and chips, their groups, and the plan.

    Moves nothing. The input is taken to be at the start of MRAM, the output behind it, and scratch behind that.
    """
    from pidcomm.evaluation.pictures import places, words

    size_bytes, lengths = parse_size(size), parse_shape(shape)
    with Results(json_target) as results:
        plan = pidcomm.plan(
            collective,
            lengths,
            mask,
            bytes=size_bytes,
            dst=size_bytes,
            dtype=dtype,
            op=op,
            **with_scratch(options_of(technique=technique), 2 * size_bytes),
        )
        where = places.locate(lengths, mask)
        results.json({"places": where.rows(), "plan": plan})
        if out is None:
            results.text(*words.explain_places(where, plan))
            return
        with working("drawing"):
            from pidcomm.evaluation.pictures import drawing, style

            style.check_format(out)
            style.save(drawing.draw(where, plan), out)
        results.text(f"wrote {out}")


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
    """Write one HTML file with the machine, figures, tables that sort, and what the columns mean.

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
