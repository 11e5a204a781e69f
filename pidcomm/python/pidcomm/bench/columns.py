"""Tables of text. `Lines` formats a row when the result arrives; a `table` is printed when all
rows are complete.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from rich import box
from rich.cells import cell_len
from rich.table import Column as RichColumn
from rich.table import Table

__all__ = ["Column", "Lines", "table"]

RIGHT, WRAPPED = ">", "~"
WRAPPED_WIDTH = 16  # characters that a wrapped column gets if its cells are longer


class Column(NamedTuple):
    """A column of a table of lines.

    form: the format of a cell, such as "{0.pes:>5}"; the title gets the width of the cell. is_wide:
    whether only --wide shows the column.
    """

    title: str
    form: str
    is_wide: bool = False


class Lines:
    """A table. The titles form a line of text, and each row forms a line of text."""

    def __init__(self, columns: Iterable[Column], *, is_wide: bool) -> None:
        self._columns = [column for column in columns if is_wide or not column.is_wide]

    def titles(self) -> str:
        """Return the line of titles, aligned with the cells."""
        return " ".join(
            f"{column.title:{_width(column.form)}}" for column in self._columns
        ).rstrip()

    def line(self, *row: object, **fields: object) -> str:
        """Return a row. row, fields: arguments of the formats."""
        return " ".join(column.form.format(*row, **fields) for column in self._columns).rstrip()


def _width(form: str) -> str:
    return form[1:-1].split(":")[1].split(".")[0]


class TitledTable(Table):
    """A table with a heading. The heading may be wider than the table."""

    heading = ""

    def parts(self, width: int) -> Iterator[Table]:
        """Yield the table, or, if it needs more characters per line, tables with its first column
        and as many other columns as fit. No cell is cut.
        """
        first, *others = self.columns
        kept, left = [first], width + 1 - _least(first)
        for column in others:
            if _least(column) > left and len(kept) > 1:
                yield _with_columns(kept)
                kept, left = [first], width + 1 - _least(first)
            kept.append(column)
            left -= _least(column)
        yield _with_columns(kept)


def _least(column: RichColumn) -> int:
    """Return the number of characters that a column needs per line, with two spaces behind it."""
    texts = [line for cell in (column.header, *column.cells) for line in str(cell).splitlines()]
    widest = max(map(cell_len, texts), default=0)
    if column.no_wrap:
        return widest + 2
    longest_word = max((cell_len(word) for text in texts for word in text.split()), default=0)
    return max(longest_word, min(widest, WRAPPED_WIDTH)) + 2


def _with_columns(columns: Sequence[RichColumn]) -> Table:
    part = Table(box=box.SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0))
    for column in columns:
        least = {"no_wrap": True, "min_width": _least(column) - 2} if column.no_wrap else {}
        part.add_column(column.header, justify=column.justify, **least)  # type: ignore[arg-type]
    for cells in zip(*(column.cells for column in columns), strict=True):
        part.add_row(*cells)
    return part


def table(heading: str, columns: Sequence[str]) -> TitledTable:
    """Return an empty table. columns: titles; a leading ">" aligns cells right, "~" wraps them
    at words.
    """
    new_table = TitledTable()
    new_table.heading = heading
    for text in columns:
        name = text.lstrip(RIGHT + WRAPPED)
        new_table.add_column(
            name,
            justify="right" if text.startswith(RIGHT) else "left",
            no_wrap=not text.startswith("~"),
        )
    return new_table
