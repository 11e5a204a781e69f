"""Predictions of collectives over several hosts, priced from the plans that run. All times are
modelled.

Every host has separate PEs, and all hosts have the same shape. The hosts form one more axis, the
last axis. The collective runs along the axis of the hosts and along the axes of the mask: a group
consists of one local group of every host. `pidcomm.hosts.plan` returns the plan.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from pidcomm import _core
from pidcomm.arguments import as_integer, as_mask, as_shape, option_codes
from pidcomm.axes import CHIPS, ORDERS
from pidcomm.model.machines import PHASES, Machine, load_machine
from pidcomm.model.prediction import DEFAULT_MACHINE, SOURCE, predict
from pidcomm.notebook import Shown
from pidcomm.plans import make_request
from pidcomm.sizes import format_duration
from pidcomm.tables import OVERLAPS, TRANSPORTS

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from pidcomm._rows import CollectiveName, OpName
    from pidcomm.arguments import Options

NETWORK_PHASES = {
    "network": "bytes between hosts",
    "latency": "messages between hosts, of any size",
}
"""Phases of a prediction for several hosts, besides those of ``PHASES``, and their meanings."""


class Part(NamedTuple):
    """A step of every host: a local collective that runs `calls` times with `bytes` bytes per PE,
    or the exchange.

    For the exchange, bytes cross the link of the busiest host in one direction, calls are the
    messages of this host, and technique is None. All values are modelled.
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

    parts: the steps in order. phases: the seconds of each phase in ``PHASES`` and
    ``NETWORK_PHASES``. The sum over parts and the sum over phases both equal seconds.
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
        return next(
            (part for part in self.parts if part.name == EXCHANGE), Part(EXCHANGE, 0, 0, 0.0)
        )

    @property
    def network_share(self) -> float:
        """Return the share of the exchange in the time of the collective, 0 to 1."""
        return self.exchange.seconds / self.seconds if self.seconds else 0.0

    def __repr__(self) -> str:
        """Report the machine, the hosts, the technique, the time and the share of the network."""
        share_pct = 100 * self.network_share
        return (
            f"<HostsPrediction {self.machine}, {self.hosts} hosts, {self.technique}:"
            f" {format_duration(self.seconds)} {self.source}, {share_pct:.0f}% network>"
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
    """Return the predicted time of a collective over hosts, each a machine with PEs arranged as
    shape.

    collective, mask, bytes (per PE), dtype, op, machine and options are as for `predict`; a group
    has members on all hosts. With hosts = 1 the result equals the result of `predict`. The steps
    (local collectives, the exchange, local collectives) run one after another without overlap;
    `pidcomm.hosts.plan` also predicts the time with overlap.
    The model assumes that all hosts send and receive at the full rate of the network at the same
    time, and that the network hides the reduction of received rows. A call with 0 bytes takes no
    time over two or more hosts.

    Raises ArgumentError as `predict` does. Raises ArgumentError also if a block is not a multiple
    of 8 bytes, and if the technique does not support a local collective.
    """
    on = load_machine(machine)
    hosts, size = as_integer("hosts", hosts, 1), as_integer("bytes", bytes)
    alone = predict(collective, shape, mask, bytes=size, dtype=dtype, op=op, machine=on, **options)
    request = make_request(collective, as_mask(mask) + "1", size, 0, size, dtype, op)
    settings = (0.0, 0.0, 0.0, OVERLAPS["off"].code, TRANSPORTS["mpi"].code)
    # Host 0 is the root, whose link has the most bytes.
    plan = json.loads(
        _core.hosts_plan_json(
            [*as_shape(shape), hosts],
            ORDERS[CHIPS],
            0,
            request,
            0,
            option_codes(options),
            settings,
            on.numbers,
        )
    )
    parts: list[Part] = []
    phases = dict.fromkeys([*PHASES, *NETWORK_PHASES], 0.0)

    def carry_out(steps: list[dict[str, Any]]) -> None:
        for step in steps:
            name, calls, step_bytes = step["collective"], step["calls"], step["bytes_per_pe"]
            places = {"src": step["src"], "dst": step["dst"]}
            one = predict(
                name,
                shape,
                mask,
                bytes=step_bytes,
                dtype=dtype,
                op=op,
                machine=on,
                **places,
                **options,
            )
            parts.append(Part(name, calls, step_bytes, calls * one.seconds, one.technique))
            for phase, seconds in one.phases.items():
                phases[phase] += calls * seconds

    for piece in plan["pieces"]:  # one, because nothing overlaps
        carry_out(piece["before"])
        sides = [
            max((round[f"bytes_{way}"], round[f"messages_{way}"]) for way in ("sent", "received"))
            for round in piece["rounds"]
        ]
        moved, messages = (sum(side[i] for side in sides) for i in (0, 1))
        phases["latency"] = 1e-6 * messages * on["network.latency_us"]
        phases["network"] = sum(round["seconds"] for round in piece["rounds"]) - phases["latency"]
        parts.append(Part(EXCHANGE, messages, moved, phases["network"] + phases["latency"]))
        carry_out(plan["meanwhile"] + piece["after"])
    carry_out(plan["last"])
    return HostsPrediction(
        machine=alone.machine,
        technique=alone.technique,
        isa=alone.isa,
        threads=alone.threads,
        coherence=alone.coherence,
        hosts=hosts,
        seconds=sum(part.seconds for part in parts),
        parts=tuple(parts),
        phases=phases,
    )
