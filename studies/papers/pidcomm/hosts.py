"""Figure 23b of the PID-Comm paper: collectives over 1, 2 and 4 hosts with 256 PEs each, measured
here and modelled.

The paper connects four processes, each with a channel of 256 PEs and 2 MiB per PE, by MPI at 10
Gbit/s.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pidcomm._rows import CollectiveName
from pidcomm.arguments import options_of
from pidcomm.bench.over_hosts import HostsCase, alone, measure_over_hosts
from pidcomm.model import load_machine, predict_hosts

import pidcomm

NAME = "fig23b"
TITLE = "several hosts by MPI at 10 Gbit/s"
COLLECTIVES: tuple[CollectiveName, ...] = ("alltoall", "allreduce")
HOSTS = (1, 2, 4)
PES, BYTES = 256, 2 << 20
LINK_GB_S = 1.25
BASE = "conventional"
MEASURED = (
    "tile",
    BASE,
)  # the wall time of techniques that run PE programs would contain the emulation of the PEs
MODELLED = ("tile", "pr+im+cm", BASE)
MACHINE = "isca24"


@dataclass(frozen=True)
class Cell:
    """The time of a collective with a technique over hosts. bytes_sent: by the host that sends
    the most.
    """

    collective: str
    technique: str
    hosts: int
    seconds: float
    bytes_sent: int
    bytes_per_pe: int
    pes_per_host: int
    source: str
    on: str
    wrong: int | None = None

    @property
    def throughput_gb_s(self) -> float:
        """Return the bytes of all PEs divided by the time."""
        return self.hosts * self.pes_per_host * self.bytes_per_pe / self.seconds / 1e9


def modelled(size_bytes: int = BYTES) -> list[Cell]:
    """Return the cells for one channel of the paper's machine per host, priced from the plans."""
    machine = load_machine(MACHINE).with_values(
        {"ranks.channels": 1, "network.gb_s": LINK_GB_S}, "figure 23b"
    )
    cells = []
    for collective in COLLECTIVES:
        for hosts in HOSTS:
            for technique in MODELLED:
                options = options_of(technique=technique, scratch=2 * size_bytes)
                it = predict_hosts(
                    collective, hosts, (PES,), "1", bytes=size_bytes, machine=machine, **options
                )
                sent = it.exchange.bytes
                on = f"{MACHINE}, a channel per host"
                cells.append(
                    Cell(
                        collective,
                        technique,
                        hosts,
                        it.seconds,
                        sent,
                        size_bytes,
                        PES,
                        it.source,
                        on,
                    )
                )
    return cells


def measured(
    iters: int, size_bytes: int = BYTES, step: Callable[[str], None] = lambda _: None
) -> Iterator[Cell]:
    """Yield cells of this machine: the wall time of all processes, and one host alone with an
    emulated link (`mixed`).

    The processes share the CPUs of this machine, so the wall time of N hosts contains the local
    passes of N hosts. A host alone has all CPUs, as hosts of a cluster have.
    """
    for hosts in HOSTS:
        cases = [
            HostsCase(collective, (PES, hosts), "11", size_bytes, technique, "auto", LINK_GB_S)
            for collective in COLLECTIVES
            for technique in MEASURED
        ]
        step(f"{hosts} processes")
        rows = measure_over_hosts(cases, iters)
        step(f"one of {hosts} hosts alone")
        rows += [alone(case, iters) for case in cases]
        for row in rows:
            on = (
                "processes of this machine, emulated link"
                if row.source == "measured"
                else "one host here, emulated link"
            )
            yield Cell(
                row.collective,
                row.technique,
                hosts,
                1e-6 * row.t_p50_us,
                row.bytes_sent,
                size_bytes,
                PES,
                row.source,
                on,
                row.wrong,
            )


@dataclass(frozen=True)
class Statement:
    """A statement of the paper, and what these cells say of it."""

    paper: str
    here: str


def statements(cells: Sequence[Cell]) -> list[Statement]:
    """Return the statements of section IX-A, with the values of cells of one source."""
    by = {(cell.collective, cell.technique, cell.hosts): cell for cell in cells}
    many = [hosts for hosts in HOSTS if hosts > 1]
    all_bytes = PES * cells[0].bytes_per_pe
    reduced = [by["allreduce", "tile", hosts].bytes_sent / all_bytes for hosts in many]
    moved = [by["alltoall", "tile", hosts].bytes_sent / all_bytes for hosts in many]
    gains = {
        collective: [
            by[collective, BASE, h].seconds / by[collective, "tile", h].seconds for h in HOSTS
        ]
        for collective in COLLECTIVES
    }

    def listed(values: Sequence[float], form: str) -> str:
        return ", ".join(f"{value:{form}}" for value in values)

    at = " and ".join(map(str, many))
    return [
        Statement(
            f"allreduce sends data that are reduced to 1/{PES}",
            f"a host sends {listed([PES * share for share in reduced], '.3g')} x 1/{PES} of its"
            f" data at {at} hosts: 2 (N-1)/N, because each host sends the parts that others reduce,"
            " and then the part that it has reduced",
        ),
        Statement(
            "the cost of alltoall is proportional to (N-1)/N",
            f"a host sends {listed(moved, '.3g')} of its data at {at} hosts",
        ),
        Statement(
            "PID-Comm keeps a huge advantage over the baseline",
            "; ".join(
                f"tile over {BASE}, {name}: {listed(gain, '.2f')}" for name, gain in gains.items()
            )
            + f" at {', '.join(map(str, HOSTS))} hosts",
        ),
    ]


def json_rows(cells: Sequence[Cell]) -> Iterator[dict[str, Any]]:
    """Yield the cells for JSON."""
    for cell in cells:
        yield {
            "figure": NAME,
            **{name: value for name, value in vars(cell).items() if name != "seconds"},
            "total_us": 1e6 * cell.seconds,
            "throughput_gb_s": cell.throughput_gb_s,
            "version": pidcomm.__version__,
        }
