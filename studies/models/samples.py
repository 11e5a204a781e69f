"""Random collectives that are timed on this machine for calibration and validation."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from time import perf_counter
from typing import Any

import numpy as np

from pidcomm import (
    COHERENCES,
    COLLECTIVES,
    ISAS,
    MRAM_BYTES,
    OPS,
    TECHNIQUES,
    TYPES,
    ArgumentError,
    Error,
    Options,
    PeSet,
    allocate,
    plan,
)
from pidcomm.arguments import options_of
from pidcomm.bench.measure import make_transfers_alike
from pidcomm.bench.oracle import Problem, is_defined
from pidcomm.model import PHASES
from pidcomm.model.prediction import PE_PHASES, PreparedCase
from pidcomm.sizes import format_shape
from pidcomm.tables import WORD_BYTES

MAX_PES = 1024
DST = MRAM_BYTES // 4
SCRATCH = 2 * DST
MAX_WINDOW = DST
MIN_TOTAL, MAX_TOTAL = 1 << 16, 1 << 29  # bytes of the larger of input and output, summed over PEs
# Replaces MAX_TOTAL if PEs reorder blocks, because the emulation of PEs is slow.
MAX_REORDERED = 1 << 26
SECONDS_EACH = 0.25
MIN_ROUNDS = 3
_HOST_PHASES = [index for index, name in enumerate(PHASES) if name not in PE_PHASES]


@dataclass(frozen=True)
class Sample:
    """A collective with all parameters that affect its time.

    The collective does not work in place.
    """

    problem: Problem
    options: Options
    path: str

    def __str__(self) -> str:
        """Describe the sample."""
        problem, options = self.problem, self.options
        op = f" {problem.op}" if problem.row.takes_op else ""
        return (
            f"{problem.collective}{op} {problem.dtype} {format_shape(problem.shape)} "
            f"mask {problem.mask}, {problem.bytes} bytes, {options['technique']} "
            f"{options['isa']} {options['threads']} threads, coherence {options['coherence']}"
        )

    def with_technique(self, name: str) -> Sample:
        """Return the sample with the technique `name`, which must support the collective."""
        options = options_of(**{**self.options, "technique": name})
        return replace(self, options=options, path=_plan(self.problem, options)["path"])

    def case(self, **changes: Any) -> PreparedCase:
        """Return the sample for predictions. changes: options that differ from the sample's."""
        problem = self.problem
        return PreparedCase(
            problem.collective,
            problem.shape,
            problem.mask,
            bytes=problem.bytes,
            dst=DST,
            dtype=problem.dtype,
            op=problem.op,
            **options_of(**{**self.options, "scratch": SCRATCH, **changes}),
        )


@dataclass(frozen=True)
class Timed:
    """A sample and the median of its ``Trace.host_seconds``.

    spread: the distance of the quartiles, divided by the median; 0 for a computed time.
    """

    sample: Sample
    seconds: float
    spread: float = 0.0


def host_seconds(case: PreparedCase, numbers: Sequence[float]) -> float:
    """Return the modelled seconds of the host. numbers: the constants of the machine."""
    phases = case.phase_seconds(numbers)
    return sum(phases[index] for index in _HOST_PHASES)


def draw(
    seed: int, count: int, threads: int, max_pes: int = MAX_PES, max_total: int = MAX_TOTAL
) -> list[Sample]:
    """Return random samples. The samples depend only on the arguments and on the instruction sets
    of this machine.

    Raises ArgumentError unless max_total is more than MIN_TOTAL.
    """
    if max_total <= MIN_TOTAL:
        raise ArgumentError(
            f"the largest size of a collective ({max_total} bytes) must be more than {MIN_TOTAL}"
        )
    rng = random.Random(seed)
    samples: list[Sample] = []
    while len(samples) < count:
        sample = _draw(rng, threads, max_pes, max_total)
        if sample is not None:
            samples.append(sample)
    return samples


def _random_shape(rng: random.Random) -> tuple[int, ...]:
    """Return axis lengths of a random shape.

    In three of four cases the lanes divide the shape without remainder.
    """
    axes = rng.randint(1, 3)
    if rng.random() < 0.75:
        return *rng.choices((2, 4, 8, 16, 32), k=axes - 1), rng.choice(
            (3, 5, *(1 << power for power in range(1, 11)))
        )
    return tuple(rng.choices((3, 5, 6, 7, 8, 9, 12, 16, 20, 24), k=axes))


