"""Read rows of `pidcomm bench --json` from files, and split rows by the conditions in which they
differ.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from math import prod
from pathlib import Path
from typing import Any

from pidcomm import COLLECTIVES, TECHNIQUES, ArgumentError
from pidcomm.arguments import MAX_COUNT
from pidcomm.bench.measure import require_bytes
from pidcomm.bench.timing import Measured
from pidcomm.errors import shown
from pidcomm.files import malformed, require_file
from pidcomm.sizes import format_size, parse_shape

JsonRow = Mapping[str, Any]

WRITER = "`pidcomm bench --json`"
BYTES_PER_BYTE = 8  # peak memory per byte of a file, measured
MAX_TEXT = 200  # characters
SMALLEST, LARGEST = 1e-18, 1e18
_PROBLEM_KEYS = {field.name for field in fields(Measured)} | {
    "isa",
    "coherence",
    "source",
    "version",
    "wrong",
}
_BENCH_KEYS = {"t_p50_us", "algbw_gb_s", "bus_gb_s", "limit_gb_s", "limit_pct", "speed_up"}
_ABLATION_KEYS = {
    "host_us",
    "outside_us",
    "from_us",
    "work_us",
    "to_us",
    "bus_us",
    "pe_us",
    "total_us",
} | {
    "launch_us",
    "load_us",
}
_POSITIVE = _BENCH_KEYS | {"bytes_per_pe", "host_us", "total_us"}
_OPTIONAL = {"threads": int, "sdk_flush": str, "hugepages": bool, "commit": str, "machine": dict}
_MAY_BE_NONE = {"op", "limit_gb_s", "limit_pct", "speed_up"}
_TEXTS = {
    "collective",
    "technique",
    "dtype",
    "shape",
    "mask",
    "isa",
    "coherence",
    "source",
    "version",
    "op",
}


def is_ablation(row: JsonRow) -> bool:
    """Return whether `pidcomm bench --ablation` wrote a row."""
    return "total_us" in row


def pes_of(row: JsonRow) -> int:
    """Return the number of PEs."""
    return prod(parse_shape(row["shape"]))


def read_rows(paths: Iterable[Path]) -> list[JsonRow]:
    """Return the rows of files.

    Raises FileContentError with the file and the line of an invalid row.
    """
    rows = [row for path in paths for row in _read_file(path)]
    if not rows:
        raise ArgumentError("there are no rows to draw")
    return rows


def _read_file(path: Path) -> list[JsonRow]:
    require_bytes(BYTES_PER_BYTE * require_file(path), f"the rows of {path}")
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise ArgumentError(f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        malformed(path, None, f"not a text file; {WRITER} writes JSON lines")
    rows = [_parse(path, number, line) for number, line in enumerate(lines, 1) if line.strip()]
    if not rows:
        malformed(path, None, f"no rows; {WRITER} writes a JSON object per line")
    return rows


def _parse(path: Path, number: int, line: str) -> JsonRow:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        row = None
    if not isinstance(row, dict):
        malformed(path, number, f"no JSON object; {WRITER} writes one object per line")
    needed = _PROBLEM_KEYS | (_ABLATION_KEYS if is_ablation(row) else _BENCH_KEYS)
    if missing := sorted(needed - set(row)):
        malformed(path, number, f"no {missing[0]!r}; {WRITER} did not write this row")
    for key in sorted(needed | (set(_OPTIONAL) & set(row))):
        if not _is_sound(key, row[key]):
            malformed(
                path, number, f"{shown(row[key])} for {key!r}; {WRITER} did not write this row"
            )
    try:
        pes = pes_of(row)
    except ArgumentError as error:
        malformed(path, number, str(error))
    if not 0 < pes <= MAX_COUNT:
        malformed(
            path,
            number,
            f"shape {row['shape']} has {shown(pes)} PEs; it must have 1 to {MAX_COUNT}",
        )
    return row


def _is_sound(key: str, value: object) -> bool:
    if value is None:
        return key in _MAY_BE_NONE or key in _OPTIONAL
    if key == "machine":
        return isinstance(value, dict) and _is_text(value.get("cpu", ""))
    if key in _TEXTS or _OPTIONAL.get(key) is str:
        return _is_text(value)
    if key in _OPTIONAL and not isinstance(value, _OPTIONAL[key]):
        return False
    if not isinstance(value, (int, float)):
        return False
    # The limits let pictures draw every number.
    return (value == 0 or SMALLEST <= abs(value) <= LARGEST) and (value > 0 or key not in _POSITIVE)


def _is_text(value: object) -> bool:
    return isinstance(value, str) and len(value) <= MAX_TEXT and value.isprintable()


# ---- conditions: the properties of rows in titles


@dataclass(frozen=True)
class Condition:
    """A property of rows, and the words for this property in titles."""

    name: str
    of: Callable[[JsonRow], object]
    words: Callable[[Any], str]
    is_small_print: bool = False


def _field(name: str, form: str, *, is_small_print: bool = False) -> Condition:
    return Condition(name, lambda row: row.get(name), form.format, is_small_print)


CONDITIONS = (
    _field("shape", "{}"),
    Condition("pes", pes_of, "{} PEs".format),
    _field("mask", "mask {}"),
    _field("dtype", "{}"),
    Condition(
        "bytes_per_pe", lambda row: row["bytes_per_pe"], lambda size: f"{format_size(size)} per PE"
    ),
    _field("isa", "ISA {}"),
    _field("coherence", "policy {}"),
    _field("threads", "{} threads", is_small_print=True),
    _field("sdk_flush", "flushes of the emulated SDK: {}", is_small_print=True),
    Condition(
        "hugepages",
        lambda row: row.get("hugepages"),
        lambda on: f"huge pages {'on' if on else 'off'}",
        True,
    ),
    _field("version", "pidcomm {}", is_small_print=True),
    _field("commit", "commit {}", is_small_print=True),
    Condition("cpu", lambda row: (row.get("machine") or {}).get("cpu"), "{}".format, True),
)


@dataclass(frozen=True)
class Split:
    """Rows by the words of the conditions that differ. title, small_print: the words of the
    equal conditions.
    """

    title: list[str]
    small_print: list[str]
    parts: dict[str, list[JsonRow]]


def split(rows: Sequence[JsonRow], without: Iterable[str] = ()) -> Split:
    """Split rows by all conditions except those in `without`."""
    title: list[str] = []
    small_print: list[str] = []
    differing: list[Condition] = []
    # The shape implies the number of PEs.
    left_out = {*without, *({"pes"} if "pes" not in without and "shape" not in without else ())}
    for condition in CONDITIONS:
        if condition.name in left_out:
            continue
        values = {condition.of(row) for row in rows}
        if len(values) > 1:
            differing.append(condition)
        elif (value := values.pop()) is not None:
            (small_print if condition.is_small_print else title).append(condition.words(value))
    parts: dict[str, list[JsonRow]] = {}
    for row in rows:
        parts.setdefault(", ".join(fact.words(fact.of(row)) for fact in differing), []).append(row)
    return Split(title, small_print, parts)


def in_order(names: Iterable[str], table: Mapping[str, object]) -> list[str]:
    """Return the distinct names in the order of a table; unknown names come last."""
    order = list(table)
    return sorted(
        set(names), key=lambda name: (order.index(name) if name in order else len(order), name)
    )


def collectives_of(rows: Iterable[JsonRow]) -> list[str]:
    """Return the collectives of rows, in the library's order."""
    return in_order((row["collective"] for row in rows), COLLECTIVES)


