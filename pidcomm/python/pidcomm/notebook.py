"""Tables and pictures that show results, PEs and hypercubes in a notebook."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from itertools import product
from math import prod
from typing import Any

from pidcomm.sizes import format_about, format_duration
from pidcomm.tables import PES_PER_RANK

__all__ = ["CELL", "GROUP_0", "LIGHT", "Shown"]

GROUP_0 = "#08306b"
# Colours of the other groups, in steps that remain visible in grey. Groups that are neighbours
# along an axis have different colours.
LIGHT = ("#deebf7", "#9ecae1", "#4292c6")
MOST_COLUMNS, MOST_ROWS, MOST_AXES = 32, 16, 3  # limits of a picture
CELL = 9  # side of the square of a PE, with its margin


def html_table(caption: str, facts: Mapping[str, Any]) -> str:
    """Return a table with one line per fact. Facts that are zero, empty or lists are omitted."""
    lines = "".join(
        f"<tr><th>{escape(name)}</th><td>{escape(text)}</td></tr>" for name, text in _lines(facts)
    )
    return f"<table><caption>{escape(caption.strip('<>'))}</caption>{lines}</table>"


class Shown:
    """Base of dataclasses.

    A notebook shows such an object as a table of the fields of the object.
    """

    def _repr_html_(self) -> str:
        return html_table(repr(self), vars(self))


def _lines(facts: Mapping[str, Any], parent: str = "") -> Iterator[tuple[str, str]]:
    for name, value in facts.items():
        if isinstance(value, Mapping):
            yield from _lines(value, f"{name} ")
        elif value and not isinstance(value, (list, tuple)):
            yield f"{parent}{name}", _text(f"{parent}{name}", value)


def _text(name: str, value: Any) -> str:
    """Return a value with the unit that the name of the field implies: seconds, phases, _us or
    bytes.
    """
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return str(value)
    if "seconds" in name or name.startswith("phases "):
        return format_duration(value)
    if name.endswith("_us"):
        return format_duration(1e-6 * value)
    return format_about(value) if "bytes" in name else f"{value:.6g}"


def hypercube_html(caption: str, shape: Sequence[int], facts: Mapping[str, Any]) -> str:
    """Return a table of a hypercube and a picture of the groups along each of the first axes."""
    masks = [
        "0" * axis + "1" + "0" * (len(shape) - axis - 1)
        for axis in range(min(len(shape), MOST_AXES))
    ]
    groups = {
        f"mask {mask}": f"{prod(shape) // length} groups of {length} PEs"
        for mask, length in zip(masks, shape, strict=False)
    }
    pictures = "".join(_groups_picture(shape, mask, groups[f"mask {mask}"]) for mask in masks)
    return html_table(caption, {**facts, **groups}) + pictures


def _groups_picture(shape: Sequence[int], mask: str, groups: str) -> str:
    """Return a picture with a square for each of the first PEs; x runs to the right."""
    columns = min(shape[0], MOST_COLUMNS)
    others = [range(length) for length in reversed(shape[1:])]  # the last varies fastest
    squares: dict[str, list[str]] = {}
    rows = 0
    for rows, place in enumerate(product(*others), 1):
        for x in range(columns):
            coordinates = (x, *reversed(place))
            unselected = [
                coordinate for coordinate, bit in zip(coordinates, mask, strict=True) if bit == "0"
            ]
            colour = LIGHT[sum(unselected) % len(LIGHT)] if any(unselected) else GROUP_0
            squares.setdefault(colour, []).append(f"M{CELL * x} {CELL * (rows - 1)}h8v8h-8z")
        if rows == MOST_ROWS:
            break
    left_out = prod(shape) - columns * rows
    words = f"mask {mask}: {groups}" + (f"; {left_out} PEs are not drawn" if left_out else "")
    paths = "".join(f'<path fill="{fill}" d="{"".join(d)}"/>' for fill, d in squares.items())
    return (
        f'<figure><svg role="img" aria-label="{words}" width="{CELL * columns}"'
        f' height="{CELL * rows}">{paths}</svg>'
        f"<figcaption>{words}; group 0 is dark</figcaption></figure>"
    )


def set_html(caption: str, pes: int, ranks: int, usable_pes: int) -> str:
    """Return a table of a set of PEs and a bar of its ranks, of which the usable PEs are dark."""
    all_pes = PES_PER_RANK * ranks
    facts = {
        "ranks": ranks,
        f"PEs, of {all_pes} in these ranks": pes,
        "PEs that hypercubes can use": usable_pes,
    }
    words = ", ".join(f"{name}: {number}" for name, number in facts.items())
    wide = CELL * ranks
    bars = "".join(
        f'<rect fill="{fill}" width="{wide * part / all_pes:g}" height="{CELL}"/>'
        for fill, part in ((LIGHT[0], all_pes), (LIGHT[2], pes), (GROUP_0, usable_pes))
    )
    return (
        html_table(caption, facts)
        + f'<svg role="img" aria-label="{words}" width="{wide}" height="{CELL}">{bars}</svg>'
    )
