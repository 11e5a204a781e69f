"""What demo and bench share: problems placed on a hypercube, timed, and checked against the oracle."""

from __future__ import annotations

from collections.abc import Sequence
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
SEED = 1
WORD_BYTES = 8
SDK_SHARE = 0.40  # of the streaming limit, which the emulated SDK must reach both ways for a speed-up to be fair


class Scratch:
    """Hold the host memory of payloads and results, used again by every problem: fresh memory is slow."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        """Allocate, and touch, for the largest of the problems."""
        size = max(rows.count * rows.row_bytes for problem in problems for rows in (problem.before, problem.after))
        self._payload, self._result = (np.full(size, POISON, np.uint8) for _ in range(2))
        self._holds: tuple[object, ...] | None = None

    def payload(self, problem: Problem) -> ByteRows:
        """Return the payload of a problem, in place of the one before."""
        rows = _view(self._payload, problem.before)
        if (key := problem.payload_key(SEED)) != self._holds:
            self._holds = key
            problem.payload(SEED, out=rows)
        return rows

    def result(self, problem: Problem) -> ByteRows:
        """Return memory for the result of a problem."""
        return _view(self._result, problem.after)

    def buffers(self, rows: int, row_bytes: int) -> tuple[ByteRows, ByteRows]:
        """Return all the memory as two arrays of rows."""
        self._holds = None
        shape = Rows(rows, row_bytes, at_pes=True)
        return _view(self._payload, shape), _view(self._result, shape)


def _view(memory: ByteRows, rows: Rows) -> ByteRows:
    return memory[: rows.count * rows.row_bytes].reshape(rows.shape)


def _share(rows: Rows, pes: int) -> int:
    """Return the bytes of some rows for each PE, in whole words."""
    return rows.count * rows.row_bytes // pes // WORD_BYTES * WORD_BYTES


class Trial:
    """A problem on a cube, its input window at offset 0 and its output window behind it, or behind room for as much."""

    def __init__(self, cube: Hypercube, problem: Problem, scratch: Scratch) -> None:
        self.cube = cube
        self.problem = problem
        self._payload = scratch.payload(problem)
        self._result = scratch.result(problem)
        self.dst = problem.bytes

    def load(self) -> None:
        """Put the input where the collective finds it; if that is the host, touch the memory of the limit's input."""
        if self.problem.before.at_pes:
            self.cube.write(self._payload, **SDK)
        else:
            per_pe = _share(self.problem.before, self.cube.pes)
            self.cube.write(self._payload.reshape(-1)[: per_pe * self.cube.pes].reshape(self.cube.pes, per_pe), **SDK)

    def run(self, options: Options) -> Trace:
        """Carry out the collective; seconds_total of the trace is its time."""
        problem = self.problem
        trace, _ = self.cube.carry_out(
            problem.collective,
            problem.mask,
            bytes=problem.bytes,
            src=0,
            dst=self.dst if problem.after.at_pes else 0,
            dtype=problem.dtype,
            op=problem.op,
            host=None if problem.before.at_pes else self._payload.view(problem.dtype),
            out=None if problem.after.at_pes else self._result.view(problem.dtype),
            options=options,
        )
        return trace

    def check(self, options: Options) -> Verdict:
        """Load, poison the output, run, read the output back and compare every element with the oracle."""
        after, got = self.problem.after, self._result
        self.load()
        got.fill(POISON)
        if after.at_pes:
            self.cube.write(got, self.dst, **SDK)
        self.run(options)
        if after.at_pes:
            self.cube.read(after.row_bytes, np.uint8, self.dst, out=got, **SDK)
        return self.problem.check(self._payload, got)

    def limit(self, options: Options) -> tuple[float, int]:
        """Time the streaming pass that reads and writes as many bytes, host rows counted as MRAM: (seconds, bytes)."""
        options = {key: value for key, value in options.items() if key != "technique"}  # type: ignore[assignment]
        read, written = (_share(rows, self.cube.pes) for rows in (self.problem.before, self.problem.after))
        return self.cube.stream_limit(read, written, src=0, dst=self.problem.bytes, **options)

    @property
    def larger_side_bytes(self) -> int:
        """Bytes of the larger side, summed over PEs (or host rows)."""
        return max(rows.count * rows.row_bytes for rows in (self.problem.before, self.problem.after))


@dataclass(frozen=True)
class SdkCondition:
    """Whether the emulated SDK is quick enough for a speed-up over `conventional` to mean something.

    All rates count bytes read and written.
    """

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
            f"{100 * self.limit_gb_s / self.contiguous_gb_s:.0f}% of an ordinary "
            f"contiguous copy ({self.contiguous_gb_s:.2f} GB/s)",
            f"emulated SDK: dpu_push_xfer {self.to_pes_gb_s:.2f} GB/s to, {self.from_pes_gb_s:.2f} GB/s from the PEs, "
            f"read + written ({shares[0]:.0f}% and {shares[1]:.0f}% of the limit; "
            f"at least {100 * SDK_SHARE:.0f}% wanted), {verdict} fair to compare with conventional",
        ]


def measure_sdk(cube: Hypercube, size_bytes: int, options: Options, scratch: Scratch, rounds: int = 5) -> SdkCondition:
    """Time the emulated SDK's transfers, the streaming copy and an ordinary copy of `size_bytes` per PE, interleaved.

    Overwrites the first 2 * size_bytes of MRAM, and the scratch.
    """
    threads = options.get("threads") or machine().threads
    options = {key: value for key, value in options.items() if key != "technique"}  # type: ignore[assignment]
    rows, copy = scratch.buffers(cube.pes, size_bytes)
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
    return SdkCondition(*(2 * gigabytes / took for took in (to_pes, from_pes, limit, contiguous)))


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
