"""Read the chips and their limits from calls.h."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import NamedTuple

_CALLS = Path(__file__).resolve().parent.parent / "calls.h"
_TABLE = re.compile(r"#define PE_CHIP_TABLE\(X\)((?:.*\\\n)+.*)")
_ROW = re.compile(r"X\((\w+), \d+, \d+, (\d+), (\d+), (\d+), (\d+)\)")


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
    return {name: Chip(name, *map(int, limits)) for name, *limits in rows}


def choose(names: list[str]) -> Chip:
    """Return the chip in DPUEMU_CHIP, else v1B if the last option -mcpu=NAME names it, else the default.

    names: of these options. Public builds write -mcpu=v1A on all machines, so it chooses nothing. Raises ValueError if
    DPUEMU_CHIP is unknown.
    """
    known = chips()
    name = os.environ.get("DPUEMU_CHIP") or (names[-1] if names[-1:] == ["v1B"] else next(iter(known)))
    if name not in known:
        raise ValueError(f"DPUEMU_CHIP is {name}; the chips are {', '.join(known)}")
    return known[name]
