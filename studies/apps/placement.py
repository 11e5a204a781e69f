"""The program of an application's PEs, and the layout of their MRAM."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from pathlib import Path

import numpy as np

import pidcomm
from pidcomm import TECHNIQUES, ArgumentError
from pidcomm.bench import platform
from pidcomm.bench.measure import require_bytes
from pidcomm.compiling import compiler_options
from pidcomm.sizes import format_about, format_size
from pidcomm_studies.apps.partition import round_up

ALIGNMENT_BYTES = 64  # alignment of windows, enough for every element type and DMA transfer
SHARED_HEADERS = Path(__file__).parent / "pe"


@dataclass(frozen=True)
class Placement:
    """The program of an application's PEs, and the layout of MRAM.

    source: the C file. It must not define MRAM variables, so that offsets of the heap do not depend
    on the program.
    resident: names and sizes (bytes per PE) of data that is placed once and stays, such as a graph
    or weights. windows:
    names and sizes of data for collectives. Resident data and windows follow each other from the
    start of the heap, each aligned to 64 bytes; the program gets their offsets as macros, such as
    ``AT_EDGES`` for ``edges``. tasklets:
    NR_TASKLETS. defines: more macros. stack_bytes: stack of each tasklet. host_bytes: memory that
    `Application.run` needs for rows, besides the input.
    """

    source: Path
    resident: Mapping[str, int]
    windows: Mapping[str, int]
    tasklets: int = 16
    defines: Mapping[str, int | str] = field(default_factory=dict)
    stack_bytes: int = 1024
    host_bytes: int = 0

    @property
    def sizes(self) -> dict[str, int]:
        """Bytes of resident data and windows."""
        return {**self.resident, **self.windows}

    @property
    def offsets(self) -> dict[str, int]:
        """Offsets of resident data and windows, in bytes from the start of the MRAM heap."""
        ends = np.cumsum([0, *map(_aligned, self.sizes.values())])
        return dict(zip(self.sizes, map(int, ends), strict=False))

    @property
    def bytes(self) -> int:
        """Sum of all sizes, after each size is rounded up to the alignment."""
        return sum(map(_aligned, self.sizes.values()))

    @property
    def scratch_bytes(self) -> int:
        """Bytes after the windows that techniques may need: the size of the longest input of a
        collective.
        """
        return max(map(_aligned, self.windows.values()), default=0)

    def options(self) -> list[str]:
        """Return the options of the compiler."""
        macros = {**{f"AT_{name.upper()}": at for name, at in self.offsets.items()}, **self.defines}
        words = [
            "-I",
            str(SHARED_HEADERS),
            *(f"-D{name}={value}" for name, value in macros.items()),
        ]
        return compiler_options(self.tasklets, self.stack_bytes, words)


def require_room(placement: Placement, shape: Sequence[int], techniques: Sequence[str]) -> None:
    """Raise ArgumentError if a placement exceeds the MRAM of a PE or the memory of this machine."""
    with_scratch = needs_scratch(techniques)
    per_pe = placement.bytes + (placement.scratch_bytes if with_scratch else 0)
    pes = prod(shape)
    if per_pe > pidcomm.MRAM_BYTES:
        sizes = ", ".join(f"{name} {format_about(size)}" for name, size in placement.sizes.items())
        raise ArgumentError(
            f"a PE of {pes} needs {format_about(per_pe)} of MRAM ({sizes}"
            + (", scratch of the pr techniques" if with_scratch else "")
            + f"); it has {format_size(pidcomm.MRAM_BYTES)}: use more PEs or a smaller input"
        )
    require_bytes(
        platform.host_bytes(pes * per_pe) + placement.host_bytes,
        f"{pes} PEs with {format_about(per_pe)} each{_doubled()} and"
        f" {format_about(placement.host_bytes)} of host rows",
    )


def _doubled() -> str:
    return " (twice with huge pages; DPUEMU_HUGEPAGES=off)" if platform.host_bytes(1) == 2 else ""


def needs_scratch(techniques: Sequence[str]) -> bool:
    """Return whether one of the techniques needs scratch in MRAM."""
    return any(name in TECHNIQUES and TECHNIQUES[name].runs_pe_program for name in techniques)


def _aligned(size: int) -> int:
    return round_up(size, ALIGNMENT_BYTES)
