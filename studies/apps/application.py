"""Define the interface of applications; run, time and check applications."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf, prod
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any, ClassVar

import numpy as np

from pidcomm import COLLECTIVES, TECHNIQUES, ArgumentError, Options, allocate, plan
from pidcomm.arguments import AUTO, MAX_COUNT, Array, as_integer, options_of, with_scratch
from pidcomm.bench import platform
from pidcomm.bench.measure import Scratch, SdkCondition, make_transfers_alike, measure_sdk
from pidcomm.bench.oracle import Problem
from pidcomm.bench.timing import BASE as BASE
from pidcomm.sizes import format_shape
from pidcomm.tables import WORD_BYTES
from pidcomm_studies.apps.placement import Placement, require_room
from pidcomm_studies.apps.stage import HOST, KERNEL, Call, Cost, Stage
from pidcomm_studies.apps.streamed import (
    PLANNED,
    STEPS,
    STREAM,
    Streamed,
    StreamedStage,
    can_stream,
)

CONDITION_ROUNDS = 9
REFERENCE_RUNS, REFERENCE_SECONDS = 3, 0.1  # minimum number of runs, and minimum time of all runs
TECHNIQUES_OF_APPLICATIONS = [
    *(
        name
        for name, technique in TECHNIQUES.items()
        if all(map(technique.is_for, COLLECTIVES.values()))
    ),
    AUTO,
]


class Application(ABC):
    """An application together with one input in host memory.

    The constructor takes arrays; `make` takes a file or a generator, as the command line does. An
    application may run any number of times.
    """

    name: ClassVar[str]
    """The NAME in ``pidcomm app NAME``, which is also the name of the folder."""
    about: ClassVar[str]
    """The sentence that --help prints."""
    axes: int
    """Number of axes of the hypercube."""
    data_help: ClassVar[str]
    """The files that `make` reads."""
    generate_help: ClassVar[str]
    """The generators that `make` knows, with their defaults."""

    @classmethod
    @abstractmethod
    def make(
        cls, *, data: Path | None = None, generate: str | None = None, quick: bool = False
    ) -> Application:
        """Read an input from a file or generate one; return the application with this input.

        data: the file. generate: the generator; without both, the application's default generator.
        quick: selects an input that takes a second or two. Subclasses add keyword arguments, each
        ``Annotated[type, "sentence for --help"]`` with a default; they become options of the
        command line.

        Raises ArgumentError if both data and generate are given, for an unknown generator, and for
        a malformed file, with the line number.
        """

    @property
    @abstractmethod
    def facts(self) -> Mapping[str, int | str]:
        """Facts about the input.

        The first fact, ``input``, is the source of the input. Later facts are sizes.
        """

    @abstractmethod
    def shape_of(self, pes: int) -> tuple[int, ...]:
        """Return the shape for `pes` PEs. Raises ArgumentError if no shape has `pes` PEs."""

    @abstractmethod
    def place(self, shape: Sequence[int]) -> Placement:
        """Return the program of the PEs and its MRAM layout.

        Raises ArgumentError if the input does not fit.
        """

    @abstractmethod
    def run(self, stage: Stage) -> Array:
        """Compute the result on PEs and return it."""

    @abstractmethod
    def reference(self) -> Array:
        """Compute the result on all CPUs of the host, without PEs (``cpu.cpp``), and return it."""

    def wrong(self, result: Array, expected: Array) -> int:
        """Return the number of wrong elements.

        An application with rounded results overrides it with a bound.
        """
        return count_wrong(result, expected)


@dataclass(frozen=True)
class Run:
    """The result, check and costs of one run with one technique.

    result: the return value of `Application.run`. wrong: number of elements that differ from
    `Application.reference`.
    costs: a `Cost` for each phase, in the order in which the phases first occur. The phases are
    ``kernel``, ``host`` (the host lays out rows, and writes variables before a launch) and the
    names of collectives. setup: cost of placing data that stays, such as a graph or weights; no
    total contains it. All runs of a comparison are measured in the same rounds; the cost of the
    host is equal in all. cpu_seconds: measured time of `Application.reference`, the median of
    several runs with all CPUs or with one CPU; None if not timed. calls: the collectives, in order.
    streamed: cost of the same work as streams; None if not run.
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
    calls: Sequence[Call] = ()
    streamed: Streamed | None = None

    @property
    def pes(self) -> int:
        """Number of PEs."""
        return prod(self.shape)

    @property
    def kernel(self) -> Cost:
        """Modelled cost of the PE programs of the application, with the assumed cost of their
        launches.
        """
        return self.costs.get(KERNEL, Cost())

    @property
    def host(self) -> Cost:
        """Measured cost of the host outside collectives."""
        return self.costs.get(HOST, Cost())

    @property
    def communication(self) -> Cost:
        """Cost of all collectives: measured, except that PE reordering is modelled."""
        return sum((self.costs[name] for name in self.collectives), Cost())

    @property
    def collectives(self) -> list[str]:
        """Names of the phases that are collectives."""
        return [name for name in self.costs if name not in (KERNEL, HOST)]

    @property
    def total(self) -> Cost:
        """Cost of kernels, collectives and host together."""
        return self.kernel + self.communication + self.host


