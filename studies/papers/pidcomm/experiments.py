"""The experiments of the PID-Comm paper as data: cases, techniques and published statistics.

A statistic is a function of the costs of calls. The costs are measured on this host or predicted
for a machine. Source of the experiments: PID-Comm (ISCA 2024), section VIII.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from math import exp, fsum, log

from pidcomm import COLLECTIVES, TECHNIQUES
from pidcomm.arguments import options_of
from pidcomm.bench.oracle import Problem
from pidcomm.bench.sweep import even_shape, powers_of_two
from pidcomm.model import Machine, load_machine
from pidcomm.model.prediction import PAPER_MACHINE, PreparedCase
from pidcomm.model.prediction import SOURCE as MODELLED
from pidcomm.sizes import format_size
from pidcomm.tables import CollectiveName
from pidcomm_studies.papers.pidcomm.published import PUBLISHED, Published

PAPER_PES = 1024
PAPER_BYTES = 8 << 20
LEAST_BYTES = 128 << 10  # smallest size of figure 18
LEAST_PES = 64  # smallest number of PEs of figure 19
LEAST_X = 8  # smallest x length of figure 20
MOST_X = 128
DTYPE = "int32"
BASE, PAPER, OURS = "baseline", "pr+im+cm", "tile"
OPPONENT = "conventional"  # our stronger baseline
# Of most figures.
FOUR: tuple[CollectiveName, ...] = (
    "alltoall",
    "reduce_scatter",
    "allreduce",
    "allgather",
)
STEPS = (BASE, "pr", "pr+im", PAPER, OURS)
ENDS = (BASE, PAPER, OURS)


@dataclass(frozen=True)
class Cost:
    """Cost of a call. host_us: the time of the host; source says whether host_us is measured or
    modelled.

    pe_us: the time in which PEs reorder blocks, always modelled. start_us: the time of launches and
    loads; None if the cost excludes launches and loads. phases_us: for modelled calls, the time of
    each phase in `pidcomm.model.PHASES`.
    """

    host_us: float
    pe_us: float
    start_us: float | None
    source: str
    phases_us: Mapping[str, float] | None = None

    @property
    def reorder_us(self) -> float:
        """Return the time that PE reordering adds to the call."""
        return self.pe_us + (self.start_us or 0)

    @property
    def total_us(self) -> float:
        """Return the time of the whole call."""
        return self.host_us + self.reorder_us


Pair = tuple[Problem, str]
"""A call: a case and a technique."""
Costs = Mapping[Pair, Cost]


def throughput_gb_s(problem: Problem, cost: Cost) -> float:
    """Return the paper's throughput: the bytes of the larger of input and output, divided by the
    time of the call.
    """
    return problem.larger_side_bytes / cost.total_us / 1e3


def geomean(values: Sequence[float]) -> float:
    """Return the geometric mean."""
    return exp(fsum(map(log, values)) / len(values))


Cell = tuple[Problem, Sequence[Cost]]
Reduce = Callable[[Sequence[Cell]], float]
Choose = Callable[[Sequence[Problem]], Iterable[Problem]]
Problems = Callable[[int, int], list[Problem]]


@dataclass(frozen=True)
class Statistic:
    """A number that summarises an experiment.

    techniques: the techniques whose costs the statistic needs. choose: selects the cases. reduce:
    computes the number from the cases and their costs by technique.
    """

    key: str
    what: str
    unit: str
    techniques: tuple[str, ...]
    choose: Choose
    reduce: Reduce

    @property
    def published(self) -> Published | None:
        """Return the paper's value of the statistic, or None if the paper has no value."""
        return PUBLISHED.get(self.key)

    def cells(self, costs: Costs, problems: Sequence[Problem] | None = None) -> list[Cell]:
        """Return the cases and costs that the statistic needs, or an empty list if a cost is
        missing.

        problems: the cases that must have costs (default: all cases that have a cost).
        """
        cells: list[Cell] = []
        for problem in self.choose(
            problems or list(dict.fromkeys(problem for problem, _ in costs))
        ):
            row = [
                cost for name in self.techniques if (cost := costs.get((problem, name))) is not None
            ]
            if len(row) < len(self.techniques):
                return []
            cells.append((problem, row))
        return cells

    def of(self, costs: Costs, problems: Sequence[Problem] | None = None) -> float | None:
        """Return the value of the statistic, or None if no case is selected or a cost is
        missing.
        """
        cells = self.cells(costs, problems)
        return self.reduce(cells) if cells else None

    def source(self, costs: Costs, problems: Sequence[Problem] | None = None) -> str | None:
        """Return the source of the value: measured, modelled, or mixed."""
        sources = {cost.source for _, row in self.cells(costs, problems) for cost in row}
        return None if not sources else sources.pop() if len(sources) == 1 else "mixed"


