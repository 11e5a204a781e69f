"""Reports as one HTML file.

The page does not access the network or load fonts; its only script sorts tables.
"""

from __future__ import annotations

import inspect
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from html import escape
from importlib import resources
from pathlib import Path

import pidcomm
from pidcomm import ArgumentError
from pidcomm.bench import info
from pidcomm.bench.ablation import Step
from pidcomm.bench.timing import Row
from pidcomm.errors import require
from pidcomm_studies.pictures import figures, style
from pidcomm_studies.pictures.rows import JsonRow, is_ablation, kind_of

SUFFIXES = (".html", ".htm")
# Fields that are equal in all rows of a run.
RUN_KEYS = (
    "version",
    "commit",
    "machine",
    "hugepages",
    "sdk_flush",
)
# The first columns, which are visible without scrolling; all columns that are not listed follow.
# Equal values stand above the table.
FIRST = [
    *(
        "collective",
        "technique",
        "dtype",
        "op",
        "shape",
        "mask",
        "bytes_per_pe",
        "t_p50_us",
        "total_us",
        "speed_up",
    ),
    *("step_gain", "limit_pct", "algbw_gb_s", "bus_gb_s", "host_us", "pe_us", "wrong", "source"),
]
# Columns that are shown even if all rows have equal values.
ALWAYS = (
    "collective",
    "technique",
    "wrong",
    "source",
)
# Matches the space before a definition, such as "from_us, work_us: the phases".
_DEFINED = re.compile(r"(?<=[.;]) (?=(?:\w+, )*\w+: )")
_XML_HEAD = re.compile(r"^.*?(?=<svg\b)", re.DOTALL)
_METADATA = re.compile(r"<metadata>.*?</metadata>", re.DOTALL)
_NAMESPACE = re.compile(r'\sxmlns(?::\w+)?="[^"]*"')
_ID = re.compile(r'\sid="([^"]*)"')
_REFERENCE = re.compile(r'(?:url\(|href=")#([^)"]+)')


@dataclass(frozen=True)
class Source:
    """Rows, and the name of their source. comments: the lines of the benchmark before the rows,
    if known.
    """

    name: str
    rows: Sequence[JsonRow]
    comments: Sequence[str] = field(default_factory=tuple)


def build(sources: Sequence[Source]) -> str:
    """Return the page."""
    title = f"pidcomm {pidcomm.__version__}: report"
    body = [
        f"<h1>{escape(title)}</h1>",
        "<h2>The machine that made this report</h2>",
        _pairs(info.in_words(info.facts())),
        *(part for number, source in enumerate(sources) for part in _section(source, number)),
        "<h2>How the columns are defined</h2>",
        *_definitions(sources),
    ]
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en">',
            "<head>",
            '<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{escape(title)}</title>",
            f"<style>\n{_own('page.css')}</style>",
            "</head>",
            "<body>",
            *body,
            f"<script>\n{_own('page.js')}</script>",
            "</body>",
            "</html>",
            "",
        ]
    )


def check_name(path: Path) -> None:
    """Raise ArgumentError unless a file name ends in one of SUFFIXES and its folder exists."""
    if path.suffix.lower() not in SUFFIXES:
        raise ArgumentError(
            f"cannot write {path} as a page: its name must end in {' or '.join(SUFFIXES)}"
        )
    if not path.absolute().parent.is_dir():
        raise ArgumentError(f"cannot write {path}: there is no folder {path.parent}")
    require("matplotlib", f"a page with figures, {path},")


def write(text: str, path: Path) -> None:
    """Write a page. Raises ArgumentError if the file cannot be written."""
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ArgumentError(f"cannot write {path}: {error.strerror}") from None


def _own(name: str) -> str:
    return resources.files("pidcomm_studies.pictures").joinpath(name).read_text(encoding="utf-8")


def _pairs(pairs: Iterable[tuple[str, object]]) -> str:
    items = "".join(
        f"<dt>{escape(name)}</dt><dd>{escape(str(value))}</dd>" for name, value in pairs
    )
    return f"<dl>{items}</dl>"


# ---- a source: its facts, figure and tables


def _section(source: Source, number: int) -> Iterator[str]:
    yield f"<h2>{escape(source.name)}</h2>"
    if source.comments:
        yield f"<pre>{escape(chr(10).join(source.comments))}</pre>"
    try:
        figure = figures.draw(source.rows)
    except ArgumentError as error:
        yield f"<p>No figure: {escape(str(error))}.</p>"
    else:
        buffer = io.StringIO()
        with style.settings():
            figure.savefig(buffer, format="svg", metadata={"Date": None})
        kind = kind_of(source.rows)
        drawing = inline_svg(buffer.getvalue(), f"s{number}-", f"{kind} of {source.name}")
        yield f"<figure>{drawing}</figure>"
    for rows in _runs(source.rows):
        names = _columns(rows)
        equal = [(name, rows[0][name]) for name in _keys(rows) if name not in names]
        yield _pairs([*_facts(rows), *(pair for pair in equal if pair[1] is not None)])
        yield _table(rows, names)


