"""The clocks of a transform: each kernel, transfers to and from the PEs, and the exchange
between PEs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from math import prod

from pidcomm import Options, allocate
from pidcomm.arguments import options_of
from pidcomm.bench import platform
from pidcomm.bench.measure import make_transfers_alike
from pidcomm.model import Machine
from pidcomm_studies.apps.application import count_wrong, with_defaults
from pidcomm_studies.apps.ntt import Ntt
from pidcomm_studies.apps.ntt.transforms import predicted_seconds
from pidcomm_studies.apps.stage import HOST, Cost, Stage

BETWEEN, TOTAL, COMPLETE = "between PEs", "total", "total with host"
MACHINE = "upmem-2560"


@dataclass(frozen=True)
class Clocks:
    """Seconds of a transform.

    kernels: of each step, modelled. to_pes, between, from_pes: of the collectives. host: layout of
    rows in host memory and writes of variables, measured, and launches and loads of programs,
    assumed; None on another machine. wrong:
    number of wrong elements. pipeline_pct, instructions: instructions of the last kernel, in
    percent of its cycles and their number, for a single PE.
    """

    kernels: tuple[float, ...]
    to_pes: float
    between: float
    from_pes: float
    host: float | None
    wrong: int
    pipeline_pct: float
    instructions: int

    @property
    def kernel(self) -> float:
        """Sum of all kernels."""
        return sum(self.kernels)

    @property
    def total(self) -> float:
        """Sum of all clocks, as in the paper: without `host`."""
        return self.kernel + self.to_pes + self.between + self.from_pes

    @property
    def share_pct(self) -> float:
        """Share of the exchange between PEs in the total."""
        return 100 * self.between / self.total

    def named(self) -> dict[str, float]:
        """Return the clocks by name, the total, and the total with `host`."""
        kernels = {f"kernel {step}": seconds for step, seconds in enumerate(self.kernels, 1)}
        others = {
            "CPU to PEs": self.to_pes,
            BETWEEN: self.between,
            "PEs to CPU": self.from_pes,
        }
        complete = {} if self.host is None else {COMPLETE: self.total + self.host}
        return {**kernels, **others, TOTAL: self.total, **complete}


def clocks(problem: Ntt, shape: tuple[int, ...], technique: str, iters: int) -> Clocks:
    """Run a forward transform and check it.

    Collectives are measured; the time in which PEs reorder is modelled.
    """
    options: Options = with_defaults(options_of(technique=technique))
    make_transfers_alike(options)
    with (
        allocate(pes=prod(shape)) as pe_set,
        Stage(pe_set, shape, problem.place(shape), options, iters) as stage,
    ):
        stage.poison()
        values, kernels = problem.run_steps(stage)
        use = platform.pipeline_pct(pe_set)
        instructions = int(platform.launch_counters(pe_set)["instructions"])
        costs = stage.costs
    to_pes, between, back = (
        costs.get(name, Cost()).total for name in ("scatter", "alltoall", "gather")
    )
    host = costs[HOST].measured + sum(cost.assumed for cost in costs.values())
    wrong = count_wrong(values, problem.reference())
    return Clocks(tuple(kernels), to_pes, between, back, host, wrong, use, instructions)


def modelled(
    problem: Ntt, shape: tuple[int, ...], technique: str, machine: Machine, ran: Clocks
) -> Clocks:
    """Return the clocks of a machine: kernels as they ran here, and collectives as the model
    predicts them.
    """
    cut = problem.cut(shape)

    mask, scratch = "1" * problem.axes, 2 * cut.bytes
    price = partial(predicted_seconds, shape, machine, technique=technique, scratch=scratch)
    between = sum(
        price("alltoall", step_mask, cut.exchanged_bytes(axis))
        for axis, step_mask in enumerate(cut.masks())
        if step_mask is not None
    )
    to_pes = price("scatter", mask, cut.host_bytes(is_input=True))
    back = price("gather", mask, cut.host_bytes(is_input=False))
    return replace(ran, to_pes=to_pes, between=between, from_pes=back, host=None)
