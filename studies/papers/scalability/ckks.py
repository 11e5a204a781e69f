"""Figure 16 of Scalability limitations of processing-in-memory using real system evaluations
(SIGMETRICS 2024).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from functools import lru_cache
from math import prod
from typing import Any, NamedTuple

from pidcomm import allocate
from pidcomm.arguments import options_of
from pidcomm.bench.measure import make_transfers_alike
from pidcomm.model import Machine, load_machine
from pidcomm_studies.apps import _apps
from pidcomm_studies.apps.application import count_wrong, with_defaults
from pidcomm_studies.apps.ckks import Ckks
from pidcomm_studies.apps.ckks.conversion import conversions
from pidcomm_studies.apps.ckks.cpu import multiply
from pidcomm_studies.apps.ckks.multiplication import Clock
from pidcomm_studies.apps.ckks.scheme import Parameters
from pidcomm_studies.apps.ntt import steps_of
from pidcomm_studies.apps.ntt.transforms import predicted_seconds
from pidcomm_studies.apps.stage import Stage
from pidcomm_studies.papers.figure import (
    COUNTED,
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
from pidcomm_studies.papers.scalability.server_cpu import (
    PRODUCT_CYCLES,
    SUM_CYCLES,
    WEIGHTED_PRODUCT_CYCLES,
)

SIZE, LEVEL, DNUM = 2**16, 23, 3
PLACEMENTS = {
    "all limbs on each PE": ("3", (32, 32, 1, 1)),
    "limbs over PEs": ("2", (256, 1, 1, 4)),
}
"""Steps and shape of two placements. The one with the lower price runs."""
CPU_RUNS = 3
TOTAL = "all"
SIGNIFICANT_PCT = 10
LIMITING_PCT = 50  # of this project: products limit kernels if they take more of their time


@lru_cache(maxsize=1)
def _problem() -> Ckks:
    return Ckks.make(size=SIZE, level=LEVEL, dnum=DNUM)


class _Placed(NamedTuple):
    """A placement with its price in seconds."""

    problem: Ckks
    shape: tuple[int, ...]
    price_s: float


@lru_cache(maxsize=1)
def _placed() -> dict[str, _Placed]:
    placements = {}
    for name, (steps, shape) in PLACEMENTS.items():
        problem = copy(_problem())
        problem.steps, problem.radix = steps_of(SIZE, steps, None)
        placements[name] = _Placed(problem, shape, problem.price(shape))
    return placements


def _cheapest() -> _Placed:
    return min(_placed().values(), key=lambda placed: placed.price_s)


def _forget() -> None:
    """Forget all runs, for tests with other parameters."""
    _problem.cache_clear()
    _placed.cache_clear()
    _ran.clear()


_ran: list[tuple[dict[str, Clock], int]] = []  # the last run: kernels are equal for all techniques


def _run(technique: str) -> tuple[dict[str, Clock], int]:
    """Return the clock of each primitive, and the number of wrong elements."""
    problem, shape, _ = _cheapest()
    work = problem.multiplication(shape)
    options = with_defaults(options_of(technique=technique))
    make_transfers_alike(options)
    with (
        allocate(pes=prod(shape)) as pe_set,
        Stage(pe_set, shape, work.placement(), options, CPU_RUNS) as stage,
    ):
        stage.poison()
        work.place(stage)
        wrong = count_wrong(problem.carried_out(stage, work), problem.reference())
    _ran[:] = [(work.clocks, wrong)]
    return work.clocks, wrong


def _points(
    technique: str, clocks: Mapping[str, Clock], wrong: int, source: str
) -> Iterator[Point]:
    on = HERE if source == MIXED else MACHINE
    total = Clock(
        sum(clock.kernel for clock in clocks.values()),
        sum(clock.between for clock in clocks.values()),
    )
    for name, clock in {**clocks, TOTAL: total}.items():
        yield Point(technique, "kernel", name, 1e3 * clock.kernel, source, on, wrong)
        yield Point(technique, "between PEs", name, 1e3 * clock.between, source, on, wrong)


def _measured(request: Request) -> Iterator[Point]:
    request.progress.phase("CPU")
    problem = _problem()
    runs = [multiply(problem.scheme, problem.inputs)[1] for _ in range(CPU_RUNS)]
    for name in runs[0]:
        milliseconds = 1e3 * min(run[name] for run in runs)
        yield Point(
            "CPU",
            "CPU",
            name,
            milliseconds,
            MEASURED,
            "the CPUs of this host, apps/ckks/cpu.cpp",
            detail=f"{_lanes()} lanes",
        )
    for technique in TECHNIQUES:
        request.progress.phase(technique)
        yield from _points(technique, *_run(technique), MIXED)


def _lanes() -> int:
    parameters = _problem().parameters
    return _apps.ntt_lanes(max(parameters.all), parameters.size)


def _modelled(_: Request) -> Iterator[Point]:
    clocks, wrong = _ran[0] if _ran else _run(OWN)
    machine = load_machine(MACHINE)
    for name, time in cpu_times(_problem().parameters, machine).items():
        milliseconds = 1e3 * time.seconds
        yield Point(
            "CPU", "CPU", name, milliseconds, MODELLED, server_cpu.SERVER, detail=time.limit
        )
    for placement, (problem, shape, price_s) in _placed().items():
        for name, clock in problem.rehearsed(shape).items():
            if clock.exchanges:
                kib = sum(size for _, size in clock.exchanges) / 1024
                yield Point("traffic", placement, name, kib, COUNTED, "the plan")
        yield Point("price", "all", placement, 1e3 * price_s, MODELLED, MACHINE)
    for technique in TECHNIQUES:
        priced = {
            name: Clock(
                clock.kernel,
                sum(
                    predicted_seconds(
                        _cheapest().shape,
                        machine,
                        "alltoall",
                        mask,
                        size_bytes,
                        technique=technique,
                        scratch=2 * size_bytes,
                    )
                    for mask, size_bytes in clock.exchanges
                ),
            )
            for name, clock in clocks.items()
        }
        yield from _points(technique, priced, wrong, MODELLED)


def transformed_limbs(parameters: Parameters) -> dict[str, int]:
    """Return the limbs of all transforms, forward and back."""
    up, down, last = conversions(parameters)
    return {
        "iNTT": len(parameters.moduli) + 2 * len(parameters.extension) + 2,
        "NTT": sum(len(each.targets) for each in [*up, down, down, last, last]),
    }


def cpu_times(parameters: Parameters, machine: Machine) -> dict[str, server_cpu.Time]:
    """Return the modelled time of each primitive on the CPUs of the paper's server.

    Each primitive reads its operands once and writes its results once.
    """
    count, every, size = len(parameters.moduli), len(parameters.all), parameters.size
    up, down, last = conversions(parameters)
    converted = [*up, down, down, last, last]
    scaled, digits = count + count - 1, len(parameters.digits)
    products = {
        "multiply": (4 * count, PRODUCT_CYCLES, 4 * count, 3 * count),
        "base conversion": (
            sum(len(each.sources) * (1 + len(each.targets)) for each in converted),
            WEIGHTED_PRODUCT_CYCLES,
            sum(len(each.sources) for each in converted),
            sum(len(each.targets) for each in converted),
        ),
        "key product": (
            2 * digits * every,
            PRODUCT_CYCLES,
            (3 * digits + 2 * (digits - 1)) * every,
            2 * digits * every,
        ),
        "scale": (2 * scaled, WEIGHTED_PRODUCT_CYCLES, 4 * scaled, 2 * scaled),
        "add": (2 * count, SUM_CYCLES, 4 * count, 2 * count),
    }
    return {
        **{
            name: server_cpu.time_of(
                operations * size * cycles, read * size, written * size, machine
            )
            for name, (operations, cycles, read, written) in products.items()
        },
        **{
            name: server_cpu.transform_time(limbs, size, 64, machine)
            for name, limbs in transformed_limbs(parameters).items()
        },
    }


def _statements(_: Request, points: Sequence[Point]) -> Iterator[Statement]:
    for source, cpu_source in ((MIXED, MEASURED), (MODELLED, MODELLED)):
        cpu = {
            point.x: point for point in points if (point.panel, point.source) == ("CPU", cpu_source)
        }
        kernel, between, own = (
            series_of(points, technique, part, source)
            for technique, part in ((BASE, "kernel"), (BASE, "between PEs"), (OWN, "between PEs"))
        )
        if kernel:
            yield from _against_cpu(f"{source}, {BASE}", cpu, kernel, between)
            yield _limiting(source, kernel)
            yield _exchange(source, kernel, between, own)


def _against_cpu(
    who: str, cpu: Mapping[Any, Point], kernel: Mapping[Any, float], between: Mapping[Any, float]
) -> Iterator[Statement]:
    gains = {name: cpu[name].value / (kernel[name] + between[name]) for name in cpu}
    words = f"{who}: " + ", ".join(f"{name} {gain:.2f}x" for name, gain in gains.items())
    slower = {name: gain for name, gain in gains.items() if gain <= 1}
    best = max(gains, key=lambda name: gains[name])
    times = ", ".join(
        f"{name} {cpu[name].value:.3g} ms on the CPU ({cpu[name].detail}), kernels"
        f" {kernel[name]:.3g} ms, exchange {between[name]:.3g} ms"
        for name in (slower or gains)
    )
    yield Statement(
        "PEs are faster than the CPU in every primitive",
        words,
        not slower,
        f"{times}. The statement would hold for a CPU that is {1 / min(gains.values()):.2g} times"
        " as slow",
    )
    yield Statement(
        "the speed-up is the largest in polynomial addition",
        words,
        best == "add",
        f"{best} gains {gains[best] / gains['add']:.2g} times as much as add; add takes"
        f" {cpu['add'].value:.3g} ms on the CPU ({cpu['add'].detail}), on PEs"
        f" {kernel['add']:.3g} ms",
    )


def _limiting(source: str, kernel: Mapping[Any, float]) -> Statement:
    """Judge the time of kernels without the time of their loads, stores and additions, which add
    shows.
    """
    parameters = _problem().parameters
    limb_ms = kernel["add"] / (2 * len(parameters.moduli))  # 2 loads, 1 addition, 1 store
    levels = parameters.size.bit_length() - 1
    # Sums per element: multiply has 7 loads and stores of 3 of a sum. A level of a transform has an
    # addition, and at most a load and a store, for each element.
    others = {
        "multiply": 7 / 3 * limb_ms * len(parameters.moduli),
        **{name: limb_ms * levels * limbs for name, limbs in transformed_limbs(parameters).items()},
    }
    shares = {name: 100 * (1 - others[name] / kernel[name]) for name in others}
    return Statement(
        "modular products limit the speed-up of multiplications and transforms (here: over"
        f" {LIMITING_PCT}% of the time of kernels)",
        f"{source}: without the loads, stores and additions, each as fast as in add, products"
        " are " + ", ".join(f"{share:.0f}% of {name}" for name, share in shares.items()),
        min(shares.values()) > LIMITING_PCT,
        f"add takes {1e3 * limb_ms:.3g} us per limb",
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
            f"{technique}: "
            + ", ".join(f"{pct:.1f}% of {name}" for name, pct in of_primitives.items())
            for technique, of_primitives in ((BASE, of_base), (OWN, shares(own)))
        ),
        min(of_base["NTT"], of_base["iNTT"]) > SIGNIFICANT_PCT,
        f"kernels of NTT take {kernel['NTT']:.3g} ms, and the exchange {between['NTT']:.3g} ms",
    )


FIGURE_16 = Figure(
    "scalability/fig16",
    PAPER,
    "CKKS multiplication, N = 65536, L = 23, 8 extension limbs, dnum 3, on 1024 PEs",
    [
        Panel("CPU", "ms", "primitive", detail="cycles or memory that decide, or lanes that ran"),
        *(Panel(name, "ms", "primitive") for name in TECHNIQUES),
        Panel("traffic", "KiB per PE in alltoalls", "primitive"),
        Panel("price", "ms of exchanges by tile and of products", "placement"),
    ],
    _modelled,
    _statements,
    _measured,
    "Kernels run on dpuemu, so their times are modelled. The paper does not describe its placement:"
    " the one with the lower price runs." + server_cpu.NOTE,
    ("--wide",),
)