def techniques_of(rows: Iterable[JsonRow]) -> list[str]:
    """Return the techniques of rows: the baseline, those of the ablation from conventional to tile,
    and the others.
    """
    from pidcomm.bench.ablation import STEPS

    order = dict.fromkeys(("baseline", *STEPS, *TECHNIQUES))
    return in_order((row["technique"] for row in rows), order)


def index_rows(rows: Sequence[JsonRow], where: str) -> dict[tuple[str, str], JsonRow]:
    """Return rows by (collective, technique).

    Raises ArgumentError if two rows have the same key.
    """
    indexed: dict[tuple[str, str], JsonRow] = {}
    for row in rows:
        key = (row["collective"], row["technique"])
        if key in indexed:
            raise ArgumentError(
                f"there are two rows of {row['collective']} with {row['technique']} for {where};"
                " plot one run at a time"
            )
        indexed[key] = row
    return indexed


# ---- the kind of figure


def sweep_axis(rows: Sequence[JsonRow]) -> str | None:
    """Return the condition that the rows sweep, bytes_per_pe or pes, or None if the rows are not a
    sweep.

    In a sweep, rows that agree in all other conditions have different values. If both conditions
    vary, the condition with more values is returned.
    """
    candidates = []
    for name in SWEPT:
        value_of = next(condition.of for condition in CONDITIONS if condition.name == name)
        values = {value_of(row) for row in rows}
        keys = {(value_of(row), *_series_key(row, name)) for row in rows}
        if len(values) > 1 and len(keys) == len(rows):
            candidates.append((len(values), name))
    return max(candidates)[1] if candidates else None


SWEPT = {
    "bytes_per_pe": ("bytes_per_pe",),
    "pes": ("pes", "shape"),
}  # conditions that vary with the swept condition


def _series_key(row: JsonRow, swept: str) -> tuple[object, ...]:
    others = (condition.of(row) for condition in CONDITIONS if condition.name not in SWEPT[swept])
    return row["collective"], row["technique"], *others


def kind_of(rows: Sequence[JsonRow]) -> str:
    """Return the kind of figure for rows: ablation, sweep or bars.

    Raises ArgumentError for mixed rows.
    """
    ablations = {is_ablation(row) for row in rows}
    if len(ablations) > 1:
        raise ArgumentError(
            "the rows are mixed: only some rows are of `pidcomm bench --ablation`; plot them in two"
            " figures"
        )
    if ablations.pop():
        return "ablation"
    return "bars" if sweep_axis(rows) is None else "sweep"
