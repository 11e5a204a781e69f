"""Rows of runs: what the command line prints, writes as JSON and draws."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pidcomm.apps.application import BASE, Run
from pidcomm.sizes import format_shape

SOURCE = "mixed"


@dataclass(frozen=True)
class Phase:
    """Kernels, or all calls of one collective: us by source, measured here, modelled, and assumed for DIMMs."""

    name: str
    calls: int
    measured_us: float
    modelled_us: float
    assumed_us: float

    @property
    def total_us(self) -> float:
        """What is measured and modelled."""
        return self.measured_us + self.modelled_us


@dataclass(frozen=True)
class Row:
    """A problem solved with one technique. Times in us.

    phases: kernels and collectives, in the order of their first use. kernel_us: programs of the application, modelled.
    host_us: the host in collectives, measured. reorder_us: PEs that reorder blocks in collectives, modelled. total_us:
    the sum of these three. communication_us: of it the collectives. In no total: assumed_us, launches, and loads of
    programs that were replaced, at what they are assumed to take on DIMMs; setup_us, placing what stays, measured.
    communication_speed_up, speed_up: of communication_us and total_us over `conventional`; None where that did not run,
    or comparing would not be fair. cpu_us: the reference on all CPUs of this machine, measured, None if not asked for;
    cpu_speed_up: of total_us over that. wrong: elements that differ from the reference. source: what totals and
    speed-ups are made of, `mixed`: measured and modelled parts.
    """

    application: str
    input: str
    shape: str
    pes: int
    technique: str
    kernel_us: float
    host_us: float
    reorder_us: float
    assumed_us: float
    total_us: float
    communication_us: float
    launches: int
    loads: int
    bus_bytes: int
    communication_speed_up: float | None
    speed_up: float | None
    cpu_us: float | None
    cpu_speed_up: float | None
    setup_us: float
    wrong: int
    source: str
    facts: dict[str, int | str]
    phases: tuple[Phase, ...]

    @property
    def kernel_pct(self) -> float:
        """Share of the kernels in the total."""
        return 100 * self.kernel_us / self.total_us if self.total_us else 0.0


def rows_of(runs: Iterable[Run], is_fair: bool) -> list[Row]:
    """Return the rows of the runs of one problem on one shape. is_fair: whether speed-ups over conventional are."""
    runs = list(runs)
    base = next((run for run in runs if run.technique == BASE), None) if is_fair else None
    return [_row(run, base) for run in runs]


def _row(run: Run, base: Run | None) -> Row:
    facts = dict(run.facts)
    communication, total = run.communication, run.total
    return Row(
        application=run.application,
        input=str(facts.pop("input")),
        shape=format_shape(run.shape),
        pes=run.pes,
        technique=run.technique,
        kernel_us=1e6 * run.kernel.modelled,
        host_us=1e6 * communication.measured,
        reorder_us=1e6 * communication.modelled,
        assumed_us=1e6 * total.assumed,
        total_us=1e6 * total.total,
        communication_us=1e6 * communication.total,
        launches=total.launches,
        loads=total.loads,
        bus_bytes=total.bus_bytes,
        communication_speed_up=_ratio(None if base is None else base.communication.total, communication.total),
        speed_up=_ratio(None if base is None else base.total.total, total.total),
        cpu_us=None if run.cpu_seconds is None else 1e6 * run.cpu_seconds,
        cpu_speed_up=_ratio(run.cpu_seconds, total.total),
        setup_us=1e6 * run.setup.measured,
        wrong=run.wrong,
        source=SOURCE,
        facts=facts,
        phases=tuple(
            Phase(name, cost.calls, 1e6 * cost.measured, 1e6 * cost.modelled, 1e6 * cost.assumed)
            for name, cost in run.costs.items()
        ),
    )


def _ratio(before: float | None, after: float) -> float | None:
    return before / after if before is not None and after > 0 else None


def phase_names(rows: Sequence[Row]) -> list[str]:
    """Return the names of all phases, in the order of their first use."""
    return list(dict.fromkeys(phase.name for row in rows for phase in row.phases))
