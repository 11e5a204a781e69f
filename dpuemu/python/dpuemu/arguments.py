"""Parse command lines: options, values and errors in the words of the command `dpuemu`."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from typing import Any, NoReturn

from dpuemu import _dpuemu, check

BANKS = 8  # of a chip
LAST_PE = _dpuemu.MAX_RANKS * _dpuemu.PES_PER_RANK - 1
PE = "N|R.C.B"
PE_HELP = "a PE is its number 64 R + 8 C + B, or its rank, chip and bank"
USAGE = 2  # exit code of wrong usage and errors


def fail(sentence: str) -> int:
    """Print an error to standard error; return its exit code."""
    print(f"dpuemu: {sentence}", file=sys.stderr)
    return USAGE


class Parser(argparse.ArgumentParser):
    """A parser that refuses abbreviated options, and reports errors in one line."""

    def __init__(self, *words: Any, **settings: Any) -> None:
        super().__init__(*words, **{**settings, "allow_abbrev": False})

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse the words of this command. Refuses words that it does not know."""
        options, rest = super().parse_known_args(args, namespace)
        if rest and rest[0].startswith("-"):
            name = rest[0].partition("=")[0]
            self.error(f"option {name} is unknown{_near(name, self._option_string_actions)}")
        if rest:
            self.error(f"the command has no argument for {rest[0]!r}")
        return options, rest

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            names, kind = list(action.choices), str(action.metavar or action.dest).lower()
            known = f"use {', '.join(names)}{_near(value, names)}"
            raise argparse.ArgumentError(None, f"{kind} {value!r} is unknown; {known}")

    def error(self, message: str) -> NoReturn:
        """Print the error in the words of `pidcomm`; exit."""
        for words, ours in (
            (r"argument (\S+): (expected one argument|expected .*)", r"\1 needs a value"),
            (r"argument (\S+): ignored explicit argument .*", r"\1 takes no value"),
            (r"argument (-\S+): ", r"\1 "),
        ):
            message = re.sub(words, ours, message)
        sys.exit(fail(f"{message} (see {self.prog} --help)"))


def _near(name: str, names: Iterable[str]) -> str:
    return "".join(f"; did you mean {word!r}?" for word in get_close_matches(name, names, 1, 0.7))


def number(low: int, high: int | None = None) -> Callable[[str], int]:
    """Return a parser of whole numbers from `low` to `high`, or of at least `low`."""
    rule = f"of at least {low}" if high is None else f"from {low} to {high}"

    def parse(text: str) -> int:
        if not text.isdecimal() or int(text) < low or (high is not None and int(text) > high):
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number {rule}")
        return int(text)

    return parse


def file_name(text: str) -> str:
    """Parse the name of a file that cannot be standard output."""
    if text == "-":
        raise argparse.ArgumentTypeError("- is not a file name; standard output has other text")
    return text


def schedules(text: str) -> str:
    """Parse a number of schedules, or check.ALL."""
    return text if text == check.ALL else str(number(1)(text))


def one_pe(text: str) -> int:
    """Parse RANK.CHIP.BANK, or a number in the order of DPU_FOREACH over all ranks, into this
    number.
    """
    match = re.fullmatch(r"(\d+)\.([0-7])\.([0-7])|\d+", text, re.ASCII)
    if match is not None:
        rank, chip, bank = (int(place or 0) for place in match.groups())
        index = rank * _dpuemu.PES_PER_RANK + chip * BANKS + bank if match[1] else int(text)
        if index <= LAST_PE:
            return index
    raise argparse.ArgumentTypeError(f"{text!r} is not RANK.CHIP.BANK or a number up to {LAST_PE}")


def some_pes(text: str) -> tuple[int, ...]:
    """Parse a list of PEs."""
    return tuple(map(one_pe, text.split(",")))


def one_pe_or_all(text: str) -> str:
    """Parse a PE into RANK.CHIP.BANK, or check.ALL."""
    try:
        return text if text == check.ALL else pe_name(one_pe(text))
    except argparse.ArgumentTypeError as error:
        raise argparse.ArgumentTypeError(f"{error}, or {check.ALL}") from None


def pe_name(pe: int) -> str:
    """Return RANK.CHIP.BANK."""
    rank, index = divmod(pe, _dpuemu.PES_PER_RANK)
    return f"{rank}.{index // BANKS}.{index % BANKS}"
