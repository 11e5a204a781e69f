"""Traces of collectives."""

from __future__ import annotations

from dataclasses import dataclass

from pidcomm import _core
from pidcomm._rows import TraceFields
from pidcomm.notebook import Shown
from pidcomm.sizes import format_about, format_duration


@dataclass(frozen=True)
class Trace(Shown, TraceFields):
    """Report how a collective ran, how long its phases took and how many bytes the phases moved.

    ``bytes_staged`` is the size of the host buffers that the call used, without host rows. Over
    the SDK, the buffers hold the payload between transfers. With other techniques each thread has a
    buffer of at most 1.5 MiB, or of a few MiB without a lane split.
    """

    @property
    def host_seconds(self) -> float:
        """Return the seconds of the host: the whole call except loading programs and waiting for
        PEs.
        """
        return self.seconds_total - self.seconds_load - self.seconds_launch

    @property
    def bus_bytes(self) -> int:
        """Return the bytes read and written over the memory bus, in MRAM, host rows and host
        buffers.
        """
        return (
            self.mram_bytes_read
            + self.mram_bytes_written
            + self.host_bytes_read
            + self.host_bytes_written
        )

    def __repr__(self) -> str:
        """Report the technique, the time and the bytes."""
        return (
            f"<Trace {self.technique}, {self.isa}, {self.threads} threads:"
            f" {format_duration(self.seconds_total)}, {format_about(self.bus_bytes)} over the"
            " memory bus>"
        )


def trace_of(fields: _core.RawTrace) -> Trace:
    """Return the trace with the fields of the core, without the constructor, which takes longer
    than a small call.
    """
    trace = object.__new__(Trace)
    trace.__dict__.update(fields.dict())
    return trace
