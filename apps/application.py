"""What an application is, and how it is run, timed and checked."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf, prod
from pathlib import Path
from time import perf_counter
from typing import Any, ClassVar

import numpy as np
from pidcomm.apps.stage import HOST, KERNEL, Cost, Placement, Stage, require_room
from pidcomm.arguments import AUTO, MAX_COUNT, Array, Options, as_integer, options_of, with_scratch
from pidcomm.errors import ArgumentError
from pidcomm.evaluation import platform
from pidcomm.evaluation.bench import BASE as BASE
from pidcomm.evaluation.measure import Scratch, SdkCondition, make_transfers_alike, measure_sdk
from pidcomm.evaluation.oracle import Problem
from pidcomm.pe_set import allocate
from pidcomm.plans import plan
from pidcomm.sizes import format_shape
from pidcomm.tables import COLLECTIVES, TECHNIQUES, WORD_BYTES

CONDITION_ROUNDS = 9
REFERENCE_RUNS, REFERENCE_SECONDS = 3, 0.1  # at least
TECHNIQUES_OF_APPLICATIONS = [
    *(name for name, it in TECHNIQUES.items() if all(map(it.is_for, COLLECTIVES.values()))),
    AUTO,
]


class Application(ABC):
    """A problem of one application: its input, in host memory, placed nowhere yet.

    Instances are made from arrays by the class itself, or by `make` from a file or a generator, as the command line
    does. The same instance may be run any number of times.
    """

    name: ClassVar[str]
    """As in ``pidcomm app NAME``: the name of the folder."""
    about: ClassVar[str]
    """One sentence, for --help."""
    axes: ClassVar[int]
    """Number of axes of its hypercube."""
    data_help: ClassVar[str]
    """Which files `make` reads."""
    generate_help: ClassVar[str]
    """Which generators `make` has, with their defaults."""

    @classmethod
    @abstractmethod
    def make(cls, *, data: Path | None = None, generate: str | None = None, quick: bool = False) -> Application:
        """Return the problem of a file, or of a generator, or by default of the application's own generator.

        data, generate: not both. quick: a default problem of a second or two. Subclasses add keyword arguments of
        their own, each ``Annotated[type, "sentence for --help"]`` with a default; the command line has them as options.

        Raises ArgumentError for both, for unknown generators and for what is wrong in the file, then with its line.
        """

    @property
    @abstractmethod
    def facts(self) -> Mapping[str, int | str]:
        """What the problem is: the first, ``input``, says where it comes from, the others how large it is."""

    @classmethod
    @abstractmethod
    def shape_of(cls, pes: int) -> tuple[int, ...]:
        """Return the shape for so many PEs. Raises ArgumentError if there is none."""

    @abstractmethod
    def place(self, shape: Sequence[int]) -> Placement:
        """Return the program of the PEs and what it keeps where. Raises ArgumentError if the problem does not fit."""

    @abstractmethod
    def run(self, stage: Stage) -> Array:
        """Solve the problem on PEs; return the result."""

    @abstractmethod
    def reference(self) -> Array:
        """Return the result, found by all CPUs of the host without PEs (``cpu.cpp``)."""


@dataclass(frozen=True)
class Run:
    """How a problem was solved with one technique, and whether the result is right.

    result: what `Application.run` returned. wrong: elements in which it differs from `Application.reference`.
    costs: by phase: ``kernel``, ``host`` (rows that the host lays out, variables that it writes before a launch) and
    the names of collectives, in the order of their first use (`Cost`). setup: what is placed once and stays, such as a
    graph or weights; it is in no total. cpu_seconds: of `Application.reference`, measured: the best of several, with
    all CPUs or one, whichever is quicker; None if not asked for.
    """

    application: str
    facts: Mapping[str, int | str]
    shape: tuple[int, ...]
    technique: str
    result: Array
    wrong: int
    costs: Mapping[str, Cost]
    setup: Cost
    cpu_seconds: float | None

    @property
    def pes(self) -> int:
        """Number of PEs."""
        return prod(self.shape)

    @property
    def kernel(self) -> Cost:
        """The programs of the application: modelled, and what their launches are assumed to cost."""
        return self.costs.get(KERNEL, Cost())

    @property
    def host(self) -> Cost:
        """Work of the host beside collectives, measured."""
        return self.costs.get(HOST, Cost())

    @property
    def communication(self) -> Cost:
        """All collectives: measured; where PEs reorder blocks modelled, too."""
        return sum((self.costs[name] for name in self.collectives), Cost())

    @property
    def collectives(self) -> list[str]:
        """Phases that are collectives."""
        return [name for name in self.costs if name not in (KERNEL, HOST)]

    @property
    def total(self) -> Cost:
        """Kernels, collectives and work of the host."""
        return self.kernel + self.communication + self.host


def run(problem: Application, **arguments: Any) -> Run:
    """Solve a problem with one technique, ``technique`` (default: tile); other arguments are those of `compare`."""
    (only,) = compare(problem, techniques=[arguments.pop("technique", "tile")], **arguments)
    return only


def compare(
    problem: Application,
    *,
    pes: int | None = None,
    shape: Sequence[int] | None = None,
    techniques: Sequence[str] = (BASE, "tile"),
    options: Options | None = None,
    iters: int = 3,
    with_cpu: bool = False,
    on_phase: Callable[[str], None] = lambda _: None,
) -> Iterator[Run]:
    """Solve a problem with every technique on emulated DIMMs; check each result against the reference.

    pes, shape: one of them; the application shapes a number of PEs. techniques: names of
    ``pidcomm.TECHNIQUES`` that are for all collectives, or auto. options: of the collectives except technique and
    scratch. iters: how often each collective is carried out for its time, the median. with_cpu: whether to time the
    reference, too. on_phase: called with a few words before each phase.

    Raises ArgumentError, before anything is allocated, for what the problem, the machine or its memory forbid.
    """
    lengths = shape_for(type(problem), pes, shape)
    chosen = with_defaults(options or {})
    if own := chosen.keys() & {"technique", "scratch"}:
        raise ArgumentError(f"options have {min(own)!r}: techniques are given apart, and scratch is found here")
    for name in techniques:
        require_technique(name, lengths, chosen)
    repeats = as_integer("iters", iters, 1, MAX_COUNT)
    placement = problem.place(lengths)
    require_room(placement, lengths, techniques)
    return _runs(problem, lengths, placement, techniques, chosen, repeats, with_cpu, on_phase)


def _runs(
    problem: Application,
    shape: tuple[int, ...],
    placement: Placement,
    techniques: Sequence[str],
    options: Options,
    repeats: int,
    with_cpu: bool,
    on_phase: Callable[[str], None],
) -> Iterator[Run]:
    on_phase("reference")
    expected = problem.reference()
    cpu_seconds = reference_seconds(problem) if with_cpu else None
    make_transfers_alike(options)
    with allocate(pes=prod(shape)) as pe_set:
        for technique in techniques:
            on_phase(f"{technique}: compiling")
            with Stage(
                pe_set, shape, placement, options_of(**{**options, "technique": technique}), repeats, on_phase
            ) as stage:
                stage.poison()
                result = problem.run(stage)
            yield Run(
                application=problem.name,
                facts=problem.facts,
                shape=shape,
                technique=technique,
                result=result,
                wrong=count_wrong(result, expected),
                costs=stage.costs,
                setup=stage.setup,
                cpu_seconds=cpu_seconds,
            )


def shape_for(application: type[Application], pes: int | None, shape: Sequence[int] | None) -> tuple[int, ...]:
    """Return the shape that is given, or that of so many PEs. Raises ArgumentError.

    It does for both, none, another number of axes, and more PEs than this machine has.
    """
    if (pes is None) == (shape is None):
        raise ArgumentError(f"give pes ({pes}) or shape ({shape}), one of them")
    most = platform.max_pes() or MAX_COUNT
    if shape is None:
        return application.shape_of(as_integer("pes", pes, 1, most))
    lengths = tuple(as_integer("axis length", length, 1, most) for length in shape)
    if len(lengths) != application.axes:
        raise ArgumentError(
            f"{application.name} needs a shape of {application.axes} axes; {format_shape(lengths)} has {len(lengths)}"
        )
    if prod(lengths) > most:
        raise ArgumentError(f"shape {format_shape(lengths)} has {prod(lengths)} PEs; this machine has {most}")
    return lengths


def with_defaults(options: Options) -> Options:
    """Return options with defaults: the coherence policy that the DIMMs need, and the threads of the SDK."""
    threads = options.get("threads") or platform.threads()
    return options_of(**{**options, "coherence": options.get("coherence") or platform.COHERENCE, "threads": threads})


def require_technique(name: str, shape: Sequence[int], options: Options) -> None:
    """Raise ArgumentError if a technique is not for all collectives, not for a shape, or options are wrong."""
    if name not in TECHNIQUES_OF_APPLICATIONS:
        raise ArgumentError(
            f"technique {name!r} is not one for all collectives; use {', '.join(TECHNIQUES_OF_APPLICATIONS)}"
        )
    size = WORD_BYTES * prod(shape)  # a block for each PE
    own = with_scratch(options_of(**{**options, "technique": name}), 2 * size)
    try:
        plan("alltoall", tuple(shape), "1" * len(shape), bytes=size, dst=size, dtype="uint64", **own)
    except ArgumentError as error:
        _, _, rule = str(error).partition(": ")
        raise ArgumentError(rule or str(error)) from None


def heaviest_bytes(run: Run) -> int:
    """Return the bytes per PE of the collective that takes most of the time of a run, at its largest call."""
    return max((run.costs[name] for name in run.collectives), key=lambda cost: cost.total, default=Cost()).bytes_per_pe


def transfer_condition(shape: Sequence[int], size_bytes: int, options: Options) -> SdkCondition:
    """Return whether comparing with `conventional` is fair: the emulated SDK may be too slow for it.

    size_bytes: per PE, of the transfers that are timed, as large as those of the collectives that matter. Needs 8 times
    as much memory for each PE.
    """
    make_transfers_alike(options)
    problem = Problem("gather", tuple(shape), "1" * len(shape), size_bytes, "int32")
    with allocate(pes=prod(shape)) as pe_set:
        return measure_sdk(pe_set.hypercube(*shape), size_bytes, options, Scratch([problem]), rounds=CONDITION_ROUNDS)


def count_wrong(result: Array, expected: Array) -> int:
    """Return in how many elements two arrays differ; all, if they differ in shape or type."""
    if result.shape != expected.shape or result.dtype != expected.dtype:
        return max(result.size, expected.size, 1)
    return int(np.count_nonzero(result != expected))


def reference_seconds(problem: Application) -> float:
    """Return the time of the reference: the best of several runs with all CPUs, or with one if that is quicker.

    Threads that wait for a CPU which another process has cost far more than they help where the work is small.
    """
    from pidcomm.apps import _apps

    best = inf
    everything = _apps.set_threads(1)
    try:
        for threads in (everything, 1):
            _apps.set_threads(threads)
            spent: list[float] = []
            while len(spent) < REFERENCE_RUNS or (sum(spent) < REFERENCE_SECONDS and len(spent) < 100):
                begin = perf_counter()
                problem.reference()
                spent.append(perf_counter() - begin)
            best = min(best, *spent)
    finally:
        _apps.set_threads(everything)
    return best
