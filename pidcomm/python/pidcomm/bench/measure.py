"""Functions of the benchmark that place cases on a hypercube, time them, and check them against
the oracle.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pidcomm.arguments import AUTO, Options, as_bytes, with_scratch
from pidcomm.bench import _verify, platform
from pidcomm.bench.oracle import ByteRows, Problem, Rows, Verdict
from pidcomm.bench.platform import Flush
from pidcomm.errors import ArgumentError
from pidcomm.hypercube import Hypercube
from pidcomm.pe_set import PeSet
from pidcomm.sizes import format_about, format_size
from pidcomm.tables import COPY_ORDERS, TECHNIQUES, WORD_BYTES
from pidcomm.trace import Trace

__all__ = [
    "POISON",
    "Scratch",
    "SdkCondition",
    "Trial",
    "host_copy_seconds",
    "make_transfers_alike",
    "measure_sdk",
    "require_bytes",
]

SDK: Options = {
    "technique": "conventional"
}  # uses dpu_push_xfer and shares no code with the checked techniques
POISON = 0xA5
SEED = 1
# For a fair speed-up, transfers of the emulated SDK must reach this share of the streaming limit.
SDK_SHARE = 0.40
SDK_FLUSHES: dict[str, Flush] = {"off": False, "once": "once", "stock": True}
CONTIGUOUS_SHARE = (
    0.90  # if the streaming limit is below this share of an ordinary copy, the report explains why
)


class Scratch:
    """Hold the host memory of payloads and results.

    All cases reuse it, because fresh memory is slow.
    """

    def __init__(self, problems: Sequence[Problem]) -> None:
        """Allocate and touch the memory for the largest case."""
        size = max(
            rows.count * rows.row_bytes
            for problem in problems
            for rows in (problem.before, problem.after)
        )
        self._payload, self._result = (np.full(size, POISON, np.uint8) for _ in range(2))
        self._holds: tuple[object, ...] | None = None

    def payload(self, problem: Problem) -> ByteRows:
        """Return the payload of a case. The payload overwrites the payload of the previous case."""
        rows = _view(self._payload, problem.before)
        if (key := problem.payload_key(SEED)) != self._holds:
            self._holds = key
            problem.payload(SEED, out=rows)
        return rows

    def result(self, problem: Problem) -> ByteRows:
        """Return memory for the result of a case."""
        return _view(self._result, problem.after)

    def buffers(self, rows: int, row_bytes: int) -> tuple[ByteRows, ByteRows]:
        """Return two arrays of rows that use the memory of payload and result."""
        self._holds = None
        shape = Rows(rows, row_bytes, at_pes=True)
        return _view(self._payload, shape), _view(self._result, shape)


def _view(memory: ByteRows, rows: Rows) -> ByteRows:
    return memory[: rows.count * rows.row_bytes].reshape(rows.shape)


def _share(rows: Rows, pes: int) -> int:
    """Return the bytes of rows per PE, in whole words."""
    return rows.count * rows.row_bytes // pes // WORD_BYTES * WORD_BYTES


class Trial:
    """A case on a cube.

    The input window is at offset 0, followed by the output window and scratch.
    """

    def __init__(self, cube: Hypercube, problem: Problem, scratch: Scratch) -> None:
        self.cube = cube
        self.problem = problem
        self._payload = scratch.payload(problem)
        self._result = scratch.result(problem)
        self.dst = problem.bytes
        self.scratch = 2 * problem.bytes

    def load(self) -> None:
        """Write the input to MRAM.

        If the input is in host rows, write only the MRAM that the limit reads.
        """
        if self.problem.before.at_pes:
            self.cube.write(self._payload, **SDK)
        else:
            per_pe = _share(self.problem.before, self.cube.pes)
            self.cube.write(
                self._payload.reshape(-1)[: per_pe * self.cube.pes].reshape(self.cube.pes, per_pe),
                **SDK,
            )

    def run(self, options: Options) -> Trace:
        """Run the collective and return its trace."""
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
            options=with_scratch(options, self.scratch),
        )
        return trace

    def check(self, options: Options) -> Verdict:
        """Load the input, poison the output, run the collective, and compare every element with
        the oracle.
        """
        after, got = self.problem.after, self._result
        self.load()
        got.fill(POISON)
        if after.at_pes:
            self.cube.write(got, self.dst, **SDK)
        self.run(options)
        if after.at_pes:
            self.cube.read(after.row_bytes, np.uint8, self.dst, out=got, **SDK)
        return self.problem.check(self._payload, got)

    def limit(self, options: Options) -> list[float]:
        """Return the seconds of the streaming pass over `limit_bytes`, for every order of
        COPY_ORDERS.

        The pass flushes its input as the collective does. If the input is in host rows, neither the
        pass nor the collective flushes.
        """
        if not self.problem.before.at_pes:
            options = {**options, "coherence": "none"}
        read, written = (
            _share(rows, self.cube.pes) for rows in (self.problem.before, self.problem.after)
        )
        return _stream_seconds(self.cube, read, written, self.problem.bytes, options)

    @property
    def limit_bytes(self) -> int:
        """Bytes that the limit reads and writes: the bytes of input and output.

        Host rows count as MRAM.
        """
        return sum(
            _share(rows, self.cube.pes) * self.cube.pes
            for rows in (self.problem.before, self.problem.after)
        )


def _stream_seconds(
    cube: Hypercube, bytes_read: int, bytes_written: int, dst: int, options: Options
) -> list[float]:
    options = {key: value for key, value in options.items() if key != "technique"}  # type: ignore[assignment]
    return [
        cube.stream_limit(bytes_read, bytes_written, dst=dst, copy_order=copy_order, **options)[0]
        for copy_order in COPY_ORDERS
    ]


class Limit(NamedTuple):
    """The fastest copy order and its rate."""

    copy_order: str
    gb_s: float


def best_limit(gb_s: Mapping[str, float]) -> Limit:
    """Return the order with the highest rate.

    The order depends on the machine and on the size of the windows.
    """
    copy_order = max(gb_s, key=lambda name: gb_s[name])
    return Limit(copy_order, gb_s[copy_order])


def limit_rates(rounds: NDArray[np.float64], size_bytes: int) -> dict[str, float]:
    """Return the median GB/s of every order of COPY_ORDERS. rounds: seconds, shape (rounds,
    orders).
    """
    medians = np.median(rounds, axis=0)
    return {
        copy_order: float(size_bytes / took / 1e9)
        for copy_order, took in zip(COPY_ORDERS, medians, strict=True)
    }


@dataclass(frozen=True)
class SdkCondition:
    """Whether the emulated SDK is fast enough for a fair speed-up over `conventional`.

    All rates count bytes read and written. limits_gb_s: rates of the streaming copy by copy order.
    has_flushes: whether the streaming copy flushes its source, as policy `hardware` requires; the
    contiguous copy never flushes. round_shares: for each round, the rate of the slower direction,
    divided by the streaming limit.
    """

    to_pes_gb_s: float
    from_pes_gb_s: float
    limits_gb_s: Mapping[str, float]
    contiguous_gb_s: float
    has_flushes: bool
    round_shares: Sequence[float] = ()

    @property
    def limit_gb_s(self) -> float:
        """Rate of the streaming limit, in the fastest copy order."""
        return best_limit(self.limits_gb_s).gb_s

    @property
    def holds(self) -> bool:
        """Whether transfers in both directions reach the required share of the streaming limit."""
        return min(self.to_pes_gb_s, self.from_pes_gb_s) >= SDK_SHARE * self.limit_gb_s

    def lines(self) -> list[str]:
        """Return the sentences for a report."""
        limit = best_limit(self.limits_gb_s)
        of_contiguous = limit.gb_s / self.contiguous_gb_s
        lines = [
            f"limit: streaming copy {limit.gb_s:.2f} GB/s read + written in order"
            f" {limit.copy_order} ("
            + ", ".join(
                f"{name} {gb_s:.2f}"
                for name, gb_s in self.limits_gb_s.items()
                if name != limit.copy_order
            )
            + f"), {100 * of_contiguous:.0f}% of an ordinary contiguous copy"
            f" ({self.contiguous_gb_s:.2f} GB/s)"
            + ("; the limit includes the flushes of policy hardware" if self.has_flushes else "")
        ]
        if of_contiguous < CONTIGUOUS_SHARE:
            lines.append(
                f"the limit is below {100 * CONTIGUOUS_SHARE:.0f}% of the contiguous copy, which "
                + ("does not flush, " if self.has_flushes else "")
                + "may keep its stores in the caches, and uses contiguous memory; "
                "stores to MRAM bypass the caches, and MRAM lies in pieces of 128 KiB"
            )
        shares = [100 * value / limit.gb_s for value in (self.to_pes_gb_s, self.from_pes_gb_s)]
        verdict = "so" if self.holds else "so NOT"
        lines.append(
            f"emulated SDK: dpu_push_xfer {self.to_pes_gb_s:.2f} GB/s to, {self.from_pes_gb_s:.2f}"
            f" GB/s from the PEs, read + written ({shares[0]:.0f}% and {shares[1]:.0f}% of the"
            f" limit; a fair comparison needs at least {100 * SDK_SHARE:.0f}%), {verdict} fair to"
            " compare with conventional"
        )
        others = sum((share >= SDK_SHARE) != self.holds for share in self.round_shares)
        if others:
            lines.append(
                f"this is uncertain: {others} of {len(self.round_shares)} rounds lie on the other"
                f" side of {100 * SDK_SHARE:.0f}%"
            )
        return lines


def measure_sdk(
    cube: Hypercube, size_bytes: int, options: Options, scratch: Scratch, rounds: int = 5
) -> SdkCondition:
    """Time transfers of the emulated SDK, the streaming copy and an ordinary copy, with
    `size_bytes` per PE.

    Overwrites the first 2 * size_bytes of each MRAM, and the scratch memory of the host.
    """
    threads = options.get("threads") or platform.threads()
    rows, copy = scratch.buffers(cube.pes, size_bytes)
    transfers: list[tuple[float, ...]] = []
    streams: list[list[float]] = []
    for _ in range(rounds + 1):
        transfers.append(
            (
                cube.push_xfer(rows, to_pes=True),
                cube.push_xfer(rows, to_pes=False),
                host_copy_seconds(copy, rows, threads),
            )
        )
        streams.append(_stream_seconds(cube, size_bytes, size_bytes, size_bytes, options))
    to_pes, from_pes, contiguous = (
        2 * rows.nbytes / took / 1e9 for took in np.median(transfers[1:], axis=0)
    )
    limits = limit_rates(np.array(streams[1:]), 2 * rows.nbytes)
    least_seconds = 2 * rows.nbytes / best_limit(limits).gb_s / 1e9
    return SdkCondition(
        to_pes,
        from_pes,
        limits,
        contiguous,
        options.get("coherence") == "hardware",
        [least_seconds / max(to_took, from_took) for to_took, from_took, _ in transfers[1:]],
    )


def creation_us(pe_set: PeSet, lengths: Sequence[int], times: int = 9) -> float:
    """Return the median time in us to make a hypercube."""
    seconds = []
    for _ in range(times):
        begin = perf_counter()
        cube = pe_set.hypercube(*lengths)
        seconds.append(perf_counter() - begin)
        del cube
    return float(1e6 * np.median(seconds))


def make_transfers_alike(options: Options, sdk_flush: str = "once") -> None:
    """Give the emulated SDK as many threads as the collectives. The SDK flushes if the collectives
    flush.

    sdk_flush: a name of SDK_FLUSHES. The name sets how often the SDK flushes: once, as the
    collectives do, or as often as the stock SDK.
    """
    flush = SDK_FLUSHES[sdk_flush if options.get("coherence") == "hardware" else "off"]
    platform.set_transfers(options.get("threads") or None, flush)


def sdk_flush() -> str:
    """Return the name in SDK_FLUSHES of the current setting. On DIMMs it is "stock"."""
    now = platform.sdk_flush()
    return (
        "stock"
        if now is None
        else next(name for name, flush in SDK_FLUSHES.items() if flush == now)
    )


def available_bytes() -> int | None:
    """Return the bytes of memory that are available on this machine, or None if unknown."""
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return None


def require_memory(pes: int, size_bytes: int, techniques: Iterable[str]) -> None:
    """Raise ArgumentError if this machine lacks the memory for a case of `size_bytes` per PE."""
    # MRAM holds input, output, and scratch for the paper's techniques. Huge pages double the memory
    # of MRAM.
    # Host memory holds payload and result, and the host buffers of `conventional` need as much
    # memory again.
    windows = (
        3 if any(name != AUTO and TECHNIQUES[name].runs_pe_program for name in techniques) else 2
    )
    side = pes * size_bytes
    needed = platform.host_bytes(windows * side) + (2 + 2) * side
    require_bytes(needed, f"{format_size(size_bytes)} for each of {pes} PEs")


def require_bytes(needed: int, what: str) -> None:
    """Raise ArgumentError if fewer than `needed` bytes of memory are available. what: subject of
    the error sentence.
    """
    available = available_bytes()
    if available is not None and needed > available:
        raise ArgumentError(
            f"{what} need about {format_about(needed)} of memory; {format_about(available)} are"
            " available"
        )


def host_copy_seconds(target: ByteRows, source: ByteRows, threads: int) -> float:
    """Return the seconds of an ordinary copy of host memory by a number of threads."""
    return _verify.host_copy(as_bytes(target), as_bytes(source), threads)
