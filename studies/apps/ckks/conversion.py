"""Base conversions of a homomorphic multiplication: residues modulo some primes to residues
modulo others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from pidcomm.arguments import Array
from pidcomm_studies.apps.ckks.scheme import Parameters
from pidcomm_studies.apps.ntt.transforms import factors


@dataclass(frozen=True)
class Conversion:
    """The constants of a base conversion: y_i = x_i weights[i], and the sum of y_i factors[t][i]
    modulo each target.

    is_rounded: for a single source q, whether results are from -q / 2 to q / 2, in place of 0 to q.
    """

    sources: tuple[int, ...]
    targets: tuple[int, ...]
    is_rounded: bool = False

    @property
    def half(self) -> int:
        """What is added to a source, and subtracted from the results."""
        return self.sources[0] // 2 if self.is_rounded else 0

    @property
    def weights(self) -> list[int]:
        """The inverse of the product of the other sources, modulo each source."""
        whole = prod(self.sources)
        return [pow(whole // q, -1, q) for q in self.sources]

    @property
    def factors(self) -> list[list[int]]:
        """The product of the other sources modulo each target, shape (targets, sources)."""
        whole = prod(self.sources)
        return [[whole // q % t for q in self.sources] for t in self.targets]

    def constants(self) -> Array:
        """Return the constants as the kernel reads them."""
        rows = []
        for w, q in zip(self.weights, self.sources, strict=True):
            rows += [factors([w], [q]), np.array([[q, self.half]], np.uint64)]
        for t, row in zip(self.targets, self.factors, strict=True):
            rows += [np.array([[t, self.half % t]], np.uint64), factors(row, [t] * len(row))]
        return np.concatenate(rows).ravel()


def conversions(parameters: Parameters) -> tuple[list[Conversion], Conversion, Conversion]:
    """Return the conversions of each digit to all other moduli, of the extension, and of the
    last modulus.
    """
    up = [
        Conversion(_of(parameters.all, digit), _without(parameters.all, digit))
        for digit in parameters.digits
    ]
    return (
        up,
        Conversion(parameters.extension, parameters.moduli),
        Conversion(parameters.moduli[-1:], parameters.moduli[:-1], is_rounded=True),
    )


def _of(values: Sequence[int], places: range) -> tuple[int, ...]:
    return tuple(values[places.start : places.stop])


def _without(values: Sequence[int], places: range) -> tuple[int, ...]:
    return (*values[: places.start], *values[places.stop :])