def run(problem: Application, **arguments: Any) -> Run:
    """Run an application with one technique (default: tile); the other arguments are the same as
    in `compare`.
    """
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
    stream: int | None = None,
    on_phase: Callable[[str], None] = lambda _: None,
) -> Iterator[Run]:
    """Run an application with every technique on emulated DIMMs; check each result against the
    reference.

    The first run times each collective in rounds, in which all techniques run in turn, on equal
    data.

    pes, shape: give pes or shape; for pes the application chooses the shape. techniques: auto, or
    names of ``pidcomm.TECHNIQUES`` that support all collectives. options: options of the
    collectives, except technique and scratch. iters: number of timed rounds; the median time of
    each collective counts. with_cpu: whether to time the reference. stream: None, or the number of
    rank groups of streams; 0: the library chooses it. Then each technique that leaves the program
    loaded also runs as streams.
    on_phase: a function that is called with a few words before each phase.

    Raises ArgumentError, before any allocation, if the input does not fit the machine or its
    memory.
    """
    lengths = shape_for(problem, pes, shape)
    chosen = with_defaults(options or {})
    if own := chosen.keys() & {"technique", "scratch"}:
        raise ArgumentError(
            f"options have {min(own)!r}: pass techniques separately; scratch is chosen here"
        )
    for name in techniques:
        require_technique(name, lengths, chosen)
    rounds = as_integer("iters", iters, 1, MAX_COUNT)
    groups = None if stream is None else as_integer("stream", stream, PLANNED, MAX_COUNT)
    placement = problem.place(lengths)
    require_room(placement, lengths, techniques)
    return _runs(
        problem, lengths, placement, techniques, chosen, rounds, with_cpu, groups, on_phase
    )


def _runs(
    problem: Application,
    shape: tuple[int, ...],
    placement: Placement,
    techniques: Sequence[str],
    options: Options,
    rounds: int,
    with_cpu: bool,
    rank_groups: int | None,
    on_phase: Callable[[str], None],
) -> Iterator[Run]:
    on_phase("reference")
    expected = problem.reference()
    cpu_seconds = reference_seconds(problem) if with_cpu else None
    make_transfers_alike(options)
    with allocate(pes=prod(shape)) as pe_set:
        timed: Mapping[str, Array] = {}
        for index, technique in enumerate(techniques):
            on_phase(f"{technique}: compiling")
            own = options_of(**{**options, "technique": technique})
            with Stage(
                pe_set,
                shape,
                placement,
                own,
                0 if index else rounds,
                on_phase,
                () if index else techniques[1:],
            ) as stage:
                stage.poison()
                result = problem.run(stage)
            if index == 0:
                timed = stage.timed
            streamed = None
            if rank_groups is not None and can_stream(technique):
                as_streams = StreamedStage(
                    pe_set, shape, placement, own, rounds, on_phase, rank_groups=rank_groups
                )
                with as_streams:
                    as_streams.poison()
                    streamed_result = problem.run(as_streams)
                streamed = Streamed(
                    as_streams.total(STREAM),
                    as_streams.total(STEPS) if STEPS in as_streams.costs else None,
                    rank_groups,
                    problem.wrong(streamed_result, expected),
                )
            yield Run(
                application=problem.name,
                facts=problem.facts,
                shape=shape,
                technique=technique,
                result=result,
                wrong=problem.wrong(result, expected),
                costs={
                    phase: _timed(cost, timed[phase][:, index]) if phase in timed else cost
                    for phase, cost in stage.costs.items()
                },
                setup=stage.setup,
                cpu_seconds=cpu_seconds,
                calls=tuple(stage.calls),
                streamed=streamed,
            )


