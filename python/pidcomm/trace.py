"""What a collective did."""

from __future__ import annotations

from dataclasses import dataclass

from pidcomm import _core


@dataclass(frozen=True)
class Trace:
    """Tell how a collective was carried out, how long its phases took and how many bytes they moved.

    Counters of lines (64 bytes of DIMM memory) are filled by the ``audit`` ISA only. What PEs did for the techniques
    that let them reorder blocks: seconds_load (of their program), seconds_reorder (telling them, and their runs),
    seconds_launch (the runs: what it took to emulate them), and pe_cycles, modelled, of the slowest PE.
    """

    technique: str
    isa: str
    threads: int
    coherence: str
    seconds_total: float
    seconds_plan: float
    seconds_acquire: float
    seconds_pass: float
    seconds_from_pes: float
    seconds_host: float
    seconds_to_pes: float
    seconds_load: float
    seconds_reorder: float
    seconds_launch: float
    pe_loads: int
    pe_launches: int
    pe_cycles: int
    pe_bytes: int
    mram_bytes_read: int
    mram_bytes_written: int
    host_bytes_read: int
    host_bytes_written: int
    staging_bytes: int
    lines_loaded: int
    lines_stored: int
    lines_flushed: int
    lines_prefetched: int
    max_loads_of_a_line: int
    max_stores_of_a_line: int
    distinct_lines_loaded: int
    distinct_lines_stored: int
    lines_outside: int
    loads_unflushed: int

    @property
    def host_seconds(self) -> float:
        """Return what the host did: everything but for loading programs and waiting for PEs."""
        return self.seconds_total - self.seconds_load - self.seconds_launch

    @property
    def pe_seconds(self) -> float:
        """Return what the PEs would take for the cycles that are modelled."""
        return self.pe_cycles / _core.CYCLES_PER_SECOND

    @property
    def bus_bytes(self) -> int:
        """Return the bytes that crossed the memory bus: MRAM, host rows and staging, read and written."""
        return self.mram_bytes_read + self.mram_bytes_written + self.host_bytes_read + self.host_bytes_written
