"""Figure 16 of Scalability limitations of processing-in-memory using real system evaluations
(SIGMETRICS 2024).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from functools import lru_cache
from math import prod
from typing import Any

from pidcomm import allocate
from pidcomm.arguments import options_of
from pidcomm.bench.measure import make_transfers_alike
from pidcomm.model import Machine, load_machine, predict
from pidcomm_studies.apps.application import count_wrong, with_defaults
from pidcomm_studies.apps.ckks import Ckks
from pidcomm_studies.apps.ckks.conversion import conversions
from pidcomm_studies.apps.ckks.cpu import multiply
from pidcomm_studies.apps.ckks.multiplication import Clock
from pidcomm_studies.apps.ckks.scheme import Parameters
from pidcomm_studies.apps.ntt import steps_of
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
from pidcomm_studies.papers.scalability import server_cpu
from pidcomm_studies.papers.scalability.ntt import BASE, OWN, PAPER, TECHNIQUES
from pidcomm_studies.papers.scalability.ntt_clocks import MACHINE
from pidcomm_studies.papers.scalability.server_cpu import PRODUCT, SUM, WEIGHTED_PRODUCT

SIZE, LEVEL, DNUM = 2**16, 23, 3
SHAPE = (32, 32, 1, 1)
PLACEMENTS = {
    "all limbs on each PE": ("3", SHAPE),
    "limbs over PEs": ("2", (256, 1, 1, 4)),
}
"""Steps and shape of two placements. The first has the lower price and runs."""
CPU_RUNS = 3
TOTAL = "all"
SIGNIFICANT_PCT = 10


@lru_cache(maxsize=1)
def _problem() -> Ckks:
    return Ckks.make(size=SIZE, level=LEVEL, dnum=DNUM)


_ran: dict[tuple[int, ...], tuple[dict[str, Clock], int]] = {}


def _key() -> tuple[int, ...]:
    return (SIZE, LEVEL, *SHAPE)


def _run(technique: str) -> tuple[dict[str, Clock], int]:
    """Return the clock of each primitive, and the number of wrong elements."""
    problem = _problem()
    work = problem.multiplication(SHAPE)
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
    for name, seconds in cpu_seconds(_problem().parameters, machine).items():
        yield Point("CPU", "CPU", name, 1e3 * seconds, MODELLED, server_cpu.SERVER)
    for placement, (steps, shape) in PLACEMENTS.items():
        problem = copy(_problem())
        problem.steps, problem.radix = steps_of(SIZE, steps, None)
        for name, clock in problem.rehearsed(shape).items():
            if clock.exchanges:
                kib = sum(size for _, size in clock.exchanges) / 1024
                yield Point("traffic", placement, name, kib, MODELLED, "the plan")
        milliseconds = 1e3 * problem.price(shape)
        yield Point("price", "all", placement, milliseconds, MODELLED, MACHINE)
    for technique in TECHNIQUES:
        priced = {
            name: Clock(
                clock.kernel,
                sum(_seconds(technique, *exchange, machine) for exchange in clock.exchanges),
            )
            for name, clock in clocks.items()
        }
        yield from _points(technique, priced, wrong, MODELLED)


def _seconds(technique: str, mask: str, size: int, machine: Machine) -> float:
    options = options_of(technique=technique, scratch=2 * size)
    return predict(
        "alltoall", SHAPE, mask, bytes=size, dst=0, dtype="uint64", machine=machine, **options
    ).seconds


def cpu_seconds(parameters: Parameters, machine: Machine) -> dict[str, float]:
    """Return the modelled time of each primitive on the CPUs of the paper's server.

    Each primitive reads its operands once and writes its results once.
    """
    count, every, size = len(parameters.moduli), len(parameters.all), parameters.size
    up, down, last = conversions(parameters)
    converted = [*up, down, down, last, last]
    scaled, digits = count + count - 1, len(parameters.digits)
    products = {
        "multiply": (4 * count, PRODUCT, 4 * count, 3 * count),
        "base conversion": (
            sum(len(each.sources) * (1 + len(each.targets)) for each in converted),
            WEIGHTED_PRODUCT,
            sum(len(each.sources) for each in converted),
            sum(len(each.targets) for each in converted),
        ),
        "key product": (
            2 * digits * every,
            PRODUCT,
            (3 * digits + 2 * (digits - 1)) * every,
            2 * digits * every,
        ),
        "scale": (2 * scaled, WEIGHTED_PRODUCT, 4 * scaled, 2 * scaled),
        "add": (2 * count, SUM, 4 * count, 2 * count),
    }
    transformed = {
        "iNTT": count + 2 * len(parameters.extension) + 2,
        "NTT": sum(len(each.targets) for each in converted),
    }
    return {
        **{
            name: server_cpu.seconds(
                operations * size * cycles, read * size, written * size, machine
            )
            for name, (operations, cycles, read, written) in products.items()
        },
        **{
            name: server_cpu.transform_seconds(limbs, size, 64, machine)
            for name, limbs in transformed.items()
        },
    }


def _statements(_: Request, points: Sequence[Point]) -> Iterator[Statement]:
    for source, cpu_source in ((MIXED, MEASURED), (MODELLED, MODELLED)):
        cpu = series_of(points, "CPU", "CPU", cpu_source)
        kernel, between, own = (
            series_of(points, technique, part, source)
            for technique, part in ((BASE, "kernel"), (BASE, "between PEs"), (OWN, "between PEs"))
        )
        if kernel:
            yield from _against_cpu(f"{source}, {BASE}", cpu, kernel, between)
            yield _exchange(source, kernel, between, own)


def _against_cpu(
    who: str, cpu: Mapping[Any, float], kernel: Mapping[Any, float], between: Mapping[Any, float]
) -> Iterator[Statement]:
    gains = {name: cpu[name] / (kernel[name] + between[name]) for name in cpu}
    words = f"{who}: " + ", ".join(f"{name} {gain:.2f}x" for name, gain in gains.items())
    slower = {name: gain for name, gain in gains.items() if gain <= 1}
    best = max(gains, key=lambda name: gains[name])
    times = ", ".join(
        f"{name} {cpu[name]:.3g} ms on the CPU, kernels {kernel[name]:.3g} ms, exchange"
        f" {between[name]:.3g} ms"
        for name in (slower or gains)
    )
    yield Statement(
        "PEs are faster than the CPU in every primitive",
        words,
        not slower,
        f"{times}. The CPU code here is vectorised, on all threads; the statement would hold for a"
        f" CPU that is {1 / min(gains.values()):.2g} times as slow",
    )
    yield Statement(
        "the speed-up is the largest in polynomial addition",
        words,
        best == "add",
        f"{best} gains {gains[best] / gains['add']:.2g} times as much as add; add takes"
        f" {cpu['add']:.3g} ms on the CPU, limited by its memory; on PEs {kernel['add']:.3g} ms",
    )
    limited = [name for name in ("multiply", "NTT", "iNTT") if gains[name] < gains["add"]]
    yield Statement(
        "modular products limit the speed-up of multiplications and transforms",
        f"{words}; smaller than that of add: {', '.join(limited) or 'none'}",
        len(limited) == 3,
        f"add gains {gains['add']:.2g}x, because its CPU time is {cpu['add']:.3g} ms",
    )


def _exchange(
    source: str, kernel: Mapping[Any, float], between: Mapping[Any, float], own: Mapping[Any, float]
) -> Statement:
    def shares(exchange: Mapping[Any, float]) -> dict[str, float]:
        return {
            name: 100 * exchange[name] / (kernel[name] + exchange[name])
            for name in (TOTAL, "NTT", "iNTT")
        }

    of_base = shares(between)
    return Statement(
        f"the exchange between PEs is significant (here: over {SIGNIFICANT_PCT}%) in NTT and its"
        " inverse",
        f"{source}: "
        + "; ".join(
            f"{technique}: " + ", ".join(f"{pct:.1f}% of {name}" for name, pct in found.items())
            for technique, found in ((BASE, of_base), (OWN, shares(own)))
        ),
        min(of_base["NTT"], of_base["iNTT"]) > SIGNIFICANT_PCT,
        f"kernels of NTT take {kernel['NTT']:.3g} ms, and the exchange {between['NTT']:.3g} ms",
    )


FIGURE_16 = Figure(
    "scalability/fig16",
    PAPER,
    "CKKS multiplication, N = 65536, L = 23, 8 extension limbs, dnum 3, on 1024 PEs",
    [
        *(Panel(name, "ms", "primitive") for name in ("CPU", *TECHNIQUES)),
        Panel("traffic", "KiB per PE in alltoalls", "primitive"),
        Panel("price", "ms of exchanges by tile and of products", "placement"),
    ],
    _modelled,
    _statements,
    _measured,
    "Kernels run on dpuemu, so their times are modelled. The paper does not describe its placement:"
    " the one with the lower price runs." + server_cpu.NOTE,
)