def _draw(rng: random.Random, threads: int, max_pes: int, max_total: int) -> Sample | None:
    """Return a sample, or None if the random choice is not valid."""
    collective = rng.choice(list(COLLECTIVES))
    row = COLLECTIVES[collective]
    shape = _random_shape(rng)
    mask = "".join(rng.choice("01") for _ in shape)
    dtype = rng.choice(list(TYPES))
    op = rng.choice([op for op in OPS if is_defined(op, dtype)])
    options: Options = {
        "technique": rng.choice(("tile", "tile", *TECHNIQUES)),
        "isa": rng.choice(
            [
                name
                for name, isa in ISAS.items()
                if isa.is_available and isa.level > ISAS["scalar"].level
            ]
        ),
        "threads": rng.randint(1, threads),
        "coherence": rng.choice(list(COHERENCES)),
    }
    total = 2 ** rng.uniform(np.log2(MIN_TOTAL), np.log2(max_total))
    pes = prod(shape)
    if not 8 <= pes <= max_pes or "1" not in mask:
        return None
    blocks = row.blocks_per_pe(
        prod(length for length, bit in zip(shape, mask, strict=True) if bit == "1")
    )
    size = max(1, round(total / pes / WORD_BYTES / blocks)) * WORD_BYTES * blocks
    problem = Problem(collective, shape, mask, size, dtype, op)
    if size > MAX_WINDOW or size * pes > 2 * max_total:
        return None
    if max(rows.count * rows.row_bytes for rows in (problem.before, problem.after)) > 2 * max_total:
        return None
    try:
        planned = _plan(problem, options)
    except Error:
        return None
    reorders = "before" in planned or "after" in planned
    runs_as_conventional = (
        planned["path"] == "sdk" and TECHNIQUES[options["technique"]].steps and not reorders
    )
    if (reorders and size * pes > MAX_REORDERED) or runs_as_conventional:
        return None
    return Sample(problem, options, planned["path"])


def _plan(problem: Problem, options: Options) -> dict[str, Any]:
    somewhere: Options = {**options, "scratch": SCRATCH}
    sides: dict[str, Any] = {
        "bytes": problem.bytes,
        "dst": DST,
        "dtype": problem.dtype,
        "op": problem.op,
    }
    return plan(problem.collective, problem.shape, problem.mask, **sides, **somewhere)


class Timer:
    """PEs and host memory for timing samples. Use as a context manager."""

    def __init__(self, samples: Sequence[Sample]) -> None:
        """Compute the PEs and the host memory that the samples need."""
        self._pes = max(sample.problem.pes for sample in samples)
        self._host_bytes = max(
            rows.count * rows.row_bytes
            for sample in samples
            for rows in (sample.problem.before, sample.problem.after)
        )

    def __enter__(self) -> Timer:
        """Allocate PEs and host memory, and touch the host memory."""
        self._payload, self._result = (np.full(self._host_bytes, 1, np.uint8) for _ in range(2))
        self._set: PeSet = allocate(pes=self._pes)
        return self

    def __exit__(self, *_: object) -> None:
        """Free the PEs."""
        self._set.free()

    def time(self, sample: Sample) -> Timed:
        """Time a sample for SECONDS_EACH, after one untimed run."""
        problem = sample.problem
        cube = self._set.hypercube(*problem.shape)
        make_transfers_alike(sample.options)

        def rows(memory: Any, side: Any) -> Any:
            return memory[: side.count * side.row_bytes].reshape(side.shape).view(problem.dtype)

        seconds: list[float] = []
        end = perf_counter() + SECONDS_EACH
        while len(seconds) <= MIN_ROUNDS or perf_counter() < end:
            trace, _ = cube.carry_out(
                problem.collective,
                problem.mask,
                bytes=problem.bytes,
                src=0,
                dst=DST if problem.after.at_pes else 0,
                dtype=problem.dtype,
                op=problem.op,
                host=None if problem.before.at_pes else rows(self._payload, problem.before),
                out=None if problem.after.at_pes else rows(self._result, problem.after),
                options={**sample.options, "scratch": SCRATCH},
            )
            seconds.append(trace.host_seconds)
        low, median, high = np.percentile(seconds[1:], (25, 50, 75))
        return Timed(sample, float(median), float((high - low) / median))
