"""Tables of text. `Lines` formats a row when the result arrives; a `table` is printed when all
rows are complete.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from rich import box
from rich.table import Table

__all__ = ["Column", "Lines", "table"]

RIGHT, WRAPPED = ">", "~"


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


def table(heading: str, columns: Sequence[str]) -> TitledTable:
    """Return an empty table. columns: titles; a leading ">" aligns cells right, "~" wraps them
    at words.
    """
    new_table = TitledTable(box=box.SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0))
    new_table.heading = heading
    for text in columns:
        name = text.lstrip(RIGHT + WRAPPED)
        new_table.add_column(
            name,
            justify="right" if text.startswith(RIGHT) else "left",
            no_wrap=not text.startswith("~"),
        )
    return new_table
