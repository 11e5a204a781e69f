"""The part of DLRM that one PE has."""

from __future__ import annotations

from dataclasses import dataclass

from pidcomm.arguments import Array


@dataclass(frozen=True)
class Part:
    """The part of the model and of the samples that one PE has, and the sizes of its windows.

    samples, tables, columns: the number of samples, of tables and of columns. rows: the number of
    rows of each table. places: shape (x, tables), the numbers of the tables of the PEs of each x;
    the number of all tables where there is no table. The first tables of all x have the most rows,
    and so on, because the rows of a PE depend on the longest.
    wanted_bytes: size of the indices of the PE's samples into all tables. index_bytes: size of the
    indices of all samples into the PE's tables.
    vector_bytes: size of the rows that the PE looks up in its tables and columns, for the samples
    of all PEs with the same y.
    """

    samples: int
    tables: int
    rows: tuple[int, ...]
    columns: int
    places: Array
    wanted_bytes: int
    index_bytes: int
    vector_bytes: int