@dataclass(frozen=True)
class Experiment:
    """An experiment of the paper.

    varies: the parameters that the paper varies, and its conditions. problems: a function of the
    largest number of PEs and the largest number of bytes per PE. has_sizes: whether bytes vary.
    has_phases: whether the experiment splits calls into phases.
    """

    name: str
    title: str
    varies: str
    problems: Problems
    techniques: tuple[str, ...]
    statistics: tuple[Statistic, ...]
    has_sizes: bool = False
    has_phases: bool = False

    def pairs(self, pes: int, size_bytes: int) -> list[Pair]:
        """Return every case with every technique."""
        return list(product(self.problems(pes, size_bytes), self.techniques))

    @property
    def missing(self) -> list[str]:
        """Return the techniques that this library lacks."""
        return [name for name in self.techniques if name not in TECHNIQUES]


def _every(problems: Sequence[Problem]) -> Sequence[Problem]:
    return problems


def _where(is_chosen: Callable[[Problem], bool]) -> Choose:
    return lambda problems: filter(is_chosen, problems)


def _largest(problems: Sequence[Problem]) -> Iterable[Problem]:
    most = max((problem.bytes for problem in problems), default=0)
    return (problem for problem in problems if problem.bytes == most)


def _of(*collectives: str) -> Choose:
    return _where(lambda problem: problem.collective in collectives)


def _ratio(cells: Sequence[Cell]) -> float:
    """Return the geometric mean of the time of the second technique over the time of the first
    technique.
    """
    return geomean([slow.total_us / quick.total_us for _, (quick, slow) in cells])


def _reorder_pct(cells: Sequence[Cell]) -> float:
    """Return the mean share of PE reordering in the time of calls, in percent, without launches
    and loads.
    """
    return fsum(100 * cost.pe_us / cost.total_us for _, (cost,) in cells) / len(cells)


def _best_gb_s(cells: Sequence[Cell]) -> float:
    return max(throughput_gb_s(problem, cost) for problem, (cost,) in cells)


def _growth(cells: Sequence[Cell]) -> float:
    """Return the throughput of the last case over the throughput of the first case."""
    rates_gb_s = [throughput_gb_s(problem, cost) for problem, (cost,) in cells]
    return rates_gb_s[-1] / rates_gb_s[0]


def _statistic(
    key: str, what: str, techniques: tuple[str, ...], choose: Choose, reduce: Reduce = _ratio
) -> Statistic:
    """Return a statistic.

    If the paper states the statistic, use the paper's words and unit; otherwise the unit is a
    factor.
    """
    stated = PUBLISHED.get(key)
    return Statistic(
        key,
        stated.what if stated else what,
        stated.unit if stated else "x",
        techniques,
        choose,
        reduce,
    )


def _speed_ups(
    key: str, what: str, choose: Choose, others: Sequence[str] = (OURS,)
) -> Iterator[Statistic]:
    """Yield the speed-up of pr+im+cm, and of other techniques, over the baseline."""
    yield _statistic(key, f"{what}: {PAPER} over {BASE}", (PAPER, BASE), choose)
    for name in others:
        yield _statistic(f"{key}.{name}", f"{what}: {name} over {BASE}", (name, BASE), choose)


