"""Make rows of runs.

The command line prints the rows, writes the rows as JSON and draws the rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pidcomm import Options
from pidcomm.bench.measure import SdkCondition
from pidcomm.notebook import Shown
from pidcomm.sizes import format_duration, format_gain, format_shape
from pidcomm_studies.apps.application import BASE, Run, with_defaults
from pidcomm_studies.apps.stage import ASSUMED

SOURCE = "mixed"
FAIR_ITERS = 3  # least number of rounds for a fair comparison


@dataclass(frozen=True)
class Phase:
    """Time in us of the kernels or of all calls of one collective: measured here, modelled, and
    assumed for DIMMs.
    """

    name: str
    calls: int
    measured_us: float
    modelled_us: float
    assumed_us: float

    @property
    def total_us(self) -> float:
        """Measured and modelled time together."""
        return self.measured_us + self.modelled_us


@dataclass(frozen=True)
class Row(Shown):
    """The result of a run with one technique; times are in us.

    phases: kernels, work of the host and collectives, in the order in which the phases first occur.
    kernel_us: modelled time of the application's PE programs. host_us: measured time in which the
    host lays out rows and writes variables, the same for all techniques.
    collectives_us: measured time of the host in collectives; each call counts with the median of
    `iters` rounds. collectives_p25_us, collectives_p75_us, total_p25_us, total_p75_us: the same
    sums with the quartiles of each measured time.
    reorder_us: modelled time in which PEs reorder blocks in collectives. total_us: kernel_us +
    host_us + collectives_us + reorder_us. communication_us: collectives_us plus reorder_us. No
    total contains assumed_us and setup_us.
    assumed_us: the assumed cost on DIMMs of launches (launch_us each) and of reloading replaced
    programs (load_us each). setup_us: the measured time to place resident data.
    communication_speed_up, speed_up: speed-ups of communication_us and total_us over
    `conventional`; None if `conventional` did not run or the comparison is not fair.
    sdk_share_pct: the measure of fairness, which is the speed of the emulated SDK's transfers in
    percent of the streaming limit; None if `conventional` did not run. fair_bytes_per_pe: the bytes
    per PE of the SDK's transfers, which is the size of the collective that takes the most time.
    cpu_us: measured time of the reference on the CPUs of this machine; None if not timed.
    cpu_speed_up: cpu_us divided by the sum of total_us and assumed_us. stream_us: time of the same
    work as streams on stream_groups rank groups (0: the library chose them). steps_us: time of the
    same steps one after another, measured in the same rounds; unlike for total_us, no collective
    runs twice in a row. stream_speed_up: steps_us divided by stream_us. All four are None without
    streams. wrong: number of elements that differ from the reference, also of the streams. source:
    source of totals and speed-ups, always `mixed`: some parts are measured, some are modelled.
    """

    application: str
    input: str
    shape: str
    pes: int
    technique: str
    kernel_us: float
    host_us: float
    collectives_us: float
    collectives_p25_us: float
    collectives_p75_us: float
    reorder_us: float
    total_us: float
    total_p25_us: float
    total_p75_us: float
    communication_us: float
    assumed_us: float
    launch_us: float
    load_us: float
    launches: int
    loads: int
    bus_bytes: int
    communication_speed_up: float | None
    speed_up: float | None
    fair_bytes_per_pe: int | None
    sdk_share_pct: float | None
    cpu_us: float | None
    cpu_speed_up: float | None
    stream_groups: int | None
    steps_us: float | None
    stream_us: float | None
    stream_speed_up: float | None
    setup_us: float
    wrong: int
    source: str
    iters: int
    coherence: str
    threads: int
    facts: dict[str, int | str]
    phases: tuple[Phase, ...]

    def __repr__(self) -> str:
        """Report the application, the technique, the PEs, the time and its source."""
        gain = "" if self.speed_up is None else f", {format_gain(self.speed_up)}"
        time = format_duration(1e-6 * self.total_us)
        return (
            f"<Row {self.application}, {self.technique}, {self.pes} PEs: {time}"
            f" {self.source}{gain}>"
        )

    @property
    def spread_pct(self) -> float:
        """Distance of the quartiles of the total, in percent of the total."""
        return 100 * (self.total_p75_us - self.total_p25_us) / self.total_us if self.total_us else 0

    @property
    def kernel_pct(self) -> float:
        """Share of the kernels in the total."""
        return 100 * self.kernel_us / self.total_us if self.total_us else 0.0


@dataclass(frozen=True)
class Conditions:
    """Conditions of all runs of an application on one shape: number of rounds, and options.

    transfers: speed of the emulated SDK with fair_bytes_per_pe; None if `conventional` did not run.
    """

    iters: int
    options: Options
    fair_bytes_per_pe: int | None = None
    transfers: SdkCondition | None = None

    @property
    def sdk_share_pct(self) -> float | None:
        """The slower direction of the emulated SDK, in percent of the streaming limit."""
        transfers = self.transfers
        return (
            None
            if transfers is None
            else 100 * min(transfers.to_pes_gb_s, transfers.from_pes_gb_s) / transfers.limit_gb_s
        )

    @property
    def are_fair(self) -> bool:
        """Whether speed-ups over `conventional` are fair."""
        return self.transfers is not None and self.transfers.holds and self.iters >= FAIR_ITERS


def rows_of(runs: Iterable[Run], conditions: Conditions) -> list[Row]:
    """Return the rows of the runs of one application on one shape."""
    runs = list(runs)
    base = (
        next((run for run in runs if run.technique == BASE), None) if conditions.are_fair else None
    )
    return [_row(run, base, conditions) for run in runs]


def _row(run: Run, base: Run | None, conditions: Conditions) -> Row:
    facts = dict(run.facts)
    communication, total = run.communication, run.total
    streamed = run.streamed
    in_sequence = None if streamed is None else streamed.in_sequence
    options = with_defaults(conditions.options)
    return Row(
        application=run.application,
        input=str(facts.pop("input")),
        shape=format_shape(run.shape),
        pes=run.pes,
        technique=run.technique,
        kernel_us=1e6 * run.kernel.modelled,
        host_us=1e6 * run.host.measured,
        collectives_us=1e6 * communication.measured,
        collectives_p25_us=1e6 * communication.low,
        collectives_p75_us=1e6 * communication.high,
        reorder_us=1e6 * communication.modelled,
        total_us=1e6 * total.total,
        total_p25_us=1e6 * (total.low + total.modelled),
        total_p75_us=1e6 * (total.high + total.modelled),
        communication_us=1e6 * communication.total,
        assumed_us=1e6 * total.assumed,
        launch_us=ASSUMED.launch_us,
        load_us=ASSUMED.load_us,
        launches=total.launches,
        loads=total.loads,
        bus_bytes=total.bus_bytes,
        communication_speed_up=_ratio(
            None if base is None else base.communication.total, communication.total
        ),
        speed_up=_ratio(None if base is None else base.total.total, total.total),
        fair_bytes_per_pe=conditions.fair_bytes_per_pe,
        sdk_share_pct=conditions.sdk_share_pct,
        cpu_us=None if run.cpu_seconds is None else 1e6 * run.cpu_seconds,
        cpu_speed_up=_ratio(run.cpu_seconds, total.total + total.assumed),
        stream_groups=None if streamed is None else streamed.rank_groups,
        steps_us=None if in_sequence is None else 1e6 * in_sequence.total,
        stream_us=None if streamed is None else 1e6 * streamed.cost.total,
        stream_speed_up=(
            None
            if streamed is None
            else _ratio(None if in_sequence is None else in_sequence.total, streamed.cost.total)
        ),
        setup_us=1e6 * run.setup.measured,
        wrong=run.wrong + (0 if streamed is None else streamed.wrong),
        source=SOURCE,
        iters=conditions.iters,
        coherence=options["coherence"] or "",
        threads=options["threads"] or 0,
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
