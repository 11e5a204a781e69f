"""The steps of the PID-Comm paper from the conventional technique to `tile`, with the time of each
phase.

Host times are measured. PE reordering is modelled from the PEs' cycles. Launches and loads of
programs have assumed costs (`Assumed`). The source of a row with measured and modelled parts is
`mixed`; the row shows the parts separately.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pidcomm._rows import CollectiveName
from pidcomm.arguments import Options, options_of
from pidcomm.bench.measure import Scratch, SdkCondition
from pidcomm.bench.oracle import Problem
from pidcomm.bench.timing import BASE, Measured, Row, Schedule, Timed, measure_rows
from pidcomm.model.machines import load_machine
from pidcomm.model.prediction import PAPER_MACHINE
from pidcomm.pe_set import PeSet
from pidcomm.plans import plan
from pidcomm.tables import TECHNIQUES

__all__ = ["COLLECTIVES", "STEPS", "Assumed", "Step"]

PAPER = [name for name, row in TECHNIQUES.items() if row.steps and row.is_for_auto]
STEPS = (BASE, *PAPER, "tile")  # in the order of the paper, and then tile
# The collectives in the paper's ablation, figure 16.
COLLECTIVES: tuple[CollectiveName, ...] = (
    "alltoall",
    "reduce_scatter",
    "allreduce",
    "allgather",
)
MIN_ROUNDS = 3  # with fewer rounds, quartiles have no meaning
_DIMMS = load_machine(PAPER_MACHINE)
# Fields of a plan that do not affect the moved bytes.
LABELS = (
    "technique",
    "path",
    "steps",
    "scratch_bytes",
)


@dataclass(frozen=True)
class Assumed:
    """Assumed costs of PE programs on DIMMs, of the paper's machine.

    launch_us: the time to start all its PEs and notice their end. load_us: the time to load a
    program into all its PEs.
    """

    launch_us: float = round(_DIMMS.launch_us(_DIMMS.pes))
    load_us: float = round(_DIMMS.load_us(_DIMMS.pes))


@dataclass(frozen=True)
class Step(Measured):
    """The time of one technique, and the parts of this time. Times are in us for one call; 1 GB =
    1e9 bytes.

    host_us: the median of the measured host times; the parts of host_us are defined below.
    step_gain: the host time of the previous technique over the host time of this technique.
    step_gain is the median over rounds; every round runs both techniques. step_gain is None for the
    first technique, and after a technique that uses the emulated SDK if the SDK is too slow for a
    fair comparison. step_low, step_high: quartiles of the gains of rounds. If 1 lies between the
    quartiles, the techniques do not differ. With fewer than 3 rounds the quartiles are None.
    from_us, work_us, to_us: measured phases as in `Row`. total_us: host_us + pe_us + launch_us +
    load_us. pe_us: the modelled time of PE reordering.
    launch_us: the assumed cost of the launches. load_us: the assumed cost of two loads, of the
    reorder program and then of the caller's program.

    outside_us: the part of host_us outside the pass over memory (measured), for example the
    exchange of jobs with the PEs through the SDK. bus_us: the time of the streaming limit for the
    same bytes of MRAM. host_memory_us: the time of an ordinary copy for the bytes of host rows and
    host buffers. dt_us: the domain transfers of pr+im, as the time of pr+im less the time of
    pr+im+cm; noise can make it negative; None if unknown. modulation_us: the remainder of host_us,
    which includes the domain transfers if dt_us is None. Memory accesses and arithmetic overlap; if
    the pass is faster than the sum of the estimates, the remainder is negative.
    """

    host_us: float
    step_gain: float | None
    step_low: float | None
    step_high: float | None
    from_us: float
    work_us: float
    to_us: float
    outside_us: float
    bus_us: float
    host_memory_us: float
    dt_us: float | None
    modulation_us: float
    pe_us: float
    launches: int
    launch_us: float
    loads: int
    load_us: float
    total_us: float
    mram_bytes: int
    host_bytes: int
    pe_bytes: int
    wrong: int
    source: str
    coherence: str
    threads: int
    isa: str

    def __repr__(self) -> str:
        """Report the case, the technique, the time and its source."""
        return self._line(self.total_us, self.source)

    def share_pct(self, part_us: float) -> float:
        """Return a part of total_us in percent."""
        return 100 * part_us / self.total_us


def steps_for(problem: Problem, options: Options) -> list[str]:
    """Return the techniques of STEPS whose plans for a case differ, in order.

    Of several techniques with equal plans, return `tile` if its plan is equal, or else the first
    technique.
    """

    def work(technique: str) -> str:
        variant = options_of(**{**options, "technique": technique, "scratch": 2 * problem.bytes})
        sides: dict[str, Any] = {
            "bytes": problem.bytes,
            "dst": problem.bytes,
            "dtype": problem.dtype,
            "op": problem.op,
        }
        technique_plan = plan(problem.collective, problem.shape, problem.mask, **sides, **variant)
        return json.dumps(
            [
                technique_plan["path"] == "sdk",
                *(item for item in technique_plan.items() if item[0] not in LABELS),
            ]
        )

    technique_of_work: dict[str, str] = {}
    for name in (STEPS[-1], *STEPS):
        technique_of_work.setdefault(work(name), name)
    return [name for name in STEPS if name in technique_of_work.values()]


def ablate(
    pe_set: PeSet,
    problem: Problem,
    assumed: Assumed,
    options: Options,
    schedule: Schedule,
    scratch: Scratch,
    condition: SdkCondition,
    on_step: Callable[[], None] = lambda: None,
) -> list[Step]:
    """Time and check a case with every technique of `steps_for`.

    Each round runs every technique once.
    """
    techniques = steps_for(problem, options)
    timed = measure_rows(
        pe_set, problem, techniques, options, schedule, scratch, condition, on_step
    )
    return list(_steps(timed, condition, assumed))


def _gain(
    before_us: NDArray[np.float64], us: NDArray[np.float64]
) -> tuple[float, float | None, float | None]:
    """Return the median and the quartiles of the gains of rounds.

    A slow round affects both times of its gain.
    """
    low, median, high = map(float, np.percentile(before_us / us, (25, 50, 75)))
    return (median, low, high) if len(us) >= MIN_ROUNDS else (median, None, None)


def _steps(timed: Timed, condition: SdkCondition, assumed: Assumed) -> Iterator[Step]:
    rows = timed.rows
    host_us = {row.technique: row.t_p50_us for row in rows}
    for index, row in enumerate(rows):
        if row.limit_gb_s is None:
            raise ValueError("an ablation needs the streaming limit")
        dt_us = None
        if row.technique == "pr+im" and "pr+im+cm" in host_us:
            dt_us = row.t_p50_us - host_us["pr+im+cm"]
        bus_us = row.mram_bytes / row.limit_gb_s / 1e3
        host_memory_us = row.host_bytes / condition.contiguous_gb_s / 1e3
        step_gain = step_low = step_high = None
        if index > 0 and (condition.holds or not TECHNIQUES[rows[index - 1].technique].uses_sdk):
            step_gain, step_low, step_high = _gain(
                timed.host_us[:, index - 1], timed.host_us[:, index]
            )
        launch_us = assumed.launch_us * row.launches
        loads = 2 if row.launches else 0
        load_us = assumed.load_us * loads
        yield Step(
            **{name: getattr(row, name) for name in _SHARED},
            host_us=row.t_p50_us,
            step_gain=step_gain,
            step_low=step_low,
            step_high=step_high,
            bus_us=bus_us,
            host_memory_us=host_memory_us,
            dt_us=dt_us,
            modulation_us=row.t_p50_us - row.outside_us - bus_us - host_memory_us - (dt_us or 0),
            launch_us=launch_us,
            loads=loads,
            load_us=load_us,
            total_us=row.t_p50_us + row.pe_us + launch_us + load_us,
        )


_SHARED = {field.name for field in fields(Step)} & {field.name for field in fields(Row)}
