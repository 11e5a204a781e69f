"""Runs of the applications of the PID-Comm paper, priced on its machine.

Each application runs here, and its result is checked. Its collectives, launches and kernels are
then priced with every technique. The data sets of the paper are replaced by generated ones of their
kind.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import fsum
from typing import Any

from pidcomm import ArgumentError
from pidcomm.bench.oracle import Problem
from pidcomm.model import load_machine
from pidcomm.model.prediction import PAPER_MACHINE
from pidcomm_studies import apps
from pidcomm_studies.apps import Application, Run
from pidcomm_studies.apps.application import reference_seconds
from pidcomm_studies.papers.figure import Request
from pidcomm_studies.papers.pidcomm.experiments import ENDS, OURS, modelled_cost

KERNEL, OTHER = "kernel", "other"
CATEGORIES: Mapping[str, tuple[str, ...]] = {
    "host memory": ("memory",),
    "modulation": ("shuffle", "combine"),
    "domain transfer": ("transpose",),
    "PE memory": ("bus", "lines", "flush", "mux"),
    "PE-side modulation": ("pe",),
    OTHER: ("call", "launch", "load"),
}
"""The slides' parts of the time of collectives, and the model's phases in each."""


@dataclass(frozen=True)
class Case:
    """An application of the paper with an input.

    label: the paper's names of application and data set. arguments: of the application's `make`.
    data: further arguments that make the input; a quick run leaves these out.
    """

    label: str
    application: str
    arguments: Mapping[str, Any]
    data: Mapping[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """Return what distinguishes the input from others."""
        return f"{self.application} {self.arguments} {self.data}"

    def make(self, *, is_quick: bool) -> Application:
        """Return the application with its input."""
        arguments = {"quick": True} if is_quick else self.data
        return apps.get(self.application).make(**self.arguments, **arguments)


def _graphs(application: str, **data: str) -> Iterator[Case]:
    for name, generate in data.items():
        yield Case(f"{application.upper()} {name}", application, {}, {"generate": generate})


def _gnn(strategy: str, dtype: str = "int32") -> Iterator[Case]:
    for name, data in (
        ("PM", {"generate": "skewed:vertices=19717,edges=44338", "features": 500}),
        # Reddit has 232,965 vertices, 114,615,892 edges and 602 features, which need 20 GiB of PEs.
        ("RD", {"generate": "rmat:scale=16,edges=16", "features": 64}),
    ):
        words = {"rs_ar": "RS&AR", "ar_ag": "AR&AG"}[strategy]
        yield Case(f"GNN {words} {name}", "gnn", {"strategy": strategy, "dtype": dtype}, data)


GOWALLA = "skewed:vertices=196591,edges=950327"
CASES = (
    *(Case(f"DLRM {width}", "dlrm", {"embedding": width}) for width in (16, 32)),
    *_gnn("rs_ar"),
    *_gnn("ar_ag"),
    *_graphs("bfs", LG=GOWALLA, LJ="skewed:vertices=3997962,edges=34681189"),
    # Each PE has the labels of all vertices; those of bfs's graph take 30 GiB.
    *_graphs("cc", LG=GOWALLA, LJ="rmat:scale=19,edges=16"),
    Case("MLP 16k", "mlp", {}, {"features": 16384}),
)
"""The cases of figures 4, 13, 15 and 21. The paper also has MLP with 32k features."""
DTYPES = ("int8", "int16", "int32")
WIDTHS = tuple(
    Case(f"{case.label} {dtype}", "gnn", case.arguments, case.data)
    for dtype in DTYPES
    for strategy in ("rs_ar", "ar_ag")
    for case in _gnn(strategy, dtype)
)
"""The cases of figure 22."""


@dataclass(frozen=True)
class Priced:
    """The seconds of an application on the paper's machine with one technique: of its kernels, of
    each collective by the model's phases, and of launches and of the host's own work.
    """

    kernel: float
    collectives: Mapping[str, Mapping[str, float]]
    other: float

    @property
    def communication(self) -> float:
        """Return the seconds of all collectives."""
        return fsum(fsum(phases.values()) for phases in self.collectives.values())

    @property
    def total(self) -> float:
        """Return the seconds of the application."""
        return self.kernel + self.communication + self.other

    def part(self, category: str) -> float:
        """Return the seconds of collectives in one of CATEGORIES."""
        return fsum(
            phases[name] for phases in self.collectives.values() for name in CATEGORIES[category]
        )


def price(run: Run, technique: str) -> Priced:
    """Return the time of a run on the paper's machine, with a technique.

    Kernels take the cycles that the emulator counted; work of the host outside collectives takes
    the time measured here.
    """
    machine = load_machine(PAPER_MACHINE)
    collectives: dict[str, dict[str, float]] = {}
    for call in run.calls:
        problem = Problem(
            call.collective,  # type: ignore[arg-type]
            run.shape,
            call.mask,
            call.bytes_per_pe,
            call.dtype,
            call.op or "sum",  # type: ignore[arg-type]
        )
        cost = modelled_cost(problem, technique, machine)
        phases = collectives.setdefault(call.collective, {})
        for name, spent_us in (cost.phases_us or {}).items():
            phases[name] = phases.get(name, 0.0) + 1e-6 * spent_us
    # A launch needs the variables of its program, as a reordering needs jobs.
    job_us = machine["pe.jobs_us"] + run.pes * machine["pe.job_us"]
    launches = 1e-6 * run.total.launches * (machine.launch_us(run.pes) + job_us)
    return Priced(run.kernel.modelled, collectives, launches + run.host.measured)


class Runs:
    """The runs that the figures of a request share."""

    def __init__(self, request: Request) -> None:
        """Run nothing yet."""
        self._request = request
        self._problem: tuple[str, Application] | None = None
        self._runs: dict[tuple[str, int, str], Run] = {}
        self._prices: dict[tuple[str, int], dict[str, Priced]] = {}
        self._cpu_seconds: dict[str, float] = {}
        self._refused: set[tuple[str, int, tuple[str, ...]]] = set()

    def prices(self, case: Case, pes: int) -> dict[str, Priced]:
        """Return the price of a case with each technique of ENDS; none if the case does not fit the
        PEs or this machine.
        """
        key = case.key, pes
        if key not in self._prices:
            runs = self.run(case, pes, (OURS,))
            self._prices[key] = {name: price(run, name) for run in runs for name in ENDS}
        return self._prices[key]

    def run(self, case: Case, pes: int, techniques: tuple[str, ...]) -> list[Run]:
        """Run a case with each technique, and return the runs; none if it does not fit. Techniques
        of one call are timed in the same rounds, so that their times are comparable.
        """
        if (case.key, pes, techniques) in self._refused:
            return []
        if any((case.key, pes, name) not in self._runs for name in techniques):
            self._request.progress.phase(f"{case.label}, {pes} PEs")
            try:
                iters = max(1, self._request.iters)
                for run in apps.compare(
                    self._of(case), pes=pes, techniques=techniques, iters=iters
                ):
                    self._runs[case.key, pes, run.technique] = run
                    if run.wrong:
                        self._request.wrong.append(
                            f"{case.label} with {run.technique} on {pes} PEs: {run.wrong} wrong"
                            " elements"
                        )
            except ArgumentError as error:
                self._refused.add((case.key, pes, techniques))
                self._request.skip([ArgumentError(f"{case.label}, {pes} PEs: {error}")])
                return []
        return [self._runs[case.key, pes, name] for name in techniques]

    def cpu_seconds(self, case: Case) -> float:
        """Return the time of the reference on the CPUs of this host."""
        if case.key not in self._cpu_seconds:
            self._cpu_seconds[case.key] = reference_seconds(self._of(case))
        return self._cpu_seconds[case.key]

    def _of(self, case: Case) -> Application:
        """Return the application with its input; keeps the last one only, because it is large."""
        if self._problem is None or self._problem[0] != case.key:
            self._problem = None
            self._problem = case.key, case.make(is_quick=self._request.quick)
        return self._problem[1]
