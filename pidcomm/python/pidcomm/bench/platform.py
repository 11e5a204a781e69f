"""The machine under test. Measurements may read and change the settings of emulated DIMMs."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from time import perf_counter
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from dpuemu.supervised import supervised
from pidcomm import _core
from pidcomm.arguments import as_integer, as_words
from pidcomm.errors import ArgumentError, Error
from pidcomm.pe_set import PeSet

if TYPE_CHECKING:
    import dpuemu

__all__ = [
    "COHERENCE",
    "IS_EMULATED",
    "host_bytes",
    "launch_counters",
    "launch_seconds",
    "max_pes",
    "pipeline_pct",
    "threads",
]

Flush: TypeAlias = bool | Literal["once"]
SDK: str = _core.SDK
"""The SDK for which the library was built, and its version."""
IS_EMULATED: bool = _core.IS_EMULATED
COHERENCE = "none" if IS_EMULATED else "hardware"
"""The default coherence policy of the library."""


@contextmanager
def _errors_of_dpuemu() -> Iterator[None]:
    """Convert errors of dpuemu to errors of pidcomm."""
    import dpuemu

    try:
        yield
    except dpuemu.ArgumentError as error:
        raise ArgumentError(str(error)) from None
    except dpuemu.Error as error:
        raise Error(str(error)) from None


def emulated() -> dpuemu.Machine | None:
    """Return the emulated machine, or None on DIMMs."""
    if not IS_EMULATED:
        return None
    import dpuemu

    return dpuemu.machine()


def configure(**settings: Any) -> None:
    """Replace the emulated machine; the settings are arguments of `dpuemu.machine`.

    Raises ArgumentError on DIMMs.
    """
    if not IS_EMULATED:
        raise ArgumentError(
            f"{', '.join(settings)}: only emulated machines can be changed; this is {SDK}"
        )
    import dpuemu

    with _errors_of_dpuemu():
        dpuemu.machine(**settings)


def threads() -> int:
    """Return the host threads that the emulated SDK uses for transfers; on real DIMMs, the
    number of CPUs.
    """
    machine = emulated()
    return len(os.sched_getaffinity(0)) if machine is None else machine.threads


def max_pes() -> int | None:
    """Return the number of PEs of the emulated machine, or None on DIMMs, where only an
    allocation can count PEs.
    """
    machine = emulated()
    return None if machine is None else machine.ranks * _core.PES_PER_RANK


def ranks_per_channel() -> int:
    """Return the number of ranks per memory channel.

    On DIMMs it is 4, the usual number in servers.
    """
    machine = emulated()
    return 4 if machine is None else machine.ranks_per_channel


def host_bytes(mram_bytes: int) -> int:
    """Return the bytes of host memory for MRAM, or 0 on DIMMs.

    With huge pages the number of bytes doubles, because huge pages also back gaps. Raises
    ArgumentError for an argument that is no size.
    """
    mram_bytes = as_integer("mram_bytes", mram_bytes)
    machine = emulated()
    return 0 if machine is None else mram_bytes * (2 if machine.hugepages else 1)


def sdk_flush() -> Flush | None:
    """Return whether transfers of the emulated SDK flush lines, or None on DIMMs, where the SDK
    decides.
    """
    machine = emulated()
    return None if machine is None else machine.flush


def set_transfers(threads: int | None, flush: Flush) -> None:
    """Set the threads (None: no change) and flushes of the emulated SDK's transfers.

    On DIMMs does nothing.
    """
    if not IS_EMULATED:
        return
    import dpuemu

    with _errors_of_dpuemu():
        dpuemu.set_transfer(threads=threads, flush=flush)


def launch_seconds(pes: PeSet) -> float:
    """Launch the program of a set.

    Return the PEs' seconds: modelled on emulated DIMMs, measured on DIMMs.
    """
    begin = perf_counter()
    pes.launch()
    measured = perf_counter() - begin
    if not IS_EMULATED:
        return measured
    import dpuemu

    with _errors_of_dpuemu():
        return dpuemu.report(pes).modelled_seconds


def launch_counters(pes: PeSet) -> dict[str, float]:
    """Return counters of the last launch, over all PEs: instructions and cycles (modelled), and
    dma_read_bytes.

    Raises ArgumentError on DIMMs, which have no such counters.
    """
    if not IS_EMULATED:
        raise ArgumentError(f"counters of PE programs come from emulated DIMMs; this is {SDK}")
    import dpuemu

    with _errors_of_dpuemu():
        report = dpuemu.report(pes)
    return {
        "instructions": report.instructions,
        "cycles": report.cycles_sum,
        "dma_read_bytes": report.dma_read_bytes,
    }


def pipeline_pct(pes: PeSet) -> float:
    """Return the instructions of the last launch in percent of the cycles of all PEs; 0 on
    DIMMs.
    """
    if not IS_EMULATED:
        return 0.0
    counters = launch_counters(pes)
    return 100 * counters["instructions"] / counters["cycles"] if counters["cycles"] else 0.0


def run_program(words: Sequence[str]) -> int:
    """Run a host program on the machine under test.

    Return its exit code, or 128 + n for signal n. Raises ArgumentError for wrong words, Error if
    the program cannot be started.
    """
    words = as_words("words", words)
    if not words:
        raise ArgumentError("words ([]) must begin with the name of a program")
    try:
        if not IS_EMULATED:
            with supervised(words) as process:
                code = process.wait()
            return code if code >= 0 else 128 - code
        from dpuemu import run

        with _errors_of_dpuemu():
            return run.exit_code(run.run_program(words)[0])
    except OSError as error:
        raise Error(f"{words[0]} cannot be started: {error.strerror}", "ERR_DEVICE") from None
