"""Compare predictions with measurements on this machine, and with published numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from pidcomm import ArgumentError
from pidcomm.arguments import AUTO
from pidcomm.bench import platform
from pidcomm.bench.timing import COMPARED
from pidcomm.model import Machine, load_machine
from pidcomm.model.prediction import EMULATED_MACHINE
from pidcomm_studies.models.samples import MAX_TOTAL, Sample, Timer, draw, host_seconds
from pidcomm_studies.papers.pidcomm.experiments import PAPER_MACHINE, PAPER_PES, modelled_points
from pidcomm_studies.papers.pidcomm.published import PUBLISHED, Published

SEED = 2  # a seed that the calibration does not use
SAMPLES = 200
PERCENTILES = (5, 25, 50, 75, 95)


@dataclass(frozen=True)
class Compared:
    """The measured and the predicted host time of a collective on the same machine, without the
    time of PEs.
    """

    sample: Sample
    measured_us: float
    modelled_us: float

    @property
    def error_pct(self) -> float:
        """Return the predicted minus the measured time, in percent of the measured time."""
        return 100 * (self.modelled_us / self.measured_us - 1)


def compare(
    machine: str | Machine = EMULATED_MACHINE,
    *,
    samples: int = SAMPLES,
    seed: int = SEED,
    max_total: int = MAX_TOTAL,
    on_step: Callable[[], None] = lambda: None,
) -> list[Compared]:
    """Time random collectives on this machine, and predict their times. machine: a description of
    this machine.

    on_step is called after every sample. Raises ArgumentError if the description lacks an
    instruction set of this machine, or was fitted to samples of this seed.
    """
    on = load_machine(machine)
    if f"(seed {seed})" in " ".join(
        constant.source for constant in on.constants.values() if constant.kind == "fitted"
    ):
        raise ArgumentError(
            f"machine {on.name} is fitted to the samples of seed {seed}: use another seed"
        )
    drawn = draw(seed, samples, platform.threads(), max_total=max_total)
    if missing := {str(sample.options["isa"]) for sample in drawn} - set(on.isas):
        raise ArgumentError(
            f"machine {on.name} has no costs for {min(missing)}, which this machine runs"
        )
    compared = []
    with Timer(drawn) as timer:
        for sample in drawn:
            measured = timer.time(sample).seconds
            compared.append(
                Compared(sample, 1e6 * measured, 1e6 * host_seconds(sample.case(), on.numbers))
            )
            on_step()
    return compared


@dataclass(frozen=True)
class Errors:
    """The distribution of the errors of predictions, in percent. median_abs: the median of the
    absolute errors.
    """

    name: str
    count: int
    percentiles: dict[int, float]
    median_abs: float

    @staticmethod
    def of(name: str, compared: Iterable[Compared]) -> Errors:
        """Return the distribution of at least one comparison."""
        errors = np.array([comparison.error_pct for comparison in compared])
        percentiles = {
            p: float(value)
            for p, value in zip(PERCENTILES, np.percentile(errors, PERCENTILES), strict=True)
        }
        return Errors(name, len(errors), percentiles, float(np.median(np.abs(errors))))


def distributions(compared: Sequence[Compared]) -> Iterator[Errors]:
    """Yield the distribution of all errors, then a distribution for each technique and for each
    collective.
    """
    yield Errors.of("all", compared)
    techniques = [str(comparison.sample.options["technique"]) for comparison in compared]
    collectives = [comparison.sample.problem.collective for comparison in compared]
    for names in (techniques, collectives):
        for name in sorted(set(names)):
            yield Errors.of(
                name,
                [comparison for comparison, of in zip(compared, names, strict=True) if of == name],
            )


@dataclass(frozen=True)
class Choice:
    """A collective that was timed with the choice of auto and with other techniques.

    measured_us: the time in us by technique.
    """

    sample: Sample
    chosen: str
    measured_us: dict[str, float]

    def loss(self, technique: str) -> float:
        """Return the time of a technique over the time of the fastest technique."""
        return self.measured_us[technique] / min(self.measured_us.values())


def choose(
    machine: str | Machine = EMULATED_MACHINE,
    *,
    samples: int = SAMPLES,
    seed: int = SEED,
    max_total: int = MAX_TOTAL,
    on_step: Callable[[], None] = lambda: None,
) -> list[Choice]:
    """Time random collectives with `tile`, `conventional` and the choice of `auto` for this
    machine.

    on_step is called after every sample.
    """
    on = load_machine(machine)
    drawn = draw(seed, samples, platform.threads(), max_total=max_total)
    choices = []
    with Timer(drawn) as timer:
        for sample in drawn:
            chosen = auto_choice(sample, on)
            variants = [sample.with_technique(name) for name in dict.fromkeys((*COMPARED, chosen))]
            measured = {
                str(variant.options["technique"]): 1e6 * timer.time(variant).seconds
                for variant in variants
            }
            choices.append(Choice(sample.with_technique(chosen), chosen, measured))
            on_step()
    return choices


def auto_choice(sample: Sample, machine: Machine) -> str:
    """Return the technique that auto would choose for a sample on a machine, without scratch."""
    return sample.case(technique=AUTO, scratch=None).predict(machine).technique


FITTED, HELD_OUT, NOT_USED = "fitted", "held out", "not in the fit"
USES = (FITTED, HELD_OUT, NOT_USED)
UNUSED = {
    "fig14.broadcast": "1 by construction",
    "fig17.im": "the product of fig16.pr and fig16.im",
    "fig19.1024": "the product of fig16.pr, fig16.im and the root of fig16.cm",
    "fig23a.tree": "an upper limit, and far from the other ratios",
}
"""Published numbers that the fit (`pidcomm_studies.models.paper_fit`) does not use, and the
reasons.
"""
FITTED_TO = "fitted: to the numbers that PID-Comm (ISCA 2024) states"
"""The source of the constants that `pidcomm_studies.models.paper_fit` chooses."""


@dataclass(frozen=True)
class PublishedCheck:
    """A published number and its prediction. use: one of USES. why: the reason if the fit does
    not use the number.
    """

    published: Published
    modelled: float
    use: str
    why: str | None

    @property
    def error_pct(self) -> float:
        """Return the predicted minus the published value, in percent of the published value."""
        return 100 * (self.modelled / self.published.value - 1)


def check_published(machine: str | Machine = PAPER_MACHINE) -> list[PublishedCheck]:
    """Return every published number with its prediction.

    All numbers except UNUSED are fitted if the machine has constants with the source
    FITTED_TO; otherwise they are held out. Raises ArgumentError unless the machine has the same
    number of PEs as the paper's machine.
    """
    on = load_machine(machine)
    if on.pes != PAPER_PES:
        raise ArgumentError(
            f"machine {on.name} has {on.pes} PEs; the published numbers are for {PAPER_PES}"
        )
    is_fitted = any(constant.source == FITTED_TO for constant in on.constants.values())
    checks = []
    for key, value in modelled_points(on).items():
        why = UNUSED.get(key)
        use = NOT_USED if why else FITTED if is_fitted else HELD_OUT
        checks.append(PublishedCheck(PUBLISHED[key], value, use, why))
    return checks
