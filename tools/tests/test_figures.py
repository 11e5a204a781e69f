"""The documents have the numbers of the measured rows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from figures import ROOT, Figure, all_figures, rows_of


@pytest.mark.parametrize("figure", list(all_figures()), ids=lambda figure: figure.text[:60])
def test_documents_have_the_numbers_of_the_rows(figure: Figure) -> None:
    content = (ROOT / figure.document).read_text()
    assert figure.written(content) == content


def test_numbers_replace_those_of_the_text_only() -> None:
    content = "Takes 1.5 to\n  2 ms on 64 PEs; takes 7 s.\n"
    figure = Figure("a.md", "Takes {} to {} ms", ("10", "20.5"))
    assert figure.written(content) == "Takes 10 to\n  20.5 ms on 64 PEs; takes 7 s.\n"


@pytest.mark.parametrize("content", ["Takes long.", "Takes 1 ms. Takes 2 ms."])
def test_a_text_stands_exactly_once(content: str) -> None:
    with pytest.raises(ValueError, match=r"a\.md has [02] times: Takes \{\} ms"):
        Figure("a.md", "Takes {} ms", ("1",)).written(content)


def test_rows_are_chosen_by_their_fields(tmp_path: Path) -> None:
    rows = [{"name": "a", "ms": 1}, {"name": "b", "ms": 2}]
    (tmp_path / "times.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    assert rows_of(tmp_path)("times", name="b") == rows[1:]
    with pytest.raises(ValueError, match=r"no row with .*'c'"):
        rows_of(tmp_path)("times", name="c")
