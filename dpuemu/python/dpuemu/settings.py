"""Change the settings of the emulated machine and of the transfers of the emulated SDK."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from dpuemu import _dpuemu
from dpuemu.errors import ArgumentError

MAX_COUNT = 2**32 - 1
CHIPS = 8
BANKS = 8

Flush: TypeAlias = bool | Literal["once"]
FLUSHES: dict[Flush, int] = {True: 1, False: 2, "once": 3}  # values of the switches in dpuemu.h


@dataclass(frozen=True)
class Machine:
    """Describe the emulated machine: 64 PEs per rank, 64 MiB of MRAM per PE.

    ranks: number of ranks, at most 40; each of the channels has ranks_per_channel. threads: number
    of host threads that move bytes and run PEs. flush: when transfers flush lines: before and after
    loading them, as the SDK does on DIMMs (True), only before loading ("once"), or never (False).
    hugepages: whether MRAM uses transparent huge pages. strict:
    if true, the host cannot access a rank that its PEs own, and a PE is in fault if it uses values
    that the hardware masks silently, or accesses another PE's WRAM. patience_seconds: a launch ends
    with faults if none of the PEs that a thread runs (up to 8 in turn) ends for this many seconds
    of CPU time. chip: a name of docs/manual.md, "Chips", which decides the limits of PE
    programs and their clock.
    """

    ranks: int
    channels: int
    ranks_per_channel: int
    threads: int
    hugepages: bool
    flush: Flush
    strict: bool
    patience_seconds: int
    chip: str


def machine(
    *,
    ranks: int | None = None,
    channels: int | None = None,
    ranks_per_channel: int | None = None,
    threads: int | None = None,
    hugepages: bool | None = None,
    flush: Flush | None = None,
    strict: bool | None = None,
    patience_seconds: int | None = None,
    chip: str | None = None,
    disabled: Iterable[tuple[int, int, int]] | None = None,
) -> Machine:
    """Replace the emulated machine and return it; without arguments, only return the machine.

    ranks, channels, ranks_per_channel, threads, hugepages, flush, strict, patience_seconds, chip:
    the same as in `Machine`. None selects the DPUEMU_ environment variable or else the default, not
    the previous value. disabled: PEs that the machine lacks, as (rank, chip, bank).

    Raises ArgumentError for values out of range, Error while any PE set is allocated. The call
    takes no memory, because MRAM takes memory at its first use.
    """
    counts = {
        "ranks": ranks,
        "channels": channels,
        "ranks_per_channel": ranks_per_channel,
        "threads": threads,
    }
    if disabled is not None or any(
        value is not None
        for value in (*counts.values(), hugepages, flush, strict, patience_seconds, chip)
    ):
        fields = [
            0 if value is None else as_integer(name, value, 1, MAX_COUNT)
            for name, value in counts.items()
        ]
        fields += [_switch("hugepages", hugepages), _flush_code(flush), _switch("strict", strict)]
        fields += [
            0
            if patience_seconds is None
            else as_integer("patience_seconds", patience_seconds, 1, MAX_COUNT)
        ]
        fields += [_chip_code(chip)]
        _dpuemu.configure(fields, _pe_numbers(disabled))
    fields_now = _dpuemu.get_machine()
    flush_now = next(name for name, code in FLUSHES.items() if code == fields_now["flush"])
    return Machine(**{**fields_now, "flush": flush_now, "chip": _dpuemu.chip_name()})


def set_transfer(*, threads: int | None = None, flush: Flush | None = None) -> None:
    """Change the settings of the transfers of the emulated SDK while the machine runs.

    threads: number of host threads. flush: the same as in `Machine`. None leaves a setting
    unchanged. Raises ArgumentError if threads is out of range or flush is unknown.
    """
    number = 0 if threads is None else as_integer("threads", threads, 1, MAX_COUNT)
    _dpuemu.set_transfer(number, _flush_code(flush))


def _switch(name: str, value: bool | None) -> int:
    """Return the value of a switch in dpuemu.h: 0 for the default, 1 for on, 2 for off."""
    if value is not None and (not isinstance(value, int) or value not in (0, 1)):
        raise ArgumentError(f"{name} ({value!r}) must be True, False or None")
    return 0 if value is None else 1 if value else 2


def _chip_code(name: str | None) -> int:
    """Return the value of dpuemu_chip_t in dpuemu.h, or 0 for the default."""
    if name is not None and name not in _dpuemu.chips():
        raise ArgumentError(f"chip {name!r} is unknown; the chips are {', '.join(_dpuemu.chips())}")
    return 0 if name is None else _dpuemu.chips().index(name) + 1


def _flush_code(value: Flush | None) -> int:
    if value is not None and (not isinstance(value, (bool, str)) or value not in FLUSHES):
        raise ArgumentError(f"flush {value!r} is unknown; use True, False or 'once'")
    return 0 if value is None else FLUSHES[value]


def _pe_numbers(positions: Iterable[tuple[int, int, int]] | None) -> list[int]:
    if positions is not None and not isinstance(positions, Iterable):
        raise ArgumentError(f"disabled ({positions!r}) must be a list of (rank, chip, bank)")
    return [_pe_number(position) for position in (() if positions is None else positions)]


def _pe_number(position: tuple[int, int, int]) -> int:
    try:
        rank, chip, bank = position
    except (TypeError, ValueError):
        raise ArgumentError(f"disabled PE {position!r} must be (rank, chip, bank)") from None
    chip = as_integer("chip", chip, high=CHIPS - 1)
    bank = as_integer("bank", bank, high=BANKS - 1)
    return (
        as_integer("rank", rank, high=MAX_COUNT // _dpuemu.PES_PER_RANK) * _dpuemu.PES_PER_RANK
        + chip * BANKS
        + bank
    )


def resident_bytes() -> int:
    """Return how many bytes of emulated MRAM are backed by memory now.

    Raises Error if the count fails.
    """
    return _dpuemu.resident_bytes()


def as_integer(name: str, value: object, low: int = 0, high: int = MAX_COUNT) -> int:
    """Convert any integer to int.

    Raises ArgumentError for other types, and for values outside low to high.
    """
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise ArgumentError(
            f"{name} ({value!r}) must be an integer, not {type(value).__name__}"
        ) from None
    if isinstance(value, bool) or not low <= number <= high:
        raise ArgumentError(f"{name} ({value}) must be between {low} and {high}")
    return number
