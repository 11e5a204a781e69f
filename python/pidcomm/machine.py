"""The emulated machine, and sets of its PEs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Literal, TypeAlias

from pidcomm import _core
from pidcomm.arguments import MAX_COUNT, as_integer
from pidcomm.errors import ArgumentError

if TYPE_CHECKING:
    from pidcomm.hypercube import Hypercube

CHIPS = 8
BANKS = 8

Flush: TypeAlias = bool | Literal["once"]
FLUSHES: dict[Flush, int] = {True: 1, False: 2, "once": 3}  # as dpuemu.h has them


@dataclass(frozen=True)
class Machine:
    """Describe the emulated machine: 64 PEs per rank, 64 MiB of MRAM per PE.

    threads, flush: of the emulated SDK's own transfers; they flush lines before and after they load them, as the SDK
    does on DIMMs (True), before only ("once"), or not (False). hugepages: whether MRAM is backed by transparent huge
    pages. strict: whether the pages of a rank that its PEs own are inaccessible to the host, and what a PE's hardware
    masks silently is a fault. patience_seconds: how long a tasklet may compute without a call of the runtime.
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

    What is None takes its default (or that of the DPUEMU_ environment variables), whatever it was before. ``disabled``
    lists PEs that do not work as (rank, chip, bank).

    Raises ArgumentError for values out of range, Error while any PE set is allocated. Costs no memory: MRAM is backed
    when it is first used.
    """
    counts = {"ranks": ranks, "channels": channels, "ranks_per_channel": ranks_per_channel, "threads": threads}
    if disabled is not None or any(value is not None for value in (*counts.values(), hugepages, flush, strict, patience_seconds)):
        fields = [0 if value is None else as_integer(name, value, 1, MAX_COUNT) for name, value in counts.items()]
        fields += [_switch(hugepages), _flush_code(flush), _switch(strict)]
        fields += [0 if patience_seconds is None else as_integer("patience_seconds", patience_seconds, 1, MAX_COUNT)]
        _core.configure_machine(fields, [_pe_number(pe) for pe in disabled or ()])
    fields_now = _core.get_machine()
    flush_now = next(name for name, code in FLUSHES.items() if code == fields_now["flush"])
    return Machine(**{**fields_now, "flush": flush_now})


def set_transfer(*, threads: int | None = None, flush: Flush | None = None) -> None:
    """Change the settings of the emulated SDK's own transfers on the running machine.

    threads: host threads (None: as they are). flush: as in `Machine` (None: as it is). Raises ArgumentError for a
    number of threads out of range and for another flush.
    """
    number = 0 if threads is None else as_integer("threads", threads, 1, MAX_COUNT)
    _core.set_transfer(number, _flush_code(flush))


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
    return as_integer("rank", rank, high=MAX_COUNT // _core.PES_PER_RANK) * _core.PES_PER_RANK + chip * BANKS + bank


class PeSet:
    """Own a number of PEs, from `pidcomm.allocate` until `free`, the end of a `with` block or garbage collection."""

    def __init__(self, core: _core.Set) -> None:
        self._core = core

    @property
    def pes(self) -> int:
        """Number of PEs."""
        return self._core.pes

    @property
    def ranks(self) -> int:
        """Number of ranks that they are spread over."""
        return self._core.ranks

    @property
    def is_freed(self) -> bool:
        """Whether `free` has been called."""
        return self._core.is_freed

    def hypercube(self, *lengths: int) -> Hypercube:
        """Arrange the first product(lengths) PEs as a hypercube; the first axis ("x") varies fastest.

        Raises ArgumentError if the set has fewer PEs or a length is 0, Error if the set is freed.
        """
        from pidcomm.hypercube import Hypercube

        return Hypercube(self, self._core, lengths)

    def free(self) -> None:
        """Give the PEs back, with the memory of their MRAM. Waits for running collectives.

        Hypercubes of the set raise Error from then on. Freeing twice is allowed.
        """
        self._core.free()

    def __enter__(self) -> PeSet:
        """Return the set."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Free the set."""
        self.free()

    def __repr__(self) -> str:
        """Tell the size and whether it is freed."""
        return f"<PeSet of {self.pes} PEs in {self.ranks} ranks{', freed' if self.is_freed else ''}>"


def allocate(pes: int | None = None, *, ranks: int | None = None, profile: str | None = None) -> PeSet:
    """Allocate PEs: `pes` of them, or `ranks` whole ranks, or by default all that are free.

    profile: a list "key=value,key=value" for the UPMEM SDK. Whole ranks are taken: a set of 8 PEs occupies one.

    Raises ArgumentError for 0, both numbers or a malformed profile, Error if there are not enough. MRAM is backed by
    memory when it is first used, up to 64 MiB per PE.
    """
    if pes is not None and ranks is not None:
        raise ArgumentError(f"give pes ({pes}) or ranks ({ranks}), not both")
    if profile is not None and (not isinstance(profile, str) or "\0" in profile):
        raise ArgumentError(f"profile ({profile!r}) must be a str such as 'key=value'")
    pes_wanted = 0 if pes is None else as_integer("pes", pes, 1, MAX_COUNT - 1)
    ranks_wanted = 0 if ranks is None else as_integer("ranks", ranks, 1, MAX_COUNT - 1)
    return PeSet(_core.Set(pes_wanted, ranks_wanted, profile))


def resident_bytes() -> int:
    """Return how many bytes of emulated MRAM are backed by memory now."""
    return _core.resident_bytes()
