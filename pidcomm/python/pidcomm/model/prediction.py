"""Predictions of the time of a collective on a machine. All times are modelled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import DTypeLike

from pidcomm import _core
from pidcomm.arguments import as_integer, as_shape, option_codes
from pidcomm.model.machines import PHASES, Machine, load_machine
from pidcomm.notebook import Shown
from pidcomm.plans import make_request
from pidcomm.sizes import format_duration, format_interval

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from pidcomm._rows import CollectiveName, OpName
    from pidcomm.arguments import Options

__all__ = [
    "DEFAULT_MACHINE",
    "EMULATED_MACHINE",
    "PAPER_MACHINE",
    "PE_PHASES",
    "SOURCE",
    "PreparedCase",
]

PAPER_MACHINE = "isca24"
DEFAULT_MACHINE = "upmem-2560"
EMULATED_MACHINE = "emulated-host"
SOURCE = "modelled"


@dataclass(frozen=True)
class Prediction(Shown):
    """The predicted time of a collective on a machine, and the options with which it would run.

    All times are modelled. interval: the shortest and the longest time, in seconds, of 95% of the
    calls on a real machine, from the errors in the machine's description (its constants
    ``error.*``); None for a technique that no machine has. phases: the seconds of each phase in
    ``pidcomm.model.PHASES``; their sum is seconds.
    """

    machine: str
    technique: str
    isa: str
    threads: int
    coherence: str
    seconds: float
    interval: tuple[float, float] | None
    phases: dict[str, float]
    source: str = SOURCE

    @property
    def pe_seconds(self) -> float:
        """Return the seconds in which PEs reorder blocks, start, and load programs."""
        return sum(self.phases[name] for name in PE_PHASES)

    @property
    def host_seconds(self) -> float:
        """Return the seconds of the host, with the same parts as ``Trace.host_seconds``."""
        return self.seconds - self.pe_seconds

    def __repr__(self) -> str:
        """Report the machine, the technique, the time and the longest phase."""
        longest = max(self.phases, key=lambda name: self.phases[name])
        share_pct = 100 * self.phases[longest] / self.seconds if self.seconds else 0
        interval = f" ({format_interval(self.interval)})" if self.interval else ""
        return (
            f"<Prediction {self.machine}, {self.technique}: {format_duration(self.seconds)}"
            f"{interval} {self.source}, {share_pct:.0f}% {longest}>"
        )


PE_PHASES = ("pe", "launch", "load")


def predict(
    collective: CollectiveName,
    shape: Sequence[int],
    mask: str,
    *,
    bytes: int,
    src: int = 0,
    dst: int | None = None,
    dtype: DTypeLike = np.int32,
    op: OpName | None = "sum",
    machine: str | Machine = DEFAULT_MACHINE,
    **options: Unpack[Options],
) -> Prediction:
    """Return the predicted time of a collective on the PEs of a machine, arranged as shape.

    collective: a name of ``pidcomm.COLLECTIVES``. mask, bytes (per PE), src, dtype, op and options
    are as in the methods of `Hypercube`; dst defaults to the end of the source. machine: a name of
    `machine_names`, the path of a TOML file, or a Machine; the machine sets the defaults of
    options. If the machine has fewer PEs than the shape, the model puts more ranks on its channels.

    Raises ArgumentError as the collective would, and for unknown machines.
    """
    case = PreparedCase(
        collective, shape, mask, bytes=bytes, src=src, dst=dst, dtype=dtype, op=op, **options
    )
    return case.predict(load_machine(machine))


class PreparedCase:
    """A collective that is checked once, and whose time many machines then predict.

    Arguments: as of `predict`, without the machine. Raises ArgumentError as the collective would.
    """

    def __init__(
        self,
        collective: CollectiveName,
        shape: Sequence[int],
        mask: str,
        *,
        bytes: int,
        src: int = 0,
        dst: int | None = None,
        dtype: DTypeLike = np.int32,
        op: OpName | None = "sum",
        **options: Unpack[Options],
    ) -> None:
        """Check the arguments."""
        if dst is None:
            dst = as_integer("src", src) + as_integer("bytes", bytes)
        request = make_request(collective, mask, bytes, src, dst, dtype, op)
        self._arguments = as_shape(shape), request, option_codes(options)

    def predict(self, machine: Machine) -> Prediction:
        """Return the prediction for a machine."""
        technique, isa, threads, coherence, (seconds, *interval), phases = _core.predict(
            *self._arguments, machine.numbers
        )
        by_name = dict(zip(PHASES, phases, strict=True))
        low, high = interval
        return Prediction(
            machine.name, technique, isa, threads, coherence, seconds, (low, high), by_name
        )

    def phase_seconds(self, numbers: Sequence[float]) -> Sequence[float]:
        """Return the modelled seconds of each phase in PHASES. numbers: as ``Machine.numbers``."""
        phases: Sequence[float] = _core.predict(*self._arguments, numbers)[5]
        return phases


def use_machine(machine: str | Machine | None) -> None:
    """Set the machine whose predictions ``technique="auto"`` uses in this process. None restores
    the default.

    machine: the same as in `predict`. Raises ArgumentError for unknown machines.
    """
    if machine is None:
        _core.use_machine(None)
    else:
        _core.use_machine(load_machine(machine).numbers)