def _square(collectives: Iterable[CollectiveName]) -> Problems:
    return lambda pes, size: [
        Problem(name, even_shape(pes, 2), "10", size, DTYPE) for name in collectives
    ]


def _sizes(pes: int, most: int) -> list[Problem]:
    sizes = [*(size for size in powers_of_two(LEAST_BYTES, PAPER_BYTES) if size < most), most]
    shapes = ((even_shape(pes, 1), "1"), (even_shape(pes, 2), "10"))
    return [
        Problem(name, shape, mask, size, DTYPE)
        for (shape, mask), size, name in product(shapes, sizes, FOUR)
    ]


def _counts(most: int, size: int) -> list[Problem]:
    counts = powers_of_two(min(LEAST_PES, most), most)
    return [
        Problem(name, even_shape(pes, 2), "10", size, DTYPE) for pes, name in product(counts, FOUR)
    ]


def _lengths(pes: int, size: int) -> list[Problem]:
    lengths = powers_of_two(min(LEAST_X, pes), min(MOST_X, pes))
    shapes = [(x, *even_shape(pes // x, 2)) for x in lengths]
    return [Problem(name, shape, "100", size, DTYPE) for shape, name in product(shapes, FOUR)]


def _same_bytes(size: int) -> Choose:
    return _where(lambda problem: problem.bytes == size)


def _same_pes(pes: int) -> Choose:
    return _where(lambda problem: problem.pes == pes)


_ALL = (
    Experiment(
        "fig14",
        "Speed-up of every collective",
        "eight collectives, 32x32 PEs, mask 10; the paper does not state the size",
        _square(COLLECTIVES),
        (BASE, OPPONENT, PAPER, OURS),
        (
            *(
                statistic
                for name in COLLECTIVES
                for statistic in _speed_ups(f"fig14.{name}", name, _of(name), (OPPONENT, OURS))
            ),
            *_speed_ups("fig14.geomean", "all eight collectives", _every, (OPPONENT, OURS)),
        ),
    ),
    Experiment(
        "fig16",
        "Ablation: the gain of each step",
        "techniques, 32x32 PEs, mask 10; the paper does not state the size",
        _square(FOUR),
        STEPS,
        (
            _statistic("fig16.pr", "", ("pr", BASE), _every),
            _statistic("fig16.im", "", ("pr+im", "pr"), _every),
            _statistic("fig16.cm", "", (PAPER, "pr+im"), _of("alltoall", "allgather")),
            _statistic("fig16.tile", "tile over pr+im+cm", (OURS, PAPER), _every),
        ),
    ),
    Experiment(
        "fig17",
        "Where the time goes",
        "techniques, 32x32 PEs, mask 10, 8 MiB per PE (input of reduce_scatter, output of other"
        " collectives)",
        _square(FOUR),
        STEPS,
        (
            # The paper's 2.9 is the product of 1.48 and 2.03 in figure 16.
            _statistic("fig17.im", "", ("pr+im", BASE), _every),
            _statistic("fig17.reorder", "", (PAPER,), _every, _reorder_pct),
        ),
        has_phases=True,
    ),
    Experiment(
        "fig18",
        "Speed-up over bytes per PE",
        "128 KiB to 8 MiB per PE; 1024 PEs in one dimension, and 32x32 with mask 10",
        _sizes,
        ENDS,
        (
            *(
                statistic
                for size in powers_of_two(LEAST_BYTES, PAPER_BYTES // 2)
                for statistic in _speed_ups(f"fig18.{size}", format_size(size), _same_bytes(size))
            ),
            *_speed_ups("fig18.largest", "largest size", _largest),
        ),
        has_sizes=True,
    ),
    Experiment(
        "fig19",
        "Speed-up over the number of PEs",
        "64 to 1024 PEs, up to 256 on one channel; the paper does not state shape and size: here"
        " two axes, mask 10",
        _counts,
        ENDS,
        tuple(
            statistic
            for pes in powers_of_two(LEAST_PES, PAPER_PES)
            for statistic in _speed_ups(f"fig19.{pes}", f"{pes} PEs", _same_pes(pes))
        ),
    ),
    Experiment(
        "fig20",
        "Throughput over the length of the x axis",
        "1024 PEs in three dimensions, along x; the paper does not list its shapes: here x = 8 to"
        " 128, y and z as even as possible",
        _lengths,
        ENDS,
        tuple(
            statistic
            for name in FOUR
            for statistic in (
                _statistic(f"fig20.{name}", "", (PAPER,), _of(name), _best_gb_s),
                _statistic(
                    f"fig20.{name}.growth",
                    f"{name}: {PAPER} with the longest x over the shortest",
                    (PAPER,),
                    _of(name),
                    _growth,
                ),
                Statistic(
                    f"fig20.{name}.tile",
                    f"{name}: best throughput of tile",
                    "GB/s",
                    (OURS,),
                    _of(name),
                    _best_gb_s,
                ),
            )
        ),
    ),
    Experiment(
        "fig23a",
        "Hypercube against ring and tree",
        "allreduce, 32x32 PEs, mask 10; in tree, PEs have nothing to reorder, because whole vectors"
        " move; the paper does not state the size",
        _square(["allreduce"]),
        (*ENDS, "ring", "tree"),
        tuple(
            statistic
            for name in ("ring", "tree")
            for statistic in (
                _statistic(f"fig23a.{name}", "", (PAPER, name), _every),
                _statistic(
                    f"fig23a.{name}.tile", f"{name}: time over {OURS}", (OURS, name), _every
                ),
            )
        ),
    ),
)
EXPERIMENTS = {experiment.name: experiment for experiment in _ALL}
"""The experiments by the paper's figures.

The paper does not name type and operator; here they are int32 and sum.
"""


def modelled_costs(
    experiment: Experiment,
    machine: str | Machine = PAPER_MACHINE,
    pes: int = PAPER_PES,
    size_bytes: int = PAPER_BYTES,
) -> dict[Pair, Cost]:
    """Return the predicted costs of the calls of an experiment on a machine. Defaults: the paper's
    machine and sizes.

    Costs include launches and loads, because every call of the paper's library loads and starts the
    PE program. The result is empty if this library lacks a technique.
    """
    if experiment.missing:
        return {}
    on = load_machine(machine)
    return {pair: modelled_cost(*pair, on) for pair in experiment.pairs(pes, size_bytes)}


def modelled_cost(problem: Problem, technique: str, machine: Machine) -> Cost:
    """Return the predicted cost of a call on a machine.

    MRAM holds the input, then the output, then scratch.
    """
    prediction = _prepared(problem, technique).predict(machine)
    phases_us = {name: 1e6 * seconds for name, seconds in prediction.phases.items()}
    start_us = phases_us["launch"] + phases_us["load"]
    return Cost(1e6 * prediction.host_seconds, phases_us["pe"], start_us, MODELLED, phases_us)


@cache
def _prepared(problem: Problem, technique: str) -> PreparedCase:
    return PreparedCase(
        problem.collective,
        problem.shape,
        problem.mask,
        bytes=problem.bytes,
        dtype=problem.dtype,
        op=problem.op,
        **options_of(technique=technique, scratch=2 * problem.bytes),
    )


def modelled_points(machine: str | Machine = PAPER_MACHINE) -> dict[str, float]:
    """Return the predicted value of every statistic that the paper states, by the keys of
    PUBLISHED.

    Figures with techniques that the library lacks are left out.
    """
    points = {}
    for experiment in EXPERIMENTS.values():
        costs = modelled_costs(experiment, machine)
        for statistic in experiment.statistics:
            if statistic.published and (value := statistic.of(costs)) is not None:
                points[statistic.key] = value
    return points
