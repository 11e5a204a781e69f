"""The command demo."""

from __future__ import annotations

import typer
from rich.table import Table

import pidcomm
from pidcomm.bench import COMPARED
from pidcomm.cli.app import BytesOption, MaskOption, ShapeOption, app, console, exit_if_wrong, progress_bar
from pidcomm.demo import Demo
from pidcomm.errors import Error
from pidcomm.measure import require_memory
from pidcomm.sizes import format_shape, format_size, parse_positive_size, parse_shape


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
        with progress_bar() as progress:
            task = progress.add_task("collectives", total=len(it.problems))
            for problem, rows in it.rows(condition):
                progress.update(task, advance=1, description=problem.collective)
                cells = [f"{value:.2f}" for row in rows for value in (row.t_p50_us / 1e3, row.algbw_gb_s)]
                gain = next((row.speed_up for row in rows if row.technique == "tile"), None)
                row_wrong = sum(row.wrong for row in rows)
                wrong += row_wrong
                table.add_row(problem.collective, *cells, "-" if gain is None else f"{gain:.2f}x", str(row_wrong))
    console().print(table)
    for line in condition.lines():
        typer.echo(line)
    typer.echo(f"every element compared with the oracle: {wrong} wrong")
    exit_if_wrong(wrong)


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
