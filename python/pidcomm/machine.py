"""The emulated machine, and sets of its PEs."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, overload
from weakref import WeakSet

from pidcomm import _core, sdk
from pidcomm.arguments import MAX_COUNT, as_integer
from pidcomm.errors import ArgumentError, Error
from pidcomm.programs import (
    LaunchReport,
    PathText,
    Symbol,
    as_files,
    compiler_options,
    is_source,
    is_source_text,
)

if TYPE_CHECKING:
    from pidcomm.hypercube import Hypercube
    from pidcomm.requests import Request

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
    """Own a number of PEs, from `pidcomm.allocate` until `free`, the end of a `with` block or garbage collection.

    PEs run programs: `load` one, write and read its variables (`symbol`), `launch` it. Row p of a variable is PE p of
    every `hypercube` of the set, so collectives fit between launches; they work on the MRAM heap, what the program
    leaves of MRAM (``DPU_MRAM_HEAP_POINTER`` in it), and their offsets count from there. PEs of entangled groups that
    lack PEs, on machines with disabled ones, have the last rows: as in the largest hypercube that the set allows, and,
    if none can have them, in the order of DPU_FOREACH.
    """

    def __init__(self, core: _core.Set) -> None:
        self._core = core
        self._loads = 0
        self._requests: WeakSet[Request[Any]] = WeakSet()  # non-blocking calls on the set

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

    # ---- PE programs

    def load(
        self,
        program: PathText | Sequence[PathText],
        *,
        tasklets: int | None = None,
        stack_bytes: int | None = None,
        options: Sequence[str] = (),
    ) -> None:
        """Load a program on all PEs: a program file, one or several C files, or C source text.

        program: the path of what the compiler of PE programs wrote, a path that ends in .c or a sequence of such, or a
        str with a line break or a brace, which is source text. Sources are compiled first, with -O2 unless options say
        otherwise. tasklets, stack_bytes: NR_TASKLETS and STACK_SIZE_DEFAULT of sources (default: 1 and 1024). options:
        more words for the compiler, as gcc has them.

        All variables take their initial values; the rest of MRAM stays. The compiler's warnings come as Python
        warnings.

        Raises ArgumentError, with the compiler's messages if it refuses the source, for what is no program, Error while
        PEs run or if the set is freed. The old program then stays. Costs a run of gcc for sources.
        """
        words = compiler_options(tasklets, stack_bytes, options)
        if isinstance(program, str) and is_source_text(program):
            self._load_sources(program, words)
            return
        files = as_files(program)
        if is_source(files[0]):
            self._load_sources(files, words)
            return
        if words:
            raise ArgumentError(f"{files[0]} is compiled already: tasklets, stack_bytes and options are for sources")
        self._load_file(os.fspath(files[0]))

    @overload
    def launch(self, *, wait: Literal[True] = True) -> LaunchReport: ...
    @overload
    def launch(self, *, wait: Literal[False]) -> None: ...
    @overload
    def launch(self, *, wait: bool) -> LaunchReport | None: ...
    def launch(self, *, wait: bool = True) -> LaunchReport | None:
        """Run the loaded program on all PEs; return what they did.

        wait: False to return None at once; then `wait` for the end, and until then what touches the PEs waits, or
        raises Error.

        Raises Error if no program is loaded, if the PEs run already, and for a fault: then with a sentence about the
        first PE, by number, that is in fault. Ctrl-C stops the PEs; without it, a PE that computes without end is in
        fault after `Machine.patience_seconds`.
        """
        self._core.launch(bool(wait))
        return self.report() if wait else None

    def wait(self) -> LaunchReport:
        """Wait for PEs that were launched with wait=False; return what they did in the last launch.

        Raises Error for a fault, as `launch`, and if nothing has been launched.
        """
        self._core.sync()
        return self.report()

    def report(self) -> LaunchReport:
        """Return what the PEs did in the last launch, also if it ended in a fault.

        Raises Error while PEs run and if nothing has been launched.
        """
        return LaunchReport(**self._core.report())

    def symbol(self, name: str) -> Symbol:
        """Return the variable called name of the loaded program, to be written and read as arrays.

        ``"__sys_used_mram_end"`` is the MRAM heap. Raises ArgumentError if the program has no such symbol, Error if no
        program is loaded.
        """
        return Symbol(self, self._core, name)

    def logs(self) -> list[str]:
        """Return what each PE has printed since its log was last read: one str per PE, in the order of rows.

        Raises Error while PEs run and if no program is loaded.
        """
        return [self.log(pe) for pe in range(self.pes)]

    def log(self, pe: int) -> str:
        """Return what PE number pe has printed since its log was last read.

        A log that was full comes with a RuntimeWarning. Raises ArgumentError if there is no such PE, else as `logs`.
        """
        text, is_cut = self._core.log(as_integer("pe", pe, high=self.pes - 1))
        if is_cut:
            warnings.warn(f"PE {pe} printed more than its log holds", RuntimeWarning, stacklevel=2)
        return text.decode(errors="replace")

    def _load_sources(self, sources: str | Sequence[Path], words: Sequence[str]) -> None:
        with sdk.compiled(sources, words) as (path, messages):
            self._load_file(os.fspath(path))
        if messages:
            warnings.warn(messages, stacklevel=3)

    def _load_file(self, path: str) -> None:
        self._core.load(path)
        self._loads += 1

    @property
    def loads(self) -> int:
        """How often a program has been loaded."""
        return self._loads

    def free(self) -> None:
        """Give the PEs back, with the memory of their MRAM. Waits for running collectives.

        Hypercubes of the set raise Error from then on. Freeing twice is allowed. Raises Error while a `Request` has not
        been waited for.
        """
        self._core.free()

    def __enter__(self) -> PeSet:
        """Return the set."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Wait for what is under way and free the set. Raises the first error of a request unless the block raised."""
        first: Error | None = None
        for request in list(self._requests):
            try:
                request.wait()
            except Error as failure:
                first = first or failure
        self.free()
        if first is not None and kind is None:
            raise first

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
    """Return how many bytes of emulated MRAM are backed by memory now. Raises Error if the system does not tell."""
    return _core.resident_bytes()