def inline_svg(document: str, prefix: str, label: str) -> str:
    """Return an SVG document as an element of a page, without namespaces and metadata and with
    unique ids.
    """
    element = _NAMESPACE.sub("", _METADATA.sub("", _XML_HEAD.sub("", document)))
    used = set(_REFERENCE.findall(element))
    element = _ID.sub(
        lambda match: f' id="{prefix}{match[1]}"' if match[1] in used else "", element
    )
    element = _REFERENCE.sub(lambda match: match[0].replace("#", f"#{prefix}"), element)
    return element.replace("<svg", f'<svg role="img" aria-label="{escape(label)}"', 1).strip()


def _runs(rows: Sequence[JsonRow]) -> list[list[JsonRow]]:
    """Return lists of rows with equal run and equal columns."""
    runs: dict[str, list[JsonRow]] = {}
    for row in rows:
        runs.setdefault(repr(([row.get(key) for key in RUN_KEYS], list(row))), []).append(row)
    return list(runs.values())


def _facts(rows: Sequence[JsonRow]) -> Iterator[tuple[str, object]]:
    row = rows[0]
    machine = row.get("machine") or {}
    yield "measured with", f"pidcomm {row['version']}, commit {row.get('commit') or 'unknown'}"
    if machine:
        busy = machine.get("busy_cpus")  # missing in rows of old versions
        load = "" if busy is None else f"; other programs used {busy} of them before"
        yield "CPU", f"{machine.get('cpu')}, {machine.get('cpus')} CPUs{load}"
    if "hugepages" in row:
        yield "huge pages", "on" if row["hugepages"] else "off"
    if "sdk_flush" in row:
        yield "flushes of the emulated SDK", row["sdk_flush"]
    limits = [json_row["limit_gb_s"] for json_row in rows if json_row.get("limit_gb_s") is not None]
    if limits:
        orders = sorted(
            {json_row["limit_copy_order"] for json_row in rows if json_row.get("limit_copy_order")}
        )
        yield (
            "limits",
            f"{min(limits):.2f} to {max(limits):.2f} GB/s, best orders {', '.join(orders)}",
        )
    yield "wrong elements", sum(int(json_row.get("wrong", 0)) for json_row in rows)


def _keys(rows: Sequence[JsonRow]) -> list[str]:
    return [name for name in rows[0] if name not in RUN_KEYS]


def _columns(rows: Sequence[JsonRow]) -> list[str]:
    """Return the columns of a table, most important first.

    Columns whose values are all equal are left out.
    """
    names = [
        key
        for key in _keys(rows)
        if key in ALWAYS or len(rows) == 1 or any(row[key] != rows[0][key] for row in rows)
    ]
    return sorted(names, key=lambda name: FIRST.index(name) if name in FIRST else len(FIRST))


def _table(rows: Sequence[JsonRow], names: Sequence[str]) -> str:
    numeric = {
        name
        for name in names
        if all(isinstance(row[name], (int, float, type(None))) for row in rows)
    }
    head = "".join(
        f'<th scope="col" aria-sort="none"{_class(name in numeric)}>{escape(name)}</th>'
        for name in names
    )
    lines = ["".join(_cell(row[name], name in numeric) for name in names) for row in rows]
    return (
        f'<div class="wide"><table class="sortable"><caption>{len(rows)} rows; '
        "times in us, bandwidths in GB/s (1 GB = 1e9 bytes); click a header to sort</caption>"
        f"<thead><tr>{head}</tr></thead><tbody>\n"
        + "\n".join(f"<tr>{line}</tr>" for line in lines)
        + "\n</tbody></table></div>"
    )


def _class(is_number: bool) -> str:
    return ' class="number"' if is_number else ""


def _cell(value: object, is_number: bool) -> str:
    if value is None:
        return f"<td{_class(is_number)}>-</td>"
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    return f'<td{_class(is_number)} data-value="{escape(str(value))}">{escape(text)}</td>'


# ---- meanings of columns, from the docstrings of the row classes


def _definitions(sources: Sequence[Source]) -> Iterator[str]:
    kinds = {is_ablation(row) for source in sources for row in source.rows}
    for kind, heading in ((Row, "Rows of a benchmark"), (Step, "Rows of an ablation")):
        if (kind is Step) in kinds:
            yield f"<h3>{heading}</h3>"
            yield "<ul>"
            for sentence in _DEFINED.split(" ".join((inspect.getdoc(kind) or "").split())):
                marked = re.sub("`([^`]+)`", r"<code>\1</code>", escape(sentence))
                yield f"<li>{marked}</li>"
            yield "</ul>"
