"""Fit the paper's machine to the numbers that the PID-Comm paper states."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from pidcomm.model import Machine, load_machine
from pidcomm.model.prediction import PAPER_MACHINE
from pidcomm_studies.models.validate import FITTED_TO, UNUSED
from pidcomm_studies.papers.pidcomm.experiments import modelled_points
from pidcomm_studies.papers.pidcomm.published import PUBLISHED

START = {
    "bus.read_gb_s": 13.4,  # 70% of the peak of DDR4-2400
    "bus.write_gb_s": 13.4,
    "memory.read_gb_s": 38,  # two channels of DDR4-2667: 90% of their peak
    "memory.write_gb_s": 25,  # 60%: a store reads its line first
    "sdk.from_gb_s": 4.74,  # one rank in PrIM's microbenchmarks
    "sdk.to_gb_s": 6.68,
    "work.copy_gb_s": 0.5,  # of a thread
    "work.scalar_combine_gb_s": 0.5,
    "isa.avx512bw.transpose_ns": 20,  # with a flush and a fence between loads and stores
    "isa.avx512bw.combine_ns": 20,
}
"""The constants that the fit changes, and the values to which it draws them."""
POINTS = tuple(key for key in PUBLISHED if key not in UNUSED)
"""The published numbers of the fit."""
# A constant that differs from its start value by a factor of e costs as much as an error of a
# published number by this share.
_PULL = 0.1


def fit(points: Sequence[str] = POINTS, first: Machine | None = None) -> Machine:
    """Return the paper's machine with constants fitted to published numbers, by least squares over
    the logarithms of errors.

    first: a machine with which the search begins.
    """
    machine = load_machine(PAPER_MACHINE)
    start = np.log(list(START.values()))
    targets = np.log([PUBLISHED[key].value for key in points])

    def changed(logs: NDArray[np.float64]) -> Machine:
        values = dict(zip(START, map(float, np.exp(logs)), strict=True))
        return machine.with_values(values, FITTED_TO)

    def residuals(logs: NDArray[np.float64]) -> NDArray[np.float64]:
        modelled = modelled_points(changed(logs))
        errors = np.log([modelled[key] for key in points]) - targets
        return np.concatenate([errors, _PULL * (logs - start)])

    begin = start if first is None else np.log([first[name] for name in START])
    solution = least_squares(residuals, begin, diff_step=1e-3, x_scale=0.1, xtol=1e-4)
    return changed(solution.x)


def left_out(
    *, whole_figures: bool, on_step: Callable[[], None] = lambda: None
) -> dict[str, float]:
    """Return the prediction of each number of the fit by a fit without this number.

    whole_figures: whether the fit is also without the other numbers of the figure, which have calls
    in common. on_step: called after each number.
    """
    predictions, machine = {}, load_machine(PAPER_MACHINE)
    for key in POINTS:
        figure = key.partition(".")[0] + "."
        others = [
            other
            for other in POINTS
            if other != key and not (whole_figures and other.startswith(figure))
        ]
        predictions[key] = modelled_points(fit(others, machine))[key]
        on_step()
    return predictions
