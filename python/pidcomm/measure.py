"""What demo and bench share: problems placed on a hypercube, timed, and checked against the oracle."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pidcomm import _core
from pidcomm.arguments import Options, as_bytes
from pidcomm.errors import ArgumentError
from pidcomm.hypercube import Hypercube
from pidcomm.machine import machine, set_transfer
from pidcomm.oracle import ByteRows, Problem, Rows, Verdict
from pidcomm.sizes import format_size
from pidcomm.trace import Trace

SDK: Options = {"technique": "conventional"}  # plain dpu_push_xfer: shares no code with what is checked
POISON = 0xA5
SDK_SHARE = 0.40  # of the streaming limit, which the emulated SDK must reach both ways for a speed-up to be fair


class Trial:
    """A problem on a cube, its input window at offset 0 and its output window behind the input."""

    def __init__(self, cube: Hypercube, problem: Problem) -> None:
        self.cube = cube
        self.problem = problem
        self.input_bytes, self.output_bytes = (
            rows.row_bytes if rows.at_pes else 0 for rows in (problem.before, problem.after)
        )
        self.dst = self.input_bytes
        self._host_out: ByteRows | None = None if problem.after.at_pes else np.empty(problem.after.shape, np.uint8)
        self._payload: ByteRows | None = None

    def load(self, payload: ByteRows) -> None:
        """Put the input where the collective finds it."""
        self._payload = payload
        if self.problem.before.at_pes:
            self.cube.write(payload, **SDK)

    def run(self, options: Options) -> Trace:
        """Carry out the collective; seconds_total of the trace is its time."""
        problem = self.problem
        host_in = None if problem.before.at_pes else self._payload
        # Host rows as bytes of the problem's type: only the type decides how they are reduced.
        trace, _ = self.cube.carry_out(
            problem.collective,
            problem.mask,
            bytes=problem.bytes,
            src=0,
            dst=self.dst if problem.after.at_pes else 0,
            dtype=problem.dtype,
            op=problem.op,
            host=None if host_in is None else host_in.view(problem.dtype),
            out=None if self._host_out is None else self._host_out.view(problem.dtype),
            options=options,
        )
        return trace

    def check(self, options: Options, scratch: ByteRows | None = None) -> Verdict:
        """Poison the output, run, read the output back and compare every element with the oracle."""
        assert self._payload is not None
        after = self.problem.after
        got = self._host_out if self._host_out is not None else view_rows(scratch, after)
        got.fill(POISON)
        if after.at_pes:
            self.cube.write(got, self.dst, **SDK)
        self.run(options)
        if after.at_pes:
            self.cube.read(after.row_bytes, np.uint8, self.dst, out=got, **SDK)
        return self.problem.check(self._payload, got)

    def limit(self, options: Options) -> tuple[float, int]:
        """Time the streaming pass with the same bytes read and written at the PEs: (seconds, bytes)."""
        options = {key: value for key, value in options.items() if key != "technique"}  # type: ignore[assignment]
        return self.cube.stream_limit(self.input_bytes, self.output_bytes, src=0, dst=self.dst, **options)

    @property
    def larger_side_bytes(self) -> int:
        """Bytes of the larger side, summed over PEs (or host rows)."""
        return max(rows.count * rows.row_bytes for rows in (self.problem.before, self.problem.after))


def view_rows(scratch: ByteRows | None, rows: Rows) -> ByteRows:
    """Return the start of a flat array of bytes as rows, or a new array."""
    if scratch is None:
        return np.empty(rows.shape, np.uint8)
    return scratch[: rows.count * rows.row_bytes].reshape(rows.shape)


@dataclass(frozen=True)
class SdkCondition:
    """Whether the emulated SDK is quick enough for a speed-up over `conventional` to mean something."""

    to_pes_gb_s: float
    from_pes_gb_s: float
    limit_gb_s: float
    contiguous_gb_s: float

    @property
    def holds(self) -> bool:
        """Whether transfers reach the required share of the streaming limit both ways."""
        return min(self.to_pes_gb_s, self.from_pes_gb_s) >= SDK_SHARE * self.limit_gb_s

    def lines(self) -> list[str]:
        """Return the sentences for a report."""
        shares = [100 * value / self.limit_gb_s for value in (self.to_pes_gb_s, self.from_pes_gb_s)]
        verdict = "so" if self.holds else "so NOT"
        return [
            f"limit: streaming copy {self.limit_gb_s:.2f} GB/s read + written, "
            f"{100 * self.limit_gb_s / self.contiguous_gb_s:.0f}% of an ordinary contiguous copy ({self.contiguous_gb_s:.2f} GB/s)",
            f"emulated SDK: dpu_push_xfer {self.to_pes_gb_s:.2f} GB/s to and {self.from_pes_gb_s:.2f} GB/s from the PEs "
            f"({shares[0]:.0f}% and {shares[1]:.0f}% of the limit; at least {100 * SDK_SHARE:.0f}% wanted), "
            f"{verdict} fair to compare with conventional",
        ]


def measure_sdk(cube: Hypercube, size_bytes: int, options: Options, rounds: int = 5) -> SdkCondition:
    """Time the emulated SDK's transfers, the streaming copy and an ordinary copy of `size_bytes` per PE, interleaved.

    Overwrites the first 2 * size_bytes of MRAM; needs twice pes * size_bytes of host memory.
    """
    threads = options.get("threads") or machine().threads
    options = {key: value for key, value in options.items() if key != "technique"}  # type: ignore[assignment]
    rows, copy = (np.zeros((cube.pes, size_bytes), np.uint8) for _ in range(2))
    seconds: list[tuple[float, ...]] = []
    for _ in range(rounds + 1):
        seconds.append(
            (
                cube.push_xfer(rows, to_pes=True),
                cube.push_xfer(rows, to_pes=False),
                cube.stream_limit(size_bytes, size_bytes, src=0, dst=size_bytes, **options)[0],
                _core.host_copy(as_bytes(copy), as_bytes(rows), threads),
            )
        )
    to_pes, from_pes, limit, contiguous = np.median(seconds[1:], axis=0)
    gigabytes = rows.nbytes / 1e9
    return SdkCondition(gigabytes / to_pes, gigabytes / from_pes, 2 * gigabytes / limit, 2 * gigabytes / contiguous)


def make_transfers_alike(options: Options) -> None:
    """Let the emulated SDK transfer with the same threads and flushes as the collectives are told to."""
    set_transfer(threads=options.get("threads") or None, flush=options.get("coherence") == "hardware")


def available_bytes() -> int | None:
    """Return the memory that this machine can still give, if it tells."""
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return None


def require_memory(pes: int, size_bytes: int) -> None:
    """Raise ArgumentError if this machine has no room for a problem of so many bytes per PE."""
    # MRAM: input and output. Host: payload and result, and as much again for staging by `conventional`.
    needed, available = 6 * pes * size_bytes, available_bytes()
    if available is not None and needed > available:
        raise ArgumentError(
            f"{format_size(size_bytes)} for each of {pes} PEs need about {format_size(needed)} of memory; "
            f"{format_size(available)} are available"
        )


