"""Writes measured figures into the documents, or compares the documents with the rows.

The files bench/figures.py of the products list the figures: `figures()` yields a document, a text
of the document with {} in the place of each number, and the numbers from the rows. Spaces of the
text match line ends, too.

python tools/figures.py            updates the documents
python tools/figures.py --check    reports texts that are missing, and numbers that differ
"""

from __future__ import annotations

import json
import re
import runpy
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
LISTS = ("pidcomm/bench/figures.py", "studies/bench/figures.py")
_NUMBER = r"(\d+(?:[.,]\d+)*)"


class Figure(NamedTuple):
    """A text with numbers. document: path from the root."""

    document: str
    text: str
    numbers: tuple[str, ...]

    def written(self, content: str) -> str:
        """Return the content of the document with these numbers.

        Raises ValueError unless the document has the text exactly once.
        """
        parts = [r"\s+".join(map(re.escape, re.split(r"\s+", part))) for part in self._parts]
        places = list(re.finditer(_NUMBER.join(parts), content))
        if len(places) != 1:
            raise ValueError(f"{self.document} has {len(places)} times: {self.text}")
        [place] = places
        for number in reversed(range(len(self.numbers))):
            begin, end = place.span(number + 1)
            content = content[:begin] + self.numbers[number] + content[end:]
        return content

    @property
    def _parts(self) -> list[str]:
        parts = self.text.split("{}")
        if len(parts) != len(self.numbers) + 1:
            raise ValueError(f"{self.text!r} needs {len(parts) - 1} numbers, not {self.numbers}")
        return parts


def rows_of(folder: Path) -> Callable[..., list[dict[str, Any]]]:
    """Return the function that reads the rows of a file `name`.jsonl in the folder whose fields
    have the values `fields`. The function raises ValueError if there are no such rows.
    """

    def rows(name: str, /, **fields: Any) -> list[dict[str, Any]]:
        lines = (folder / f"{name}.jsonl").read_text().splitlines()
        all_rows = map(json.loads, lines)
        wanted = [
            row for row in all_rows if all(row.get(key) == value for key, value in fields.items())
        ]
        if not wanted:
            raise ValueError(f"{name}.jsonl has no row with {fields}")
        return wanted

    return rows


def all_figures() -> Iterator[Figure]:
    """Yield the figures of all products."""
    for name in LISTS:
        for document, text, *numbers in runpy.run_path(str(ROOT / name))["figures"](rows_of):
            yield Figure(document, text, tuple(numbers))


def main(arguments: list[str]) -> int:
    """Update or check the documents. Return the number of faults, at most 1."""
    faults = []
    for figure in all_figures():
        path = ROOT / figure.document
        content = path.read_text()
        try:
            wanted = figure.written(content)
        except ValueError as error:
            faults.append(str(error))
            continue
        if wanted != content and "--check" in arguments:
            faults.append(f"{figure.document}: the rows have {figure.numbers} in: {figure.text}")
        elif wanted != content:
            path.write_text(wanted)
    print("\n".join(faults) or "documents and rows agree")
    return min(1, len(faults))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