def _timed(cost: Cost, quartiles: Array) -> Cost:
    low, measured, high = map(float, quartiles)
    return replace(cost, measured=measured, low=low, high=high)


def shape_for(
    application: Application, pes: int | None, shape: Sequence[int] | None
) -> tuple[int, ...]:
    """Return the given shape, or the application's shape for `pes` PEs.

    Raises ArgumentError unless exactly one of pes and shape is given, for a wrong number of axes,
    and for more PEs than this machine has.
    """
    if (pes is None) == (shape is None):
        raise ArgumentError(f"give pes ({pes}) or shape ({shape}), exactly one")
    most = platform.max_pes() or MAX_COUNT
    if shape is None:
        return application.shape_of(as_integer("pes", pes, 1, most))
    lengths = tuple(as_integer("axis length", length, 1, most) for length in shape)
    if len(lengths) != application.axes:
        raise ArgumentError(
            f"{application.name} needs a shape of {application.axes} axes; {format_shape(lengths)}"
            f" has {len(lengths)}"
        )
    if prod(lengths) > most:
        raise ArgumentError(
            f"shape {format_shape(lengths)} has {prod(lengths)} PEs; this machine has {most}"
        )
    return lengths


def with_defaults(options: Options) -> Options:
    """Return options with two defaults: the coherence policy of the DIMMs and the SDK's number
    of threads.
    """
    threads = options.get("threads") or platform.threads()
    return options_of(
        **{
            **options,
            "coherence": options.get("coherence") or platform.COHERENCE,
            "threads": threads,
        }
    )


def require_technique(name: str, shape: Sequence[int], options: Options) -> None:
    """Raise ArgumentError if a technique lacks a collective or the shape, or if options are
    invalid.
    """
    if name not in TECHNIQUES_OF_APPLICATIONS:
        raise ArgumentError(
            f"technique {name!r} does not support all collectives; use"
            f" {', '.join(TECHNIQUES_OF_APPLICATIONS)}"
        )
    size = WORD_BYTES * prod(shape)  # a block for each PE
    own = with_scratch(options_of(**{**options, "technique": name}), 2 * size)
    try:
        plan(
            "alltoall", tuple(shape), "1" * len(shape), bytes=size, dst=size, dtype="uint64", **own
        )
    except ArgumentError as error:
        _, _, rule = str(error).partition(": ")
        raise ArgumentError(rule or str(error)) from None


def heaviest_bytes(run: Run) -> int:
    """Return the bytes per PE in the largest call of the collective that takes the most time in
    a run.
    """
    return max(
        (run.costs[name] for name in run.collectives), key=lambda cost: cost.total, default=Cost()
    ).bytes_per_pe


def transfer_condition(shape: Sequence[int], size_bytes: int, options: Options) -> SdkCondition:
    """Return whether a comparison with `conventional` is fair. It is not fair if the emulated SDK
    is too slow.

    size_bytes: bytes per PE of the timed transfers, as in the most expensive collective. Needs 8 *
    size_bytes of memory per PE.
    """
    make_transfers_alike(options)
    problem = Problem("gather", tuple(shape), "1" * len(shape), size_bytes, "int32")
    with allocate(pes=prod(shape)) as pe_set:
        return measure_sdk(
            pe_set.hypercube(*shape),
            size_bytes,
            options,
            Scratch([problem]),
            rounds=CONDITION_ROUNDS,
        )


def count_wrong(result: Array, expected: Array) -> int:
    """Return the number of elements that differ from `expected`.

    If shapes or types differ, all elements count.
    """
    if result.shape != expected.shape or result.dtype != expected.dtype:
        return max(result.size, expected.size, 1)
    return int(np.count_nonzero(result != expected))


def reference_seconds(problem: Application) -> float:
    """Return the median time of the reference with all CPUs or with one CPU, whichever is shorter.

    For a small input one CPU can be faster than all CPUs, because threads may wait for a CPU that
    another process uses.
    """
    from pidcomm_studies.apps import _apps

    best = inf
    everything = _apps.set_threads(1)
    try:
        for threads in (everything, 1):
            _apps.set_threads(threads)
            spent: list[float] = []
            while len(spent) < REFERENCE_RUNS or (
                sum(spent) < REFERENCE_SECONDS and len(spent) < 100
            ):
                begin = perf_counter()
                problem.reference()
                spent.append(perf_counter() - begin)
            best = min(best, median(spent))
    finally:
        _apps.set_threads(everything)
    return best
