"""Show figures for the command reproduce."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import typer
from rich.table import Table

from pidcomm.bench.columns import table
from pidcomm.bench.results import Results
from pidcomm_studies.papers.figure import (
    MODELLED,
    PUBLISHED,
    Figure,
    Panel,
    Point,
    Request,
    Statement,
    format_value,
    json_rows,
)


def show(
    figure: Figure, request: Request, results: Results, plot: Path | None, *, is_wide: bool
) -> int:
    """Show a figure and draw it to the file `plot`. Return the number of wrong elements."""
    results.text(f"{figure.name}: {figure.title}", style="bold")
    results.text(figure.paper)
    points = figure.points(request)
    statements = list(figure.statements(request, points))
    results.json_lines(json_rows(figure, points, statements))
    if conditions := request.conditions.get(figure.name):
        results.text(conditions, "")
    is_measured = request.iters > 0 and figure.measure is not None
    for panel in figure.panels:
        of_panel = [point for point in points if point.panel == panel.name]
        if panel.unit is not None:
            results.text(_comparison(panel, of_panel, panel.unit, is_measured=is_measured), "")
        else:
            for on in dict.fromkeys(point.on for point in of_panel):
                on_machine = [point for point in of_panel if point.on == on]
                results.text(_table(panel, on_machine, is_wide=is_wide), "")
    for statement in statements:
        results.text(*_words_of(statement), "")
    if figure.note:
        results.text(figure.note, "")
    if plot is not None:
        from pidcomm_studies.pictures import points as picture
        from pidcomm_studies.pictures import style

        request.progress.phase("drawing")
        style.save(picture.draw(figure, points, statements, conditions), plot)
        typer.echo(f"wrote {plot}", err=not results.has_text)
    return sum(point.wrong or 0 for point in points)


def _words_of(statement: Statement) -> Iterator[str]:
    yield f"published: {statement.published}"
    yield f"here: {statement.here}"
    if statement.agrees is not None:
        yield f"verdict: {'agrees' if statement.agrees else 'differs'}"
    if statement.agrees is False and statement.cause:
        yield f"cause: {statement.cause}"


def _table(panel: Panel, points: Sequence[Point], *, is_wide: bool) -> Table:
    """Return the points on one machine: a row per x and a column per series, or the other way
    round.

    The rows are the series if that makes fewer and narrower columns. is_wide: whether the table
    also has the details of the points.
    """
    values = {(_words(point.x), point.series): _text(point, is_wide) for point in points}
    places, names = (list(dict.fromkeys(keys)) for keys in zip(*values, strict=True))
    detail = f" ({panel.detail})" if is_wide and panel.detail else ""
    title = f"{panel.name}: {panel.what}{detail}; {_sources(points)} on {points[0].on}"
    has_narrow_places = sum(map(len, places)) < sum(map(len, names))
    if len(names) <= len(places) or not has_narrow_places:
        panel_table = table(title, [panel.x, *(f">{name}" for name in names)])
        for x in places:
            panel_table.add_row(x, *(values.get((x, name), "-") for name in names))
    else:
        panel_table = table(title, [f"~{panel.x}", *(f">{x}" for x in places)])
        for name in names:
            panel_table.add_row(name, *(values.get((x, name), "-") for x in places))
    return panel_table


def _sources(points: Iterable[Point]) -> str:
    """Return the sources in words: the first one, and the series of the others."""
    series: dict[str, dict[str, None]] = {}
    for point in points:
        series.setdefault(point.source, {})[point.series] = None
    first, *others = series
    return first + "".join(f" ({', '.join(series[source])}: {source})" for source in others)


def _text(point: Point, is_wide: bool) -> str:
    return f"{point.value:.4g}" + (f" ({point.detail})" if is_wide and point.detail else "")


def _words(x: float | str) -> str:
    return f"{x:g}" if isinstance(x, (int, float)) else x


def _comparison(panel: Panel, points: Sequence[Point], unit: str, *, is_measured: bool) -> Table:
    """Return a table of the published, measured and modelled value of each statistic.

    is_measured: whether the table has the columns of measured values, which may be missing.
    """
    published, modelled, here = (
        {point.x: point for point in points if is_chosen(point.source)}
        for is_chosen in (
            lambda source: source == PUBLISHED,
            lambda source: source == MODELLED,
            lambda source: source not in (PUBLISHED, MODELLED),
        )
    )
    of_here = [">here", "source", ">here/publ."] if is_measured else []
    title = f"{panel.name}: published, " + "here and " * is_measured + "modelled"
    if modelled:
        title += f" on {next(iter(modelled.values())).on}"
    comparison = table(title, [f"~{panel.x}", ">published", *of_here, ">modelled", ">error"])

    def value(point: Point | None) -> str:
        if point is None:
            return "-"
        alone = point.facts["host_alone"]
        text = format_value(point.value, unit)
        return text if alone is None else f"{text}\nhost {format_value(alone, unit)}"

    def fact(point: Point | None, name: str, form: str) -> str:
        number = point and point.facts[name]
        return "-" if number is None else f"{number:{form}}"

    for x in {**modelled, **published, **here}:
        of_x = here.get(x)
        measured = [value(of_x), of_x.source if of_x else "-", fact(of_x, "ratio", ".2f")]
        error = fact(modelled.get(x), "error_pct", "+.0f")
        comparison.add_row(
            str(x),
            value(published.get(x)),
            *(measured if is_measured else []),
            value(modelled.get(x)),
            error if error == "-" else f"{error}%",
        )
    return comparison
