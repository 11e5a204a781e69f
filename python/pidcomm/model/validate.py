"""How well predictions agree with what was measured here, and with what was published."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from pidcomm.bench import COMPARED
from pidcomm.errors import ArgumentError
from pidcomm.machine import machine as emulated_machine
from pidcomm.model.experiments import PAPER_MACHINE, modelled_points
from pidcomm.model.machines import Machine, load_machine
from pidcomm.model.prediction import DEFAULT_MACHINE
from pidcomm.model.published import PUBLISHED, Published
from pidcomm.model.samples import MAX_TOTAL, Sample, Timer, draw, host_seconds

SEED = 2  # not the one that calibration draws with
SAMPLES = 200
PERCENTILES = (5, 25, 50, 75, 95)


@dataclass(frozen=True)
class Compared:
    """A collective that was timed here and predicted for the same machine: the host's time, without PEs."""

    sample: Sample
    measured_us: float
    modelled_us: float

    @property
    def error_pct(self) -> float:
        """Return how much longer the prediction is, in percent of what was measured."""
        return 100 * (self.modelled_us / self.measured_us - 1)


def compare(
    machine: str | Machine = DEFAULT_MACHINE,
    *,
    samples: int = SAMPLES,
    seed: int = SEED,
    max_total: int = MAX_TOTAL,
    on_step: Callable[[], None] = lambda: None,
) -> list[Compared]:
    """Time random collectives on this machine, and predict them for `machine`, which should describe it.

    on_step is called after every sample. Raises ArgumentError if the machine lacks an instruction set of this one.
    """
    on = machine if isinstance(machine, Machine) else load_machine(machine)
    drawn = draw(seed, samples, emulated_machine().threads, max_total=max_total)
    if missing := {str(sample.options["isa"]) for sample in drawn} - set(on.isas):
        raise ArgumentError(f"machine {on.name} has no costs for {min(missing)}, which this machine runs")
    compared = []
    with Timer(drawn) as timer:
        for sample in drawn:
            measured = timer.time(sample).seconds
            compared.append(Compared(sample, 1e6 * measured, 1e6 * host_seconds(sample.arguments(), on.numbers)))
            on_step()
    return compared


@dataclass(frozen=True)
class Errors:
    """The distribution of errors of some predictions, in percent; median_abs is that of their sizes."""

    name: str
    count: int
    percentiles: dict[int, float]
    median_abs: float

    @staticmethod
    def of(name: str, compared: Iterable[Compared]) -> Errors:
        """Return the distribution of at least one comparison."""
        errors = np.array([it.error_pct for it in compared])
        percentiles = {
            p: float(value) for p, value in zip(PERCENTILES, np.percentile(errors, PERCENTILES), strict=True)
        }
        return Errors(name, len(errors), percentiles, float(np.median(np.abs(errors))))


def distributions(compared: Sequence[Compared]) -> Iterator[Errors]:
    """Yield the distribution of all errors, then by technique, and by collective."""
    yield Errors.of("all", compared)
    techniques = [str(it.sample.options["technique"]) for it in compared]
    collectives = [it.sample.problem.collective for it in compared]
    for names in (techniques, collectives):
        for name in sorted(set(names)):
            yield Errors.of(name, [it for it, of in zip(compared, names, strict=True) if of == name])


@dataclass(frozen=True)
class Choice:
    """A collective that was timed with every technique that auto chooses from here. measured_us: by technique."""

    sample: Sample
    chosen: str
    measured_us: dict[str, float]

    def loss(self, technique: str) -> float:
        """Return how many times as long as the fastest a technique takes."""
        return self.measured_us[technique] / min(self.measured_us.values())


def choose(
    machine: str | Machine = DEFAULT_MACHINE,
    *,
    samples: int = SAMPLES,
    seed: int = SEED,
    max_total: int = MAX_TOTAL,
    on_step: Callable[[], None] = lambda: None,
) -> list[Choice]:
    """Time random collectives with `tile` and `conventional`, and ask the model for one of the two, as auto does.

    The other techniques need scratch, or are there to compare with. on_step is called after every sample.
    """
    on = machine if isinstance(machine, Machine) else load_machine(machine)
    drawn = draw(seed, samples, emulated_machine().threads, max_total=max_total)
    choices = []
    with Timer(drawn) as timer:
        for sample in drawn:
            variants = {name: sample.with_technique(name) for name in COMPARED}
            modelled = {name: host_seconds(it.arguments(), on.numbers) for name, it in variants.items()}
            measured = {name: 1e6 * timer.time(it).seconds for name, it in variants.items()}
            choices.append(Choice(sample, min(COMPARED, key=lambda name: modelled[name]), measured))
            on_step()
    return choices


@dataclass(frozen=True)
class PublishedCheck:
    """A published number beside the predicted one. is_fitted: constants of the machine were fitted to it."""

    published: Published
    modelled: float
    is_fitted: bool

    @property
    def error_pct(self) -> float:
        """Return how much larger the prediction is, in percent of what is published."""
        return 100 * (self.modelled / self.published.value - 1)


def check_published(machine: str | Machine = PAPER_MACHINE) -> list[PublishedCheck]:
    """Return every published number beside its prediction.

    Fitted are those that a source of the machine's constants names after ``fitted:``; the others are held out.
    """
    on = machine if isinstance(machine, Machine) else load_machine(machine)
    fitted = " ".join(constant.source for constant in on.constants.values() if constant.kind == "fitted")
    words = set(fitted.replace(",", " ").split())
    return [PublishedCheck(PUBLISHED[key], value, key in words) for key, value in modelled_points(on).items()]
