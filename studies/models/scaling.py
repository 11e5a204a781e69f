"""Studies of how the cost of collectives grows with PEs, channels, bytes, group size and hosts.

A study has a parameter that varies, its values, and fixed parameters. The points of a study are
modelled for a machine, or measured on the emulated DIMMs of this host; each point has its source.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod

import pidcomm
from pidcomm import DEFAULT_ISA, ArgumentError, Error, Options
from pidcomm.arguments import options_of
from pidcomm.bench import platform
from pidcomm.bench.measure import Scratch, measure_sdk
from pidcomm.bench.oracle import Problem
from pidcomm.bench.sweep import TOO_LARGE_OR_SMALL, Section, affordable, powers_of_two
from pidcomm.bench.timing import BASE, COMPARED, Row, Schedule, measure_rows
from pidcomm.model import NETWORK_PHASES, PHASES, Machine, predict, predict_hosts
from pidcomm.notebook import Shown
from pidcomm.sizes import format_duration, format_shape
from pidcomm.tables import CollectiveName, OpName

DTYPE = "int32"
OP: OpName = "sum"
EMULATED = "emulated here" if platform.IS_EMULATED else "measured here"
GROUP_PES = 32
RANK_PES = pidcomm.PES_PER_RANK
MANY_PES = 1024  # number of PEs in studies in which other parameters vary
MOST_HOSTS = 1024
LEAST_OF_HOSTS = 2 << 20  # bytes per PE, as in figure 23b of the PID-Comm paper
MEASURED_PHASES = {
    "outside": "all except the pass over memory",
    "from_pes": "over the SDK: transfers from PEs",
    "host": "over the SDK: work in host memory",
    "to_pes": "over the SDK: transfers to PEs",
    "pass": "the pass over memory",
}
"""Phases of a measured point by name, and their meanings."""
MEANINGS = {**PHASES, **NETWORK_PHASES, **MEASURED_PHASES}


def _many(pes: int) -> int:
    """Return the number of PEs in a study that does not vary the number of PEs. pes: the PEs of
    the machine.
    """
    return powers_of_two(1, min(pes, MANY_PES))[-1]


@dataclass(frozen=True)
class Study:
    """The parameter that varies and the fixed parameters, on a machine with `pes` PEs.

    varies: the field of `Point` that varies; its values are values(pes). shape(pes, value), mask
    and size(pes) are the parameters of a point; size is in bytes per PE and is used unless bytes
    vary. on(machine, value): the machine of a point. grows: whether the throughput should grow with
    the parameter, or stay constant. For measured points, limit% replaces the throughput. If PEs
    vary, limit% should stay constant, because the memory of this machine does not grow.
    is_measured: whether emulated DIMMs can measure the study.
    """

    name: str
    about: str
    varies: str
    values: Callable[[int], Sequence[int]]
    shape: Callable[[int, int], tuple[int, ...]]
    mask: str
    size: Callable[[int], int]
    on: Callable[[Machine, int], Machine] = lambda machine, _: machine
    grows: bool = True
    is_measured: bool = False

    def group_pes(self, shape: Sequence[int]) -> int:
        """Return the number of PEs per group."""
        return prod(length for length, bit in zip(shape, self.mask, strict=True) if bit == "1")

    def can_be_on(self, machine: Machine) -> bool:
        """Return whether the machine has the parameter that varies.

        Emulated DIMMs do not have separate channels.
        """
        return self.varies != "channels" or not machine["host.emulated"]

    def size_at(self, pes: int, value: int, size_bytes: int | None) -> int:
        """Return the bytes per PE of a point. size_bytes: the caller's choice, or None for the
        default of the study.
        """
        return value if self.varies == "bytes_per_pe" else size_bytes or self.size(pes)


def _spread(ranks: int, channels: int) -> int:
    """Return the number of used channels.

    All used channels except the last have the same number of ranks.
    """
    return -(-ranks // -(-ranks // channels))


def _on_channels(machine: Machine, channels: int) -> Machine:
    """Return a machine with its ranks spread over `channels` channels."""
    ranks = machine.pes // RANK_PES
    return machine.with_values(
        {"ranks.channels": channels, "ranks.per_channel": -(-ranks // channels)},
        "assumed: the study varies it",
    )


def _size_for_hosts(pes: int) -> int:
    """Return the smallest size that can be divided into blocks for all PEs with every number of
    hosts.
    """
    unit = pes * MOST_HOSTS * 8
    return -(-LEAST_OF_HOSTS // unit) * unit


STUDIES = {
    study.name: study
    for study in (
        Study(
            "pes",
            f"more PEs in groups of {GROUP_PES}; the bytes per PE are constant",
            "pes",
            lambda pes: [value for value in [*powers_of_two(64, 2048), 2560] if value <= pes],
            lambda _, value: (GROUP_PES, value // GROUP_PES),
            "10",
            lambda _: 256 << 10,
            is_measured=True,
        ),
        Study(
            "channels",
            f"the PEs of the machine in groups of {GROUP_PES}, distributed over more channels",
            "channels",
            lambda pes: [
                value
                for value in [*powers_of_two(1, 8), 10]
                if _spread(pes // RANK_PES, value) == value
            ],
            lambda pes, _: (GROUP_PES, pes // GROUP_PES),
            "10",
            lambda _: 256 << 10,
            on=_on_channels,
        ),
        Study(
            "bytes",
            f"more bytes per PE, on at most {MANY_PES} PEs in groups of {GROUP_PES}",
            "bytes_per_pe",
            lambda _: powers_of_two(1 << 10, 8 << 20),
            lambda pes, _: (GROUP_PES, _many(pes) // GROUP_PES),
            "10",
            lambda _: 0,
            is_measured=True,
        ),
        Study(
            "groups",
            f"larger groups of at most {MANY_PES} PEs; the bytes per PE are constant",
            "group_pes",
            lambda pes: powers_of_two(2, _many(pes)),
            lambda pes, value: (value, _many(pes) // value),
            "10",
            lambda _: 256 << 10,
            grows=False,
            is_measured=True,
        ),
        Study(
            "hosts",
            "more equal hosts; all PEs of all hosts are one group",
            "hosts",
            lambda _: powers_of_two(1, MOST_HOSTS),
            lambda pes, _: (pes,),
            "1",
            _size_for_hosts,
        ),
    )
}
"""The studies, by name."""


@dataclass(frozen=True)
class Point(Shown):
    """One collective with one technique at one value of a study. 1 GB = 1e9 bytes.

    where: the modelled machine, or `EMULATED`. hosts, channels: the numbers in use; None if
    unknown. pes: the PEs of all hosts. shape, mask: the shape and mask of one host. seconds: the
    time of a call. algbw_gb_s: the larger of input and output summed over PEs, per second.
    limit_pct: as in `bench.Row`; only for measured points. speed_up: the speed-up over
    `conventional` at the same value. phases: the seconds of each phase, by name of MEANINGS. wrong:
    the number of wrong elements; None for modelled points. source: modelled or measured.
    """

    study: str
    collective: str
    technique: str
    dtype: str
    op: str | None
    where: str
    hosts: int
    channels: int | None
    pes: int
    group_pes: int
    shape: str
    mask: str
    bytes_per_pe: int
    seconds: float
    algbw_gb_s: float
    limit_pct: float | None
    speed_up: float | None
    phases: dict[str, float]
    wrong: int | None
    source: str
    coherence: str
    threads: int
    isa: str

    def __repr__(self) -> str:
        """Report the study, the collective, the technique, the value, the time and its source."""
        return (
            f"<Point {self.study}, {self.collective}, {self.technique},"
            f" {STUDIES[self.study].varies} {self.value}: {format_duration(self.seconds)}"
            f" {self.source}>"
        )

    @property
    def value(self) -> int:
        """Return the value of the parameter that varies."""
        return int(getattr(self, STUDIES[self.study].varies))

    @property
    def rate(self) -> float:
        """Return the rate that should grow or stay constant: throughput if modelled, limit% if
        measured.
        """
        return self.algbw_gb_s if self.limit_pct is None else self.limit_pct

    @property
    def longest(self) -> str:
        """Return the longest phase."""
        return max(self.phases, key=lambda name: self.phases[name])

    def share_pct(self, phase: str) -> float:
        """Return a phase in percent of the time."""
        return 100 * self.phases[phase] / self.seconds


@contextmanager
def _left_out(refusals: dict[str, Error]) -> Iterator[None]:
    """Skip a case with an unsupported size, and record the error by its sentence."""
    try:
        yield
    except Error as error:
        if error.status not in TOO_LARGE_OR_SMALL:
            raise
        refusals.setdefault(str(error), error)


def model_points(
    study: Study,
    collectives: Sequence[CollectiveName],
    machine: Machine,
    values: Sequence[int],
    size_bytes: int | None,
) -> tuple[list[Point], list[Error]]:
    """Return the points of a study for a machine. Also return the errors of points with unsupported
    sizes.

    Raises ArgumentError for a machine without the parameter that varies.
    """
    if not study.can_be_on(machine):
        raise ArgumentError(
            f"study {study.name} cannot be on {machine.name}: emulated DIMMs have no separate"
            f" {study.name}"
        )
    points: list[Point] = []
    refusals: dict[str, Error] = {}
    for collective in collectives:
        of_collective: list[Point] = []
        for value in values:
            with _left_out(refusals):
                size = study.size_at(machine.pes, value, size_bytes)
                of_collective += _predicted(study, collective, machine, value, size)
        points += sorted(of_collective, key=lambda point: COMPARED.index(point.technique))
    return points, list(refusals.values())


def _predicted(
    study: Study, collective: CollectiveName, machine: Machine, value: int, size: int
) -> list[Point]:
    shape, machine = study.shape(machine.pes, value), study.on(machine, value)
    hosts = value if study.varies == "hosts" else 1
    pes, group_pes = prod(shape), study.group_pes(shape)
    predictions = {
        technique: predict_hosts(
            collective,
            hosts,
            shape,
            study.mask,
            bytes=size,
            dtype=DTYPE,
            op=OP,
            machine=machine,
            **options_of(technique=technique),
        )
        for technique in COMPARED
    }
    return [
        Point(
            study=study.name,
            collective=collective,
            technique=technique,
            dtype=DTYPE,
            op=OP if pidcomm.COLLECTIVES[collective].takes_op else None,
            where=prediction.machine,
            hosts=hosts,
            channels=min(
                int(machine["ranks.channels"]),
                -(-pes // int(RANK_PES * machine["ranks.per_channel"])),
            ),
            pes=hosts * pes,
            group_pes=hosts * group_pes,
            shape=format_shape(shape),
            mask=study.mask,
            bytes_per_pe=size,
            seconds=prediction.seconds,
            algbw_gb_s=hosts * pes * size / prediction.seconds / 1e9,
            limit_pct=None,
            speed_up=predictions[BASE].seconds / prediction.seconds,
            phases=prediction.phases,
            wrong=None,
            source=prediction.source,
            coherence=prediction.coherence,
            threads=prediction.threads,
            isa=prediction.isa,
        )
        for technique, prediction in predictions.items()
    ]


def measured_sections(
    study: Study,
    collectives: Sequence[CollectiveName],
    values: Sequence[int],
    size_bytes: int | None,
) -> tuple[list[Section], list[Error]]:
    """Return the points of a study that this machine can measure, and the errors of other points.

    Raises ArgumentError for a study that emulated DIMMs cannot measure.
    """
    if not study.is_measured:
        raise ArgumentError(
            f"study {study.name} cannot be measured: the emulated DIMMs share the memory of one"
            " machine"
        )
    sections: list[Section] = []
    refusals: dict[str, Error] = {}
    for value in values:
        shape = study.shape(available_pes(), value)
        size = study.size_at(available_pes(), value, size_bytes)
        problems: list[Problem] = []
        for collective in collectives:
            with _left_out(refusals):
                # Checks the arguments.
                predict(collective, shape, study.mask, bytes=size, dtype=DTYPE, op=OP)
                problems.append(Problem(collective, shape, study.mask, size, DTYPE, OP))
        if problems:
            sections.append(Section(shape, size, DEFAULT_ISA, problems))
    sections, too_large = affordable(sections, COMPARED)
    return sections, [*refusals.values(), *too_large]


def available_pes() -> int:
    """Return the number of PEs of the emulated machine, or on DIMMs the number of PEs that can
    be allocated now.
    """
    most = platform.max_pes()
    if most is not None:
        return most
    with pidcomm.allocate() as pes:
        return pes.pes


def measure_points(
    study: Study,
    section: Section,
    options: Options,
    schedule: Schedule,
    scratch: Scratch,
    on_step: Callable[[], None] = lambda: None,
) -> Iterator[Point]:
    """Time and check the collectives of a section with `measure_rows`. Yield a point per row."""
    with pidcomm.allocate(pes=section.pes) as pe_set:
        condition = measure_sdk(
            pe_set.hypercube(*section.shape), section.size_bytes, options, scratch
        )
        for problem in section.problems:
            rows, _ = measure_rows(
                pe_set, problem, COMPARED, options, schedule, scratch, condition, on_step
            )
            yield from (
                _measured(study, row, section.pes, study.group_pes(section.shape)) for row in rows
            )


def _measured(study: Study, row: Row, pes: int, group_pes: int) -> Point:
    parts_us = {
        "outside": row.outside_us,
        "from_pes": row.from_us,
        "host": row.work_us,
        "to_pes": row.to_us,
    }
    parts_us["pass"] = max(0.0, row.t_p50_us - sum(parts_us.values()))
    return Point(
        study=study.name,
        collective=row.collective,
        technique=row.technique,
        dtype=row.dtype,
        op=row.op,
        where=EMULATED,
        hosts=1,
        channels=None,
        pes=pes,
        group_pes=group_pes,
        shape=row.shape,
        mask=row.mask,
        bytes_per_pe=row.bytes_per_pe,
        seconds=1e-6 * row.t_p50_us,
        algbw_gb_s=row.algbw_gb_s,
        limit_pct=row.limit_pct,
        speed_up=row.speed_up,
        phases={name: 1e-6 * part_us for name, part_us in parts_us.items()},
        wrong=row.wrong,
        source=row.source,
        coherence=row.coherence,
        threads=row.threads,
        isa=row.isa,
    )
