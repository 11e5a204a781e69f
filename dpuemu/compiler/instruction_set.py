"""Read the tables of the instruction set, runtime/instructions.inc, which explains them."""

from __future__ import annotations

import functools
import re
from pathlib import Path
from typing import NamedTuple

_FILE = Path(__file__).resolve().parent.parent / "runtime" / "instructions.inc"
_ROW = re.compile(
    r"^(OPERATION|EFFECT|CONDITION|CONDITION_CLASS|ENCODING|FORM)\((.*?)\)$", re.M | re.S
)
_PART = re.compile(r'^#define (\w+)((?: +"[^"]*")+)', re.M)  # of the strings of condition classes
_STRING = re.compile(r'"([^"]*)"')


class Row(NamedTuple):
    """An operation with the operands of an encoding.

    has_suffix: the name ends with .s or .u; jumps, sets: the identifiers of the conditions of
    jumps and of set instructions, by name; has_result: instructions.h computes the result.
    """

    name: str
    identifier: str
    syntax: str
    has_suffix: bool
    jumps: dict[str, str]
    sets: dict[str, str]
    has_result: bool


class InstructionSet(NamedTuple):
    """rows: by the names of operations. forms: by names, the operands of the form, and the name
    and the operands of the full form. conditions: their names.
    """

    rows: dict[str, list[Row]]
    forms: dict[str, list[tuple[list[str], str, list[str]]]]
    conditions: set[str]


def _syntaxes(bits: str, syntax: str) -> list[tuple[str, bool]]:
    """Return each syntax of a row of ENCODING, and whether names have a suffix."""
    if bits[0] in "AL":  # three rows: the result is nowhere, in a register, in a pair
        return [(letter + syntax[1:], letter == "d") for letter in "zcd"]
    return [(syntax, re.search(r"\bg\d", bits) is not None)]


@functools.cache
def instruction_set() -> InstructionSet:
    """Return the tables."""
    text = _FILE.read_text().replace("\\\n", " ")
    parts = {name: "".join(_STRING.findall(strings)) for name, strings in _PART.findall(text)}
    result = InstructionSet({}, {}, set())
    operations: dict[str, tuple[str, str, bool]] = {}
    names: dict[str, str] = {}  # of conditions
    classes: dict[str, list[dict[str, str]]] = {}
    for kind, arguments in _ROW.findall(text):
        strings = _STRING.findall(arguments)
        identifier, _, rest = arguments.partition(", ")
        columns = re.split(r",\s+", rest)
        if kind in ("OPERATION", "EFFECT"):
            operations[identifier] = strings[0], columns[2], kind == "OPERATION"
        elif kind == "CONDITION":
            names[identifier] = strings[0]
        elif kind == "CONDITION_CLASS":
            words = re.findall(r'"([^"]*)"|(\w+)', rest)
            codes = "".join(string or parts.get(word, "") for string, word in words)
            classes[identifier] = [
                {names[each]: each for each in re.findall(r"=(\w+)", half)}
                for half in (*codes.split("set:"), "")[:2]
            ]
        elif kind == "FORM":
            form = strings[1].split(), strings[2], strings[3].split()
            result.forms.setdefault(strings[0], []).append(form)
        else:
            for identifier in "".join(strings[2:]).replace(".", "").split():
                name, conditions, has_result = operations[identifier]
                for syntax, has_suffix in _syntaxes(*strings[:2]):
                    jumps, sets = classes[conditions]
                    result.rows.setdefault(name, []).append(
                        Row(name, identifier, syntax, has_suffix, jumps, sets, has_result)
                    )
    result.conditions.update(names.values())
    return result
