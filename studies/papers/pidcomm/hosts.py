"""Figure 23b of the PID-Comm paper: collectives over 1, 2 and 4 hosts with 256 PEs each, measured
here and modelled.

The paper connects four processes, each with a channel of 256 PEs and 2 MiB per PE, by MPI at 10
Gbit/s.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pidcomm import ArgumentError
from pidcomm.arguments import options_of
from pidcomm.bench.over_hosts import HostsCase, alone, measure_over_hosts
from pidcomm.model import load_machine, predict_hosts
from pidcomm.sizes import format_size
from pidcomm.tables import CollectiveName
from pidcomm_studies.papers.figure import (
    Figure,
    Panel,
    Point,
    Request,
    Statement,
    series_of,
)
from pidcomm_studies.papers.pidcomm.published import PAPER

NAME = "pidcomm/fig23b"
COLLECTIVES: tuple[CollectiveName, ...] = ("alltoall", "allreduce")
HOSTS = (1, 2, 4)
PES, BYTES = 256, 2 << 20
LINK_GB_S = 1.25
BASE = "conventional"
# The wall time of techniques that run PE programs would contain the emulation of the PEs.
MEASURED = ("tile", BASE)
MODELLED = ("tile", "pr+im+cm", BASE)
MACHINE = "isca24"
SENT = ", sent"
MIB = 1 << 20


def _points(
    collective: str,
    technique: str,
    hosts: int,
    seconds: float,
    bytes_sent: int,
    source: str,
    on: str,
    wrong: int | None = None,
) -> Iterator[Point]:
    """Yield the time and the throughput of a call over hosts, and the bytes that the host sends
    that sends the most. The throughput is the bytes of all PEs divided by the time.
    """
    facts = {
        "collective": collective,
        "technique": technique,
        "hosts": hosts,
        "pes_per_host": PES,
        "bytes_per_pe": BYTES,
    }
    for panel, value in (
        (collective, 1e3 * seconds),
        (f"{collective}, throughput", hosts * PES * BYTES / seconds / 1e9),
        (collective + SENT, bytes_sent / MIB),
    ):
        yield Point(panel, technique, hosts, value, source, on, wrong, facts)


def modelled(_: Request) -> Iterator[Point]:
    """Yield the points for one channel of the paper's machine per host, priced from the plans."""
    machine = load_machine(MACHINE).with_values(
        {"ranks.channels": 1, "network.gb_s": LINK_GB_S}, "figure 23b"
    )
    for collective in COLLECTIVES:
        for hosts in HOSTS:
            for technique in MODELLED:
                options = options_of(technique=technique, scratch=2 * BYTES)
                prediction = predict_hosts(
                    collective, hosts, (PES,), "1", bytes=BYTES, machine=machine, **options
                )
                on = f"{MACHINE}, a channel per host"
                yield from _points(
                    collective,
                    technique,
                    hosts,
                    prediction.seconds,
                    prediction.exchange.bytes,
                    prediction.source,
                    on,
                )


def measured(request: Request) -> Iterator[Point]:
    """Yield points of this machine: the wall time of all processes, and one host alone with an
    emulated link (`mixed`). Without MPI, report that the measurements are skipped.

    The processes share the CPUs of this machine, so the wall time of N hosts contains the local
    passes of N hosts. A host alone has all CPUs, as hosts of a cluster have.
    """
    for hosts in HOSTS:
        cases = [
            HostsCase(collective, (PES, hosts), "11", BYTES, technique, "auto", LINK_GB_S)
            for collective in COLLECTIVES
            for technique in MEASURED
        ]
        request.progress.phase(f"{hosts} processes")
        try:
            rows = measure_over_hosts(cases, request.iters)
        except ArgumentError as error:  # there is no MPI
            request.skip([ArgumentError(f"measurements of {NAME}: {error}")])
            return
        request.progress.phase(f"one of {hosts} hosts alone")
        rows += [alone(case, request.iters) for case in cases]
        for row in rows:
            on = (
                "processes of this machine, emulated link"
                if row.source == "measured"
                else "one host here, emulated link"
            )
            yield from _points(
                row.collective,
                row.technique,
                hosts,
                1e-6 * row.t_p50_us,
                row.bytes_sent,
                row.source,
                on,
                row.wrong,
            )


def statements(_: Request, points: Sequence[Point]) -> Iterator[Statement]:
    """Yield the statements of section IX-A, with the values of each source."""
    for source in dict.fromkeys(point.source for point in points):
        yield from _statements(source, [point for point in points if point.source == source])


def _statements(source: str, points: Sequence[Point]) -> Iterator[Statement]:
    many = [hosts for hosts in HOSTS if hosts > 1]

    def sent(collective: str) -> list[float]:
        """Return the bytes that a host sends, as shares of its data."""
        by_hosts = series_of(points, collective + SENT, "tile")
        return [by_hosts[hosts] * MIB / (PES * BYTES) for hosts in many]

    def gains(collective: str) -> list[float]:
        slow, fast = (series_of(points, collective, name) for name in (BASE, "tile"))
        return [slow[hosts] / fast[hosts] for hosts in HOSTS]

    def listed(values: Sequence[float], form: str) -> str:
        return ", ".join(f"{value:{form}}" for value in values)

    at = " and ".join(map(str, many))
    yield Statement(
        f"allreduce sends data that are reduced to 1/{PES}",
        f"{source}: a host sends "
        f"{listed([PES * share for share in sent('allreduce')], '.3g')} x 1/{PES}"
        f" of its data at {at} hosts: 2 (N-1)/N, because each host sends the parts that others"
        " reduce, and then the part that it has reduced",
    )
    yield Statement(
        "the cost of alltoall is proportional to (N-1)/N",
        f"{source}: a host sends {listed(sent('alltoall'), '.3g')} of its data at {at} hosts",
    )
    yield Statement(
        "PID-Comm keeps a huge advantage over the baseline",
        f"{source}: "
        + "; ".join(
            f"tile over {BASE}, {collective}: {listed(gains(collective), '.2f')}"
            for collective in COLLECTIVES
        )
        + f" at {', '.join(map(str, HOSTS))} hosts",
    )


FIGURE_23B = Figure(
    NAME,
    PAPER,
    f"several hosts by MPI at 10 Gbit/s: {PES} PEs per host, {format_size(BYTES)} per PE",
    [
        Panel(f"{name}{panel}", what, "hosts")
        for name in COLLECTIVES
        for panel, what in (("", "ms"), (", throughput", "GB/s"), (SENT, "MiB sent per host"))
    ],
    modelled,
    statements,
    measured,
)
