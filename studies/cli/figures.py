"""Show figures of other papers for the command reproduce."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import typer
from pidcomm.bench.columns import table
from pidcomm.bench.results import Results
from pidcomm.cli.app import Work
from pidcomm_studies.papers.figure import Figure, Panel, Point, json_rows
from rich.table import Table


def show(figure: Figure, results: Results, work: Work, iters: int, plot: Path | None) -> int:
    """Show a figure, measured unless iters is 0. Return the number of wrong elements."""
    results.text(f"{figure.name}: {figure.title}", style="bold")
    results.text(figure.paper)
    points: list[Point] = []
    if iters and figure.measure is not None:
        points += figure.measure(iters, work.phase)
    work.phase("pricing")
    points += figure.model()
    statements = list(figure.statements(points))
    results.json_lines(json_rows(figure, points, statements))
    for panel in figure.panels:
        of_panel = [it for it in points if it.panel == panel.name]
        for source, on in dict.fromkeys((it.source, it.on) for it in of_panel):
            results.text(
                _table(panel, [it for it in of_panel if (it.source, it.on) == (source, on)]), ""
            )
    for it in statements:
        verdict = "agrees" if it.agrees else "differs"
        results.text(f"published: {it.published}", f"here: {it.here}", f"verdict: {verdict}", "")
    if figure.note:
        results.text(figure.note)
    if plot is not None:
        from pidcomm_studies.pictures import points as picture
        from pidcomm_studies.pictures import style

        work.phase("drawing")
        style.save(picture.draw(figure, points, statements), plot)
        typer.echo(f"wrote {plot}", err=not results.has_text)
    return sum(it.wrong or 0 for it in points)


def _table(panel: Panel, points: Sequence[Point]) -> Table:
    """Return the points of one source on one machine: a row per x and a column per series, or the
    other way round.

    The smaller number becomes the number of columns.
    """
    values = {(_words(it.x), it.series): f"{it.value:.4g}" for it in points}
    places, names = (list(dict.fromkeys(it)) for it in zip(*values, strict=True))
    title = f"{panel.name}: {panel.what}; {points[0].source} on {points[0].on}"
    if len(names) <= len(places):
        made = table(title, [panel.x, *(f">{name}" for name in names)])
        for x in places:
            made.add_row(x, *(values.get((x, name), "-") for name in names))
    else:
        made = table(title, [f"~{panel.x}", *(f">{x}" for x in places)])
        for name in names:
            made.add_row(name, *(values.get((x, name), "-") for x in places))
    return made


def _words(x: float | str) -> str:
    return f"{x:g}" if isinstance(x, (int, float)) else x
