"""The command demo."""

from __future__ import annotations

from typing import Annotated

from rich.table import Table
from rich.text import Text

import pidcomm
from pidcomm.cli.app import BytesOption, MaskOption, ShapeOption, command, exit_if_wrong, json_option, working
from pidcomm.errors import Error
from pidcomm.evaluation.bench import COMPARED
from pidcomm.evaluation.demo import Demo
from pidcomm.evaluation.measure import require_memory
from pidcomm.evaluation.report import json_row, run_facts
from pidcomm.evaluation.results import Results
from pidcomm.sizes import format_shape, format_size, parse_positive_size, parse_shape


@command("pidcomm demo", "pidcomm demo --shape 8x8x4 --mask 110 --bytes 64KiB", "pidcomm demo --json demo.jsonl")
def demo(
    shape: ShapeOption = "32x32",
    mask: MaskOption = "10",
    size: BytesOption = "1MiB",
    json_target: Annotated[str | None, json_option("the rows that bench has, as JSON lines,")] = None,
) -> None:
    """Run all collectives beside the conventional way, and check them.

    Every element of every result is compared with the oracle.

    Halves the size until the memory of this machine suffices.
    """
    lengths, size_bytes = parse_shape(shape), parse_positive_size(size)
    with (
        Results(json_target) as results,
        working(f"allocating {_pes(lengths)} PEs") as work,
        pidcomm.allocate(pes=_pes(lengths)) as pes,
    ):
        size_bytes = _affordable(pes.pes, size_bytes)
        work.phase("filling memory")
        it = Demo(pes, lengths, mask, size_bytes)
        work.phase("timing the transfers of the emulated SDK")
        condition = it.condition()
        facts = run_facts()
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
        work.phase("collectives", len(it.problems))
        for problem in it.problems:
            work.describe(problem.collective)
            rows = it.rows(problem, condition)
            cells = [f"{value:.2f}" for row in rows for value in (row.t_p50_us / 1e3, row.algbw_gb_s)]
            gain = next((row.speed_up for row in rows if row.technique == "tile"), None)
            row_wrong = sum(row.wrong for row in rows)
            wrong += row_wrong
            style = "red" if row_wrong else ""
            table.add_row(
                problem.collective, *cells, "-" if gain is None else f"{gain:.2f}x", Text(str(row_wrong), style)
            )
            results.json_lines(json_row(row, facts) for row in rows)
            work.step()
        results.text(table, *condition.lines())
        results.text(f"every element compared with the oracle: {wrong} wrong", style="red" if wrong else "green")
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
