"""Figure 16 of Scalability limitations of processing-in-memory using real system evaluations
(SIGMETRICS 2024).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from math import prod

from pidcomm import allocate
from pidcomm.arguments import options_of
from pidcomm.bench.measure import make_transfers_alike
from pidcomm.model import load_machine, predict
from pidcomm_studies.apps.application import count_wrong, with_defaults
from pidcomm_studies.apps.ckks import Ckks, Clock, Multiplication
from pidcomm_studies.apps.ckks.cpu import multiply
from pidcomm_studies.apps.stage import Stage
from pidcomm_studies.papers.figure import (
    HERE,
    MEASURED,
    MIXED,
    MODELLED,
    Figure,
    Panel,
    Point,
    Request,
    Statement,
    series_of,
)
from pidcomm_studies.papers.scalability.ntt import BASE, MACHINE, OWN, PAPER, TECHNIQUES

SIZE, LEVEL, DNUM = 2**16, 23, 3
SHAPE = (32, 32, 1, 1)
CPU_RUNS = 3
TOTAL = "all"


@lru_cache(maxsize=1)
def _problem() -> Ckks:
    return Ckks.make(size=SIZE, level=LEVEL, dnum=DNUM)


_ran: dict[tuple[int, ...], tuple[dict[str, Clock], int]] = {}


def _key() -> tuple[int, ...]:
    return (SIZE, LEVEL, *SHAPE)


def _run(technique: str) -> tuple[dict[str, Clock], int]:
    """Return the clock of each primitive, and the number of wrong elements."""
    problem = _problem()
    work = Multiplication(problem, SHAPE)
    options = with_defaults(options_of(technique=technique))
    make_transfers_alike(options)
    with (
        allocate(pes=prod(SHAPE)) as pe_set,
        Stage(pe_set, SHAPE, work.placement(), options, CPU_RUNS) as stage,
    ):
        stage.poison()
        work.place(stage)
        wrong = count_wrong(problem.carried_out(stage, work), problem.reference())
    _ran[_key()] = work.clocks, wrong
    return work.clocks, wrong


def _points(
    technique: str, clocks: Mapping[str, Clock], wrong: int, source: str
) -> Iterator[Point]:
    on = HERE if source == MIXED else MACHINE
    for name, clock in clocks.items():
        yield Point(technique, "kernel", name, 1e3 * clock.kernel, source, on, wrong)
        yield Point(technique, "between PEs", name, 1e3 * clock.between, source, on, wrong)
    yield Point(
        technique,
        "kernel",
        TOTAL,
        1e3 * sum(step_clock.kernel for step_clock in clocks.values()),
        source,
        on,
        wrong,
    )
    yield Point(
        technique,
        "between PEs",
        TOTAL,
        1e3 * sum(step_clock.between for step_clock in clocks.values()),
        source,
        on,
        wrong,
    )


def _measured(request: Request) -> Iterator[Point]:
    request.progress.phase("CPU")
    problem = _problem()
    runs = [multiply(problem.scheme, problem.inputs)[1] for _ in range(CPU_RUNS)]
    for name in runs[0]:
        milliseconds = 1e3 * min(run[name] for run in runs)
        yield Point(
            "CPU", "CPU", name, milliseconds, MEASURED, "the CPUs of this host, apps/ckks/cpu.cpp"
        )
    for technique in TECHNIQUES:
        request.progress.phase(technique)
        yield from _points(technique, *_run(technique), MIXED)


def _modelled(_: Request) -> Iterator[Point]:
    clocks, wrong = _ran.get(_key()) or _run(OWN)
    machine = load_machine(MACHINE)
    for name, clock in clocks.items():
        if clock.exchanges:
            kib = sum(size for _, size in clock.exchanges) / 1024
            yield Point("traffic", "in alltoalls", name, kib, MODELLED, "the plan", wrong)
    for technique in TECHNIQUES:
        priced = {
            name: Clock(
                clock.kernel,
                sum(_seconds(technique, *exchange, machine) for exchange in clock.exchanges),
            )
            for name, clock in clocks.items()
        }
        yield from _points(technique, priced, wrong, MODELLED)


def _seconds(technique: str, mask: str, size: int, machine: object) -> float:
    options = options_of(technique=technique, scratch=2 * size)
    return predict(
        "alltoall", SHAPE, mask, bytes=size, dst=0, dtype="uint64", machine=machine, **options
    ).seconds  # type: ignore[arg-type]


def _statements(_: Request, points: Sequence[Point]) -> Iterator[Statement]:
    cpu = series_of(points, "CPU", "CPU")
    for source in (MIXED, MODELLED):
        for technique in (BASE, OWN):
            kernel, between = (
                series_of(points, technique, part, source) for part in ("kernel", "between PEs")
            )
            names = [name for name in cpu if name in kernel]
            if names:
                gains = {name: cpu[name] / (kernel[name] + between[name]) for name in names}
                yield Statement(
                    "PEs are faster than the CPU in every primitive, most in polynomial addition",
                    f"{source}, {technique}, over this host's CPUs: "
                    + ", ".join(f"{name} {gain:.2f}x" for name, gain in gains.items()),
                    min(gains.values()) > 1 and max(gains, key=lambda name: gains[name]) == "add",
                )
            if kernel:
                share = 100 * between[TOTAL] / (kernel[TOTAL] + between[TOTAL])
                yield Statement(
                    "the exchange between PEs is significant (here: over 10%) in NTT and its"
                    " inverse",
                    f"{source}, {technique}: {share:.1f}% of all primitives; "
                    + ", ".join(
                        f"{100 * between[transform] / (kernel[transform] + between[transform]):.1f}"
                        f"% of {transform}"
                        for transform in ("NTT", "iNTT")
                    ),
                    all(
                        between[transform] > 0.1 * (kernel[transform] + between[transform])
                        for transform in ("NTT", "iNTT")
                    ),
                )


FIGURE_16 = Figure(
    "scalability/fig16",
    PAPER,
    "CKKS multiplication, N = 65536, L = 23, 8 extension limbs, dnum 3, on 1024 PEs",
    [
        *(Panel(name, "ms", "primitive") for name in ("CPU", *TECHNIQUES)),
        Panel("traffic", "KiB per PE", "primitive"),
    ],
    _modelled,
    _statements,
    _measured,
    "Kernels run on dpuemu, so their times are modelled. The CPUs are those of this host, not"
    " the paper's. All limbs of a coefficient are on one PE, so only transforms exchange data;"
    " the paper does not describe its placement.",
)
