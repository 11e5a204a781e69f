"""Read the chips and their limits from calls.h."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import NamedTuple

_CALLS = Path(__file__).resolve().parent.parent / "runtime" / "calls.h"
_TABLE = re.compile(r"#define PE_CHIP_TABLE\(X\)((?:.*\\\n)+.*)")
_ROW = re.compile(r"X\((\w+), \d+, \d+, (\d+), (\d+), (\d+), (\d+)\)")
_ON_ALL_MACHINES = "v1A"  # public builds write -mcpu=v1A for all machines


class Chip(NamedTuple):
    """The limits of the PE programs of a chip."""

    name: str
    tasklets: int
    wram_bytes: int
    instructions: int
    mutexes: int


def chips() -> dict[str, Chip]:
    """Return all chips by name; the default is the first."""
    table = _TABLE.search(_CALLS.read_text())
    rows = _ROW.findall(table[1]) if table else []
    if not table or len(rows) != table[1].count("X("):
        raise ValueError(
            f"PE_CHIP_TABLE in {_CALLS} has a row that is not X(name, id, MHz, limits)"
        )
    return {name: Chip(name, *map(int, limits)) for name, *limits in rows}


def choose(names: list[str]) -> Chip:
    """Return the chip in DPUEMU_CHIP, else the chip of the last option -mcpu=NAME (v1A is ignored),
    else the default.

    names: of these options; unknown names are ignored. Raises ValueError if DPUEMU_CHIP is unknown.
    """
    known = chips()
    wanted = (
        names[-1]
        if names and names[-1] in known and names[-1] != _ON_ALL_MACHINES
        else next(iter(known))
    )
    name = os.environ.get("DPUEMU_CHIP") or wanted
    if name not in known:
        raise ValueError(f"DPUEMU_CHIP is {name}; the chips are {', '.join(known)}")
    return known[name]
