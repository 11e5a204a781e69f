"""The emulated machine: how many ranks and PEs it has, and how the emulated SDK transfers."""

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
FLUSHES: dict[Flush, int] = {True: 1, False: 2, "once": 3}  # as dpuemu.h has them


@dataclass(frozen=True)
class Machine:
    """Describe the emulated machine: 64 PEs per rank, 64 MiB of MRAM per PE.

    ranks: at most 40, over channels with ranks_per_channel each. threads, flush: of the emulated SDK's own transfers;
    they flush lines before and after they load them, as the SDK does on DIMMs (True), before only ("once"), or not
    (False). hugepages: whether MRAM is backed by transparent huge pages. strict: whether the pages of a rank that its
    PEs own are inaccessible to the host, and what a PE's hardware masks silently is a fault. patience_seconds: how long
    a tasklet may compute without a call of the runtime.
    """

    ranks: int
    channels: int
    ranks_per_channel: int
    threads: int
    hugepages: bool
    flush: Flush
    strict: bool
    patience_seconds: int


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
    disabled: Iterable[tuple[int, int, int]] | None = None,
) -> Machine:
    """Replace the emulated machine, and return it; without arguments only return it.

    ranks, channels, ranks_per_channel, threads, hugepages, flush, strict, patience_seconds: as in `Machine`. What is
    None takes its default (or that of the DPUEMU_ environment variables), whatever it was before. disabled: PEs that
    the machine lacks, as (rank, chip, bank).

    Raises ArgumentError for values out of range, Error while any PE set is allocated. Costs no memory: MRAM is backed
    when it is first used.
    """
    counts = {"ranks": ranks, "channels": channels, "ranks_per_channel": ranks_per_channel, "threads": threads}
    if disabled is not None or any(
        value is not None for value in (*counts.values(), hugepages, flush, strict, patience_seconds)
    ):
        fields = [0 if value is None else as_integer(name, value, 1, MAX_COUNT) for name, value in counts.items()]
        fields += [_switch(hugepages), _flush_code(flush), _switch(strict)]
        fields += [0 if patience_seconds is None else as_integer("patience_seconds", patience_seconds, 1, MAX_COUNT)]
        _dpuemu.configure(fields, [_pe_number(pe) for pe in disabled or ()])
    fields_now = _dpuemu.get_machine()
    flush_now = next(name for name, code in FLUSHES.items() if code == fields_now["flush"])
    return Machine(**{**fields_now, "flush": flush_now})


def set_transfer(*, threads: int | None = None, flush: Flush | None = None) -> None:
    """Change the settings of the emulated SDK's own transfers on the running machine.

    threads: host threads (None: as they are). flush: as in `Machine` (None: as it is). Raises ArgumentError for a
    number of threads out of range and for another flush.
    """
    number = 0 if threads is None else as_integer("threads", threads, 1, MAX_COUNT)
    _dpuemu.set_transfer(number, _flush_code(flush))


def _switch(value: bool | None) -> int:
    """Return a switch as dpuemu.h has it: 0 default, 1 on, 2 off."""
    return 0 if value is None else 1 if value else 2


def _flush_code(value: Flush | None) -> int:
    if value is not None and value not in FLUSHES:
        raise ArgumentError(f"flush {value!r} is unknown; use True, False or 'once'")
    return 0 if value is None else FLUSHES[value]


def _pe_number(position: tuple[int, int, int]) -> int:
    try:
        rank, chip, bank = position
    except (TypeError, ValueError):
        raise ArgumentError(f"disabled PE {position!r} must be (rank, chip, bank)") from None
    chip = as_integer("chip", chip, high=CHIPS - 1)
    bank = as_integer("bank", bank, high=BANKS - 1)
    return as_integer("rank", rank, high=MAX_COUNT // _dpuemu.PES_PER_RANK) * _dpuemu.PES_PER_RANK + chip * BANKS + bank


def resident_bytes() -> int:
    """Return how many bytes of emulated MRAM are backed by memory now. Raises Error if the system does not tell."""
    return _dpuemu.resident_bytes()


def as_integer(name: str, value: object, low: int = 0, high: int = MAX_COUNT) -> int:
    """Return a number of any integer type as int. Raises ArgumentError if it is none, or not between low and high."""
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise ArgumentError(f"{name} ({value!r}) must be an integer, not {type(value).__name__}") from None
    if isinstance(value, bool) or not low <= number <= high:
        raise ArgumentError(f"{name} ({value}) must be between {low} and {high}")
    return number
