"""Define the reports of launches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from dpuemu import _dpuemu
from dpuemu.errors import ArgumentError

# Times of DIMMs, as shares of modelled times: the narrowest interval with 1 that holds 95% of the
# kernels of bench/dimm_times.py (tools/fit_pe_time.py, 2026-11-26).
DIMM_SHARES = (0.898, 1.028)


class DpuSet(Protocol):
    """A PE set of any package, such as `pidcomm.PeSet`."""

    @property
    def dpu_set(self) -> bytes:
        """The bytes of its struct dpu_set_t."""


@dataclass(frozen=True)
class LaunchReport:
    """Hold the counters of a set's last launch.

    Exact counters: the number of ``pes`` that ran, and how many of them are in fault
    (``faulted_pes``). DMA from MRAM to WRAM (``dma_reads``, ``dma_read_bytes``) and from WRAM to
    MRAM (``dma_writes``, ``dma_write_bytes``). DMA that the hardware changes silently:
    ``masked_addresses`` (low three bits dropped) and ``masked_sizes`` (not a multiple of 8 from 8
    to 2048). ``direct_pages``: pages of 4 KiB that the program reached by dereferencing pointers to
    MRAM. ``waiting_tasklets``: tasklets that still waited at a barrier, for a semaphore, a
    handshake or a `resume` when their PE ended.

    Modelled counters, from the x86-64 code that replaces the DPU code: ``instructions`` of all
    tasklets, ``cycles_max`` of the slowest PE, ``cycles_sum`` over all PEs, and `modelled_seconds`
    at ``cycles_per_second``, the clock of the chip.

    ``fault``: the sentence about the first PE in fault, or an empty text.

    Measured: ``host_seconds`` of the launch on this machine, which do not predict the time on
    DIMMs.
    """

    pes: int
    faulted_pes: int
    dma_reads: int
    dma_read_bytes: int
    dma_writes: int
    dma_write_bytes: int
    masked_addresses: int
    masked_sizes: int
    direct_pages: int
    waiting_tasklets: int
    instructions: int
    cycles_max: float
    cycles_sum: float
    cycles_per_second: float
    host_seconds: float
    fault: str = ""

    @property
    def modelled_seconds(self) -> float:
        """Return the modelled time of the slowest PE without the time in which the host starts
        it.
        """
        return self.cycles_max / self.cycles_per_second

    @property
    def modelled_interval(self) -> tuple[float, float]:
        """Return `modelled_seconds` times DIMM_SHARES: 95% of the times of kernels on DIMMs lie in
        this interval. Copies in MRAM differ more.
        """
        low, high = DIMM_SHARES
        return low * self.modelled_seconds, high * self.modelled_seconds

    def __repr__(self) -> str:
        """Report the number of PEs, the number of faults and the modelled time."""
        faults = f", {self.faulted_pes} in fault" if self.faulted_pes else ""
        return (
            f"<LaunchReport of {self.pes} PEs{faults}: {1e3 * self.modelled_seconds:.4g} ms"
            " modelled>"
        )


def report(pes: DpuSet) -> LaunchReport:
    """Return the report of a set's last launch, even if the launch ended in a fault.

    Raises Error while PEs run and if no program has been launched. For a freed set, raises the
    error of the package that made the set.
    """
    try:
        dpu_set = pes.dpu_set
    except AttributeError:
        raise ArgumentError(f"a report needs a PE set, not {type(pes).__name__}") from None
    counters = _dpuemu.report(dpu_set)
    return LaunchReport(
        **counters, fault=_dpuemu.explain_fault(dpu_set) if counters["faulted_pes"] else ""
    )
