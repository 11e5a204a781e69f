"""What an application is, and how it is run, timed and checked."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from time import perf_counter
from typing import Any, ClassVar

import numpy as np
import pidcomm
from pidcomm.apps.stage import KERNEL, Cost, Placement, Stage, require_room
from pidcomm.arguments import AUTO, MAX_COUNT, Array, Options, as_integer, with_scratch
from pidcomm.bench import BASE as BASE
from pidcomm.errors import ArgumentError
from pidcomm.machine import allocate
from pidcomm.measure import WORD_BYTES, Scratch, SdkCondition, make_transfers_alike, measure_sdk
from pidcomm.oracle import Problem
from pidcomm.plan import plan
from pidcomm.sizes import format_shape
from pidcomm.tables import COLLECTIVES, TECHNIQUES

CONDITION_BYTES = 256 << 10  # per PE, of the transfers that are timed to see whether comparing is fair
DEFAULT_OPTIONS: Options = {"coherence": "none"}
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
    costs: by phase, ``kernel`` and the names of collectives, in the order of their first use (`Cost`). setup: the same
    for what is placed once and stays, such as a graph or weights; it is in no total. cpu_seconds: of
    `Application.reference`, measured, the best of several; None if not asked for.
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
    def communication(self) -> Cost:
        """All collectives: measured; where PEs reorder blocks modelled, too."""
        return sum((cost for name, cost in self.costs.items() if name != KERNEL), Cost())

    @property
    def total(self) -> Cost:
        """Kernels and collectives."""
        return self.kernel + self.communication


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
    ``pidcomm.TECHNIQUES`` that are for all collectives, or auto. options: of the collectives but for technique and
    scratch. iters: how often each collective is carried out for its time, the median. with_cpu: whether to time the
    reference, too. on_phase: called with a few words before each phase.

    Raises ArgumentError, before anything is allocated, for what the problem, the machine or its memory forbid.
    """
    lengths = shape_for(type(problem), pes, shape)
    for name in techniques:
        require_technique(name, lengths)
    chosen: Options = {**DEFAULT_OPTIONS, "threads": pidcomm.machine().threads, **(options or {})}
    repeats = as_integer("iters", iters, 1)
    placement = problem.place(lengths)
    require_room(placement, lengths, techniques)
    on_phase("reference")
    expected, cpu_seconds = _reference(problem, repeats if with_cpu else 1)
    make_transfers_alike(chosen)
    with allocate(pes=prod(lengths)) as pe_set:
        for technique in techniques:
            on_phase(f"{technique}: compiling")
            with Stage(pe_set, lengths, placement, {**chosen, "technique": technique}, repeats, on_phase) as stage:
                stage.poison()
                result = problem.run(stage)
            yield Run(
                application=problem.name,
                facts=problem.facts,
                shape=lengths,
                technique=technique,
                result=result,
                wrong=count_wrong(result, expected),
                costs=stage.costs,
                setup=stage.setup,
                cpu_seconds=cpu_seconds if with_cpu else None,
            )


def shape_for(application: type[Application], pes: int | None, shape: Sequence[int] | None) -> tuple[int, ...]:
    """Return the shape that is given, or that of so many PEs. Raises ArgumentError for both, none and other axes."""
    if (pes is None) == (shape is None):
        raise ArgumentError(f"give pes ({pes}) or shape ({shape}), one of them")
    if shape is None:
        return application.shape_of(as_integer("pes", pes, 1, MAX_COUNT))
    lengths = tuple(as_integer("axis length", length, 1, MAX_COUNT) for length in shape)
    if len(lengths) != application.axes:
        raise ArgumentError(
            f"{application.name} needs a shape of {application.axes} axes; {format_shape(lengths)} has {len(lengths)}"
        )
    return lengths


def require_technique(name: str, shape: Sequence[int]) -> None:
    """Raise ArgumentError if a technique is not for all collectives, or not for a shape."""
    if name not in TECHNIQUES_OF_APPLICATIONS:
        raise ArgumentError(
            f"technique {name!r} is not one for all collectives; use {', '.join(TECHNIQUES_OF_APPLICATIONS)}"
        )
    size = WORD_BYTES * prod(shape)  # a block for each PE
    options = with_scratch({"technique": name}, 2 * size)
    plan("alltoall", tuple(shape), "1" * len(shape), bytes=size, dst=size, dtype="uint64", **options)


def transfer_condition(shape: Sequence[int], options: Options) -> SdkCondition:
    """Return whether comparing with `conventional` on so many PEs is fair: the emulated SDK may be too slow for it.

    Needs 8 times CONDITION_BYTES of memory for each PE.
    """
    make_transfers_alike(options)
    problem = Problem("gather", tuple(shape), "1" * len(shape), CONDITION_BYTES, "int32")
    with allocate(pes=prod(shape)) as pe_set:
        return measure_sdk(pe_set.hypercube(*shape), CONDITION_BYTES, options, Scratch([problem]), rounds=3)


def count_wrong(result: Array, expected: Array) -> int:
    """Return in how many elements two arrays differ; all, if they differ in shape or type."""
    if result.shape != expected.shape or result.dtype != expected.dtype:
        return max(result.size, expected.size, 1)
    return int(np.count_nonzero(result != expected))


def _reference(problem: Application, times: int) -> tuple[Array, float]:
    seconds = []
    for _ in range(times):
        begin = perf_counter()
        expected = problem.reference()
        seconds.append(perf_counter() - begin)
    return expected, min(seconds)
