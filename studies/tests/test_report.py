"""The report: one HTML file."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest
from command_line import run
from test_pictures import BROWSERS, reference

from pidcomm_studies.pictures import page

# ---- the report


class Page(HTMLParser):
    """A parsed page: its tables, its elements and their links."""

    VOID = ("meta", "br", "hr", "img", "link", "input")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tables: list[list[list[tuple[str, str | None]]]] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attributes)))
        if tag not in self.VOID:
            self._open.append(tag)
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append(("", dict(attributes).get("data-value")))

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attributes)))

    def handle_endtag(self, tag: str) -> None:
        """Check that elements end in turn."""
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        """Collect the text of cells."""
        if self._open and {"td", "th"} & set(self._open):
            text, value = self.tables[-1][-1][-1]
            self.tables[-1][-1][-1] = (text + data, value)


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report of reference rows of the project."""
    path = tmp_path_factory.mktemp("report") / "report.html"
    names = ("collectives", "sizes", "ablation")
    sources = [page.Source(name, reference(name)) for name in names]
    page.write(page.build(sources), path)
    return path


def test_a_report_needs_no_other_file(report: Path) -> None:
    text = report.read_text()
    assert "http" not in text
    html_page = Page(text)
    ids = [attributes["id"] for _, attributes in html_page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    for tag, attributes in html_page.elements:
        assert tag not in ("link", "img", "iframe")
        assert "src" not in attributes
        for name, value in attributes.items():
            if name.endswith("href"):
                assert value is not None
                assert value.startswith("#")
                assert value[1:] in ids
    assert set(re.findall(r"url\(#([^)]+)\)", text)) <= set(ids)
    assert [tag for tag, _ in html_page.elements].count("svg") == 3
    assert "prefers-color-scheme: dark" in text
    assert "@media print" in text


def test_the_tables_of_a_report_have_the_values_of_the_rows(report: Path) -> None:
    tables = Page(report.read_text()).tables
    for name, table in zip(("collectives", "sizes", "ablation"), tables, strict=True):
        rows = reference(name)
        columns = [text for text, _ in table[0]]
        equal = {key for key in rows[0] if len({str(row[key]) for row in rows}) == 1} - set(
            page.ALWAYS
        )
        assert set(columns) == set(rows[0]) - set(page.RUN_KEYS) - equal
        assert columns[:2] == ["collective", "technique"]
        # They decide: no scrolling.
        assert {"speed_up", "total_us"} & set(rows[0]) - equal <= set(columns[:8])
        assert len(table) == 1 + len(rows)
        for line, row in zip(table[1:], rows, strict=True):
            for column, (text, value) in zip(columns, line, strict=True):
                if row[column] is None:
                    assert (text, value) == ("-", None)
                elif isinstance(row[column], str):
                    assert text == value == row[column]
                else:
                    assert value is not None
                    assert float(value) == row[column]
                    assert float(text) == pytest.approx(row[column], rel=1e-5)


def test_a_report_defines_its_columns_and_names_machine_and_limits(report: Path) -> None:
    text = report.read_text()
    for wanted in (
        "limit_pct: the median over the rounds of bus in percent of",
        "Rows of an ablation",
        "emulated machine",
        "best orders",
    ):
        assert wanted in text


def test_a_report_hides_facts_without_a_value() -> None:
    rows = reference("isas")
    assert {row["speed_up"] for row in rows} == {None}
    text = page.build([page.Source("isas", rows)])
    assert "None" not in re.findall("<dd>(.*?)</dd>", text)
    assert "<dt>speed_up</dt>" not in text


def test_a_report_separates_runs_and_says_why_it_has_no_figure() -> None:
    rows = reference("collectives")
    text = page.build(
        [
            page.Source(
                "two runs", [rows[0], {**rows[1], "commit": "other"}, reference("ablation")[0]]
            )
        ]
    )
    assert [len(table) for table in Page(text).tables] == [2, 2, 2]
    assert "No figure: the rows are mixed" in text


def test_a_report_escapes_its_input() -> None:
    row = {**reference("collectives")[0], "commit": "<b>&\"'", "isa": "<i>"}
    text = page.build([page.Source("<script>", [row], ["# <hr>"])])
    html_page = Page(text)
    assert not {"b", "i", "hr"} & {tag for tag, _ in html_page.elements}
    assert [tag for tag, _ in html_page.elements].count("script") == 1


def test_a_report_without_rows_runs_a_quick_benchmark(tmp_path: Path) -> None:
    path = tmp_path / "quick.html"
    result = run("report", str(path), "--shape", "8x8", "--bytes", "16KiB")
    assert (result.returncode, result.stdout) == (0, f"wrote {path}\n"), result
    text = path.read_text()
    assert "# geometry:" in text
    assert "# limit: streaming copy" in text
    ((head, *lines),) = Page(text).tables
    assert len(lines) == 16
    wrong = [name for name, _ in head].index("wrong")
    assert {line[wrong][0] for line in lines} == {"0"}


def test_a_click_on_a_header_sorts(report: Path, tmp_path: Path) -> None:
    browser = next(
        (browser_path for name in BROWSERS if (browser_path := shutil.which(name))), None
    )
    if browser is None:
        pytest.skip(f"none of the browsers {', '.join(BROWSERS)} is installed")
    for column, clicks in (
        ("t_p50_us", 1),
        ("t_p50_us", 2),
        ("collective", 1),
        ("speed_up", 1),
        ("speed_up", 2),
    ):
        rows = reference("collectives")
        rows[3] = {**rows[3], "speed_up": None}
        text = page.build([page.Source("rows", rows)])
        number = [name for name, _ in Page(text).tables[0][0]].index(column)
        click = f"document.querySelectorAll('th button')[{number}].click();" * clicks
        path = tmp_path / "clicked.html"
        path.write_text(text.replace("</body>", f"<script>{click}</script></body>"))
        command = [
            browser,
            "--headless",
            "--disable-gpu",
            "--no-sandbox",
            f"--user-data-dir={tmp_path / 'profile'}",
        ]
        result = subprocess.run(
            [*command, "--virtual-time-budget=2000", "--dump-dom", path.as_uri()],
            capture_output=True,
            text=True,
            check=True,
            timeout=600,
            env={**os.environ, "HOME": str(tmp_path)},
        )
        html_page = Page(result.stdout)
        got = [line[number][1] for line in html_page.tables[0][1:]]
        known = [row[column] for row in rows if row[column] is not None]
        wanted = [str(value) for value in sorted(known, reverse=clicks == 2)]
        assert got == wanted + [None] * (len(rows) - len(known))
        assert got != [str(row[column]) for row in rows]
        sorts = [attributes["aria-sort"] for tag, attributes in html_page.elements if tag == "th"]
        assert sorts[number] == ("ascending" if clicks == 1 else "descending")
        assert set(sorts[:number] + sorts[number + 1 :]) == {"none"}
