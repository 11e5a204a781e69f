"""What a collective did."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Trace:
    """Tell how a collective was carried out, how long its phases took and how many bytes they moved.

    Counters of lines (64 bytes of DIMM memory) are filled by the ``audit`` ISA only.
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
    def bus_bytes(self) -> int:
        """Return the bytes that crossed the memory bus: MRAM, host rows and staging, read and written."""
        return self.mram_bytes_read + self.mram_bytes_written + self.host_bytes_read + self.host_bytes_written
