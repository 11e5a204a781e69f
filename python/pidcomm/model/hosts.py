"""Predictions of collectives over several hosts: local collectives, and messages between hosts. All times are modelled.

Every host has separate PEs, and all hosts have the same shape. The hosts form one more axis, the last axis. The
collective runs along the axis of the hosts and along the axes of the mask: a group consists of one local group of every
host. As in section IX-A of the PID-Comm paper, each host runs local collectives, and the hosts exchange the remaining
data in rings. With H hosts, in a round of an exchange a host sends (H-1)/H of its data in H-1 messages and receives as
many bytes as it sends.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from pidcomm.arguments import as_integer, as_mask, as_shape, row_of
from pidcomm.errors import ArgumentError, Error
from pidcomm.model.machines import PHASES, Machine, load_machine
from pidcomm.model.prediction import DEFAULT_MACHINE, SOURCE, Prediction, predict
from pidcomm.notebook import Shown
from pidcomm.sizes import format_duration
from pidcomm.tables import COLLECTIVES, WORD_BYTES

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from pidcomm._rows import CollectiveName, OpName
    from pidcomm.arguments import Options

NETWORK_PHASES = {"network": "bytes between hosts", "latency": "messages between hosts, of any size"}
"""Phases of a prediction for several hosts, besides those of ``PHASES``, and their meanings."""


class Sizes(NamedTuple):
    """Sizes of a collective over hosts: hosts, groups per host, PEs per local group, bytes per PE."""

    hosts: int
    groups: int
    group_pes: int
    bytes: int

    @property
    def block(self) -> int:
        """Bytes of a block if a row has one block for each member on all hosts."""
        return self.bytes // (self.hosts * self.group_pes)

    @property
    def part(self) -> int:
        """Bytes of all blocks of one host."""
        return self.bytes // self.hosts

    @property
    def rest(self) -> int:
        """Bytes of the blocks of the other hosts."""
        return self.bytes - self.part

    @property
    def rows(self) -> int:
        """Bytes of host memory if every group has a row of `bytes`."""
        return self.groups * self.bytes

    @property
    def all_rows(self) -> int:
        """Bytes of host memory if every PE of a host has a row of `bytes`."""
        return self.group_pes * self.rows


Size = Callable[[Sizes], int]


class Local(NamedTuple):
    """A collective that every host runs on its own PEs, `calls` times with `bytes` bytes per PE."""

    collective: CollectiveName
    bytes: Size
    calls: Size = lambda _: 1


class Algorithm(NamedTuple):
    """The steps of the hosts: first local collectives, then rounds of an exchange, then local collectives.

    exchanged: bytes of a round. With H hosts, a host sends (H-1)/H of these bytes.
    """

    before: Sequence[Local]
    rounds: int
    exchanged: Size
    after: Sequence[Local]


def _whole(sizes: Sizes) -> int:
    return sizes.bytes


_REDUCE, _BROADCAST = Local("reduce", _whole), Local("broadcast", _whole)
ALGORITHMS = {
    # One local alltoall per host: afterwards a PE holds the blocks for its counterparts on the other hosts, in order.
    "alltoall": Algorithm(
        [Local("alltoall", lambda s: s.part, lambda s: s.hosts), Local("gather", lambda s: s.rest)],
        1,
        lambda s: s.all_rows,
        [Local("scatter", lambda s: s.rest)],
    ),
    "reduce_scatter": Algorithm([_REDUCE], 1, lambda s: s.rows, [Local("scatter", lambda s: s.block)]),
    "allreduce": Algorithm([_REDUCE], 2, lambda s: s.rows, [_BROADCAST]),
    "allgather": Algorithm([Local("gather", lambda s: s.block)], 1, lambda s: s.rows, [_BROADCAST]),
    # One host has the rows of all groups; its link carries all bytes that the other hosts send or receive.
    "scatter": Algorithm([], 1, lambda s: s.hosts * s.all_rows, [Local("scatter", _whole)]),
    "gather": Algorithm([Local("gather", _whole)], 1, lambda s: s.hosts * s.all_rows, []),
    "reduce": Algorithm([_REDUCE], 2, lambda s: s.rows, []),
    "broadcast": Algorithm([], 2, lambda s: s.rows, [_BROADCAST]),
}
"""The algorithm of each collective over two or more hosts."""


class Part(NamedTuple):
    """A step of every host: a local collective that runs `calls` times with `bytes` bytes per PE, or the exchange.

    For the exchange, bytes cross the link of the busiest host in one direction, calls are the messages of this host,
    and technique is None. All values are modelled.
    """

    name: str
    calls: int
    bytes: int
    seconds: float
    technique: str | None = None


EXCHANGE = "exchange"  # the name of the step that sends data between hosts


@dataclass(frozen=True)
class HostsPrediction(Shown):
    """The modelled time of a collective over several hosts.

    parts: the steps in order. phases: the seconds of each phase in ``PHASES`` and ``NETWORK_PHASES``. The sum over
    parts and the sum over phases both equal seconds.
    """

    machine: str
    technique: str
    isa: str
    threads: int
    coherence: str
    hosts: int
    seconds: float
    parts: tuple[Part, ...]
    phases: dict[str, float]
    source: str = SOURCE

    @property
    def exchange(self) -> Part:
        """Return the exchange between hosts; with one host it has 0 bytes."""
        return next((part for part in self.parts if part.name == EXCHANGE), Part(EXCHANGE, 0, 0, 0.0))

    @property
    def network_share(self) -> float:
        """Return the share of the exchange in the time of the collective, 0 to 1."""
        return self.exchange.seconds / self.seconds

    def __repr__(self) -> str:
        """Report the machine, the hosts, the technique, the time and the share of the network."""
        share_pct = 100 * self.network_share if self.seconds else 0
        return (
            f"<HostsPrediction {self.machine}, {self.hosts} hosts, {self.technique}: {format_duration(self.seconds)} "
            f"{self.source}, {share_pct:.0f}% network>"
        )


def predict_hosts(
    collective: CollectiveName,
    hosts: int,
    shape: Sequence[int],
    mask: str,
    *,
    bytes: int,
    dtype: DTypeLike = np.int32,
    op: OpName | None = "sum",
    machine: str | Machine = DEFAULT_MACHINE,
    **options: Unpack[Options],
) -> HostsPrediction:
    """Return the predicted time of a collective over hosts, each a machine with PEs arranged as shape.

    collective, mask, bytes (per PE), dtype, op, machine and options are as for `predict`; a group has members on all
    hosts. With hosts = 1 the result equals the result of `predict`. The steps (local collectives, the exchange, local
    collectives) run one after another without overlap. The model assumes that all hosts send and receive at the full
    rate of the network at the same time, and that the network hides the work in host memory. An exchange of 0 bytes
    takes no time.

    Raises ArgumentError as `predict` does. Raises ArgumentError also if a block is not a multiple of 8 bytes, and if
    the technique does not support a local collective.
    """
    on = load_machine(machine)
    row = row_of(COLLECTIVES, "collective", collective)
    if collective not in ALGORITHMS:
        raise ArgumentError(f"{collective} has no algorithm over several hosts; use {', '.join(ALGORITHMS)}")
    hosts = as_integer("hosts", hosts, 1)
    size = as_integer("bytes", bytes)

    def local(name: CollectiveName, local_bytes: int) -> Prediction:
        return predict(name, shape, mask, bytes=local_bytes, dtype=dtype, op=op, machine=on, **options)

    alone = local(collective, size)  # raises errors for arguments that are invalid on one host
    lengths = as_shape(shape)
    selected = [
        length for length, bit in zip(lengths, as_mask(mask), strict=False) if bit == "1"
    ]  # the mask has been checked
    group_pes = int(np.prod(selected, dtype=np.uint64))
    sizes = Sizes(hosts, int(np.prod(lengths, dtype=np.uint64)) // group_pes, group_pes, size)
    members = row.blocks_per_pe(hosts * group_pes)
    if size % (members * WORD_BYTES):
        raise ArgumentError(
            f"{hosts} hosts with groups of {group_pes} PEs make {hosts * group_pes} members; "
            f"{collective} needs bytes ({size}) divisible by {members}*{WORD_BYTES}",
            "ERR_SIZE",
        )
    parts: list[Part] = []
    phases = dict.fromkeys([*PHASES, *NETWORK_PHASES], 0.0)

    def carry_out(steps: Sequence[Local]) -> None:
        for step in steps:
            calls, step_bytes = step.calls(sizes), step.bytes(sizes)
            try:
                one = local(step.collective, step_bytes)
            except Error as error:
                raise ArgumentError(
                    f"{collective} over {hosts} hosts has a local {step.collective} on each: {error}", error.status
                ) from None
            parts.append(Part(step.collective, calls, step_bytes, calls * one.seconds, one.technique))
            for name, seconds in one.phases.items():
                phases[name] += calls * seconds

    algorithm = ALGORITHMS[collective] if hosts > 1 else Algorithm([Local(collective, _whole)], 0, _whole, [])
    carry_out(algorithm.before)
    messages = algorithm.rounds * (hosts - 1)
    if messages and size:
        sent = messages * algorithm.exchanged(sizes) // hosts
        phases["network"] = sent / (1e9 * on["network.gb_s"])
        phases["latency"] = 1e-6 * messages * on["network.latency_us"]
        parts.append(Part(EXCHANGE, messages, sent, phases["network"] + phases["latency"]))
    carry_out(algorithm.after)
    seconds = sum(part.seconds for part in parts)
    return HostsPrediction(
        machine=alone.machine,
        technique=alone.technique,
        isa=alone.isa,
        threads=alone.threads,
        coherence=alone.coherence,
        hosts=hosts,
        seconds=seconds,
        parts=tuple(parts),
        phases=phases,
    )
