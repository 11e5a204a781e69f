"""What a collective did."""

from __future__ import annotations

from dataclasses import dataclass

from pidcomm.model.machines import load_machine
from pidcomm.model.prediction import EMULATED_MACHINE


@dataclass(frozen=True)
class Trace:
    """Tell how a collective was carried out, how long its phases took and how many bytes they moved.

    Counters of lines (64 bytes of DIMM memory) are filled by the ``audit`` ISA only, and 0 otherwise.
    """

    technique: str
    """As carried out, a name of ``pidcomm.TECHNIQUES``."""
    isa: str
    """As carried out, a name of ``pidcomm.ISAS``."""
    threads: int
    """Host threads, as carried out."""
    coherence: str
    """As carried out, a name of ``pidcomm.COHERENCES``."""
    seconds_total: float
    """The whole call."""
    seconds_plan: float
    """Checks and planning."""
    seconds_acquire: float
    """Waiting for the ranks, and taking ownership."""
    seconds_pass: float
    """The pass over memory; for `conventional` the three phases below."""
    seconds_from_pes: float
    """conventional: transfers from the PEs; pr: the sweep into host memory."""
    seconds_host: float
    """conventional: work in host memory."""
    seconds_to_pes: float
    """conventional: transfers to the PEs; pr: the sweep back, with the host's work."""
    seconds_load: float
    """pr techniques and ring: loading the program that reorders blocks."""
    seconds_reorder: float
    """pr techniques and ring: telling the PEs what to reorder, and their runs."""
    seconds_launch: float
    """Of that the runs, on emulated DIMMs their emulation, and reading their cycles."""
    pe_loads: int
    """pr techniques and ring: how often the program that reorders blocks was loaded."""
    pe_launches: int
    """pr techniques and ring: how often it was launched."""
    pe_cycles: int
    """Cycles of the slowest PE, summed over launches; modelled on emulated DIMMs."""
    pe_bytes: int
    """Bytes of the windows that PEs reordered, read and written."""
    mram_bytes_read: int
    """Bytes of lines that the host loaded from MRAM."""
    mram_bytes_written: int
    """Bytes of lines that the host stored to MRAM."""
    host_bytes_read: int
    """Bytes of host rows that were read; and of bytes staged (conventional, pr)."""
    host_bytes_written: int
    """Bytes of host rows that were written; and of bytes staged (conventional, pr)."""
    bytes_staged: int
    """Bytes of host memory that the call used besides host rows, all threads."""
    lines_loaded: int
    """Loads of lines (``audit`` only, as all that follow)."""
    lines_stored: int
    """Stores of lines."""
    lines_flushed: int
    """Flushes of lines."""
    lines_prefetched: int
    """Prefetches of lines."""
    max_loads_of_a_line: int
    """Loads of the line that was loaded most often."""
    max_stores_of_a_line: int
    """Stores of the line that was stored most often."""
    distinct_lines_loaded: int
    """Different lines that were loaded."""
    distinct_lines_stored: int
    """Different lines that were stored."""
    lines_outside: int
    """Loads, stores, flushes and prefetches outside the windows of the call."""
    loads_unflushed: int
    """Loads of lines that were not flushed since the host took the ranks."""

    @property
    def host_seconds(self) -> float:
        """Return what the host did: everything but for loading programs and waiting for PEs."""
        return self.seconds_total - self.seconds_load - self.seconds_launch

    @property
    def pe_seconds(self) -> float:
        """Return what the PEs would take for the cycles that are modelled."""
        return self.pe_cycles / (1e6 * load_machine(EMULATED_MACHINE)["pe.clock_mhz"])

    @property
    def bus_bytes(self) -> int:
        """Return the bytes that crossed the memory bus: MRAM, host rows and bytes staged, read and written."""
        return self.mram_bytes_read + self.mram_bytes_written + self.host_bytes_read + self.host_bytes_written
