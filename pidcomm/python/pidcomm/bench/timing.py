"""Benchmark rows.

Each row is timed together with the streaming limit and checked against the oracle.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pidcomm.arguments import Options, options_of
from pidcomm.bench.measure import Scratch, SdkCondition, Trial, best_limit, limit_rates
from pidcomm.bench.oracle import Problem
from pidcomm.notebook import Shown
from pidcomm.pe_set import PeSet
from pidcomm.sizes import format_duration, format_shape, format_size
from pidcomm.tables import COPY_ORDERS, DEFAULT_ISA
from pidcomm.trace import Trace

__all__ = ["BASE", "COMPARED", "Measured", "Row", "Schedule", "in_turn", "measure_rows"]

BASE = "conventional"  # the technique over which speed-ups are computed
COMPARED = ("tile", BASE)  # the techniques that are compared by default


@dataclass(frozen=True)
class Measured(Shown):
    """The parameters of a measurement."""

    collective: str
    technique: str
    dtype: str
    op: str | None
    shape: str
    mask: str
    bytes_per_pe: int

    def _line(self, us: float, source: str) -> str:
        """Return a line with the case, the technique and the time."""
        return (
            f"<{type(self).__name__} {self.collective}, {self.technique}, {self.shape} mask"
            f" {self.mask}, {format_size(self.bytes_per_pe)} per PE: {format_duration(1e-6 * us)}"
            f" {source}>"
        )


@dataclass(frozen=True)
class Row(Measured):
    """One row: times of `iters` runs, bandwidths (1 GB = 1e9 bytes) at the median, and the number
    of wrong elements.

    Times are measured on the host. If PEs reorder blocks, the times exclude loading the PE program
    and waiting for the PEs. outside_us: the median time of a run outside its pass over memory.
    from_us, work_us, to_us: medians of the phases of techniques that go through host memory; 0 for
    other techniques. plan_us: the planning time of the first run, before any plan is cached. pe_us:
    the modelled time of the PEs. mram_bytes: bytes of lines that the host read and wrote.
    host_bytes: bytes read and written in host rows, and as payload in host buffers. pe_bytes: bytes
    of windows that PEs read and wrote in all launches.

    algbw: the larger of input and output summed over PEs, divided by t_p50_us + pe_us. This time
    excludes launches and loads of programs (an ablation adds assumed costs). bus: mram_bytes +
    host_bytes, divided by t_p50_us. limit: the rate of a streaming pass that reads the input bytes
    and writes the output bytes of the collective, with the coherence policy and the threads of the
    collective. Passes and collectives alternate. The limit uses the copy order with the best median
    (limit_copy_order). limit is None if it was not measured. limit_pct and speed_up compare times
    of the same round, because the memory of a shared machine is not always equally fast. limit_pct:
    the median over the rounds of bus in percent of the limit. limit_gb_s: bus / (limit_pct / 100).
    speed_up: the median over the rounds of the time of `conventional`, divided by the time plus
    pe_us of this row; None if `conventional` was not measured or the comparison is not fair.
    source: `measured`, or `mixed` if pe_us is not 0. isa: of the call's options. carried_out: the
    technique that ran. If `technique` is auto, carried_out is the technique that auto chose.
    """

    t_min_us: float
    t_p25_us: float
    t_p50_us: float
    t_p75_us: float
    t_p99_us: float
    outside_us: float
    from_us: float
    work_us: float
    to_us: float
    plan_us: float
    pe_us: float
    launches: int
    mram_bytes: int
    host_bytes: int
    pe_bytes: int
    algbw_gb_s: float
    bus_gb_s: float
    limit_gb_s: float | None
    limit_pct: float | None
    limit_copy_order: str | None
    speed_up: float | None
    wrong: int
    source: str
    coherence: str
    threads: int
    isa: str
    carried_out: str

    def __repr__(self) -> str:
        """Report the case, the technique, the time and its source."""
        return self._line(self.t_p50_us + self.pe_us, self.source)

    @property
    def spread(self) -> float:
        """Return the distance of the quartiles of the times, divided by the median."""
        return (self.t_p75_us - self.t_p25_us) / self.t_p50_us


@dataclass(frozen=True)
class Schedule:
    """Run `warmup` untimed rounds, then `iters` timed rounds.

    A round runs all techniques and the limit.
    """

    iters: int = 10
    warmup: int = 2
    with_limit: bool = True


class Timed(NamedTuple):
    """The rows of a case, and the host times of every timed round in us, shape (rounds, rows)."""

    rows: list[Row]
    host_us: NDArray[np.float64]


def measure_rows(
    pe_set: PeSet,
    problem: Problem,
    techniques: Sequence[str],
    options: Options,
    schedule: Schedule,
    scratch: Scratch,
    condition: SdkCondition,
    on_step: Callable[[], None] = lambda: None,
) -> Timed:
    """Time and check a case with every technique.

    Call on_step after every round and every check.
    """
    # A new hypercube: no plan is cached.
    trial = Trial(pe_set.hypercube(*problem.shape), problem, scratch)
    trial.load()
    variants = [options_of(**{**options, "technique": technique}) for technique in techniques]
    rounds: list[list[Trace]] = []
    limit_seconds: list[list[float]] = []
    for number in range(schedule.warmup + schedule.iters):
        traces = {index: trial.run(variants[index]) for index in in_turn(number, len(variants))}
        rounds.append([traces[index] for index in range(len(variants))])
        if schedule.with_limit:
            limit_seconds.append(trial.limit(options))
        on_step()
    first, timed = rounds[0], rounds[schedule.warmup :]
    times_us = _microseconds(timed, lambda trace: trace.host_seconds)
    outside_us = _microseconds(timed, lambda trace: trace.host_seconds - trace.seconds_pass)

    def median_us(variant: int, field: str) -> float:
        return float(1e6 * np.median([getattr(traces[variant], field) for traces in timed]))

    base_us = (
        times_us[:, techniques.index(BASE)] if BASE in techniques and condition.holds else None
    )
    limit_order, limit_us = None, None
    if schedule.with_limit:
        rounds_seconds = np.array(limit_seconds[schedule.warmup :])
        limit_order = best_limit(limit_rates(rounds_seconds, trial.limit_bytes)).copy_order
        limit_us = 1e6 * rounds_seconds[:, list(COPY_ORDERS).index(limit_order)]
    rows = []
    for index, (trace, variant) in enumerate(zip(timed[-1], variants, strict=True)):
        verdict = trial.check(variant)
        round_us = times_us[:, index]
        p50_us = float(np.median(round_us))
        pe_us = 1e6 * trace.pe_seconds
        bus_gb_s = trace.bus_bytes / p50_us / 1e3
        limit_share = None
        if limit_us is not None:
            limit_share = (
                trace.bus_bytes / trial.limit_bytes * float(np.median(limit_us / round_us))
            )
        rows.append(
            Row(
                collective=problem.collective,
                technique=techniques[index],
                dtype=problem.dtype,
                op=str(problem.op) if problem.row.takes_op else None,
                shape=format_shape(problem.shape),
                mask=problem.mask,
                bytes_per_pe=problem.bytes,
                t_min_us=float(round_us.min()),
                t_p25_us=float(np.percentile(round_us, 25)),
                t_p50_us=p50_us,
                t_p75_us=float(np.percentile(round_us, 75)),
                t_p99_us=float(np.percentile(round_us, 99, method="higher")),
                outside_us=float(np.median(outside_us[:, index])),
                from_us=median_us(index, "seconds_from_pes"),
                work_us=median_us(index, "seconds_host"),
                to_us=median_us(index, "seconds_to_pes"),
                plan_us=1e6 * first[index].seconds_plan,
                pe_us=pe_us,
                launches=trace.pe_launches,
                mram_bytes=trace.mram_bytes_read + trace.mram_bytes_written,
                host_bytes=trace.host_bytes_read + trace.host_bytes_written,
                pe_bytes=trace.pe_bytes,
                algbw_gb_s=problem.larger_side_bytes / (p50_us + pe_us) / 1e3,
                bus_gb_s=bus_gb_s,
                limit_gb_s=limit_share and bus_gb_s / limit_share,
                limit_pct=limit_share and 100 * limit_share,
                limit_copy_order=limit_order,
                speed_up=None
                if base_us is None
                else float(np.median(base_us / (round_us + pe_us))),
                wrong=verdict.wrong,
                source="mixed" if pe_us else "measured",
                coherence=trace.coherence,
                threads=trace.threads,
                isa=str(options.get("isa") or DEFAULT_ISA),
                carried_out=trace.technique,
            )
        )
        on_step()
    return Timed(rows, times_us)


def in_turn(number: int, variants: int) -> list[int]:
    """Return the order of variants in a round: each round begins with the next variant, because a
    run may find in the caches what the run before it left. With more than two variants, no variant
    runs twice in a row.
    """
    return [(number + place) % variants for place in range(variants)]


def _microseconds(
    rounds: Sequence[Sequence[Trace]], of: Callable[[Trace], float]
) -> NDArray[np.float64]:
    return np.array([[1e6 * of(trace) for trace in traces] for traces in rounds])
